"""Columns that are invalid or broken raise an error that names the argument and the entry."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest
from protocols import Protocol, dlpack

import staircase_fast as sf


def on_another_device(column):
    made = dlpack(column)
    type(made).__dlpack_device__ = lambda self: (2, 1)
    return made


def that_says_no(column):
    made = dlpack(column)

    def refuse(self, **options):
        raise BufferError("not today")

    type(made).__dlpack__ = refuse
    return made


def tensor_with_gradients(column):
    made = Protocol(np.array(column), "__dlpack_device__")

    def refuse(self, dtype=None, copy=None):
        raise RuntimeError("call detach() first")

    type(made).__array__ = refuse
    return made


day = pd.Timestamp("2024-01-01")
MISSING = "`scores` must not have missing entries; got "
NOT_REAL = "`scores` must be real numbers; got "
REFUSED = {
    "pandas Int64": (pd.Series([1, None], index=[7, 8], dtype="Int64"), MISSING + "<NA> at index 1"),
    "pandas boolean": (pd.array([True, None], dtype="boolean"), MISSING + "<NA> at index 1"),
    "pandas category": (pd.Categorical([1, None]), MISSING + "<NA> at index 1"),
    "pandas category of strings": (pd.Categorical(["a", "b"]), NOT_REAL + "'a' at index 0"),
    "pandas int8[pyarrow]": (pd.Series([1, None], dtype=pd.ArrowDtype(pa.int8())), MISSING + "null at index 1"),
    "pandas strings": (pd.Series(["1.5"]), NOT_REAL + "'1.5' at index 0"),
    "pandas times": (pd.Series([day]), NOT_REAL + ".*datetime64.* at index 0"),
    "pandas zoned times": (pd.Series([day.tz_localize("UTC")]), NOT_REAL + "Timestamp.* at index 0"),
    "pandas periods": (pd.Series(pd.period_range("2024", periods=2)), NOT_REAL + "Period.* at index 0"),
    "pandas NaT among numbers": (pd.Series([1.0, pd.NaT], dtype=object), NOT_REAL + "NaT at index 1"),
    "pandas NA among numbers": ([1.0, pd.NA], NOT_REAL + "<NA> at index 1"),
    "pandas, no column": (day, NOT_REAL + r"Timestamp\('2024-01-01 00:00:00'\)\.$"),
    "pandas, column of columns": (pd.DataFrame({"a": [1, 2]}), r"one-dimensional; got shape \(2, 1\)"),
    "polars": (pl.Series([1, None]), MISSING + "null at index 1"),
    "polars, second chunk": (
        pl.concat([pl.Series([1, 2]), pl.Series([3, None])], rechunk=False), MISSING + "null at index 3"
    ),
    "polars Boolean": (pl.Series([True, None]), MISSING + "null at index 1"),
    "polars strings": (pl.Series(["1.5"]), NOT_REAL + "'1.5' at index 0"),
    "polars times": (pl.Series([day.date()]), NOT_REAL + "datetime.date.* at index 0"),
    "polars lists": (pl.Series([[1.0]]), NOT_REAL + r"Arrow data of type \+L"),
    "polars.DataFrame": (pl.DataFrame({"a": [1, 2]}), r"one-dimensional; got shape \(2, 1\)"),
    "polars.LazyFrame": (pl.LazyFrame({"a": [1, 2]}), NOT_REAL + r"<LazyFrame at \w+>\.$"),
    "another device": (on_another_device([1, 2]), "must be in CPU memory; got an array on device 1"),
    "DLPack that says no": (that_says_no([1, 2]), "`scores` must be an array that numpy can read; not today"),
    "tensor with gradients": (tensor_with_gradients([1, 2]), r"`scores` must be .*; call detach\(\) first"),
    "bytes": (b"\x01\x02", NOT_REAL + ".*x01"),
    "nothing": (None, NOT_REAL + r"None\. Pass a list, an array or a column of numbers\.$"),
    "a set": ({1}, NOT_REAL + r"\{1\}\. Pass `sorted\(scores\)`\.$"),
    "a large set": (set(range(1000)), NOT_REAL + r"\{0, 1, .{73}\.\.\.\. Pass `sorted"),
    "an integer of many digits": ([1, 10**5000], "must be within float64; got an integer of 16610 bits at index 1"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_the_error_for_an_invalid_column_names_the_entry(kind):
    given, message = REFUSED[kind]
    with pytest.raises((TypeError, ValueError), match=message):
        sf.fit(given, [0, 1])


def raised(error):
    raise error


BROKEN = {
    "KeyError": lambda: raised(KeyError("gone")),
    "OSError": lambda: raised(OSError(5, "the disk is gone")),
    "an error without words": lambda: raised(ZeroDivisionError()),
    "None": lambda: None,
    "a number": lambda: 3,
    "three numbers": lambda: (1, 2, 3),
}


@pytest.mark.parametrize("way", ["__array__", "__dlpack_device__", "__dlpack__"])
@pytest.mark.parametrize("given", BROKEN)
def test_the_error_for_a_broken_array_names_the_argument(way, given):
    methods = {"__dlpack_device__": lambda self: (1, 0)} if way == "__dlpack__" else {}
    broken = type("Broken", (), {**methods, way: lambda self, *args, **options: BROKEN[given]()})()
    for call, name in [
        (lambda: sf.fit(broken, [1.0]), "scores"),
        (lambda: sf.fit([1.0], broken), "targets"),
        (lambda: sf.fit([1.0], [1.0], sample_weight=broken), "sample_weight"),
        (lambda: sf.fit([1.0], [1.0]).predict(broken), "scores"),
        (lambda: sf.losses.Huber(broken), "delta"),
        (lambda: sf.Online().append(broken, 1.0), "score"),
    ]:
        with pytest.raises((TypeError, ValueError), match=f"`{name}` must be "):
            call()


def test_a_capsule_of_a_tensor_that_was_taken_is_an_error():
    capsule = np.arange(3.0).__dlpack__()
    numpy_reads = type("Once", (), {"__dlpack_device__": lambda self: (1, 0), "__dlpack__": lambda self, **_: capsule})
    np.from_dlpack(numpy_reads())
    with pytest.raises(ValueError, match="`scores` must be an array that numpy can read; "):
        sf.fit(numpy_reads(), [1.0, 2.0, 3.0])


def test_arguments_of_a_custom_loss_that_are_broken_are_an_error():
    broken = type("Broken", (), {"__array__": lambda self, *args, **options: BROKEN["KeyError"]()})()
    with pytest.raises(ValueError, match="`args` must be numbers or arrays; 'gone'"):
        sf.losses.Custom(lambda z, y, a: z - y, (broken,))


def test_a_memory_error_is_not_reported_as_a_broken_array():
    broken = type("Broken", (), {"__array__": lambda self, *args, **options: raised(MemoryError())})()
    for call in (lambda: sf.fit(broken, [1.0]), lambda: sf.Online().append(broken, 1.0)):
        with pytest.raises(MemoryError):
            call()
