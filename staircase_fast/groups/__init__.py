"""Many fits in one call: a staircase for each group of rows, or for each column of a table.

`fits.py` has `fit_groups` and `fit_columns`.  `readers.py` reads the group of each row.  `grouped.py` gathers the rows
of each group; one kernel call (`_groups.pyx`) then fits many small groups, and large groups are fitted like the rows of
`fit`.  The result is a `StaircaseMap` (`staircase_map.py`); `map_fields.py` checks, saves and loads its fields.

Tests: tests/groups.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
