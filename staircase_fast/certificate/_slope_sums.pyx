"""Sums of slopes that prove a staircase optimal, or show where it is not.

A piece is a range of rows that share a value.  Its value is optimal if no leading rows would reduce the loss by moving
down and no trailing rows by moving up: the slopes of every leading part, summed at the value or just below, must not be
positive, and those of every trailing part, at the value or just above, not negative.  A call checks one of the two.
For trailing parts, rows are taken from the end and slopes with the opposite sign, so a positive sum is always a fault.

Slopes that level off cancel in sums, and the remainder decides (`_functionals.pxd`): big parts are summed in three
doubles, tails in two.  The error bound of a sum is a few ulps of each tail, plus the effect of an ulp of z - y.

Preconditions: n >= 1, rows in score order; targets, values and parameters in the domain of the loss; weights >= 0 and
at most 2**400; pieces are not empty, and begin and end where scores do.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t, uint8_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._double_double cimport Twofold, add, rounded_off, two_sum
from staircase_fast.bisection._prefix_minimum cimport CHUNK
from staircase_fast.losses._slopes cimport HUBER, LOGISTIC, QUANTILE, Model, Slopes, fill_slopes, model_of

cdef double ULP = 2.220446049250313e-16
cdef double TINY = 2e-323             # the effect of underflow on a target, a weight or a product
cdef double MOST = 1e290              # limits slopes, which may be infinite at the ends of a domain


ctypedef struct Total:
    Twofold big
    double rest               # rounded off big.lo
    Twofold tail
    double error


ctypedef struct Rows:
    Model model
    const double *given       # slopes computed in Python, or NULL
    const double *y
    const double *w           # or NULL: all are 1
    const uint8_t *ends       # whether a score ends at a row, or NULL: at each
    double target_error       # relative
    bint backward


ctypedef struct PieceSum:
    double total              # the sum of all slopes of the piece
    double error              # its error bound
    double most               # the largest sum of a part plus its error bound, at least 0
    double excess             # the largest sum of a part minus its error bound
    int64_t row               # the last row of that part


cdef PieceSum one_sum
PIECE_SUM = np.asarray(<PieceSum[:1]>&one_sum).dtype


def sum_slopes(
    slopes,                                   # IN  pieces.Slopes
    const double[::1] given not None,         # IN  slopes of each row, or empty: compute them
    const int64_t[::1] starts not None,       # IN  of pieces, and the number of rows
    const double[::1] at not None,            # IN  the point for the slopes of each piece
    const uint8_t[::1] joined not None,       # IN  whether sums continue from the piece before
    bint backward,                            # IN  trailing parts instead of leading parts
    PieceSum[::1] out not None,               # OUT
):
    """Sum the slopes of pieces."""
    cdef const double[::1] parameters = slopes.parameters, targets = slopes.targets, weights = slopes.weights
    cdef const uint8_t[::1] ends = slopes.ends
    cdef Total sums = no_rows()
    cdef Py_ssize_t k, i, n_pieces = at.shape[0]
    cdef Rows rows
    rows.model = model_of(slopes.loss, parameters, False)
    rows.given = &given[0] if given.shape[0] else NULL
    rows.y = &targets[0]
    rows.w = &weights[0] if weights.shape[0] else NULL
    rows.ends = &ends[0] if ends.shape[0] else NULL
    rows.target_error = slopes.target_error
    rows.backward = backward
    with nogil:
        for i in range(n_pieces):
            k = n_pieces - 1 - i if backward else i
            if i == 0 or not joined[k + 1 if backward else k]:
                sums = no_rows()
            out[k] = PieceSum(0.0, 0.0, 0.0, -INFINITY, starts[k])
            sum_piece(&rows, starts[k], starts[k + 1], &at[k], &sums, &out[k])
            out[k].total = value_of_sum(&sums)
            out[k].error = sums.error + ULP * fabs(out[k].total)


cdef inline Total no_rows() noexcept nogil:
    return Total(Twofold(0.0, 0.0), 0.0, Twofold(0.0, 0.0), 0.0)


cdef void sum_piece(
    const Rows *rows, Py_ssize_t start, Py_ssize_t end, const double *z, Total *sums, PieceSum *found
) noexcept nogil:
    """Add the rows of a piece one by one, and check the sum where a score ends, or begins."""
    cdef double[CHUNK] big
    cdef double[CHUNK] tail
    cdef double[CHUNK] curvature
    cdef Slopes slopes = Slopes(&big[0], &tail[0], &curvature[0])
    cdef Py_ssize_t done = 0, n, first, i, j, row
    cdef double value
    cdef bint complete
    while done < end - start:
        n = min(CHUNK, end - start - done)
        first = end - done - n if rows.backward else start + done
        if rows.given == NULL:
            fill_slopes(&rows.model, rows.y, first, n, z, 0, slopes)
        else:
            for i in range(n):
                big[i] = 0.0
                tail[i] = rows.given[first + i]
                curvature[i] = 0.0
        for i in range(n):
            j = n - 1 - i if rows.backward else i
            row = first + j
            add_row(rows, row, z[0], big[j], tail[j], curvature[j], sums)
            if rows.backward:
                complete = rows.ends == NULL or row == 0 or rows.ends[row - 1]
            else:
                complete = rows.ends == NULL or rows.ends[row]
            if complete:
                value = value_of_sum(sums)
                found.most = greater(found.most, value + (sums.error + ULP * fabs(value)))
                if value - sums.error > found.excess:
                    found.excess = value - sums.error
                    found.row = row
        done += n


cdef inline void add_row(
    const Rows *rows, Py_ssize_t row, double z, double big, double tail, double curvature, Total *sums
) noexcept nogil:
    cdef double w = rows.w[row] if rows.w != NULL else 1.0, sign = -1.0 if rows.backward else 1.0
    cdef double y = rows.y[row], p = rows.model.p[row * rows.model.p_step], distance, product, most
    sums.error += TINY * (1.0 + w + lesser(fabs(tail), MOST))
    tail = lesser(greater(w * tail, -MOST), MOST)
    add(&sums.tail, sign * tail)
    sums.error += 8.0 * ULP * fabs(tail)
    if curvature != 0.0:                      # it is 0 where z may be infinite
        distance = fabs(z) + fabs(p) if rows.model.kind == LOGISTIC else fabs(z - y)
        # the sign of a slope that was limited is certain
        most = MOST if fabs(tail) < MOST else 0.5 * MOST
        sums.error += lesser(w * fabs(curvature) * (2.0 * ULP * distance + rows.target_error * fabs(y)), most)
    if big != 0.0:
        product = w * big
        add_big(sums, sign * product)
        if rows.w != NULL and fabs(big) < MOST:
            add_big(sums, sign * rounded_off(w, big, product))
        if fabs(product) < 1e-280:
            sums.error += ULP * fabs(product)
        if rows.model.kind == QUANTILE or rows.model.kind == HUBER:
            # these slopes have no tails, and levels and weights are decimal: ten times 0.7, rounded, means 7
            sums.error += ULP * fabs(product)
        elif rows.model.kind == LOGISTIC and big > 0.0:
            sums.error += w * fabs((1.0 - big) - y)


cdef inline void add_big(Total *sums, double x) noexcept nogil:
    """big += x; what the second double loses to rounding is added to the third."""
    cdef double error, second_error
    sums.big.hi = two_sum(sums.big.hi, x, &error)
    sums.big.lo = two_sum(sums.big.lo, error, &second_error)
    sums.rest += second_error


cdef inline double value_of_sum(const Total *sums) noexcept nogil:
    """The two largest parts may cancel: what their sum loses to rounding is added to the small parts."""
    cdef double error, total = two_sum(sums.big.hi, sums.big.lo, &error)
    return total + (error + (sums.rest + (sums.tail.hi + sums.tail.lo)))
