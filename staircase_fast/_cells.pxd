# A monotone map from scores to buckets, quick to evaluate and even for any distribution (`cells.py` makes it).
#
# Cell 0 cuts the whole range into equal parts, one for each cell that follows; those cut their part into buckets, as
# many as a sample of scores found it worth.  Each operation is monotone under rounding, so the map is, to the last bit,
# and infinities end up at the ends.
#
# Assumed of the caller: no NaN.

ctypedef struct Cell:
    double origin
    double scale
    double last           # parts of this cell, less one
    double base           # buckets before it


cdef inline double part_of(const Cell *cell, double x) noexcept nogil:
    cdef double part = (x - cell.origin) * cell.scale
    part = part if part > 0.0 else 0.0
    return part if part < cell.last else cell.last


cdef inline Py_ssize_t bucket_of(const Cell *cells, double x) noexcept nogil:
    cdef const Cell *cell = cells + 1 + <Py_ssize_t>part_of(cells, x)
    return <Py_ssize_t>cell.base + <Py_ssize_t>part_of(cell, x)
