"""Anytime rounds: steps for any strictly convex loss (paper, section VI).

`samples.py` sorts the rows.  `solve.py` runs the solver that the loss names: a closed form (`closed_forms.py`) or
rounds.  All rows start as one run with known bounds (`_runs.pxd`).  Each round evaluates the derivative of every open
run at one point, the cut (`rounds.py`, `_rounds.pyx`); a prefix minimum of its sums shows where to split
(`_prefix_minimum.pxd`), and `_split_run.pxd` makes the parts and chooses their next cuts; quantiles choose targets
(`_target_cut.pxd`).  A fit without limits searches run by run instead of round by round (`_search.pxd`).  Finished runs
become blocks (`_blocks.pxd`), which `samples.py` converts to steps.

Few rows of ordinary numbers take the same path in one compiled call (`_small.pyx`, `_score_order.pxd`,
`_small_fit.pxd`).  `anytime.py` runs the paper's rounds one at a time, with its groups (`_paper_groups.pyx`).

Tests: tests/bisection.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
