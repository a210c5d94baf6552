"""The result of every fit: a monotone step function that can be evaluated, saved, exported and drawn.

`result.py` has the class `Staircase`, `steps.py` its columns.  `predict` finds the step of each score: by bisection for
a few scores (`_steps.pxd`), by a bucket map and an index for many (`_cells.pxd`, `cells.py`, `_follow.pxd`).
`middles.py` interpolates between the middles of steps.  `as_json.py`, `as_sql.py`, `as_onnx.py` and `plot.py` write the
staircase in other forms; SQL and ONNX use the table of `pieces.py`.

Tests: tests/staircase.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
