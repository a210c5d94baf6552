"""Numbers: exact sums and one pass over a column.  This room knows nothing about losses or staircases.

A sum that is rounded can put a sample on the wrong step, so sums of weight * target are integers in a common unit
(`_exact.pxd`), as wide as the data needs (`_scale.pxd`), and are rounded once per step (`_rounded.pxd`).  Before that,
one pass over each column (`_column_scan.pxd`, `_scan.pyx`) finds NaN, the sort order, the extremes and whether all
entries are integers.  `exact.py` is the Python side of both.

`_double_double.pxd` adds in twice the precision of a double.  `_types.pxd` has the types that all kernels share,
`_branchless.pxd` and `_simd.pxd` the few instructions that Cython has no words for.

Tests: tests/arithmetic.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
