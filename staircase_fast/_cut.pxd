# Where a cut divides a run of rows: section VI of the paper as a prefix minimum.
#
# D_n = -l'_n(cut) says whether row n wants to be above the cut, and P_j = D_1 + .. + D_j.  With the first and the last
# place where P is least, rows up to the first one lie below the cut in the optimum, rows between the two at the cut,
# and rows after the last one above it.  That is what the paper's joins come to (Steps 3 and 4), without joining
# anything.
#
# What is summed is P less its least value so far: a row that weighs more than all others together must not drown what
# comes after it.  A sum within its own rounding error counts as zero.
#
# Observations are not divided: P counts only where a score ends.

from libc.math cimport fabs
from libc.stdint cimport uint8_t

from staircase_fast._select cimport greater, lesser
from staircase_fast._twofold cimport Twofold, add, rounded_off

cdef enum:
    CHUNK = 256           # rows whose slopes are found before they are summed

ctypedef struct Part:
    Py_ssize_t end        # the first row that does not belong to it
    double sum            # of D
    double doubt          # of sizes of what may be wrong in the last digits
    double curve          # of l''

ctypedef struct Cut:
    Py_ssize_t next       # the first row that has not been seen
    Part below            # rows up to where P is least
    Part at               # rows from there up to where P is as low again
    Part since            # rows from there up to the next one
    Twofold big           # sums of `since`
    Twofold tail
    bint rounded          # whether the sum of big parts may not be exact


cdef inline double error_of(double doubt) noexcept nogil:
    """How wrong a sum may be: slopes are right to some ulps."""
    return 8.0 * 1.1102230246251565e-16 * doubt


cdef inline Cut new_cut(Py_ssize_t start) noexcept nogil:
    cdef Part none = Part(start, 0.0, 0.0, 0.0)
    return Cut(start, none, none, none, Twofold(0.0, 0.0), Twofold(0.0, 0.0), False)


cdef inline void see(
    Cut *cut, const double *big, const double *tail, const double *curve, const double *weights, const uint8_t *ends,
    Py_ssize_t n
) noexcept nogil:
    """Sum the slopes of the next n rows; `ends`: whether a score ends at each of them, or NULL: all do."""
    cdef Cut sums = cut[0]                    # a copy that nothing else can point to stays in registers
    cdef Py_ssize_t i
    cdef double slope, rise, product, error
    for i in range(n):
        slope = tail[i]
        rise = curve[i]
        product = big[i]
        if weights != NULL:
            slope *= weights[i]
            rise *= weights[i]
            if product != 0.0:
                product *= weights[i]
                add(&sums.big, -rounded_off(big[i], weights[i], product))
        slope = lesser(greater(slope, -1e290), 1e290)         # infinite at the ends of a domain: a sum must not be NaN
        add(&sums.big, -product)
        add(&sums.tail, -slope)
        sums.since.doubt += fabs(slope) + 1e-300              # what is below may have been lost to underflow
        sums.since.curve += rise
        if sums.big.lo != 0.0 and product != 0.0:
            # once a sum of big parts is rounded, its last digits (of twice as many) are in doubt
            sums.since.doubt += 1e-15 * (fabs(product) if sums.rounded else fabs(sums.big.hi) + fabs(product))
            sums.rounded = True
        if ends == NULL or ends[i]:
            sums.since.sum = sums.big.hi + (sums.big.lo + (sums.tail.hi + sums.tail.lo))
            error = error_of(sums.since.doubt)
            if sums.since.sum <= error:
                sums.since.end = sums.next + i + 1
                if sums.since.sum < -error:
                    begin_anew(&sums)
                else:
                    sums.at = sums.since
    sums.next += n
    sums.since.end = sums.next
    cut[0] = sums


cdef inline void begin_anew(Cut *cut) noexcept nogil:
    """All rows so far lie below."""
    cdef Part none = Part(cut.since.end, 0.0, 0.0, 0.0)
    cut.below.end = cut.since.end
    cut.below.sum += cut.since.sum
    cut.below.doubt += cut.since.doubt
    cut.below.curve += cut.since.curve
    cut.at = none
    cut.since = none
    cut.big = Twofold(0.0, 0.0)
    cut.tail = Twofold(0.0, 0.0)
    cut.rounded = False


cdef inline Part above(const Cut *cut) noexcept nogil:
    """The rows after those at the cut."""
    return Part(
        cut.since.end, cut.since.sum - cut.at.sum, cut.since.doubt - cut.at.doubt, cut.since.curve - cut.at.curve
    )
