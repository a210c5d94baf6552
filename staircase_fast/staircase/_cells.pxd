# The bucket map: a monotone function from scores to bucket numbers that fills the buckets evenly (`_make_map.pyx`).
#
# A *cell* divides a range of scores into parts of equal width.  The root covers all scores.  If scores are spread
# evenly, the root is the only cell and its parts are the buckets.  Otherwise its parts are cells, which divide their
# own range: into buckets, more of them where a sample has more scores, or into cells again, as deep as the data need.
#
#     root: [0, 1) -> cell 1, [1, 2) -> cell 2;   cell 1: [0, 1) -> buckets 0 .. 9;   cell 2: [1, 2) -> bucket 10
#
# Scores that span many orders of magnitude, or are too small for a product, are replaced by the rank of their bits, an
# integer in the same order.
#
# Every operation (multiply, add, clip, truncate) is monotone also after rounding, so the map is monotone to the last
# bit, for infinite scores too.  An uneven map makes a fit slower, never wrong.
#
# Preconditions: no NaN, fewer than 2**31 buckets.

from libc.stdint cimport INT64_MAX, int32_t, int64_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._types cimport BATCH, bits_of, floating

ctypedef struct Cell:
    double scale          # parts per unit of score, finite and > 0
    double shift          # finite
    double top            # the number of parts minus 1
    int64_t base          # the first part: a bucket >= 0, or a cell, counted from the end: < 0

# The first entry of the array that holds a map; cells follow.
ctypedef struct Header:
    double n_buckets
    double depth          # of the deepest cell; that of the root is 1
    double by_bits        # scores are replaced by the rank of their bits
    double unused

ctypedef struct Map:
    const Cell *root
    const Cell *end       # of all cells
    int depth
    bint by_bits


cdef inline Map map_of(const double[:, ::1] bucket_map) noexcept nogil:
    cdef const Header *header = <const Header *>&bucket_map[0, 0]
    cdef const Cell *root = <const Cell *>(header + 1)
    return Map(root, root + bucket_map.shape[0] - 1, <int>header.depth, header.by_bits != 0)


cdef inline double rank_of_bits(double x) noexcept nogil:
    """A double that rises with x: the number of doubles between 0 and x."""
    cdef int64_t bits = <int64_t>bits_of(x), sign = bits >> 63
    return <double>(((bits & INT64_MAX) ^ sign) - sign)


cdef inline int32_t part_of(const Cell *cell, double x) noexcept nogil:
    return <int32_t>lesser(greater(x * cell.scale + cell.shift, 0.0), cell.top) + <int32_t>cell.base


cdef inline int32_t bucket_of(Map cells, double x) noexcept nogil:
    cdef int32_t part
    x = rank_of_bits(x) if cells.by_bits else x
    part = part_of(cells.root, x)
    while part < 0:
        part = part_of(cells.end + part, x)
    return part


cdef inline void find_buckets(Map cells, const floating *scores, Py_ssize_t n, int32_t *buckets) noexcept nogil:
    cdef double ranks[BATCH]
    cdef Py_ssize_t i, start = 0, size
    if not cells.by_bits:
        descend(cells, scores, n, buckets)
        return
    while start < n:
        size = min(BATCH, n - start)
        for i in range(size):
            ranks[i] = rank_of_bits(scores[start + i])
        descend(cells, <const double *>ranks, size, buckets + start)
        start += size


cdef inline void descend(Map cells, const floating *scores, Py_ssize_t n, int32_t *buckets) noexcept nogil:
    """One pass for each level of cells; compilers vectorise the first."""
    cdef Cell root = cells.root[0]
    cdef Py_ssize_t i
    cdef int32_t deeper
    for i in range(n):
        buckets[i] = part_of(&root, scores[i])
    if cells.depth > 1:                       # all parts of the root are cells
        for i in range(n):
            buckets[i] = part_of(cells.end + buckets[i], scores[i])
    for _ in range(cells.depth - 2):
        for i in range(n):                    # no branch: scores that are in a bucket visit the last cell in vain
            deeper = buckets[i] >> 31
            buckets[i] += deeper & (part_of(cells.end + (buckets[i] | ~deeper), scores[i]) - buckets[i])
