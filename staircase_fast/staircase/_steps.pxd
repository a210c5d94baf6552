# Which step a score is on: the last one that starts at or below it, or the first.
#
# An index has an entry for each bucket of scores (_cells.pxd): the step on which it begins, and where in it another one
# starts.  Then a comparison tells the step of a score.  Where several start in one bucket, they are searched.
#
# Assumed of the caller: at least one step, no NaN among their ends.

from libc.stdint cimport int64_t

ctypedef struct Entry:
    double edge           # where a step starts in this bucket; NaN, which nothing reaches, if none does
    int64_t step          # the step on which the bucket begins; the complement, which is < 0, if several start in it


cdef inline int64_t step_by(const Entry *entry, const double *left, double score) noexcept nogil:
    """The step of a score whose bucket has this entry."""
    cdef int64_t step = entry.step, last
    if step >= 0:
        return step + (entry.edge <= score)
    step = ~step
    last = entry[1].step
    last = ~last if last < 0 else last
    return step + started(left + step + 1, last - step, score)


cdef inline int64_t step_of(const double *left, Py_ssize_t n, double score) noexcept nogil:
    """The step of a score, of n steps."""
    return started(left + 1, n - 1, score) if n > 1 else 0


cdef inline Py_ssize_t started(const double *left, Py_ssize_t n, double score) noexcept nogil:
    """How many entries are at or below the score: halving without branches."""
    cdef const double *base = left
    cdef Py_ssize_t half
    while n > 1:
        half = n >> 1
        base += half if base[half - 1] <= score else 0
        n -= half
    return (base - left) + (base[0] <= score)
