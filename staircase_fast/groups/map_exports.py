"""How a StaircaseMap leaves the package: SQL, ONNX, JSON and tables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from staircase_fast.groups import map_fields
from staircase_fast.groups.readers import Key
from staircase_fast.inputs.options import import_optional
from staircase_fast.losses import Loss
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import Dialect, Interpolation

if TYPE_CHECKING:
    pass


class MapExports(Mapping[Key, Staircase]):
    """Base of `StaircaseMap`."""

    __slots__ = ()

    if TYPE_CHECKING:
        increasing: NDArray[np.bool_]
        loss: Loss

        def parts(self) -> dict[str, Any]: ...

    def to_sql(
        self,
        column: str | Sequence[str],
        group: str | Sequence[str],
        *,
        dialect: Dialect = "duckdb",
        interpolation: Interpolation = "step",
        out_of_bounds: Literal["clip", "nan"] = "clip",
    ) -> str:
        """The map as an SQL expression with the results of `predict`, as exact as `Staircase.to_sql`.

        Parameters
        ----------
        column, group : str or sequence of str
            The columns of scores and groups; see `Staircase.to_sql`, also for the other parameters.  Integer groups can
            be in a column of any numeric type.
        dialect : {"duckdb", "postgres", "standard", "sqlite", "spark", "bigquery", "snowflake"}, default "duckdb"
        interpolation : {"step", "linear", "centered"}, default "step"
        out_of_bounds : {"clip", "nan"}, default "clip"

        Returns
        -------
        str
            NULL for groups that were not fitted; use ``COALESCE`` to give them a value.

        Examples
        --------
        >>> import duckdb
        >>> import staircase_fast as sf
        >>> found = sf.fit_groups([1, 2, 1, 2], [0, 1, 3, 2], ["a", "a", "b", "b"])
        >>> rows = "(VALUES (1, 'a'), (5, 'a'), (1, 'b'), (1, 'z')) AS scored(score, city)"
        >>> duckdb.sql(f"SELECT city, {found.to_sql('score', 'city')} FROM {rows}").fetchall()
        [('a', 0.0), ('a', 1.0), ('b', 2.5), ('z', None)]
        """
        from staircase_fast.groups import as_sql

        return as_sql.expression(self, column, group, dialect, interpolation, out_of_bounds)

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        *,
        default: Staircase | None = None,
        interpolation: Interpolation = "step",
        out_of_bounds: Literal["clip", "nan"] = "clip",
        dtype: Literal["float64", "float32"] = "float64",
        input_name: str = "scores",
        group_name: str = "groups",
        output_name: str = "values",
    ) -> None:
        """Write an ONNX model with the results of `predict`; see `Staircase.to_onnx`, also for the other parameters.

        Parameters
        ----------
        path : str or path
        default : Staircase, optional
            For groups that were not fitted.  Without it, they get NaN.
        interpolation, out_of_bounds, dtype
        input_name, group_name, output_name : str, default "scores", "groups" and "values"
            The input of groups has the shape [N], and int64, string or bool entries.

        Examples
        --------
        >>> import os, tempfile
        >>> import onnxruntime
        >>> import staircase_fast as sf
        >>> path = os.path.join(tempfile.mkdtemp(), "map.onnx")
        >>> sf.fit_groups([1, 2, 1, 2], [0, 1, 3, 2], ["a", "a", "b", "b"]).to_onnx(path)
        >>> rows = {"scores": [1.0, 5.0, 1.0], "groups": ["a", "a", "z"]}
        >>> onnxruntime.InferenceSession(path).run(None, rows)
        [array([ 0.,  1., nan])]
        """
        from staircase_fast.groups import as_onnx

        names = input_name, group_name, output_name
        as_onnx.write(self, path, default, interpolation, out_of_bounds, dtype, names)

    def to_frame(self) -> Any:
        """The steps of all groups as a pandas DataFrame: group, left, right, value, weight, count.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.fit_groups([1, 2, 1, 2], [0, 1, 3, 2], ["a", "a", "b", "b"]).to_frame()
          group  left  right  value  weight  count
        0     a   1.0    1.0    0.0     1.0      1
        1     a   2.0    2.0    1.0     1.0      1
        2     b   1.0    2.0    2.5     2.0      2
        """
        pandas = import_optional("pandas", "`to_frame`")
        parts = self.parts()
        keys = np.repeat(map_fields.key_array(parts["keys"]), np.diff(parts["offsets"]))
        names = {"left": "left", "right": "right", "value": "step_values", "weight": "weights", "count": "counts"}
        return pandas.DataFrame({"group": keys} | {title: parts[name] for title, name in names.items()})

    def to_json(self) -> str:
        """Return the map as JSON text, without loss of precision.

        Returns
        -------
        str
            An object with the arguments of `StaircaseMap`.  The bounds are omitted if the values are exact.

        Notes
        -----
        `save` writes a binary file, which is smaller and faster to read.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.fit_groups([1, 2, 1, 2], [0, 1, 3, 2], ["a", "a", "b", "b"]).to_json()
        '{"format": "staircase_fast map", "version": 1, ...'
        """
        return json.dumps(map_fields.document_of(self.parts()), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the map of a JSON text.  Everything is validated; nothing is executed.

        Parameters
        ----------
        text : str
            A text from `to_json`.

        Returns
        -------
        StaircaseMap

        Examples
        --------
        >>> import staircase_fast as sf
        >>> found = sf.fit_groups([1, 2, 1, 2], [0, 1, 3, 2], ["a", "a", "b", "b"])
        >>> sf.StaircaseMap.from_json(found.to_json()) == found
        True
        """
        return cls(**map_fields.arguments_of(text))
