"""Sums of slopes that prove a staircase optimal, or show where it is not.

A piece is a stretch of rows of one value.  It holds its value for good reason if no first part of it would rather be
lower and no last part higher: the slopes of every first part, summed at the value or just below, must not be above 0,
and those of every last part, at the value or just above, not below 0.  One call looks at one of the two; looking at
last parts, rows are taken from the end and slopes with the opposite sign, so that a sum above 0 is always a fault.

Slopes that level off cancel in sums, and what is left decides (_functionals.pxd): `big` parts are summed in three
doubles, tails in two.  A sum is worth what is known of its error, its doubt: some ulps of each tail, and what an ulp of
the distance z - y changes.

Kernels here assume clean input: n >= 1, rows in order, targets, values and parameters in the domain of the loss,
weights >= 0 and at most 2**400; pieces are not empty, and begin and end where scores do.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t, uint8_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._double_double cimport Twofold, add, rounded_off
from staircase_fast.bisection._prefix_minimum cimport CHUNK
from staircase_fast.losses._slopes cimport HUBER, LOGISTIC, QUANTILE, Model, Slopes, fill_slopes

cdef double ULP = 2.220446049250313e-16
cdef double TINY = 2e-323             # what underflow may take from a target, a weight or a product
cdef double MOST = 1e290              # slopes may be infinite at the ends of a domain: a sum must not be NaN


ctypedef struct Total:
    Twofold big
    double rest               # what was rounded off big.lo
    Twofold tail
    double doubt


ctypedef struct Rows:
    Model model
    const double *given       # slopes that someone else found, or NULL
    const double *y
    const double *w           # or NULL: all are 1
    const uint8_t *ends       # whether a score ends at a row, or NULL: at each
    Py_ssize_t n
    double target_error       # relative
    bint backward


ctypedef struct Finding:
    double most               # the largest sum, its doubt added; 0 at least, which is that of no rows
    double excess             # the largest sum, its doubt taken off
    int64_t row               # where that is


def sum_slopes(
    int kind,
    const double[::1] parameters not None,    # IN  one, or one per row
    size_t function,                          # IN  address of a user's derivative, or 0
    size_t user_data,
    const double[::1] given not None,         # IN  slopes of each row there, or empty: find them
    const double[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    const uint8_t[::1] ends not None,         # IN  whether a score ends at a row; or empty: at each
    double target_error,                      # IN  how far, in relation to itself, a target may be off
    const int64_t[::1] starts not None,       # IN  of pieces, and the number of rows
    const double[::1] at not None,            # IN  a value per piece: where slopes are taken
    const uint8_t[::1] joined not None,       # IN  whether sums go on from the piece before
    bint backward,                            # IN  last parts instead of first parts
    double[::1] total not None,               # OUT per piece: its sum,
    double[::1] doubt not None,               # OUT how far that may be off,
    double[::1] most not None,                # OUT and a Finding
    double[::1] excess not None,              # OUT
    int64_t[::1] row not None,                # OUT
):
    """Sum the slopes of pieces."""
    cdef Rows rows
    cdef Total sums = nothing()
    cdef Finding found
    cdef Py_ssize_t k, i, n_pieces = at.shape[0]
    rows.model = Model(
        kind, &parameters[0], parameters.shape[0] > 1, <void *>function, <void *>user_data, False
    )
    rows.given = &given[0] if given.shape[0] else NULL
    rows.y = &targets[0]
    rows.w = &weights[0] if weights.shape[0] else NULL
    rows.ends = &ends[0] if ends.shape[0] else NULL
    rows.n = targets.shape[0]
    rows.target_error = target_error
    rows.backward = backward
    with nogil:
        for i in range(n_pieces):
            k = n_pieces - 1 - i if backward else i
            if i == 0 or not joined[k + 1 if backward else k]:
                sums = nothing()
            found = Finding(0.0, -INFINITY, starts[k])
            sum_piece(&rows, starts[k], starts[k + 1], &at[k], &sums, &found)
            total[k] = value_of_sum(&sums)
            doubt[k] = sums.doubt + ULP * fabs(total[k])
            most[k] = found.most
            excess[k] = found.excess
            row[k] = found.row


cdef inline Total nothing() noexcept nogil:
    return Total(Twofold(0.0, 0.0), 0.0, Twofold(0.0, 0.0), 0.0)


cdef void sum_piece(
    const Rows *rows, Py_ssize_t start, Py_ssize_t end, const double *z, Total *sums, Finding *found
) noexcept nogil:
    """Add the rows of a piece one by one, and look at the sum where a score ends, or begins."""
    cdef double[CHUNK] big
    cdef double[CHUNK] tail
    cdef double[CHUNK] curve
    cdef Slopes slopes = Slopes(&big[0], &tail[0], &curve[0])
    cdef Py_ssize_t done = 0, n, first, i, j, row
    cdef double value
    cdef bint counts
    while done < end - start:
        n = min(CHUNK, end - start - done)
        first = end - done - n if rows.backward else start + done
        if rows.given == NULL:
            fill_slopes(&rows.model, rows.y, first, n, z, 0, slopes)
        else:
            for i in range(n):
                big[i] = 0.0
                tail[i] = rows.given[first + i]
                curve[i] = 0.0
        for i in range(n):
            j = n - 1 - i if rows.backward else i
            row = first + j
            add_row(rows, row, z[0], big[j], tail[j], curve[j], sums)
            if rows.backward:
                counts = rows.ends == NULL or row == 0 or rows.ends[row - 1]
            else:
                counts = rows.ends == NULL or rows.ends[row]
            if counts:
                value = value_of_sum(sums)
                found.most = greater(found.most, value + (sums.doubt + ULP * fabs(value)))
                if value - sums.doubt > found.excess:
                    found.excess = value - sums.doubt
                    found.row = row
        done += n


cdef inline void add_row(
    const Rows *rows, Py_ssize_t row, double z, double big, double tail, double curve, Total *sums
) noexcept nogil:
    cdef double w = rows.w[row] if rows.w != NULL else 1.0, sign = -1.0 if rows.backward else 1.0
    cdef double y = rows.y[row], p = rows.model.p[row * rows.model.p_step], distance, product, most
    sums.doubt += TINY * (1.0 + w + lesser(fabs(tail), MOST))
    tail = lesser(greater(w * tail, -MOST), MOST)
    add(&sums.tail, sign * tail)
    sums.doubt += 8.0 * ULP * fabs(tail)
    if curve != 0.0:                          # it is where z may be infinite
        distance = fabs(z) + fabs(p) if rows.model.kind == LOGISTIC else fabs(z - y)
        # (of a slope beyond all numbers, the sign is certain)
        most = MOST if fabs(tail) < MOST else 0.5 * MOST
        sums.doubt += lesser(w * fabs(curve) * (2.0 * ULP * distance + rows.target_error * fabs(y)), most)
    if big != 0.0:
        product = w * big
        add_big(sums, sign * product)
        if rows.w != NULL and fabs(big) < MOST:
            add_big(sums, sign * rounded_off(w, big, product))
        if fabs(product) < 1e-280:
            sums.doubt += ULP * fabs(product)
        if rows.model.kind == QUANTILE or rows.model.kind == HUBER:
            # where slopes are level, no tail decides; and ten levels or weights of 0.7, which is not exactly that, are
            # meant to be 7
            sums.doubt += ULP * fabs(product)
        elif rows.model.kind == LOGISTIC and big > 0.0:
            sums.doubt += w * fabs((1.0 - big) - y)


cdef inline void add_big(Total *sums, double x) noexcept nogil:
    """big += x; what the addition rounds off its second double is added to the third."""
    cdef double total = sums.big.hi + x, back = total - sums.big.hi
    cdef double error = (sums.big.hi - (total - back)) + (x - back)
    sums.big.hi = total
    total = sums.big.lo + error
    back = total - sums.big.lo
    sums.rest += (sums.big.lo - (total - back)) + (error - back)
    sums.big.lo = total


cdef inline double value_of_sum(const Total *sums) noexcept nogil:
    """Its two largest parts may cancel: what their sum rounds off counts with the small ones."""
    cdef double total = sums.big.hi + sums.big.lo, back = total - sums.big.hi
    cdef double error = (sums.big.hi - (total - back)) + (sums.big.lo - back)
    return total + (error + (sums.rest + (sums.tail.hi + sums.tail.lo)))
