# Where a cut divides a run of rows: section VI of the paper as a prefix minimum.
#
# D_n = -l'_n(cut) says whether row n wants to be above the cut, and P_j = D_1 + .. + D_j.  With the first and the last
# place where P is least, rows up to the first one lie below the cut in the optimum, rows between the two at the cut,
# and rows after the last one above it.  That is what the paper's joins come to (Steps 3 and 4), without joining
# anything.
#
# What is summed is P less its least value so far: a row that weighs more than all others together must not drown what
# comes after it.  A sum within its own rounding error counts as zero.  The error of a slope is some ulps of it, and at
# least four times the least float (8 roundings of DBL_MIN); where the slope changes fast, the rounding of z - y counts
# as well (`noise`).
#
# Observations are not divided: P counts only where a score ends.
#
# Where P is least matters only where it is least of all.  So a few rows are summed side by side, and how low P gets
# among them is noted; when all of a chunk have been, the few where it was least are looked at one by one.  (Where
# scores repeat, P may be lower within an observation than it counts: then, all that are not above the least so far.)

from libc.float cimport DBL_MIN
from libc.math cimport fabs
from libc.stdint cimport uint8_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._double_double cimport Twofold, add, rounded_off
from staircase_fast.arithmetic._simd cimport (
    Pair, pair_first, pair_greater, pair_minus, pair_of, pair_plus, pair_second, pair_size,
)

cdef enum:
    CHUNK = 512           # rows whose slopes are found before they are summed
    FEW = 32              # rows that are summed side by side

ctypedef struct Part:
    Py_ssize_t end        # the first row that does not belong to it
    double sum            # of D
    double doubt          # of the sizes that rounding errors are proportional to
    double curve          # of l''

ctypedef struct Cut:
    Py_ssize_t next       # the first row that has not been seen
    Part below            # rows up to where P is least
    Part at               # rows from there up to where P is as low again
    Part since            # rows from there up to the next one
    Twofold big           # sums of `since`
    Twofold tail
    bint rounded          # whether the sum of big parts may not be exact
    bint any_at           # whether there are rows at the cut; then
    Part after            # rows after those,
    Twofold after_big     # and their sums
    Twofold after_tail

ctypedef struct Few:      # of some rows side by side
    Twofold big           # sums of `since` after them
    Twofold tail
    Part since
    double dip            # how far P falls among them, and
    double fall           # after all of them, nearly


cdef inline double error_of(double doubt) noexcept nogil:
    """How wrong a sum may be: slopes are right to some ulps."""
    return 8.0 * 1.1102230246251565e-16 * doubt


cdef inline Cut new_cut(Py_ssize_t start) noexcept nogil:
    cdef Part none = Part(start, 0.0, 0.0, 0.0)
    return Cut(
        start, none, none, none, Twofold(0.0, 0.0), Twofold(0.0, 0.0), False,
        False, none, Twofold(0.0, 0.0), Twofold(0.0, 0.0),
    )


cdef inline void see(
    Cut *cut, const double *big, const double *tail, const double *curve, const double *noise, const double *weights,
    const uint8_t *ends, Py_ssize_t n, bint whole
) noexcept nogil:
    """Sum the slopes of the next n rows.

    `big`: or NULL: all are 0.  `noise`: the error of each tail in units of 8 roundings, or NULL: the size of the tail.
    `ends`: whether a score ends at each of them, or NULL: all do.  `whole`: big parts with their weights are small
    integers.
    """
    cdef Cut sums = cut[0], before            # a copy that nothing else can point to stays in registers
    cdef double[CHUNK] slopes
    cdef double[CHUNK] rises
    cdef double[CHUNK] errors
    cdef Py_ssize_t i, end, skipped = -1, looked = 0
    cdef double least = 0.0, slack = 0.0, lowest, doubt
    cdef Few few
    if weights != NULL:
        for i in range(n):
            slopes[i] = tail[i] * weights[i]
            rises[i] = curve[i] * weights[i]
        if noise != NULL:
            for i in range(n):
                errors[i] = noise[i] * weights[i]
            noise = errors
        tail = slopes
        curve = rises
    i = 0
    while i < n or skipped >= 0:
        if (whole or big == NULL) and i + FEW <= n:
            few = sum_few(
                &sums, NULL if big == NULL else big + i, tail + i, curve + i, tail + i if noise == NULL else noise + i
            )
            lowest = sums.big.hi + (sums.big.lo + (sums.tail.hi + sums.tail.lo)) - few.dip
            doubt = 4.0 * error_of(few.since.doubt) + slack
            if big != NULL:                   # beside them, tails may have been rounded off
                doubt += 1e-15 * (fabs(sums.big.hi) + 2 * FEW)
            if lowest > least + doubt:
                skip(&sums, &few)
                i += FEW
                continue
            if ends == NULL and i >= looked and lowest < least - doubt:
                before = sums
                skipped = i
                skip(&sums, &few)
                i += FEW
                # sums begin anew at the last of these rows, and P is less among them by so much
                least = lesser(few.fall - few.dip, 0.0)
                slack = doubt
                sums.since.end = sums.next + i
                begin_anew(&sums)
                continue
        if skipped >= 0:
            looked = i
            i = skipped
            sums = before
            skipped = -1
            least = 0.0
            slack = 0.0
        end = min(n, i + FEW)
        while i < end:
            look_at(
                &sums, 0.0 if big == NULL else big[i], tail[i], curve[i], tail[i] if noise == NULL else noise[i],
                1.0 if weights == NULL else weights[i],
                ends == NULL or ends[i], sums.next + i + 1
            )
            i += 1
    sums.next += n
    sums.since.end = sums.next
    cut[0] = sums


cdef inline Few sum_few(
    const Cut *cut, const double *big, const double *tail, const double *curve, const double *noise
) noexcept nogil:
    """Sums with the next FEW rows, halves of them at once."""
    cdef Pair zero = pair_of(0.0, 0.0), hi = zero, lo = zero, wholes = zero, sizes = zero, curves = zero, slope
    cdef Pair most = pair_of(-1e300, -1e300)
    cdef Few few
    cdef Py_ssize_t i
    few.big = cut.big
    few.tail = cut.tail
    few.since = cut.since
    for i in range(FEW // 2):
        slope = pair_of(tail[i], tail[i + FEW // 2])
        add_pair(&hi, &lo, slope)
        sizes = pair_plus(sizes, pair_size(pair_of(noise[i], noise[i + FEW // 2])))
        curves = pair_plus(curves, pair_of(curve[i], curve[i + FEW // 2]))
        if big != NULL:
            wholes = pair_plus(wholes, pair_of(big[i], big[i + FEW // 2]))
            most = pair_greater(pair_plus(hi, wholes), most)
        else:
            most = pair_greater(hi, most)
    few.fall = pair_first(pair_plus(hi, wholes))
    few.dip = greater(pair_first(most), few.fall + pair_second(most))
    few.fall += pair_second(pair_plus(hi, wholes))
    if big != NULL:
        few.big.hi -= pair_first(wholes) + pair_second(wholes)
    add(&few.tail, -pair_first(hi))
    add(&few.tail, -pair_second(hi))
    few.tail.lo -= pair_first(lo) + pair_second(lo)
    few.since.doubt += pair_first(sizes) + pair_second(sizes) + FEW * DBL_MIN
    few.since.curve += pair_first(curves) + pair_second(curves)
    few.since.sum = few.big.hi + (few.tail.hi + few.tail.lo)
    return few


cdef inline void skip(Cut *cut, const Few *few) noexcept nogil:
    cut.big = few.big
    cut.tail = few.tail
    cut.since = few.since


cdef inline void add_pair(Pair *hi, Pair *lo, Pair x) noexcept nogil:
    """Two sums in twice the precision of a double, as `add` does one."""
    cdef Pair total = pair_plus(hi[0], x), back = pair_minus(total, hi[0])
    lo[0] = pair_plus(lo[0], pair_plus(pair_minus(hi[0], pair_minus(total, back)), pair_minus(x, back)))
    hi[0] = total


cdef inline void look_at(
    Cut *cut, double big, double slope, double rise, double noise, double weight, bint ends, Py_ssize_t end
) noexcept nogil:
    """Sum the slope of one row, the last before `end`; all but its big part has its weight already."""
    cdef double product = big * weight, doubt = lesser(fabs(noise), 1e290) + DBL_MIN, error
    slope = lesser(greater(slope, -1e290), 1e290)             # infinite at the ends of a domain: a sum must not be NaN
    add_row(&cut.big, &cut.tail, &cut.since, big, weight, product, slope, doubt, rise)
    if cut.big.lo != 0.0 and product != 0.0:
        # once a sum of big parts is rounded, its last digits (of twice as many) are in doubt
        cut.since.doubt += 1e-15 * (fabs(product) if cut.rounded else fabs(cut.big.hi) + fabs(product))
        cut.rounded = True
    if cut.any_at:
        if cut.after_big.lo != 0.0:
            doubt += 1e-15 * fabs(cut.after_big.hi)
        add_row(&cut.after_big, &cut.after_tail, &cut.after, big, weight, product, slope, doubt, rise)
    if ends:
        cut.since.sum = sum_of(&cut.big, &cut.tail)
        error = error_of(cut.since.doubt)
        if cut.since.sum <= error:
            if cut.since.sum < -error:
                cut.since.end = end
                begin_anew(cut)
            elif not must_be_above(cut):
                cut.since.end = end
                cut.at = cut.since
                cut.any_at = True
                cut.after = Part(end, 0.0, 0.0, 0.0)
                cut.after_big = Twofold(0.0, 0.0)
                cut.after_tail = Twofold(0.0, 0.0)


cdef inline void add_row(
    Twofold *big_sum, Twofold *tail, Part *part, double big, double weight, double product, double slope, double doubt,
    double rise
) noexcept nogil:
    if product != 0.0:
        if weight != 1.0:
            add(big_sum, -rounded_off(big, weight, product))
        add(big_sum, -product)
    add(tail, -slope)
    part.doubt += doubt
    part.curve += rise


cdef inline double sum_of(const Twofold *big, const Twofold *tail) noexcept nogil:
    return big.hi + (big.lo + (tail.hi + tail.lo))


cdef inline bint must_be_above(Cut *cut) noexcept nogil:
    """Whether the rows after those at the cut are above it, by a sum of their own that earlier rows do not drown."""
    return cut.any_at and sum_of(&cut.after_big, &cut.after_tail) > error_of(cut.after.doubt)


cdef inline void begin_anew(Cut *cut) noexcept nogil:
    """All rows so far lie below."""
    cdef Part none = Part(cut.since.end, 0.0, 0.0, 0.0)
    cut.below.end = cut.since.end
    cut.below.sum += cut.since.sum
    cut.below.doubt += cut.since.doubt
    cut.below.curve += cut.since.curve
    cut.at = none
    cut.any_at = False
    cut.since = none
    cut.big = Twofold(0.0, 0.0)
    cut.tail = Twofold(0.0, 0.0)
    cut.rounded = False


cdef inline Part above(const Cut *cut) noexcept nogil:
    """The rows after those at the cut."""
    return Part(
        cut.since.end, cut.since.sum - cut.at.sum, cut.since.doubt - cut.at.doubt, cut.since.curve - cut.at.curve
    )
