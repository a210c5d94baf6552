# Where a cut divides a run of rows: section VI of the paper as a prefix minimum.
#
# D_n = -l'_n(cut) says whether row n wants to be above the cut, and P_j = D_1 + .. + D_j.  With the first and the last
# place where P is least, rows up to the first one lie below the cut in the optimum, rows between the two at the cut,
# and rows after the last one above it.  That is what the paper's joins come to (Steps 3 and 4), without joining
# anything.
#
# Observations are not divided: P counts only where a score ends.

from libc.math cimport fabs
from libc.stdint cimport uint8_t

from staircase_fast._select cimport greater, lesser
from staircase_fast._twofold cimport Twofold, add, rounded_off

cdef enum:
    CHUNK = 256           # rows whose slopes are found before they are summed

ctypedef struct Prefix:
    Py_ssize_t end        # the first row that does not belong to it
    double sum            # of D
    double doubt          # of what may be wrong in the last digits of D
    double curve          # of l''

ctypedef struct Cut:
    Py_ssize_t next       # the first row that has not been seen
    Twofold big
    Twofold tail
    bint rounded          # whether the sum of big parts may not be exact
    Prefix all            # of the rows seen
    Prefix first          # the least one; of those, the shortest
    Prefix last           # and the longest


cdef inline Cut new_cut(Py_ssize_t start) noexcept nogil:
    cdef Prefix empty = Prefix(start, 0.0, 0.0, 0.0)
    return Cut(start, Twofold(0.0, 0.0), Twofold(0.0, 0.0), False, empty, empty, empty)


cdef inline void see(
    Cut *cut, const double *big, const double *tail, const double *curve, const double *weights, const uint8_t *ends,
    Py_ssize_t n
) noexcept nogil:
    """Sum the slopes of the next n rows; `ends`: whether a score ends at each of them, or NULL: all do."""
    cdef Py_ssize_t i
    cdef double slope, w, product
    for i in range(n):
        slope = tail[i]
        w = curve[i]
        product = big[i]
        if weights != NULL:
            slope *= weights[i]
            w *= weights[i]
            if product != 0.0:
                product *= weights[i]
                add(&cut.big, -rounded_off(big[i], weights[i], product))
        slope = lesser(greater(slope, -1e290), 1e290)         # infinite at the ends of a domain: a sum must not be NaN
        add(&cut.big, -product)
        add(&cut.tail, -slope)
        cut.all.doubt += fabs(slope) + 1e-300                 # what is below may have been lost to underflow
        if product != 0.0 and (cut.rounded or cut.big.lo != 0.0):
            # once a sum of big parts is rounded, its last digits (of twice as many) are in doubt
            cut.all.doubt += 1e-15 * (fabs(product) if cut.rounded else fabs(cut.big.hi) + fabs(product))
            cut.rounded = True
        cut.all.curve += w
        if ends == NULL or ends[i]:
            cut.all.sum = cut.big.hi + (cut.big.lo + (cut.tail.hi + cut.tail.lo))
            if cut.all.sum <= cut.last.sum:
                cut.all.end = cut.next + i + 1
                cut.last = cut.all
                if cut.all.sum < cut.first.sum:
                    cut.first = cut.all
    cut.next += n
    cut.all.end = cut.next
