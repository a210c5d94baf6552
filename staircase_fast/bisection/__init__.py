"""Anytime rounds: steps for any strictly convex loss (paper, section VI).

`solve.py` chooses the method: a closed form if the loss has one, otherwise rounds.  All rows start as one run with
known bounds; each round evaluates the derivative of every open run at one point and splits the run there or narrows its
bounds (`rounds.py`, `_rounds.pyx`).  Where to split is a prefix minimum (`_prefix_minimum.pxd`).  `anytime.py` runs the
paper's rounds one at a time, with its groups (`_paper_groups.pyx`).

Tests: tests/bisection.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
