"""How a fitted StaircaseCalibrator leaves the package: JSON and ONNX.

Only the calibration is written, not the classifiers, which other libraries save or convert.
"""

from __future__ import annotations

import json
import math
import os
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.staircase import as_json, pieces
from staircase_fast.staircase.as_onnx import evaluate
from staircase_fast.staircase.onnx_graph import Graph, check_options
from staircase_fast.staircase.result import Staircase
from staircase_fast.storage import documents
from staircase_fast.storage.documents import refuse_field

_FORMAT = "staircase_fast calibrator", 1  # name and version
_WHAT = "a calibrator"
_FIELDS = ("classes", "estimators", "parameters", "staircases")
_PARAMETERS = ("ensemble", "prior", "interpolation", "increasing")


class Calibration(NamedTuple):
    """What a fitted calibrator consists of, without its classifiers."""

    classes: NDArray[Any]
    parameters: dict[str, Any]
    staircases: list[tuple[Staircase, ...]]  # of each classifier
    has_estimators: bool


def to_json(calibration: Calibration) -> str:
    """The calibration as JSON text."""
    classes = calibration.classes.tolist()
    for index, one in enumerate(classes):
        if not isinstance(one, (bool, int, float, str)) or (isinstance(one, float) and not math.isfinite(one)):
            raise InvalidTypeError(
                "classes_", "must be finite numbers, strings or bools for JSON", value=one, index=index
            )
    document = dict(zip(("format", "version"), _FORMAT, strict=True))
    document |= {"classes": classes, "estimators": calibration.has_estimators}
    document["parameters"] = {name: calibration.parameters[name] for name in _PARAMETERS}
    document["staircases"] = [[as_json.document_of(one) for one in pair] for pair in calibration.staircases]
    return json.dumps(document, allow_nan=False)


def from_json(text: str) -> Calibration:
    """The calibration in a JSON text."""
    document = documents.document_of(text, _WHAT, _FORMAT, _FIELDS, with_loss=False, flag="estimators")
    classes, parameters, lists = (document[name] for name in ("classes", "parameters", "staircases"))
    if not isinstance(classes, list) or len({type(one) for one in classes} & {bool, int, float, str}) != 1:
        refuse_field("classes", "must be an array of numbers, strings or bools", value=classes)
    array = np.array(classes)
    if array.ndim != 1 or len(array) < 2 or not np.all(array[1:] > array[:-1]):
        refuse_field("classes", "must have at least 2 entries and strictly increase", value=classes)
    if not isinstance(parameters, dict) or set(parameters) != set(_PARAMETERS):
        refuse_field("parameters", f"must be an object with {', '.join(_PARAMETERS)}", value=parameters)
    n_each = 1 if len(array) == 2 else len(array)
    pairs: list[Any] = lists if isinstance(lists, list) and lists else [None]
    for index, pair in enumerate(pairs):
        if not isinstance(pair, list) or len(pair) != n_each:
            refuse_field("staircases", f"must be arrays of {n_each} staircases", value=pair, index=index)
    if len(pairs) > 1 and not document["estimators"]:
        refuse_field("staircases", "must have one entry if there are no estimators", found=f"got {len(pairs)}")
    staircases = [tuple(Staircase.from_json(json.dumps(one)) for one in pair) for pair in pairs]
    return Calibration(array, parameters, staircases, document["estimators"])


def check_estimators(calibration: Calibration, estimators: Any) -> list[Any]:
    """One fitted classifier for each entry of `staircases`; None for each if scores were calibrated."""
    n = len(calibration.staircases)
    if not calibration.has_estimators:
        if estimators is not None:
            raise InvalidInputError("estimators", "must be None: the calibrator was fitted to scores", value=estimators)
        return [None]
    given = list(estimators) if isinstance(estimators, (list, tuple)) else []
    if len(given) != n:
        hint = "They are the `estimator` of each entry of `calibrated_classifiers_`."
        found = "got None" if estimators is None else f"got {len(given)}"
        raise InvalidInputError("estimators", f"must be a list of {n} fitted classifiers", found=found, hint=hint)
    return given


def write_onnx(
    calibration: Calibration, path: str | os.PathLike[str], dtype: str, input_name: str, output_name: str
) -> None:
    """Write the model from scores to probabilities, in the operations of `predict_proba`, in the same order."""
    interpolation = calibration.parameters["interpolation"]
    linear = check_options(interpolation, "clip", dtype)
    n_classes, n_pairs = len(calibration.classes), len(calibration.staircases)
    names = {"input_name": input_name, "output_name": output_name}
    inputs = [input_name] if n_pairs == 1 else [f"{input_name}_{place}" for place in range(n_pairs)]
    graph = Graph(names, dtype)
    found = []
    for name, staircases in zip(inputs, calibration.staircases, strict=True):
        scores = graph.scores(name) if n_classes == 2 else graph.scores(name, n_classes)
        tables = [pieces.of_staircase(stairs, interpolation, outside=True) for stairs in staircases]
        columns = [scores] if n_classes == 2 else [_column(graph, scores, place) for place in range(n_classes)]
        pairs = zip(tables, columns, strict=True)
        values = [evaluate(graph, table, column, linear=linear) for table, column in pairs]
        found.append(_probabilities(graph, values))
    if n_pairs > 1:
        total = reduce(lambda one, other: graph.add("Add", one, other), found)
        found = [graph.add("Div", total, graph.table(float(n_pairs)))]
    metadata = {"classes": json.dumps(calibration.classes.tolist(), default=str), "interpolation": interpolation}
    graph.save(path, output_name, found[0], n_classes, metadata=metadata)


def _column(graph: Graph, scores: str, place: int) -> str:
    return graph.add("Gather", scores, graph.integer(place), axis=1)


def _probabilities(graph: Graph, values: list[str]) -> str:
    """The probability of each class from the value of the second of two classes, or of each class."""
    axis = graph.table([1], np.int64)
    if len(values) == 1:
        values = [graph.add("Sub", graph.table(1.0), values[0]), values[0]]
        return graph.add("Concat", *(graph.add("Unsqueeze", one, axis) for one in values), axis=1)
    table = graph.add("Concat", *(graph.add("Unsqueeze", one, axis) for one in values), axis=1)
    total = graph.add("Unsqueeze", reduce(lambda one, other: graph.add("Add", one, other), values), axis)
    shares = graph.add("Div", table, total)
    return graph.add("Where", graph.add("Equal", total, graph.table(0.0)), graph.table(1 / len(values)), shares)
