"""Many fits in one call: a staircase for each group of rows, or for each column of a table.

`fits.py` has `fit_groups` and `fit_columns`.  Rows are brought together by group (`grouped.py`, `_groups.pyx`); small
groups are then fitted many to a call (`_groups.pyx`), large ones like any other rows.  The result is a `StaircaseMap`
(`staircase_map.py`).

Tests: tests/groups.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
