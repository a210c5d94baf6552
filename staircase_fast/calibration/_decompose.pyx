"""Sums of losses over rows, for the parts of the mean score, and the histogram of forecasts.

Preconditions: n >= 1, columns of one length, forecasts, targets and parameters in their domains, weights >= 0, edges in
ascending order and not all equal.
"""

from libc.math cimport fabs, isinf

from staircase_fast.arithmetic._double_double cimport Twofold, add
from staircase_fast.losses._slopes cimport Model, fill_values

cdef enum:
    BATCH = 256               # rows whose losses fit the cache; each batch is summed before it is added to the total
    SUMS = 5


def sum_losses(
    int kind,
    const double[::1] parameters not None,    # IN  of the loss: one for all rows, or one per row
    const double[::1] forecasts not None,     # IN
    const double[::1] recalibrated not None,  # IN
    double constant,                          # IN  the best constant forecast
    const double[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1; rows of weight 0 are ignored
    double unit,                              # IN  weights are divided by this
    const double[::1] edges not None,         # IN  of bins; forecasts outside belong to the first or last bin
    double[::1] sums not None,                # OUT SUMS numbers, see below
    double[::1] counts not None,              # OUT weight of each bin; added to the present entries
):
    """Sum the losses own, best and alike of the forecasts, the recalibrated forecasts and the constant.

    sums: own, own - best, alike - best, alike, and the distance between forecasts and recalibrated forecasts.
    """
    cdef double own[BATCH]
    cdef double best[BATCH]
    cdef double same[BATCH]
    cdef double alike[BATCH]
    cdef double part[SUMS]
    cdef Twofold total[SUMS]
    cdef Model model = Model(kind, &parameters[0], parameters.shape[0] > 1, NULL, NULL, False)
    cdef Py_ssize_t start = 0, n, i, k
    cdef double w = 1.0
    with nogil:
        for k in range(SUMS):
            total[k] = Twofold(0.0, 0.0)
        for i in range(BATCH):
            same[i] = constant
        while start < forecasts.shape[0]:
            n = min(BATCH, forecasts.shape[0] - start)
            if model.p_step:
                model.p = &parameters[start]
            fill_values(&model, &targets[start], n, &forecasts[start], own)
            fill_values(&model, &targets[start], n, &recalibrated[start], best)
            fill_values(&model, &targets[start], n, same, alike)
            for k in range(SUMS):
                part[k] = 0.0
            for i in range(n):
                if weights.shape[0]:
                    if weights[start + i] == 0.0:
                        continue
                    w = weights[start + i] / unit
                part[0] += weighted(w, own[i])
                part[1] += weighted(w, own[i] - best[i])
                part[2] += weighted(w, alike[i] - best[i])
                part[3] += weighted(w, alike[i])
                if forecasts[start + i] != recalibrated[start + i]:
                    part[4] += weighted(w, fabs(forecasts[start + i] - recalibrated[start + i]))
            for k in range(SUMS):
                add(&total[k], part[k])
            start += n
        for k in range(SUMS):
            # the error term of an infinite sum is NaN
            sums[k] = total[k].hi + (total[k].lo if total[k].lo == total[k].lo else 0.0)
        count_in_bins(forecasts, weights, edges, counts)


cdef inline double weighted(double w, double loss) noexcept nogil:
    """A positive weight may underflow to 0 when it is divided by `unit`; an infinite loss counts all the same."""
    return loss if isinf(loss) else w * loss


cdef inline void count_in_bins(
    const double[::1] forecasts, const double[::1] weights, const double[::1] edges, double[::1] counts
) noexcept nogil:
    """Bins include their start.  The bin computed from the common width may be off by one and is corrected."""
    cdef Py_ssize_t i, k, last = counts.shape[0] - 1
    cdef double low = edges[0], high = edges[last + 1], guess
    cdef double scale = counts.shape[0] / (high * 0.5 - low * 0.5)
    for i in range(forecasts.shape[0]):
        guess = (forecasts[i] * 0.5 - low * 0.5) * scale
        k = last if guess >= last else 0 if not guess > 0.0 else <Py_ssize_t>guess
        while k < last and forecasts[i] >= edges[k + 1]:
            k += 1
        while k > 0 and forecasts[i] < edges[k]:
            k -= 1
        counts[k] += weights[i] if weights.shape[0] else 1.0
