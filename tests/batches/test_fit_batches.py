"""`fit_batches`: every source gives the bits of `fit`, within the memory limit."""

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from comparing import assert_same_staircase
from hypothesis import given
from hypothesis import strategies as st
from strategies import rows

import staircase_fast as sf

RNG = np.random.default_rng(17)
N = 20_000
X = RNG.normal(size=N).round(3)
Y = (RNG.random(N) < 1 / (1 + np.exp(-X))).astype(np.int64)
W = RNG.integers(0, 3, N) / 4
CUTS = [0, 10, 10, 7000, 19_999, N]
EXPECTED = sf.fit(X, Y)
WEIGHTED = sf.fit(X, Y, sample_weight=W)


def pieces(*columns):
    return [tuple(column[a:b] for column in columns) for a, b in itertools.pairwise(CUTS)]


def dicts():
    return [{"s": x, "y": y, "w": w, "other": x} for x, y, w in pieces(X, Y, W)]


def check(source, **options):
    assert_same_staircase(sf.fit_batches(source, "s", "y", **options), EXPECTED)
    assert_same_staircase(sf.fit_batches(source, score="s", target="y", weight="w", **options), WEIGHTED)


def test_batches_in_memory():
    assert_same_staircase(sf.fit_batches(pieces(X, Y)), EXPECTED)
    assert_same_staircase(sf.fit_batches(pieces(X, Y, W), n_threads=3), WEIGHTED)
    check(dicts())
    check({"s": X, "y": Y, "w": W})


def test_a_function_that_returns_an_iterator():
    check(lambda: iter(dicts()))
    check(dicts, n_threads=2)
    assert_same_staircase(sf.fit_batches(lambda: (piece for piece in pieces(X, Y))), EXPECTED)


def test_an_iterator_is_read_once():
    assert_same_staircase(sf.fit_batches(iter(pieces(X, Y)), n_threads=2), EXPECTED)
    assert_same_staircase(sf.fit_batches(iter(dicts()), "s", "y", "w"), WEIGHTED)


@given(rows(), st.integers(1, 5), st.sampled_from([True, False, "auto"]))
def test_any_rows(drawn, size, rising):
    batches = [tuple(column[i : i + size] for column in drawn) for i in range(0, len(drawn.scores), size)]
    expected = sf.fit(drawn.scores, drawn.targets, sample_weight=drawn.weights, increasing=rising)
    assert_same_staircase(sf.fit_batches(batches, increasing=rising, n_threads=2), expected)


def test_data_frames():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for frame in (pandas.DataFrame, polars.DataFrame):
        check([frame(batch) for batch in dicts()])
        check(frame({"s": X, "y": Y, "w": W}))
    check(polars.LazyFrame({"s": X, "y": Y, "w": W, "other": X}))


def test_arrow_tables_and_datasets(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import dataset

    table = pa.table({"other": X, "s": X, "y": Y, "w": W})
    check(table)
    check([pa.record_batch({name: batch[name] for name in ("s", "y", "w")}) for batch in dicts()])
    check(dataset.dataset(table))
    dataset.write_dataset(table, tmp_path, format="parquet", max_rows_per_file=6000, max_rows_per_group=1000)
    check(dataset.dataset(tmp_path))
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(1000))
    assert_same_staircase(sf.fit_batches(reader, "s", "y"), EXPECTED)


def test_duckdb_relations():
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    table = pa.table({"other": X, "s": X, "y": Y, "w": W})
    check(duckdb.from_arrow(table), n_threads=2)


@pytest.mark.parametrize("form", ["parquet", "csv", "csv.gz", "tsv", "arrow", "arrows"])
def test_files_folders_and_patterns(form, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    paths = []
    for place, batch in enumerate(dicts()):
        table = pa.table(batch)
        paths.append(str(tmp_path / f"part-{place}.{form}"))
        if form == "parquet":
            parquet.write_table(table, paths[-1], row_group_size=1500)
        elif form in ("arrow", "arrows"):
            new = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
            with new(paths[-1], table.schema) as writer:
                writer.write_table(table, 700)
        else:
            with pa.output_stream(paths[-1]) as stream:  # compresses by extension
                csv.write_csv(table, stream, csv.WriteOptions(delimiter="\t" if form == "tsv" else ","))
    (tmp_path / "notes.md").write_text("not a table")
    for source in (paths, tmp_path, str(tmp_path / "part-?.*"), [*paths[:2], str(tmp_path / "part-[2-9].*")]):
        check(source, n_threads=2)
    with pytest.raises(sf.InvalidInputError, match=r"part-0.*(no column 'z'|'z' in include_columns)"):
        sf.fit_batches(paths, "z", "y")


def test_errors_name_the_file_the_column_and_the_row(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    x = X.copy()
    x[4321] = np.nan
    path = tmp_path / "scores.parquet"
    parquet.write_table(pa.table({"s": x, "y": Y}), path, row_group_size=1000)
    with pytest.raises(sf.InvalidInputError, match=r"scores\.parquet: column 's' must not be NaN; got nan in row 4321"):
        sf.fit_batches(path, "s", "y", n_threads=2)
    with pytest.raises(sf.InvalidInputError, match=r"batch 1: `scores` must not be NaN; got nan at index 1\."):
        sf.fit_batches([([1.0], [1]), ([1.0, np.nan], [1, 0])])


@pytest.mark.parametrize("name", ["part-1.parquet", "part-1.arrow"])
def test_a_file_that_cannot_be_read_is_named(name, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"s": X, "y": Y}), tmp_path / "part-0.parquet")
    (tmp_path / name).write_bytes(b"this is not a table")
    with pytest.raises(sf.InvalidInputError, match=re.escape(name) + ": "):
        sf.fit_batches(tmp_path, "s", "y")
    with pytest.raises(FileNotFoundError, match=r"none\.parquet"):
        sf.fit_batches(tmp_path / "none.parquet", "s", "y")


def test_hidden_names_in_a_folder_are_ignored(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"s": X, "y": Y})
    for name in ("rows.parquet", ".copies/rows.parquet", "day=1/_rows.parquet", "_temporary/0/rows.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        parquet.write_table(table, tmp_path / name)
    assert sf.fit_batches(tmp_path, "s", "y") == sf.fit(X, Y)


def test_files_in_a_folder_that_are_no_tables_are_ignored(tmp_path):
    (tmp_path / "rows.csv").write_text("s,y\n1,0\n2,1\n")
    for name in ("README.txt", "notes.TXT.gz", "model.json", "_SUCCESS", "rows.csv.crc"):
        (tmp_path / name).write_text("not a table")
    assert sf.fit_batches(tmp_path, "s", "y") == sf.fit([1, 2], [0, 1])
    (tmp_path / "rows.csv").rename(tmp_path / "rows.txt")
    message = (
        f"{tmp_path}: there are no Parquet, CSV or Arrow files. Pass files with other extensions by name or pattern."
    )
    with pytest.raises(sf.InvalidInputError, match=re.escape(message)):
        sf.fit_batches(tmp_path, "s", "y")
    assert sf.fit_batches(tmp_path / "rows.txt", "s", "y") == sf.fit([1, 2], [0, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "`scores` must have at least one row; got none"),
        ((3,), "`source` must be files, a dataset"),
        (("nothing-here-*.parquet", "s", "y"), r"nothing-here-\*.parquet: there are no Parquet"),
        ((__file__, "s", "y"), "`source` must be files with one of the extensions"),
        (([{"s": [1], "y": [1]}],), "`score` must be the name of a column; got None"),
        (([{"s": [1], "y": [1]}], "s", "z"), r"batch 0: there is no column 'z'; the columns are 's', 'y'\.$"),
        (([([1],)],), "batch 0: `source` must have batches"),
        (([7], "s", "y"), "batch 0: `source` must have batches that are tables"),
        ((lambda: 3,), "`source` must return an iterator of batches"),
        (([([1], [1])], 5), "`score` must be the name of a column; got 5"),
    ],
)
def test_invalid_sources(arguments, message):
    with pytest.raises(sf.InvalidInputError, match=message):
        sf.fit_batches(*arguments)


@pytest.mark.parametrize("name", ["nothing-here", "nothing-here.xlsx", "nothing-here.csv", "nothing-here.parquet"])
def test_a_path_that_does_not_exist_is_named(name):
    with pytest.raises(FileNotFoundError, match=name):
        sf.fit_batches(name, "s", "y")


def test_a_column_that_a_lazy_source_does_not_have_is_an_error(tmp_path):
    duckdb, pl, pa = (pytest.importorskip(name) for name in ("duckdb", "polars", "pyarrow"))
    from pyarrow import csv, dataset

    table = pa.table({"score": [0.1, 0.2], "label": [0, 1]})
    csv.write_csv(table, tmp_path / "rows.csv")
    for source in (
        tmp_path / "rows.csv",
        dataset.dataset(tmp_path / "rows.csv", format="csv"),
        pl.LazyFrame({"score": [0.1, 0.2], "label": [0, 1]}),
        duckdb.sql("SELECT 0.1 AS score, 1 AS label"),
    ):
        with pytest.raises(
            sf.InvalidInputError,
            match=r"there is no column 'scores'; the columns are 'score', 'label'\. Did you mean 'score'\?$",
        ):
            sf.fit_batches(source, "scores", "label")


@pytest.mark.parametrize("limit", ["", "GB", "1XB", "1.2.3MB", None, True, 1.5, "12", 100])
def test_invalid_memory_limits(limit):
    with pytest.raises(sf.InvalidInputError, match="`memory_limit` must be"):
        sf.fit_batches(pieces(X, Y), memory_limit=limit)


@pytest.mark.parametrize("limit", ["10MB", "0.5 gb", "100MiB", 10**7])
def test_memory_limits(limit):
    assert_same_staircase(sf.fit_batches(pieces(X, Y), memory_limit=limit), EXPECTED)


def test_a_source_that_changes_is_refused():
    n_calls = 0

    def changing():
        nonlocal n_calls
        n_calls += 1
        return iter(pieces(X[: N - n_calls], Y[: N - n_calls]))

    with pytest.raises(sf.InvalidInputError, match="`source` must return the same rows in each scan; got 19998 rows"):
        sf.fit_batches(changing)


def test_progress_is_reported_after_each_batch():
    seen = []
    sf.fit_batches(pieces(X, Y), progress=lambda *event: seen.append(event), n_threads=1)
    assert seen[0] == ("survey", 10, None)
    assert ("survey", N, None) in seen
    assert seen[-1] == ("collect", N, N)


def test_an_error_in_one_thread_ends_the_fit():
    before = threading.active_count()

    def batches():
        yield from pieces(X, Y)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        sf.fit_batches(batches, n_threads=3)
    assert threading.active_count() == before


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_an_interrupt_ends_the_fit():
    code = """
import itertools, numpy as np, staircase_fast as sf
x = np.random.default_rng(0).random(100_000)
print("begins", flush=True)
sf.fit_batches(lambda: ((x, x > 0.5) for _ in itertools.count()), n_threads=2)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begins\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 1)
    assert "KeyboardInterrupt" in errors


def test_the_package_imports_no_reader():
    code = (
        "import sys, staircase_fast; staircase_fast.fit_batches; print([m for m in sys.modules if m in "
        "('pyarrow', 'polars', 'pandas', 'duckdb')])"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"
