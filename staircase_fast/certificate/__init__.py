"""The proof that a staircase is optimal, or a bound on how far it is from the optimum.

With P_n the sum of -l'_m(z_m) over the first n samples: z is optimal if it is monotone, P_n >= 0 everywhere, and
P_n = 0 at the end of each step.  `certifying.py` has `certify`, which checks these conditions.  `pieces.py` and
`_slope_sums.pyx` compute the sums with their rounding errors; `gap.py` turns them into a bound on the excess loss.

Tests: tests/certificate.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
