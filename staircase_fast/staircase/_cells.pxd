# The bucket map: a monotone function from scores to bucket numbers that fills the buckets evenly (`cells.py` makes it).
#
# A *cell* divides a range of scores into parts of equal width, numbered low, low + 1, .., high.  The root, cell 0,
# covers all scores.  If scores are spread evenly, the root is the only cell and its parts are the buckets.  Otherwise
# part p of the root is cell 1 + p, and the parts of that cell are buckets, more of them where a sample has more scores:
#
#     root: [0, 1) -> cell 1, [1, 2) -> cell 2;   cell 1: [0, 1) -> buckets 0 .. 9;   cell 2: [1, 2) -> bucket 10
#
# Every operation (multiply, add, clip, truncate) is monotone also after rounding, so the map is monotone to the last
# bit, for infinite scores too.  An uneven map makes a fit slower, never wrong.
#
# Preconditions: no NaN, fewer than 2**31 buckets.

from libc.stdint cimport int32_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._types cimport floating

ctypedef struct Cell:
    double scale          # parts per unit of score, finite and > 0
    double shift          # finite
    double low            # first part
    double high           # last part


ctypedef struct Map:
    const Cell *cells
    bint flat             # the root is the only cell


cdef inline Map map_of(const double[:, ::1] bucket_map) noexcept nogil:
    return Map(<const Cell *>&bucket_map[0, 0], bucket_map.shape[0] == 1)


cdef inline int32_t part_of(const Cell *cell, double x) noexcept nogil:
    return <int32_t>lesser(greater(x * cell.scale + cell.shift, cell.low), cell.high)


cdef inline int32_t bucket_of(Map cells, double x) noexcept nogil:
    cdef int32_t part = part_of(cells.cells, x)
    return part if cells.flat else part_of(cells.cells + 1 + part, x)


cdef inline void find_buckets(Map cells, const floating *scores, Py_ssize_t n, int32_t *buckets) noexcept nogil:
    cdef Py_ssize_t i
    cdef Cell root = cells.cells[0]
    for i in range(n):                        # two passes: compilers vectorise the first
        buckets[i] = part_of(&root, scores[i])
    if not cells.flat:
        for i in range(n):
            buckets[i] = part_of(cells.cells + 1 + buckets[i], scores[i])
