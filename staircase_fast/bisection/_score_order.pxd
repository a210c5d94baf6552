# Few rows in score order, with the parameters of their losses.

from cpython.mem cimport PyMem_RawMalloc
from libc.stdint cimport uint8_t
from libc.stdlib cimport qsort

from staircase_fast.stack._sort cimport RankedTarget, rank_of, sort_rows

# Rows in columns.
ctypedef struct Columns:
    double *x
    double *y
    double *w                 # or NULL: all are 1
    double *p                 # parameters, or NULL: all rows share one

# The columns of a row whose score is not unique.
ctypedef struct TiedRow:
    double y
    double w
    double p
    double unused             # as large as two RankedTarget

ctypedef struct Room:         # work space
    void *memory
    Columns rows              # in score order
    uint8_t *ends             # whether a score ends at a row
    RankedTarget *ranked
    RankedTarget *spare
    TiedRow *tied             # the same memory as `ranked` and `spare`


cdef inline bint make_room_for_rows(Room *room, Py_ssize_t n, bint weighted, bint own_parameters) noexcept nogil:
    """Allocate the work space for up to n rows; return False if there is no memory."""
    cdef double *at
    room.memory = PyMem_RawMalloc(n * (2 * sizeof(RankedTarget) + 4 * sizeof(double) + 1))
    if room.memory == NULL:
        return False
    room.ranked = <RankedTarget *>room.memory
    room.spare = room.ranked + n
    room.tied = <TiedRow *>room.memory
    at = <double *>(room.spare + n)
    room.rows = Columns(at, at + n, NULL, NULL)
    if weighted:
        room.rows.w = at + 2 * n
    if own_parameters:
        room.rows.p = at + 3 * n
    room.ends = <uint8_t *>(at + 4 * n)
    return True


cdef inline Py_ssize_t copy_in_order(Room *room, const Columns *given, Py_ssize_t n, bint any_zero) noexcept nogil:
    """Copy the rows of weight > 0 in score order; return their number."""
    cdef Columns *rows = &room.rows
    cdef Py_ssize_t i, place, n_present = 0
    cdef bint sorted_rows = True
    for i in range(n):
        if any_zero and given.w[i] == 0:
            continue
        room.ranked[n_present] = RankedTarget(rank_of(given.x[i] + 0.0), i)     # -0.0 becomes the 0.0 it equals
        if n_present and room.ranked[n_present].rank < room.ranked[n_present - 1].rank:
            sorted_rows = False
        n_present += 1
    if not sorted_rows:
        sort_rows(room.ranked, n_present, room.spare)
    for i in range(n_present):
        place = <Py_ssize_t>room.ranked[i].y
        rows.x[i] = given.x[place] + 0.0
        rows.y[i] = given.y[place]
        if rows.w != NULL:
            rows.w[i] = given.w[place]
        if rows.p != NULL:
            rows.p[i] = given.p[place]
    return n_present


cdef inline int compare_rows(const void *one, const void *other) noexcept nogil:
    cdef const TiedRow *a = <const TiedRow *>one
    cdef const TiedRow *b = <const TiedRow *>other
    if a.y != b.y:
        return 1 if a.y > b.y else -1
    if a.w != b.w:
        return 1 if a.w > b.w else -1
    return (a.p > b.p) - (a.p < b.p)


cdef inline bint find_ends(Room *room, Py_ssize_t n) noexcept nogil:
    """Set `ends`, and sort rows of one score by their other columns; return whether any are tied.

    The order of tied rows determines how sums are rounded, so it must not depend on the order of the input.
    """
    cdef Columns *rows = &room.rows
    cdef Py_ssize_t i, start = 0
    cdef bint tied = False
    for i in range(n):
        room.ends[i] = i + 1 == n or rows.x[i] != rows.x[i + 1]
        if not room.ends[i]:
            tied = True
        elif i == start:
            start = i + 1
        else:
            sort_tied(room, start, i + 1 - start)
            start = i + 1
    return tied


cdef inline void sort_tied(Room *room, Py_ssize_t start, Py_ssize_t n) noexcept nogil:
    cdef Columns *rows = &room.rows
    cdef Py_ssize_t i
    for i in range(n):
        room.tied[i].y = rows.y[start + i]
        room.tied[i].w = 1.0 if rows.w == NULL else rows.w[start + i]
        room.tied[i].p = 1.0 if rows.p == NULL else rows.p[start + i]
    qsort(room.tied, n, sizeof(TiedRow), compare_rows)
    for i in range(n):
        rows.y[start + i] = room.tied[i].y
        if rows.w != NULL:
            rows.w[start + i] = room.tied[i].w
        if rows.p != NULL:
            rows.p[start + i] = room.tied[i].p


cdef inline void turn_rows(Room *room, Py_ssize_t n) noexcept nogil:
    """Reverse the rows.  A score ends where the next one begins."""
    cdef Py_ssize_t i
    turn_column(room.rows.x, n)
    turn_column(room.rows.y, n)
    if room.rows.w != NULL:
        turn_column(room.rows.w, n)
    if room.rows.p != NULL:
        turn_column(room.rows.p, n)
    for i in range(n):
        room.ends[i] = i + 1 == n or room.rows.x[i] != room.rows.x[i + 1]


cdef inline void turn_column(double *column, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n // 2):
        column[i], column[n - 1 - i] = column[n - 1 - i], column[i]
