# Which step a score is on.
#
# An index has an entry for each bucket of scores (_cells.pxd): how many steps start before it, and where in it one
# starts.  Then a comparison tells how many start at or below a score.  Where several start in one bucket, they are
# searched.
#
# Assumed of the caller: at least one step, no NaN among their ends.

from libc.stdint cimport int64_t

ctypedef struct Entry:
    double edge           # where a step starts in this bucket; NaN, which nothing reaches, if none does
    int64_t before        # steps that start before this bucket; the complement, which is < 0, if several start in it


cdef inline int64_t started_by(const Entry *entry, const double *left, double score) noexcept nogil:
    """How many steps start at or below the score, whose bucket has this entry."""
    cdef int64_t before = entry.before, after
    if before >= 0:
        return before + (entry.edge <= score)
    before = ~before
    after = entry[1].before
    after = ~after if after < 0 else after
    return before + started(left + before, after - before, score)


cdef inline Py_ssize_t started(const double *left, Py_ssize_t n, double score) noexcept nogil:
    """How many entries are at or below the score: halving without branches."""
    cdef const double *base = left
    cdef Py_ssize_t half
    while n > 1:
        half = n >> 1
        base += half if base[half - 1] <= score else 0
        n -= half
    return (base - left) + (base[0] <= score)
