"""A user script with type annotations: `test_typing.py` checks it with mypy and runs it.

Each `type: ignore` marks a line that mypy must reject; an unused one is an error.
"""

import array
from pathlib import Path
from typing import Any, Literal, assert_type

import numpy as np
from numpy.typing import NDArray

import staircase_fast as sf
from staircase_fast.sklearn import StaircaseCalibrator, StaircaseRegressor
from staircase_fast.typing import Bounds, ColumnLike, Dialect, Interpolation

Floats = NDArray[np.float64]


class ArrowStream:
    """An array of any library that supports Arrow."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._array.__arrow_c_stream__(requested_schema)


class Tensor:
    """A tensor of any library that supports DLPack."""

    def __init__(self, array: Floats) -> None:
        self._array = array

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        return self._array.__dlpack__(stream=stream, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def calibrated(scores: ColumnLike, labels: ColumnLike, bounds: Bounds = None) -> sf.Staircase:
    return sf.fit(scores, labels, loss="log", bounds=bounds)


def inputs(stream: ArrowStream) -> None:
    x, y = np.array([0.1, 0.4, 0.35, 0.8]), [False, False, True, True]
    for column in (x, x.astype(np.float32), x.tolist(), array.array("d", x), memoryview(b"abcd"), Tensor(x), stream):
        assert_type(calibrated(column, y, (0, None)), sf.Staircase)


def results() -> None:
    stairs = sf.fit([1, 2, 3], [1.0, 3.0, 2.0], sample_weight=(1, 1, 2), increasing="auto")
    assert_type(stairs.values, Floats)
    assert_type(stairs.counts, NDArray[np.int64])
    assert_type(stairs.n_steps, int)
    assert_type(stairs(1.5), np.float64)
    assert_type(stairs(2), np.float64)
    assert_type(stairs(np.float32(2)), np.float64)
    assert_type(stairs([1.5, 2.5]), Floats)
    kind: Interpolation = "linear"
    assert_type(stairs.predict(np.ones(3), interpolation=kind, out=np.empty(3)), Floats)
    assert_type(sf.Staircase.from_json(stairs.to_json()), sf.Staircase)
    assert_type(stairs == stairs.loss, bool)
    line = sf.isotonic_regression([3, 1, 2])
    assert_type(line.x, Floats)
    assert_type(line.blocks, NDArray[np.intp])
    assert_type(sf.prefix_losses([1, 3, 2]), Floats)
    assert_type(sf.unimodal_regression([1, 3, 2]), sf.UnimodalResult)
    proof = sf.certify(stairs, [1, 2, 3], [1.0, 3.0, 2.0], sample_weight=[1, 1, 2])
    assert_type(proof.optimal, bool)
    assert_type(proof.gap, float)


def streams(folder: Path) -> None:
    online = sf.Online(loss=sf.losses.SquaredError())
    assert_type(online.append(1, 2.0), None)
    online.extend([2, 3], [True, False], sample_weight=np.ones(2))
    assert_type(online.predict(2.5), np.float64)
    assert_type(online([2.5], out_of_bounds="nan"), Floats)
    seen = sf.Accumulator("log", increasing=False)
    seen.add(np.ones(2), [0, 1])
    seen.save(folder / "seen.npz")
    assert_type(sf.Accumulator.load(str(folder / "seen.npz")), sf.Accumulator)
    assert_type(seen.predict(1), np.float64)
    assert_type(seen.predict([1], interpolation="linear"), Floats)
    rounds = sf.Anytime([1, 2], [1.0, 0.5], loss=sf.losses.LogCosh())
    assert_type(rounds.refine(max_rounds=3), Literal["tol", "max_rounds", "max_seconds", "precision"])
    assert_type(rounds.lower, Floats)


def groups() -> None:
    found = sf.fit_groups([1, 2, 3], [0, 1, 1], ["a", "a", "b"])
    assert_type(found, sf.StaircaseMap)
    assert_type(found["a"], sf.Staircase)
    assert_type(found.predict([1, 2], ["a", "b"], default=found["a"]), Floats)
    assert_type(found(1, "a", default=found["b"], interpolation="linear"), np.float64)
    assert_type(sf.fit_columns(np.eye(2), np.eye(2)).predict_columns(np.eye(2)), Floats)


def losses() -> None:
    huber = sf.losses.Huber(delta=np.array([1.0, 2.0]))
    assert_type(huber.value([0.5, 3.0], 0.0), Floats)
    assert_type(sf.losses.Quantile(0.9, side="upper").derivative([0.5], [1]), Floats)

    def derivative(z: Floats, y: Floats) -> Floats:
        return z - y

    assert_type(sf.fit([1, 2], [1.0, 0.5], loss=sf.losses.Custom(derivative)), sf.Staircase)
    assert_type(sf.get_num_threads(), int)


def probabilities() -> None:
    venn = sf.VennAbers(query_weight=2).fit([1, 2, 3], [False, True, True], sample_weight=np.ones(3))
    assert_type(venn, sf.VennAbers)
    assert_type(venn.predict(2), sf.ProbabilityPair[np.float64])
    assert_type(venn.predict([1, 2]).p0, Floats)
    assert_type(venn.merge(np.float32(2)), np.float64)
    assert_type(venn.merge(np.ones(2), rule="brier"), Floats)
    cross = sf.CrossVennAbers().fit([1, 2, 3], [0, 1, 1], folds=[0, 1, 1])
    assert_type(cross.predict(2), sf.ProbabilityPair[Floats])
    assert_type(cross.merge(2), np.float64)
    assert_type(cross.merge([2, 3], rule="brier"), Floats)
    found = sf.reliability([0.1, 0.4, 0.8], [0, 1, 1], score=sf.losses.LogLoss(), bands="confidence", n_resamples=9)
    assert_type(found.stairs, sf.Staircase)
    assert_type(found.mcb, float)
    if found.bands is not None:
        assert_type(found.bands.lower, Floats)
        assert_type(found.bands.at([0.5]), tuple[Floats, Floats])
        assert_type(found.bands.p_value, float)


def exports() -> None:
    kind: Dialect = "postgres"
    stairs = sf.fit([1, 2], [0, 1])
    assert_type(stairs.to_sql(("t", "score"), dialect=kind, interpolation="centered", out_of_bounds="nan"), str)
    assert_type(sf.fit_groups([1, 2], [0, 1], ["a", "b"]).to_sql("score", "city"), str)


def estimators(stream: ArrowStream) -> None:
    y, lines = [0, 1, 0, 1], StaircaseRegressor(y_min=0, increasing="auto", out_of_bounds="clip", interpolation="step")
    assert_type(lines.fit(stream, y), StaircaseRegressor)
    assert_type(lines.staircase_, sf.Staircase)
    assert_type(lines.predict(Tensor(np.ones(2))), NDArray[Any])
    model = StaircaseCalibrator(prior="jeffreys", interpolation="centered", ensemble="auto").fit(stream, y)
    assert_type(model, StaircaseCalibrator)
    assert_type(model.predict_proba([0.5]), Floats)


def rejected_by_mypy() -> None:
    """Never called: mypy must reject these lines."""
    stairs = sf.fit({1: 2}, [1])  # type: ignore[arg-type]
    sf.fit([1], [1], increasing="up")  # type: ignore[arg-type]
    sf.fit([1], [1], bounds=(0, 1, 2))  # type: ignore[arg-type]
    sf.fit([1], [1], loss=3)  # type: ignore[arg-type]
    stairs.predict([1], interpolation="cubic")  # type: ignore[call-overload]
    sf.Online().predict([1], out_of_bound="nan")  # type: ignore[call-overload]
    sf.losses.Quantile(0.5, side="left")  # type: ignore[arg-type]
    stairs.to_sql("score", dialect="oracle")  # type: ignore[arg-type]
    stairs.to_onnx("stairs.onnx", out_of_bounds="raise")  # type: ignore[arg-type]
    sf.VennAbers().merge([1], rule="mean")  # type: ignore[call-overload]
    sf.reliability([1], [1], bands="wide")  # type: ignore[arg-type]
    StaircaseRegressor(interpolation="cubic")  # type: ignore[arg-type]
    StaircaseCalibrator(prior="flat")  # type: ignore[arg-type]
    sf.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def run(stream: Any, folder: Path) -> None:
    inputs(ArrowStream(stream))
    results()
    streams(folder)
    groups()
    losses()
    probabilities()
    exports()
    estimators(ArrowStream(stream))
