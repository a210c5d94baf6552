"""Public calls of every kind, for the scripts in this folder.

A call has two parts.  `prepare` creates an object that is needed first, such as an `Online` with some rows.  `act` does
the work and returns a result that can be compared: arrays, text, numbers, or tuples of these.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import staircase_fast as sf
from staircase_fast import cython_api


class Call(NamedTuple):
    """A public call.  `act` receives the result of `prepare` and the columns."""

    act: Callable[[Any, dict[str, np.ndarray]], Any]
    prepare: Callable[[dict[str, np.ndarray]], Any] = lambda data: None


def columns(n: int, seed: int) -> dict[str, np.ndarray]:
    """Columns of n rows that all calls accept."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    reals = scores + rng.normal(size=n)
    labels = rng.random(n) < scores
    groups = rng.integers(0, max(2, n // 40), n)
    return {
        "scores": scores,
        "scores32": scores.astype(np.float32),
        "tied": np.round(scores, 2),
        "ascending": np.sort(scores),
        "ascending_tied": np.sort(np.round(scores, 2)),
        "reals": reals,
        "positive": np.abs(reals) + 0.01,
        "rising": np.sort(reals),
        "integers": np.round(9 * reals),
        "large": np.round(1e17 * reals).astype(np.int64),
        "zeros": np.zeros(n, dtype=np.int64),
        "labels": labels.astype(np.uint8),
        "flags": labels,
        "real_labels": labels.astype(np.float64),
        "weights": rng.random(n) + 0.1,
        "some_weights": np.maximum(rng.random(n) - 0.2, 0.0),
        "heavy": 1e10 * (rng.random(n) + 0.1),
        "counts": np.ceil(5 * rng.random(n)),
        "groups": groups.astype(np.int32),
        "sorted_groups": np.sort(groups),
        "small_groups": (groups % 7).astype(np.uint8),
    }


def steps(stairs: sf.Staircase) -> tuple[Any, ...]:
    """The columns of a staircase."""
    return stairs.left, stairs.right, stairs.values, stairs.lower, stairs.upper, stairs.weights, stairs.counts


def _fit(x: str, y: str, w: str | None = None, **options: Any) -> Call:
    def act(_: None, data: dict[str, np.ndarray]) -> Any:
        stairs = sf.fit(data[x], data[y], sample_weight=None if w is None else data[w], **options)
        return *steps(stairs), stairs.predict(data["scores"])

    return Call(act)


def _regress(y: str, w: str | None = None, **options: Any) -> Call:
    return Call(
        lambda _, data: tuple(sf.isotonic_regression(data[y], weights=None if w is None else data[w], **options))
    )


def _fit_groups(x: str, y: str, groups: str, w: str | None = None, **options: Any) -> Call:
    def act(_: None, data: dict[str, np.ndarray]) -> Any:
        found = sf.fit_groups(data[x], data[y], data[groups], sample_weight=None if w is None else data[w], **options)
        first = next(iter(found.values()))
        return found.left, found.right, found.step_values, found.predict(data[x], data[groups], default=first)

    return Call(act)


def _predict(x: str, y: str, queries: str, **options: Any) -> Call:
    return Call(
        lambda stairs, data: stairs.predict(data[queries], **options),
        lambda data: sf.fit(data[x].copy(), data[y].copy()),
    )


def _online(y: str, w: str | None = None, loss: str | sf.losses.Loss = "squared") -> Call:
    def prepare(data: dict[str, np.ndarray]) -> sf.Online:
        online = sf.Online(loss)
        online.extend([-2.0, -1.0], [1.0, 0.5])
        return online

    def act(online: sf.Online, data: dict[str, np.ndarray]) -> Any:
        if online.n_samples == 2:  # the rows were not added yet; a failed call may be repeated
            online.extend(data["ascending"], data[y], None if w is None else data[w])
        return steps(online.staircase())

    return Call(act, prepare)


def _accumulator(x: str, y: str, w: str | None = None) -> Call:
    def prepare(data: dict[str, np.ndarray]) -> sf.Accumulator:
        seen = sf.Accumulator()
        seen.add([0.5, 0.25, 0.5], [1, 0, 0])
        return seen

    def act(seen: sf.Accumulator, data: dict[str, np.ndarray]) -> Any:
        weights = None if w is None else data[w]
        if seen.n_samples == 3:
            seen.add(data[x], data[y], weights)
        other = sf.Accumulator()
        other.add(data["ascending_tied"], data[y], weights)
        other.merge(seen)
        return *steps(seen.staircase()), *steps(other.staircase(bounds=(0, 1)))

    return Call(act, prepare)


def _venn_abers(x: str, y: str, w: str | None = None) -> Call:
    def act(_: None, data: dict[str, np.ndarray]) -> Any:
        venn = sf.VennAbers().fit(data[x], data[y], None if w is None else data[w])
        return tuple(venn.predict(data["scores"]))

    return Call(act)


def _reliability(**options: Any) -> Call:
    def act(_: None, data: dict[str, np.ndarray]) -> Any:
        found = sf.reliability(data["scores"], data["labels"], **options)
        bands = found.bands
        return found.miscalibration, found.discrimination, *(() if bands is None else (bands.lower, bands.upper))

    return Call(act)


def _anytime(_: None, data: dict[str, np.ndarray]) -> Any:
    rounds = sf.Anytime(data["ascending"], data["reals"], sample_weight=data["weights"], loss=sf.losses.LogCosh(1.0))
    for _round in range(4):
        rounds.step()
    return rounds.lower, rounds.upper, rounds.n_blocks


def _certify(_: None, data: dict[str, np.ndarray]) -> Any:
    stairs = sf.fit(data["scores"], data["reals"], sample_weight=data["weights"])
    found = sf.certify(stairs, data["scores"], data["reals"], sample_weight=data["weights"])
    return found.optimal, found.gap


def _as_text(_: None, data: dict[str, np.ndarray]) -> Any:
    stairs = sf.fit(data["tied"], data["reals"])
    online = sf.Online()
    online.extend(data["ascending"], data["reals"])
    again = sf.Online.from_json(online.to_json())
    return stairs.to_json(), *steps(sf.Staircase.from_json(stairs.to_json())), *steps(again.staircase())


def _as_files(_: None, data: dict[str, np.ndarray]) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "saved")
        stairs = sf.fit(data["tied"], data["reals"])
        stairs.save(path)
        loaded = steps(sf.Staircase.load(path))
        seen = sf.Accumulator()
        seen.add(data["tied"], data["reals"])
        seen.save(path)
        kept = steps(sf.Accumulator.load(path).staircase())
        found = sf.fit_groups(data["scores"], data["labels"], data["groups"])
        found.save(path)
        return *loaded, *kept, sf.StaircaseMap.load(path).step_values


def _cross_venn_abers(_: None, data: dict[str, np.ndarray]) -> Any:
    folds = np.arange(len(data["scores"])) % 3
    cross = sf.CrossVennAbers().fit(data["scores"], data["labels"], folds, data["weights"])
    return tuple(cross.predict(data["scores"]))


# The C API, called as from C: without the GIL.


def _function(name: str, result: Any) -> Any:
    capsule = cython_api.__pyx_capi__[name]
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(result)(get_pointer(capsule, get_name(capsule)))


_STATUS_FUNCTIONS = "fit_squared", "evaluate", "online_new", "online_extend", "online_staircase"
_C = {name: _function(f"sf_{name}", ctypes.c_int) for name in _STATUS_FUNCTIONS}
_C |= {name: _function(f"sf_{name}", None) for name in ("staircase_free", "online_free")}
_STATUS_MESSAGE = _function("sf_status_message", ctypes.c_char_p)


def _pointer(array: np.ndarray | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


def _checked(status: int) -> None:
    if status:
        message = _STATUS_MESSAGE(ctypes.c_int(status)).decode()
        raise MemoryError(message) if "memory" in message else ValueError(message)


def _evaluated(stairs: ctypes.c_void_p, queries: np.ndarray) -> np.ndarray:
    out = np.empty(len(queries))
    n = ctypes.c_ssize_t(len(queries))
    _checked(_C["evaluate"](stairs, _pointer(queries), n, ctypes.c_int(0), _pointer(out), None))
    return out


def _c_fit(x: str, y: str, w: str | None = None) -> Call:
    def act(_: None, data: dict[str, np.ndarray]) -> Any:
        stairs, n = ctypes.c_void_p(), ctypes.c_ssize_t(len(data[x]))
        given = _pointer(data[x]), _pointer(data[y]), _pointer(None if w is None else data[w])
        try:
            _checked(_C["fit_squared"](*given, n, ctypes.c_int(0), ctypes.byref(stairs), None))
            return _evaluated(stairs, data["scores"])
        finally:
            _C["staircase_free"](stairs)

    return Call(act)


def lose_a_staircase(data: dict[str, np.ndarray]) -> None:
    """Fit with the C API and leak the result."""
    stairs, n = ctypes.c_void_p(), ctypes.c_ssize_t(len(data["scores"]))
    given = _pointer(data["scores"]), _pointer(data["reals"]), None
    _checked(_C["fit_squared"](*given, n, ctypes.c_int(0), ctypes.byref(stairs), None))


def _c_online(y: str, w: str | None = None) -> Call:
    def act(_: None, data: dict[str, np.ndarray]) -> Any:
        online, stairs, n = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_ssize_t(len(data[y]))
        given = _pointer(data["ascending"]), _pointer(data[y]), _pointer(None if w is None else data[w])
        try:
            _checked(_C["online_new"](ctypes.c_int(0), ctypes.byref(online)))
            _checked(_C["online_extend"](online, *given, n, None))
            _checked(_C["online_staircase"](online, ctypes.byref(stairs)))
            return _evaluated(stairs, data["scores"])
        finally:
            _C["staircase_free"](stairs)
            _C["online_free"](online)

    return Call(act)


CALLS: dict[str, Call] = {
    # means: by survey, after sorting, or already sorted
    "fit labels": _fit("scores", "labels"),
    "fit real labels, float32": _fit("scores32", "real_labels"),
    "fit bools, tied": _fit("tied", "flags", increasing=False),
    "fit reals": _fit("scores", "reals"),
    "fit reals, tied": _fit("tied", "reals", bounds=(0.0, 1.0)),
    "fit weights": _fit("scores", "reals", "weights"),
    "fit some weights": _fit("scores", "reals", "some_weights"),
    "fit heavy weights": _fit("scores", "reals", "heavy"),
    "fit counts": _fit("tied", "integers", "counts"),
    "fit large integers": _fit("scores", "large"),
    "fit auto": _fit("scores", "reals", increasing="auto"),
    "fit in order": _fit("ascending", "reals", "weights"),
    "fit in order, tied": _fit("ascending_tied", "reals", "counts"),
    "fit own staircase": _fit("ascending", "rising"),
    "fit two threads": _fit("scores", "reals", "weights", n_threads=2),
    "fit labels, two threads": _fit("scores", "labels", n_threads=2),
    "fit poisson": _fit("scores", "positive", loss=sf.losses.PoissonDeviance(2.0)),
    # other losses
    "fit huber": _fit("scores", "reals", "weights", loss=sf.losses.Huber(0.5)),
    "fit quantile": _fit("tied", "reals", loss=sf.losses.Quantile(0.3)),
    "fit expectile": _fit("ascending", "reals", loss=sf.losses.Expectile(0.8)),
    "fit log-cosh": _fit("ascending", "reals", "weights", loss="log_cosh"),
    "fit linex": _fit("scores", "reals", loss=sf.losses.Linex(1.0)),
    "fit custom": _fit("scores", "reals", loss=sf.losses.Custom(lambda z, y: z - y), tol=1e-3),
    "anytime": Call(_anytime),
    # sequences
    "regress": _regress("reals"),
    "regress weights": _regress("reals", "weights", increasing=False),
    "regress some weights": _regress("reals", "some_weights"),
    "regress labels": _regress("labels", "counts", n_threads=2),
    "prefix losses": Call(lambda _, data: sf.prefix_losses(data["reals"], data["weights"])),
    "unimodal": Call(lambda _, data: tuple(sf.unimodal_regression(data["reals"]))),
    # groups
    "groups of labels": _fit_groups("scores", "labels", "groups"),
    "groups of reals": _fit_groups("scores", "reals", "groups", "weights", n_threads=2),
    "groups in order": _fit_groups("scores", "reals", "sorted_groups"),
    "groups in order, labels": _fit_groups("scores", "labels", "sorted_groups"),
    "small groups": _fit_groups("tied", "integers", "small_groups", "counts"),
    "groups by bools": _fit_groups("tied", "reals", "flags"),
    # lookup
    "predict": _predict("scores", "labels", "scores"),
    "predict lines": _predict("scores", "reals", "scores32", interpolation="linear", out_of_bounds="nan"),
    "predict middles": _predict("scores", "reals", "tied", interpolation="centered"),
    "predict many steps": _predict("ascending", "rising", "scores", n_threads=2),
    # streams
    "online": _online("reals", "weights"),
    "online labels": _online("labels"),
    "online zeros": _online("zeros", "heavy"),
    "online linex": _online("reals", "weights", sf.losses.Linex(0.5)),
    "accumulator": _accumulator("scores", "reals", "weights"),
    "accumulator, tied": _accumulator("tied", "reals"),
    "accumulator, in order": _accumulator("ascending", "reals", "weights"),
    "accumulator, counts": _accumulator("ascending_tied", "integers", "counts"),
    "accumulator, labels": _accumulator("tied", "labels"),
    # probabilities
    "venn-abers": _venn_abers("scores", "labels", "weights"),
    "venn-abers, in order": _venn_abers("ascending_tied", "labels"),
    "cross-venn-abers": Call(_cross_venn_abers),
    "reliability": _reliability(),
    "reliability, confidence": _reliability(bands="confidence"),
    "reliability, pointwise": _reliability(bands="pointwise"),
    "reliability, consistency": _reliability(bands="consistency", n_resamples=20, seed=1, n_threads=2),
    "certify": Call(_certify),
    # text and files
    "json": Call(_as_text),
    "files": Call(_as_files),
    # C
    "c fit": _c_fit("scores", "reals", "weights"),
    "c fit in order": _c_fit("ascending", "reals"),
    "c fit some weights": _c_fit("tied", "integers", "some_weights"),
    "c online": _c_online("reals", "some_weights"),
}
