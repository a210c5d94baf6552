"""Numbers: exact sums and one pass over a column.  This room knows nothing about losses or staircases.

One pass over each column finds NaN and the sort order (`_column_scan.pxd`, `_score_scan.pxd`), or the extremes, whether
all entries are integers, and the sums of consecutive rows (`_buckets.pxd`).  The extremes determine how wide exact sums
must be (`_scale.pxd`).  Sums of weight * target are integers in a common unit (`_exact.pxd`), because a rounded sum can
put a sample on the wrong step.  They are rounded once per step (`_rounded.pxd`).  `exact.py` is the Python side.

`_double_double.pxd` computes rounding errors.  `_types.pxd` has the types that all kernels share, `_branchless.pxd` and
`_simd.pxd` the few instructions that Cython cannot express.

Tests: tests/arithmetic.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
