"""Fits on a Spark cluster of two executors: the bits of `fit`, also if tasks or executors are killed, fail or wait."""

import contextlib
import math
import os
import shutil
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from comparing import assert_same_staircase

import staircase_fast as sf

pyspark = pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")
if not shutil.which("java"):
    pytest.skip("Spark needs Java", allow_module_level=True)

from pyspark import TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import IsotonicRegression
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import functions as F
from spark_cluster import HOSTS, cluster, has_executors, started

from staircase_fast import spark as sfs
from staircase_fast.spark import fits

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "docs"))
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors cannot import this module

# Spark's own warnings: about versions of pandas that it does not know yet, and sockets that Python closes
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
RNG = np.random.default_rng(0)
KILLS = int(os.environ.get("KILLS", "1"))  # how often the tests of faults run


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """Two executors, each a process of its own."""
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.chdir(folder)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", HOSTS[0])
        address = stack.enter_context(cluster(folder))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session = started(address)
        try:
            assert has_executors(session), f"the executors on {' and '.join(HOSTS)} did not start within a minute"
            yield session
        finally:
            session.stop()


@pytest.fixture
def executors(spark):
    """A function that waits for two executors and returns their numbers; lost ones are replaced by new numbers."""

    def running():
        assert has_executors(spark)
        return sorted(map(int, spark.sparkContext._jsc.sc().getExecutorIds().mkString(" ").split()))

    return running


def columns(n, kind="labels"):
    x = RNG.normal(size=n)
    if kind == "labels":
        return x, (RNG.random(n) < 1 / (1 + np.exp(-x))).astype(np.int8), None
    y = x + 2 * RNG.normal(size=n)
    return x, y, RNG.random(n) if kind == "weights" else None


def frame(spark, x, y, w=None, parts=5, **more):
    given = {"score": x, "target": y} | ({} if w is None else {"weight": w}) | more
    return spark.createDataFrame(pa.table(given)).repartition(parts).persist()


@pytest.mark.parametrize("kind", ["labels", "numbers", "weights"])
@pytest.mark.parametrize("parts", [1, 5, 11])
def test_fit_has_the_bits_of_fit_for_any_number_of_partitions(spark, kind, parts):
    x, y, w = columns(40_000, kind)
    df = frame(spark, x, y, w, parts)
    found = sfs.fit(df, score="score", target="target", weight=None if w is None else "weight")
    assert_same_staircase(found, sf.fit(x, y, sample_weight=w))


def test_fit_with_all_options_and_little_memory(spark, monkeypatch):
    x, y, w = columns(40_000, "weights")
    df = frame(spark, x, -y, w)
    scans = []
    scan = fits._scan
    monkeypatch.setattr(fits, "_scan", lambda task, *rest: scans.append(task.kind) or scan(task, *rest))
    options = {"increasing": "auto", "bounds": (-2, 2)}
    found = sfs.fit(df, F.col("score") * 2, "target", "weight", memory_limit=1_000_000, **options)
    assert_same_staircase(found, sf.fit(2 * x, -y, sample_weight=w, **options))
    assert scans.count("survey") > 1


def test_fit_of_ties_integers_floats_and_booleans(spark):
    x = RNG.integers(0, 50, 5000).astype(np.float32)
    y = RNG.random(5000) < 0.4
    assert_same_staircase(sfs.fit(frame(spark, x, y), "score", "target", loss="log"), sf.fit(x, y, loss="log"))
    z = RNG.integers(0, 2**62, 5000)
    assert_same_staircase(sfs.fit(frame(spark, x.astype(np.int32), z), "score", "target"), sf.fit(x, z))


def test_empty_partitions_and_one_row(spark):
    df = spark.createDataFrame([(1.5, 2.0)], "score double, target double").repartition(6)
    assert_same_staircase(sfs.fit(df, "score", "target"), sf.fit([1.5], [2.0]))


@pytest.mark.parametrize("kind", [int, str, bool])
def test_fit_groups_has_the_bits_of_fit_groups(spark, kind):
    x, y, w = columns(20_000, "weights")
    number = RNG.integers(-20, 20, len(x))
    group = number > 0 if kind is bool else number if kind is int else np.char.add("é", number.astype(str))
    df = frame(spark, x, y, w, group=group)
    found = sfs.fit_groups(df, score="score", target="target", group="group", weight="weight", increasing="auto")
    assert found == sf.fit_groups(x, y, group, sample_weight=w, increasing="auto")
    quantiles = sfs.fit_groups(df, "score", "target", "group", loss=sf.losses.Quantile(0.3))
    assert quantiles == sf.fit_groups(x, y, group, loss=sf.losses.Quantile(0.3))


@pytest.mark.parametrize("n", [300, 20_000])
@pytest.mark.parametrize("interpolation", ["step", "linear", "centered"])
@pytest.mark.parametrize("out_of_bounds", ["clip", "nan"])
def test_predict_has_the_values_of_predict(spark, n, interpolation, out_of_bounds):
    x, y, _ = columns(n, "labels" if n == 300 else "numbers")
    stairs = sf.fit(x, y if n == 300 else y + 20 * x)
    assert (stairs.n_steps < 64) == (n == 300)
    queries = np.concatenate([RNG.normal(size=500, scale=2), stairs.left, stairs.right, [-np.inf, np.inf]])
    df = spark.createDataFrame(pa.table({"score": queries}))
    options = {"interpolation": interpolation, "out_of_bounds": out_of_bounds}
    found = sfs.predict(stairs, df, score="score", output="odd `name`", **options).toArrow()
    np.testing.assert_array_equal(found["odd `name`"], stairs.predict(queries, **options))
    assert found.column_names == ["score", "odd `name`"]


@pytest.mark.parametrize("n_steps", [3, 100])
def test_predict_of_null_and_nan(spark, n_steps):
    stairs = sf.fit(np.arange(n_steps), np.arange(n_steps))
    df = spark.createDataFrame([(1.0,), (None,), (float("nan"),)], "score double")
    found = [row.calibrated for row in sfs.predict(stairs, df, "score").collect()]
    assert found[:2] == [1.0, None]
    assert np.isnan(found[2])


# Errors.


@pytest.mark.parametrize(
    ("column", "entry", "message"),
    [
        ("score", "double('NaN')", "column 'score' must not be NaN; got nan in row"),
        ("target", "NULL", "column 'target' must not have missing entries; got null in row"),
        ("weight", "-1.0", "column 'weight' must be >= 0; got -1.0 in row"),
    ],
)
def test_an_invalid_entry_raises_an_error_that_names_partition_column_and_row(spark, column, entry, message):
    df = frame(spark, *columns(4000, "weights"), group=np.arange(4000))
    df = df.withColumn(column, F.expr(f"IF(group = 1234, {entry}, {column})"))
    place = df.select("group", F.spark_partition_id()).where("group = 1234").head()[1]
    with pytest.raises(sf.InvalidInputError, match=rf"^partition {place}: {message} \d+\."):
        sfs.fit(df, "score", "target", "weight")
    with pytest.raises(sf.InvalidInputError, match=r"^partition \d: column"):
        sfs.fit_groups(df, "score", "target", F.col("group") % 7, "weight")


def test_errors_of_arguments(spark):
    df = frame(spark, *columns(10))
    with pytest.raises(sf.InvalidTypeError, match="`df` must be a Spark DataFrame"):
        sfs.fit(pa.table({}), "score", "target")
    with pytest.raises(sf.InvalidTypeError, match="`target` must be the name of a column"):
        sfs.fit(df, "score", 3)
    with pytest.raises(sf.InvalidTypeError, match="`loss` must have steps that are means"):
        sfs.fit(df, "score", "target", loss="quantile")
    with pytest.raises(sf.InvalidInputError, match="column 'score' must have at least one row"):
        sfs.fit(df.limit(0), "score", "target")
    with pytest.raises(sf.InvalidInputError, match="`df` must have at least one row"):
        sfs.fit_groups(df.limit(0), "score", "target", "score")
    with pytest.raises(sf.InvalidTypeError, match="`memory_limit` must be a number of bytes"):
        sfs.fit(df, "score", "target", memory_limit="much")
    with pytest.raises(sf.InvalidTypeError, match="`stairs` must be a Staircase"):
        sfs.predict(3, df, "score")
    with pytest.raises(sf.InvalidTypeError, match="`score` must be the name of a column, or a Column; got 3"):
        sfs.predict(sf.fit([1], [1]), df, 3)
    with pytest.raises(PySparkException, match="no_such"):
        sfs.fit(df, "no_such", "target")
    vectors = VectorAssembler(inputCols=["score"], outputCol="features").transform(df)
    with pytest.raises(PySparkException, match="index 1 is out of bounds"):
        sfs.StaircaseRegression(labelCol="target", featureIndex=1).fit(vectors)


def test_rows_that_change_between_scans_are_refused(spark):
    df = spark.range(20_000).select(F.rand().alias("score"), F.col("id").cast("double").alias("target"))
    changing = df.select(F.udf(lambda x: x + time.time_ns() % 1000, "double").asNondeterministic()("score"), "target")
    with pytest.raises(sf.InvalidInputError, match="`df` must return the same rows in each scan"):
        sfs.fit(changing.toDF("score", "target"), "score", "target")


# Faults.


class Faulty:
    """A task that does something bad the first time a scan of its kind reaches a moment.

    A link, named after the kind, then points to the number of the partition.  Another attempt adds a file.
    """

    def __init__(self, task, folder, fault, moment="add"):
        self.task, self.folder, self.fault, self.moment = task, folder, fault, moment

    def first(self):
        part, path = str(TaskContext.get().partitionId()), f"{self.folder}/{self.task.kind}"
        try:
            os.symlink(part, path)  # in one step, so one task is the first
        except FileExistsError:
            if os.readlink(path) == part:
                Path(f"{path} again").touch()
            return False
        return True

    def begin(self):
        scan = self.task.begin()
        method = getattr(scan, self.moment)

        def faulty(*arguments):
            result = method(*arguments)
            if self.first():
                self.fault()
            return result

        setattr(scan, self.moment, faulty)
        return scan


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def killed_with_its_executor():
    """The parent of this process starts workers; its own parent is the executor."""
    executor = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
    assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
    os.kill(int(executor), signal.SIGKILL)
    killed()


def failed():
    raise OSError("disk on fire")


def delayed():
    time.sleep(120)


def with_fault(monkeypatch, folder, fault, moment="add", once=True):
    scan = fits._scan

    def faulty_scan(task, *rest):
        faulty = Faulty(task, str(folder), fault, moment)
        if not once:
            faulty.first = lambda: True
        return scan(faulty, *rest)

    monkeypatch.setattr(fits, "_scan", faulty_scan)


def assert_fit_with_fault_has_the_bits_of_fit(spark, monkeypatch, folder, fault, moment="add"):
    x, y, w = columns(40_000, "weights")
    df = frame(spark, x, y, w)
    with_fault(monkeypatch, folder, fault, moment)
    assert_same_staircase(sfs.fit(df, "score", "target", "weight"), sf.fit(x, y, sample_weight=w))
    scans = {"peek", "survey", "collect"}
    assert {path.name for path in folder.iterdir()} == scans | {f"{scan} again" for scan in scans}


@pytest.mark.parametrize("repeat", range(KILLS))
@pytest.mark.parametrize("fault", [killed, failed])
@pytest.mark.parametrize("moment", ["add", "message"])
def test_a_task_that_is_killed_or_fails_and_runs_again_counts_once(spark, monkeypatch, tmp_path, fault, moment, repeat):
    assert_fit_with_fault_has_the_bits_of_fit(spark, monkeypatch, tmp_path, fault, moment)


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the executor in /proc")
@pytest.mark.parametrize("repeat", range(KILLS))
def test_an_executor_that_is_killed_during_each_scan_changes_no_bit(spark, executors, monkeypatch, tmp_path, repeat):
    before = executors()
    assert_fit_with_fault_has_the_bits_of_fit(spark, monkeypatch, tmp_path, killed_with_its_executor)
    assert executors()[-1] >= before[-1] + 3  # one is lost in each scan


@pytest.mark.parametrize("repeat", range(KILLS))
def test_a_slow_task_and_its_second_attempt_count_once(spark, executors, monkeypatch, tmp_path, repeat):
    executors()
    start = time.monotonic()
    assert_fit_with_fault_has_the_bits_of_fit(spark, monkeypatch, tmp_path, delayed)
    assert time.monotonic() - start < 120  # without a second attempt, each scan takes longer


def test_a_partition_that_always_fails_raises_an_error_that_names_it(spark, monkeypatch, tmp_path):
    df = frame(spark, *columns(1000), parts=1)
    with_fault(monkeypatch, tmp_path, failed, once=False)
    with pytest.raises(PySparkException, match=r"(?s)disk on fire.*in partition 0"):
        sfs.fit(df, "score", "target")


# Estimators.


def test_the_estimator_has_the_parameters_of_sparks_own(spark):
    ours, theirs = sfs.StaircaseRegression(), IsotonicRegression()
    assert {p.name for p in ours.params} == {p.name for p in theirs.params}
    for param in theirs.params:
        own = ours.getParam(param.name)
        assert ours.hasDefault(own) == theirs.hasDefault(param)
        assert not ours.hasDefault(own) or ours.getOrDefault(own) == theirs.getOrDefault(param)
    for name in dir(IsotonicRegression):
        if name.startswith(("set", "get")) and name[3:4].isupper():
            assert callable(getattr(ours, name)), name


@pytest.mark.parametrize("isotonic", [True, False])
@pytest.mark.parametrize("n", [200, 5000])
def test_the_model_agrees_with_sparks_own(spark, isotonic, n):
    x, y, w = columns(n, "weights")
    df = frame(spark, x.round(2), y if isotonic else -y, w)
    df = VectorAssembler(inputCols=["weight", "score"], outputCol="features").transform(df)
    options = {"labelCol": "target", "weightCol": "weight", "isotonic": isotonic, "featureIndex": 1}
    ours, theirs = (kind(**options).fit(df) for kind in (sfs.StaircaseRegression, IsotonicRegression))
    np.testing.assert_allclose(ours.boundaries, theirs.boundaries)
    np.testing.assert_allclose(ours.predictions, theirs.predictions, rtol=1e-9, atol=1e-12)
    assert ours.predict(0.123) == pytest.approx(theirs.predict(0.123))
    assert ours.numFeatures == theirs.numFeatures
    both = theirs.setPredictionCol("theirs").transform(ours.transform(df)).select("prediction", "theirs").toArrow()
    np.testing.assert_allclose(both["prediction"], both["theirs"], rtol=1e-9, atol=1e-12)


def test_estimator_and_model_are_saved_in_a_pipeline(spark, tmp_path):
    x, y, _ = columns(2000)
    df = frame(spark, x, y)
    regression = sfs.StaircaseRegression(labelCol="target", predictionCol="p").setFeatureIndex(0)
    pipeline = Pipeline(stages=[VectorAssembler(inputCols=["score"], outputCol="features"), regression])
    pipeline.save(str(tmp_path / "pipeline"))
    model = Pipeline.load(str(tmp_path / "pipeline")).fit(df)
    model.save(str(tmp_path / "model"))
    loaded = PipelineModel.load(str(tmp_path / "model"))
    assert_same_staircase(loaded.stages[1].staircase, sf.fit(x, y))
    assert loaded.stages[1].uid == model.stages[1].uid
    assert loaded.transform(df).select("p").toArrow() == model.transform(df).select("p").toArrow()


def test_a_cross_validator_chooses_the_direction(spark):
    x, y, _ = columns(2000)
    df = frame(spark, x, -y, parts=2)
    regression = sfs.StaircaseRegression(featuresCol="score", labelCol="target")
    grid = ParamGridBuilder().addGrid(regression.isotonic, [True, False]).build()
    search = CrossValidator(
        estimator=regression, estimatorParamMaps=grid, evaluator=RegressionEvaluator(labelCol="target"), numFolds=2
    )
    best = search.fit(df).bestModel
    assert best.getIsotonic() is False
    assert_same_staircase(best.staircase, sf.fit(x, -y, increasing=False))


def test_the_examples_of_the_tutorial_run(spark, tmp_path, monkeypatch):
    from test_readme import test_the_examples_of_a_page_run_and_print_what_it_shows as run_page

    run_page(ROOT / "docs" / "spark.md", tmp_path, monkeypatch)


@pytest.mark.parametrize("interpolation", ["step", "linear"])
@pytest.mark.parametrize("n", [5, 300])
def test_expressions_of_spark_sql_have_the_bits_of_predict(spark, n, interpolation):
    stairs = sf.fit(np.sort(RNG.normal(size=n)), np.sort(RNG.normal(size=n)))
    scores = np.concatenate([stairs.left, np.nextafter(stairs.left, -9), RNG.normal(size=500), [-np.inf, np.inf]])
    df = spark.createDataFrame(pa.table({"the `score`": scores}))
    for out_of_bounds in ("clip", "nan"):
        options = {"interpolation": interpolation, "out_of_bounds": out_of_bounds}
        rows = df.select("*", F.expr(stairs.to_sql("the `score`", dialect="spark", **options))).collect()
        given, found = np.array([[np.nan if value is None else value for value in row] for row in rows]).T
        assert np.array_equal(found, stairs.predict(given, **options), equal_nan=True)


@pytest.mark.parametrize("keys", [["a", "it's", "back\\slash", "分"], [-(2**63), 7, 2**63 - 1], [False, True]])
def test_expressions_of_spark_sql_find_the_group(spark, keys):
    groups = [keys[place] for place in RNG.integers(0, len(keys), 500)]
    scores = RNG.normal(size=500)
    found = sf.fit_groups(scores, RNG.random(500), groups)
    df = spark.createDataFrame(pa.table({"score": [*scores, np.nan, 0.5], "key": [*groups, keys[0], None]}))
    rows = df.select("score", "key", F.expr(found.to_sql("score", "key", dialect="spark"))).collect()
    missing = [value for score, key, value in rows if key is None or math.isnan(score)]
    assert missing == [None, None]
    known = [row for row in rows if row[2] is not None]
    x, g, values = zip(*known, strict=True)
    assert len(known) == 500
    assert list(values) == found.predict(x, list(g)).tolist()
