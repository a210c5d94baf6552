# A monotone map from scores to buckets, quick to evaluate and even for any distribution (`cells.py` makes it).
#
# A cell cuts its range of scores into equal parts, numbered low, low + 1, .., high.  Cell 0 covers the whole range.
# Alone, its parts are the buckets; where scores are not spread evenly, its parts are the cells that follow, and those
# cut theirs into buckets, as many as a sample of scores found it worth.  Each operation is monotone under rounding, so
# the map is, to the last bit, and infinities end up at the ends.
#
# Assumed of the caller: no NaN, fewer than 2**31 buckets.

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
    bint flat             # there is one cell


cdef inline Map map_of(const double[:, ::1] bucket_map) noexcept nogil:
    return Map(<const Cell *>&bucket_map[0, 0], bucket_map.shape[0] == 1)


cdef inline int32_t part_of(const Cell *cell, double x) noexcept nogil:
    return <int32_t>lesser(greater(x * cell.scale + cell.shift, cell.low), cell.high)


cdef inline int32_t bucket_of(Map cells, double x) noexcept nogil:
    cdef int32_t part = part_of(cells.cells, x)
    return part if cells.flat else part_of(cells.cells + 1 + part, x)


cdef inline void find_buckets(Map cells, const floating *scores, Py_ssize_t n, int32_t *buckets) noexcept nogil:
    cdef Py_ssize_t i
    cdef Cell whole = cells.cells[0]
    for i in range(n):                        # two passes: the first one is done on several rows at once
        buckets[i] = part_of(&whole, scores[i])
    if not cells.flat:
        for i in range(n):
            buckets[i] = part_of(cells.cells + 1 + buckets[i], scores[i])
