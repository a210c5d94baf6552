"""The block-merge stack: steps that are means (paper, sections IV and V).

Rows in score order are pushed onto a stack of blocks; blocks merge while the left mean is at least the right one
(`_stack.pxd`; start reading there).  Each row is pushed once and each merge removes one block, so the fit takes O(n).

Sorted rows go onto the stack directly (`sorted_rows.py`, `_rows.pxd`, `_push_rows.pxd`), nearly sorted ones after an
insertion sort (`sorting.py`).  Other rows are usually not sorted: the survey (`survey.py`) finds the few per cent of
rows that can be step boundaries, and only those are sorted and pushed.

    survey   sum the rows of each bucket, in any order       _survey.pyx, _summary.pxd
    plan     find the buckets that can contain a boundary    _plan.pxd
    collect  gather the rows of those buckets, sum the rest  _collect.pyx, _run_sums.pxd
    finish   sort the gathered rows, and push all in order   _finish.pyx

Up to 200,000 rows (120,000 labels), checks, sort and stack are one compiled call (`_small.pyx`, `_small_rows.pxd`,
`_small_fit.pxd`); groups use it too.  Where NumPy sorts integers fast, it sorts keys (`_keys.pxd`); elsewhere rows are
sorted in buckets (`_sort.pxd`, `_scatter.pxd`).  Losses that need the order use `sorting.py`.  `update_rule.py` is the
stack for a user's own update rule.

Tests: tests/stack.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
