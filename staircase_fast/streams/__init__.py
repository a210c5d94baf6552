"""Rows that arrive over time.

`Online` takes rows in score order and has the optimal staircase after each of them (paper, section V).  Rows are pushed
onto a stack of blocks with exact sums; the newest score stays apart, because more of its rows may arrive.  The stack is
a C struct, which the C API wraps as well.

`Accumulator` takes batches in any order, from any number of processes.  Rows are sorted into runs of exact sums per
score; runs are merged, and the last one is fitted.

`prefix_losses` and `unimodal_regression` use the same merges with double-double arithmetic.

Tests: tests/streams.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
