"""What one pass over scores finds: NaN, order, ties; wherever it is and whatever else is there."""

import numpy as np
import pytest

from staircase_fast.arithmetic.exact import order_of

ORDINARY = [-1.0, 0.0, 1.0, 2.0, 3.0]
STRANGE = [0.0, -0.0, 5e-324, 1.0, 1e308, -1e308, np.inf, -np.inf]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("entries", [ORDINARY, STRANGE, [*STRANGE, np.nan]])
@pytest.mark.parametrize("arrange", [lambda x: x, np.sort, lambda x: np.sort(x)[::-1].copy()])
def test_order_ties_and_the_first_nan_are_found(arrange, entries, dtype):
    rng = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        entries = np.array(entries, dtype=dtype)
    for n in [*range(1, 40), 1023, 1024, 1025, 2049, 5000]:
        for _ in range(5):
            x = arrange(rng.choice(entries[: rng.integers(1, len(entries) + 1)], n))
            found = order_of(x, 1)
            nans = np.flatnonzero(np.isnan(x))
            assert found.first_nan == (nans[0] if len(nans) else -1)
            if len(nans):
                continue
            rises, falls = np.all(x[:-1] <= x[1:]), np.all(x[:-1] >= x[1:])
            assert found.sign == (1 if rises else -1 if falls else 0)
            if found.sign:
                assert found.tied == np.any(x[:-1] == x[1:])


@pytest.mark.parametrize("where", [0, 1, 2, 1022, 1023, 1024, 1025, 2999])
def test_one_score_out_of_order_is_noticed(where):
    x = np.arange(3000.0)
    x[where] = -1.0 if where else 5000.0
    assert order_of(x, 1).sign == 0
    x = np.arange(3000.0)
    x[where] = x[where - 1] if where else x[1]
    assert order_of(x, 1) == (-1, 1, True)
