"""Likelihood-ratio intervals of a monotone curve of probabilities (Banerjee and Wellner, 2001).

For a score with observation j, the likelihood of the best increasing curve is compared with that of the best increasing
curve whose value at j is theta.  The latter is: min(theta, fit of the observations before j), theta at j, and
max(theta, fit of the observations after j).  The interval has all theta for which twice the log of the ratio is at most
a quantile of the limit law.

Let b..e be the step of j, with mean m.  A fit of the observations before j alone differs from the whole fit only from b
on, because the end of a step touches the cumulative-sum diagram.  So only the step of j is fitted again, in two parts,
and other steps matter only if their values lie between m and theta.

Preconditions: at least one observation, weights > 0, sums between 0 and the weight, steps of the fit of all
observations, work space as typed.
"""

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t

cdef enum:
    HALVINGS = 60

# For each observation, the last block of the fit of the observations up to it, on one side: its sum, its weight, and
# the observation at which the block before it ends.  The blocks of a fit are found from last to first.
ctypedef struct Blocks:
    double *s
    double *w
    int64_t *next


cdef inline double deviance(double s, double w, double theta) noexcept nogil:
    """-2 log likelihood of s successes in w trials."""
    cdef double value = 0.0
    if s > 0.0:
        value -= s * log(theta) if theta > 0.0 else -INFINITY
    if w > s:
        value -= (w - s) * log(1.0 - theta) if theta < 1.0 else -INFINITY
    return 2.0 * value


cdef inline void fit(
    Blocks *blocks, const double[::1] s, const double[::1] w, Py_ssize_t first, Py_ssize_t last, Py_ssize_t step
) noexcept nogil:
    """Fit the observations from first to last, for each one that may be the end; step is 1, or -1 for decreasing order.

    Block-merge needs no more than the blocks of the fit that ends one observation earlier, and they stay as they are.
    """
    cdef Py_ssize_t i = first, top
    cdef double sum_s, sum_w
    while True:
        sum_s = s[i]
        sum_w = w[i]
        top = i - step
        while top != first - step and (blocks.s[top] * sum_w - sum_s * blocks.w[top]) * step >= 0.0:
            sum_s += blocks.s[top]
            sum_w += blocks.w[top]
            top = blocks.next[top]
        blocks.s[i] = sum_s
        blocks.w[i] = sum_w
        blocks.next[i] = top
        if i == last:
            break
        i += step


cdef inline double loss_of(
    const Blocks *blocks, Py_ssize_t last, Py_ssize_t end, double low, double high
) noexcept nogil:
    """The deviance of the blocks from `last` to `end`, which is beyond them, with means limited to low .. high."""
    cdef double total = 0.0
    while last != end:
        total += deviance(blocks.s[last], blocks.w[last], min(max(blocks.s[last] / blocks.w[last], low), high))
        last = blocks.next[last]
    return total


def intervals(
    const double[::1] s not None,              # IN  successes of observations, in score order
    const double[::1] w not None,              # IN  trials of observations
    const int64_t[::1] steps not None,         # IN  first observation of each step, then the number of observations
    const double[::1] step_s not None,         # IN  successes of steps
    const double[::1] step_w not None,         # IN  trials of steps
    const int64_t[::1] places not None,        # IN  observations, in ascending order
    double quantile,                           # of the limit law
    double[:, ::1] work not None,              # work: 4 columns of one entry per observation
    int64_t[:, ::1] links not None,            # work: 2 columns of one entry per observation
    double[::1] lower not None,                # OUT one per place
    double[::1] upper not None,                # OUT one per place
):
    """Fill the ends of the interval of each place."""
    cdef Blocks before = Blocks(&work[0, 0], &work[1, 0], &links[0, 0])
    cdef Blocks after = Blocks(&work[2, 0], &work[3, 0], &links[1, 0])
    cdef Py_ssize_t i, j, k = 0, other, side, _halving
    cdef double mean, inside, outside, theta, ratio, value
    with nogil:
        for k in range(step_s.shape[0]):
            fit(&before, s, w, steps[k], steps[k + 1] - 1, 1)
            fit(&after, s, w, steps[k + 1] - 1, steps[k], -1)
        k = 0
        for i in range(places.shape[0]):
            j = places[i]
            while steps[k + 1] <= j:
                k += 1
            mean = step_s[k] / step_w[k]
            for side in range(-1, 2, 2):
                inside = mean                  # bisection: a value within the interval ...
                outside = 1.0 if side > 0 else 0.0     # ... and one that is outside, or the end of all values
                for _halving in range(HALVINGS):
                    theta = outside if _halving == 0 else 0.5 * (inside + outside)
                    ratio = loss_of(&before, j - 1, steps[k] - 1, 0.0, theta) + deviance(s[j], w[j], theta)
                    ratio += loss_of(&after, j + 1, steps[k + 1], theta, 1.0)
                    ratio -= deviance(step_s[k], step_w[k], mean)
                    other = k + side
                    while 0 <= other < step_s.shape[0]:
                        value = step_s[other] / step_w[other]
                        if (value - theta) * side >= 0.0:
                            break
                        ratio += deviance(step_s[other], step_w[other], theta)
                        ratio -= deviance(step_s[other], step_w[other], value)
                        other += side
                    if ratio <= quantile:
                        inside = theta
                        if _halving == 0:
                            break
                    else:
                        outside = theta
                if side > 0:
                    upper[i] = inside
                else:
                    lower[i] = inside
