# Where a cut splits a run of rows: the joins of section VI as a prefix minimum.
#
# With D_n = -l'_n(cut) and P_j = D_1 + ... + D_j, rows up to the first minimum of P lie below the cut in the optimum,
# rows between the first and the last minimum at the cut, and rows after the last minimum above it.  The paper reaches
# the same split by joining groups (Steps 3 and 4).
#
# Deviations from the paper:
# - Sums start again at every new minimum of P, so a row with a huge weight does not drown the rows after it.
# - A sum within its own rounding error counts as zero.  The error of a slope is a few ulps, and at least four times the
#   least float (8 roundings of DBL_MIN), times the weight.  Where the slope changes fast, the rounding of z - y is
#   added (`errors`).
# - Rows with equal scores are not split: P counts only where a score ends.
#
# Speed: only the global minimum of P matters.  Rows are summed in batches, and a batch is examined row by row only if
# the minimum may be inside it.  (If scores repeat, P may be lower within a score than at its end, so every batch that
# reaches the minimum so far is examined.)

from libc.float cimport DBL_MIN
from libc.math cimport fabs
from libc.stdint cimport uint8_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._double_double cimport Twofold, add, rounded_off
from staircase_fast.arithmetic._simd cimport (
    Pair, pair_first, pair_greater, pair_minus, pair_of, pair_plus, pair_second, pair_size,
)

cdef enum:
    CHUNK = 512           # rows whose slopes are computed before they are summed
    BATCH = 32            # rows that are summed at once

ctypedef struct Part:
    Py_ssize_t end        # the row after its last one
    double sum            # of D
    double magnitude      # of the terms: rounding errors are proportional to it
    double curvature      # the sum of l''

ctypedef struct SlopeSum:     # a part with its sum in twice the precision
    Part part
    Twofold big
    Twofold tail

ctypedef struct Cut:
    Py_ssize_t next       # the first row that has not been added
    Part below            # rows up to the first minimum of P
    Part at               # rows from there to the last minimum, if any
    SlopeSum rest         # rows after the first minimum: those at the cut and above it
    bint rounded          # the sum of big parts in `rest` may not be exact
    bint any_at           # there are rows at the cut
    SlopeSum above        # rows after the last minimum; only if any_at

ctypedef struct Chunk:    # up to CHUNK consecutive rows
    const double *big     # or NULL: all are 0
    const double *tail
    const double *curvature
    const double *errors  # of each tail in units of 8 roundings; NULL: the size of the tail
    const double *weights     # or NULL: all are 1
    const uint8_t *ends   # whether a score ends at each row, or NULL: at each
    Py_ssize_t n
    bint integers         # big parts times weights are small integers

ctypedef struct Batch:    # sums of slopes, of both halves
    double big
    double tail_1
    double tail_2
    double tail_lo        # rounded off from both tails
    double magnitude
    double curvature
    double max_drop       # by how much P falls at most within the batch, nearly
    double drop           # by how much P falls over the whole batch, nearly


cdef inline double error_of(double magnitude) noexcept nogil:
    """The error bound of a sum: slopes are right to a few ulps."""
    return 8.0 * 1.1102230246251565e-16 * magnitude


cdef inline Part no_rows(Py_ssize_t end) noexcept nogil:
    return Part(end, 0.0, 0.0, 0.0)


cdef inline SlopeSum no_sum(Py_ssize_t end) noexcept nogil:
    return SlopeSum(no_rows(end), Twofold(0.0, 0.0), Twofold(0.0, 0.0))


cdef inline Cut new_cut(Py_ssize_t start) noexcept nogil:
    return Cut(start, no_rows(start), no_rows(start), no_sum(start), False, False, no_sum(start))


cdef inline void add_slopes(Cut *cut, Chunk rows) noexcept nogil:
    """Add the slopes of the next rows."""
    cdef Cut sums = cut[0], before            # a local copy that no pointer can alias stays in registers
    cdef double[CHUNK] slopes
    cdef double[CHUNK] curvatures
    cdef double[CHUNK] weighted_errors
    cdef const double *big = rows.big
    cdef const double *tail = rows.tail
    cdef const double *curvature = rows.curvature
    cdef const double *errors = rows.errors
    cdef const double *weights = rows.weights
    cdef const uint8_t *ends = rows.ends
    cdef Py_ssize_t i, end, n = rows.n, postponed = -1, examined = 0
    cdef double least = 0.0, slack = 0.0, lowest, margin
    cdef Batch batch
    cdef SlopeSum after
    if weights != NULL:
        for i in range(n):
            slopes[i] = tail[i] * weights[i]
            curvatures[i] = curvature[i] * weights[i]
            weighted_errors[i] = (fabs(tail[i] if errors == NULL else errors[i]) + DBL_MIN) * weights[i]
        errors = weighted_errors
        tail = slopes
        curvature = curvatures
    i = 0
    while i < n or postponed >= 0:
        if (rows.integers or big == NULL) and i + BATCH <= n:
            batch = sum_batch(
                NULL if big == NULL else big + i, tail + i, curvature + i, NULL if errors == NULL else errors + i
            )
            after = sums.rest
            add_batch(&after, &batch)
            lowest = sums.rest.big.hi + (sums.rest.big.lo + (sums.rest.tail.hi + sums.rest.tail.lo)) - batch.max_drop
            margin = 4.0 * error_of(after.part.magnitude) + slack
            if big != NULL:                   # adding big parts may have rounded off tails
                margin += 1e-15 * (fabs(sums.rest.big.hi) + 2 * BATCH)
            if lowest > least + margin:       # no minimum in this batch
                sums.rest = after
                if sums.any_at:
                    add_batch(&sums.above, &batch)
                i += BATCH
                continue
            if ends == NULL and i >= examined and lowest < least - margin:
                # a new minimum, but a later batch may have a lower one: examine this batch only if none has
                before = sums
                postponed = i
                sums.rest = after
                i += BATCH
                least = lesser(batch.drop - batch.max_drop, 0.0)        # relative to P at the end of the batch
                slack = margin
                sums.rest.part.end = sums.next + i
                move_rest_below(&sums)
                continue
        if postponed >= 0:
            examined = i
            i = postponed
            sums = before
            postponed = -1
            least = 0.0
            slack = 0.0
        end = min(n, i + BATCH)
        while i < end:
            add_row(
                &sums, 0.0 if big == NULL else big[i], tail[i], curvature[i], tail[i] if errors == NULL else errors[i],
                1.0 if weights == NULL else weights[i],
                ends == NULL or ends[i], sums.next + i + 1
            )
            i += 1
    sums.next += n
    sums.rest.part.end = sums.next
    cut[0] = sums


cdef inline Batch sum_batch(
    const double *big, const double *tail, const double *curvature, const double *errors
) noexcept nogil:
    """Sum BATCH rows, both halves at once."""
    cdef Pair zero = pair_of(0.0, 0.0), hi = zero, lo = zero, bigs = zero, sizes = zero, slope
    cdef Pair most = pair_of(-1e300, -1e300)
    # sums that need no Pair are one instruction shorter
    cdef double curvature_1 = 0.0, curvature_2 = 0.0, size_1 = 0.0, size_2 = 0.0
    cdef Batch batch
    cdef Py_ssize_t i
    for i in range(BATCH // 2):
        slope = pair_of(tail[i], tail[i + BATCH // 2])
        add_pair(&hi, &lo, slope)
        if errors != NULL:
            size_1 += errors[i]
            size_2 += errors[i + BATCH // 2]
        else:
            sizes = pair_plus(sizes, pair_size(slope))
        curvature_1 += curvature[i]
        curvature_2 += curvature[i + BATCH // 2]
        if big != NULL:
            bigs = pair_plus(bigs, pair_of(big[i], big[i + BATCH // 2]))
            most = pair_greater(most, pair_plus(hi, bigs))
        else:
            most = pair_greater(most, hi)
    batch.drop = pair_first(pair_plus(hi, bigs))
    batch.max_drop = greater(pair_first(most), batch.drop + pair_second(most))
    batch.drop += pair_second(pair_plus(hi, bigs))
    batch.big = pair_first(bigs) + pair_second(bigs)
    batch.tail_1, batch.tail_2 = pair_first(hi), pair_second(hi)
    batch.tail_lo = pair_first(lo) + pair_second(lo)
    if errors == NULL:
        size_1, size_2 = pair_first(sizes), pair_second(sizes)
    batch.magnitude = size_1 + size_2 + BATCH * DBL_MIN
    batch.curvature = curvature_1 + curvature_2
    return batch


cdef inline void add_batch(SlopeSum *sum, const Batch *batch) noexcept nogil:
    sum.big.hi -= batch.big
    add(&sum.tail, -batch.tail_1)
    add(&sum.tail, -batch.tail_2)
    sum.tail.lo -= batch.tail_lo
    sum.part.magnitude += batch.magnitude
    sum.part.curvature += batch.curvature
    sum.part.sum = sum.big.hi + (sum.tail.hi + sum.tail.lo)


cdef inline void add_pair(Pair *hi, Pair *lo, Pair x) noexcept nogil:
    """Two sums in twice the precision of a double; `add` for a Pair."""
    cdef Pair total = pair_plus(hi[0], x), back = pair_minus(total, hi[0])
    lo[0] = pair_plus(lo[0], pair_plus(pair_minus(hi[0], pair_minus(total, back)), pair_minus(x, back)))
    hi[0] = total


cdef inline void add_row(
    Cut *cut, double big, double slope, double curvature, double error, double weight, bint ends, Py_ssize_t end
) noexcept nogil:
    """Add the row before `end`; all arguments except `big` include its weight."""
    cdef double product = big * weight, magnitude = lesser(fabs(error), 1e290) + DBL_MIN, bound
    slope = lesser(greater(slope, -1e290), 1e290)             # may be infinite at an end of the domain
    add_to_sum(&cut.rest, big, weight, product, slope, magnitude, curvature)
    if cut.rest.big.lo != 0.0 and product != 0.0:
        # once a sum of big parts is rounded, the last digits of its second double are uncertain
        cut.rest.part.magnitude += 1e-15 * (fabs(product) if cut.rounded else fabs(cut.rest.big.hi) + fabs(product))
        cut.rounded = True
    if cut.any_at:
        if cut.above.big.lo != 0.0:
            magnitude += 1e-15 * fabs(cut.above.big.hi)
        add_to_sum(&cut.above, big, weight, product, slope, magnitude, curvature)
    if ends:
        cut.rest.part.sum = sum_of(&cut.rest)
        bound = error_of(cut.rest.part.magnitude)
        if cut.rest.part.sum <= bound:
            cut.rest.part.end = end
            if cut.rest.part.sum < -bound:
                move_rest_below(cut)
            elif not must_be_above(cut):
                cut.at = cut.rest.part
                cut.any_at = True
                cut.above = no_sum(end)


cdef inline void add_to_sum(
    SlopeSum *sum, double big, double weight, double product, double slope, double magnitude, double curvature
) noexcept nogil:
    if product != 0.0:
        if weight != 1.0:
            add(&sum.big, -rounded_off(big, weight, product))
        add(&sum.big, -product)
    add(&sum.tail, -slope)
    sum.part.magnitude += magnitude
    sum.part.curvature += curvature


cdef inline double sum_of(const SlopeSum *sum) noexcept nogil:
    return sum.big.hi + (sum.big.lo + (sum.tail.hi + sum.tail.lo))


cdef inline bint must_be_above(const Cut *cut) noexcept nogil:
    """Whether the rows after those at the cut have a positive sum of their own, which earlier rows might drown."""
    return cut.any_at and sum_of(&cut.above) > error_of(cut.above.part.magnitude)


cdef inline void move_rest_below(Cut *cut) noexcept nogil:
    """A new minimum of P: all rows so far lie below the cut."""
    cdef Part moved = cut.rest.part
    cut.below = Part(
        moved.end, cut.below.sum + moved.sum, cut.below.magnitude + moved.magnitude,
        cut.below.curvature + moved.curvature,
    )
    cut.at = no_rows(moved.end)
    cut.any_at = False
    cut.rest = no_sum(moved.end)
    cut.rounded = False


cdef inline Part part_above(const Cut *cut) noexcept nogil:
    """The rows above the cut, when all rows have been added."""
    cdef Part rest = cut.rest.part
    return Part(
        rest.end, rest.sum - cut.at.sum, rest.magnitude - cut.at.magnitude, rest.curvature - cut.at.curvature
    )
