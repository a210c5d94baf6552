"""Inputs: whatever the user passes becomes clean columns and options, or an error.  This room knows no loss.

`columns.py` reads numbers from lists, NumPy arrays, pandas, polars, Arrow and DLPack objects, in place if possible.
`rows.py` checks that scores, targets and weights are columns of equal length, `options.py` checks everything else.
Invalid input raises `InvalidInputError` (staircase_fast/errors.py), which names the argument, the value and the index.

Tests: tests/inputs.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
