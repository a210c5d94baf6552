"""Build an ONNX model: its nodes, its tables, and the file."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import numpy as np

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.options import check_choice, check_interpolation, import_optional
from staircase_fast.losses import Loss
from staircase_fast.storage import documents, files

OPSET = 13  # the operators below are in it; ONNX Runtime 1.16 reads up to 19
ML_OPSET = 2  # of LabelEncoder
IR_VERSION = 8  # that of opsets 15 to 18


def check_options(interpolation: object, out_of_bounds: object, dtype: object) -> bool:
    """Check the options; return whether there are lines."""
    linear = check_interpolation(interpolation) != "step"
    check_choice("out_of_bounds", out_of_bounds, ("clip", "nan"))
    check_choice("dtype", dtype, ("float64", "float32"))
    return linear


def loss_as_json(loss: Loss) -> str:
    """The loss, for the metadata.  Parameters with one entry per training row are not part of the model."""
    return json.dumps({"name": loss.name} if loss.per_sample else documents.plain_loss(loss))


class Graph:
    """The nodes and tables of a model; each result has a unique name.

    `names` are the names of inputs and outputs by the argument that sets them, `dtype` is the type of floats.
    """

    def __init__(self, names: dict[str, str], dtype: str) -> None:
        _check_names(names)
        self.onnx = onnx = import_optional("onnx", "`to_onnx`", extra="onnx")
        self.kind: int = onnx.TensorProto.DOUBLE if dtype == "float64" else onnx.TensorProto.FLOAT
        self.nodes: list[Any] = []
        self.tables: list[Any] = []
        self.inputs: list[Any] = []
        self.prefix = "staircase"
        while any(name.startswith(self.prefix) for name in names.values()):
            self.prefix += "_"

    def scores(self, name: str, *columns: int) -> str:
        """Add an input of scores with N rows; return the name of its float64 values."""
        self.input(name, self.kind, *columns)
        return name if self.kind == self.onnx.TensorProto.DOUBLE else self.cast(name, self.onnx.TensorProto.DOUBLE)

    def input(self, name: str, kind: int, *columns: int) -> None:
        """Add an input of N rows."""
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, ["N", *columns]))

    def table(self, entries: Any, kind: type = np.float64) -> str:
        """Add a constant array; return its name."""
        name = f"{self.prefix}_table_{len(self.tables)}"
        self.tables.append(self.onnx.numpy_helper.from_array(np.asarray(entries, dtype=kind), name))
        return name

    def integer(self, entry: int) -> str:
        """Add a constant integer; return its name."""
        return self.table(entry, np.int64)

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its result."""
        name = output or f"{self.prefix}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def cast(self, given: str, kind: int) -> str:
        """Add a conversion; return the name of its result."""
        return self.add("Cast", given, to=kind)

    def save(
        self, path: str | os.PathLike[str], output: str, result: str, *columns: int, metadata: dict[str, str]
    ) -> None:
        """Name the result `output`, check the model and write it to a file."""
        from staircase_fast import __version__

        helper = self.onnx.helper
        self.add("Cast", result, to=self.kind, output=output)
        found = helper.make_tensor_value_info(output, self.kind, ["N", *columns])
        graph = helper.make_graph(self.nodes, "staircase", self.inputs, [found], initializer=self.tables)
        domains = {"": OPSET} | {node.domain: ML_OPSET for node in self.nodes if node.domain}
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(*domain) for domain in domains.items()],
            ir_version=IR_VERSION,
            producer_name="staircase_fast",
            producer_version=__version__,
        )
        helper.set_model_props(model, {f"staircase_fast.{name}": text for name, text in metadata.items()})
        self.onnx.checker.check_model(model)
        with files.replacing(path) as file:
            file.write(model.SerializeToString())


def _check_names(names: dict[str, str]) -> None:
    known: dict[str, str] = {}
    for argument, name in names.items():
        if not isinstance(name, str):
            raise InvalidTypeError(argument, "must be a str", found=f"got {type(name).__name__}")
        if not name or re.search("[\ud800-\udfff]", name):
            raise InvalidInputError(argument, "must be nonempty and without surrogate characters", value=name)
        if name in known:
            raise InvalidInputError(argument, f"must differ from `{known[name]}`", value=name)
        known[name] = argument
