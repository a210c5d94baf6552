"""The result of every fit: a monotone step function that can be evaluated, saved, exported and drawn.

`result.py` has the class `Staircase`, `steps.py` its columns and their checks.  `predict` finds the step of each score
(`_lookup.pyx`, `_follow.pxd`, `_index.pxd`): by counting edges if there are few steps or the scores are nearly sorted,
otherwise by bisection for a few scores and by an index for many.  The index uses a bucket map, an even and monotone map
from scores to integers (`_cells.pxd`, `_make_map.pyx`, `cells.py`), which the survey of a fit uses as well.
`as_sql.py`, `as_onnx.py` and `plot.py` write the staircase in other forms; SQL and ONNX share the table of `pieces.py`.

Tests: tests/staircase.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
