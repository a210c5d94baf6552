"""A test of the assumption that the frequency of label 1 does not decrease as the score increases.

The rows, in the order of their scores, are divided into 2, 4, 8, .. blocks of about equal size.  Each block A is
compared with the next one, B.  If the assumption holds, there is a c with frequencies <= c in A and >= c in B.  By
Chernoff's bound, U = n KL(mean of A, c) exceeds u with probability at most exp(-u), if U counts as 0 where the mean is
below c; the same is true of V for B, above c.  They are independent, so their sum exceeds t with probability at most
(1 + t) exp(-t).  The statistic T is the least U + V over all c, which is that of the pooled mean if A has the greater
mean, and 0 otherwise.  Hence (1 + T) exp(-T) is a p-value for any number of rows.  With weights, KL is replaced by
Hoeffding's bound, 2 (mean - c)**2 (sum of w)**2 / sum of w**2.

All comparisons together: the p-values with 2**k blocks are multiplied by their number and by k (k + 1); the inverses of
these factors sum to at most 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

LEVEL = 0.01  # a smaller p-value is a contradiction
_LEAST_ROWS = 8  # in a block, on average
_MOST_LEVELS = 20


def monotone_p_value(ones: _Floats, weights: _Floats, squares: _Floats, *, weighted: bool) -> float:
    """The p-value for distinct scores in ascending order.

    For each score: the total weight of rows with label 1, that of all rows, and the sum of squares of their weights.
    """
    totals = [np.append(0.0, np.cumsum(column)) for column in (ones, weights, squares)]
    n, p_value = len(weights), 1.0
    for level in range(1, _MOST_LEVELS + 1):
        if n < _LEAST_ROWS << level and level > 1:
            break
        shares = np.arange(1, 1 << level) / (1 << level)
        cuts = np.unique(np.searchsorted(totals[1], totals[1][-1] * shares))
        cuts = np.concatenate([[0], cuts[(cuts > 0) & (cuts < n)], [n]])
        if len(cuts) > 2:
            least = np.min(_p_values(*(np.diff(total[cuts]) for total in totals), weighted=weighted))
            p_value = min(p_value, float(least) * (len(cuts) - 2) * level * (level + 1))
    return p_value


def _p_values(ones: _Floats, weights: _Floats, squares: _Floats, *, weighted: bool) -> _Floats:
    """The p-value of each block and the next one."""
    means = np.clip(ones / weights, 0.0, 1.0)
    first, second = means[:-1], means[1:]
    if weighted:
        shares = squares / weights**2
        statistic = 2.0 * (first - second) ** 2 / (shares[:-1] + shares[1:])
    else:
        sizes = weights[:-1] + weights[1:]
        pooled = np.clip((ones[:-1] + ones[1:]) / sizes, 0.0, 1.0)
        statistic = sizes * _entropy(pooled) - weights[:-1] * _entropy(first) - weights[1:] * _entropy(second)
    statistic = np.where(first > second, np.maximum(statistic, 0.0), 0.0)
    return (1.0 + statistic) * np.exp(-statistic)


def _entropy(p: _Floats) -> _Floats:
    """In nats; that of 0 and 1 is 0."""
    inside = np.where((p > 0.0) & (p < 1.0), p, 0.5)
    return np.where(inside == p, -(inside * np.log(inside) + (1.0 - inside) * np.log1p(-inside)), 0.0)
