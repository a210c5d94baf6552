# A monotone map from scores to buckets, quick to evaluate and even for any distribution (`cells.py` makes it).
#
# Cell 0 cuts the whole range into equal parts, one for each cell that follows; those cut their part into buckets, as
# many as a sample of scores found it worth.  Each operation is monotone under rounding, so the map is, to the last bit,
# and infinities end up at the ends.
#
# Assumed of the caller: no NaN.

from staircase_fast._select cimport greater, lesser

ctypedef fused floating:
    float
    double

# Loops over rows first find the buckets of this many, then use them: the processor overlaps more rows that way than
# when each row's bucket and what is done with it form one long chain.
cdef enum:
    BATCH = 256

ctypedef struct Cell:
    double origin
    double scale
    double last           # parts of this cell, less one
    double base           # buckets before it


cdef inline double part_of(const Cell *cell, double x) noexcept nogil:
    return lesser(greater((x - cell.origin) * cell.scale, 0.0), cell.last)       # a NaN, 0 * inf, becomes 0


cdef inline Py_ssize_t bucket_of(const Cell *cells, double x) noexcept nogil:
    cdef const Cell *cell = cells + 1 + <Py_ssize_t>part_of(cells, x)
    return <Py_ssize_t>cell.base + <Py_ssize_t>part_of(cell, x)


cdef inline void find_buckets(
    const Cell *cells, const floating *scores, Py_ssize_t n, Py_ssize_t *buckets
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        buckets[i] = bucket_of(cells, scores[i])
