"""Rows that arrive over time.

`online.py` has `Online`: rows in score order, and the optimal staircase after each of them (paper, section V).
`accumulator.py` has `Accumulator`: batches in any order, from any number of processes, kept as sums per distinct score.
`prefix.py` has the losses of all prefixes of a sequence, and unimodal fits.

Tests: tests/streams.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
