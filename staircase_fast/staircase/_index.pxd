# Find the step of a score.
#
# Few scores are looked up by bisection.  Many use an index with an entry for each bucket of scores (`_cells.pxd`): the
# step on which the bucket begins, and where in it the next step starts.  Then one comparison finds the step.  If
# several steps start in a bucket, they are searched by bisection.
#
#     steps that start at 0, 1 and 5, buckets [0, 2), [2, 4), [4, 6):  entries (step 0, edge 1), (step 1, no edge),
#     (step 1, edge 5).  The score 4.5 is in the last bucket and below 5: step 1.
#
# Preconditions: at least one step, left[0] <= right[0] < left[1] <= right[1] < .., no NaN in these.

from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t

from staircase_fast.arithmetic._branchless cimport prefetch
from staircase_fast.arithmetic._types cimport floating
from staircase_fast.staircase._cells cimport Map, bucket_of, find_buckets

ctypedef struct Stairs:
    Py_ssize_t n
    const double *left
    const double *right
    const double *values

ctypedef struct Entry:
    double edge               # where a step starts in this bucket, or NaN: none or several do
    int64_t step              # the step on which the bucket begins; its complement, which is < 0, if several start

ctypedef struct Index:
    const Entry *entries      # or NULL: no index
    bint many                 # more than MANY_ENTRIES: prefetch them
    Map cells

cdef enum:
    MANY_ENTRIES = 1 << 18    # more do not fit the nearest caches


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
    """The step of a score, by bisection of all n steps."""
    return started(left + 1, n - 1, score) if n > 1 else 0


cdef inline Py_ssize_t started(const double *left, Py_ssize_t n, double score) noexcept nogil:
    """The number of entries at or below the score: bisection without branches."""
    cdef const double *base = left
    cdef Py_ssize_t half
    while n > 1:
        half = n >> 1
        base += half if base[half - 1] <= score else 0
        n -= half
    return (base - left) + (base[0] <= score)


cdef inline void fill_index(
    const double *left, Py_ssize_t n, Map cells, Entry *entries, Py_ssize_t n_entries
) noexcept nogil:
    """Fill the index; it has one entry more than there are buckets."""
    cdef Py_ssize_t step = 0, start, b, upcoming = bucket_of(cells, left[1]) if n > 1 else -1
    for b in range(n_entries):
        start = step
        while b == upcoming:                  # the next step starts here
            step += 1
            upcoming = bucket_of(cells, left[step + 1]) if step + 1 < n else -1
        entries[b].step = ~start if step - start > 1 else start
        entries[b].edge = left[step] if step - start == 1 else NAN


cdef inline Index index_of(const Entry *entries, Py_ssize_t n_entries, Map cells) noexcept nogil:
    return Index(entries, n_entries > MANY_ENTRIES, cells)


cdef inline Index no_index() noexcept nogil:
    cdef Index index
    index.entries = NULL
    index.many = False
    index.cells = Map(NULL, NULL, 1, False)
    return index


cdef inline void find_entries(
    const Index *index, const floating *queries, Py_ssize_t n, int32_t *buckets
) noexcept nogil:
    cdef Py_ssize_t i
    find_buckets(index.cells, queries, n, buckets)
    if index.many:
        for i in range(n):
            prefetch(index.entries + buckets[i])


cdef inline Py_ssize_t step_in(const Stairs *stairs, const Index *index, double score) noexcept nogil:
    """The step of a score, by the index if there is one."""
    if index.entries == NULL:
        return step_of(stairs.left, stairs.n, score)
    return step_by(index.entries + bucket_of(index.cells, score), stairs.left, score)
