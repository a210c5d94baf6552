# Evaluate a staircase of the C API.
#
# Preconditions: at least one step.

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc

from staircase_fast.staircase._cells cimport Cell, Map
from staircase_fast.staircase._follow cimport follow
from staircase_fast.staircase._index cimport Entry, Index, Stairs, fill_index, index_of, no_index
from staircase_fast.streams._online_stack cimport OwnedStairs

cdef enum:
    FEW_QUERIES = 2000        # fewer queries are answered without an index
    PARTS = 8                 # index cells per step
    FEW_PARTS = 2             # the same if there are many steps
    MANY_STEPS = 10000
    MOST_STEPS = 1 << 29      # buckets are counted in int32


cdef inline void evaluate(
    const OwnedStairs *stairs, const double *queries, Py_ssize_t n, bint linear, bint outside, double *out
) noexcept nogil:
    """out[i] = the staircase at queries[i]; no query is NaN."""
    cdef Stairs steps = Stairs(stairs.n_steps, stairs.left, stairs.right, stairs.values)
    cdef Index index = no_index()
    cdef Entry *entries = NULL
    cdef Cell cell
    cdef Map cells
    cdef Py_ssize_t n_entries
    if not linear and n >= FEW_QUERIES and n >= steps.n and steps.n < MOST_STEPS and cut_evenly(&steps, &cell):
        n_entries = <Py_ssize_t>cell.top + 2
        entries = <Entry *>malloc(n_entries * sizeof(Entry))
    if entries != NULL:                       # without an index, a binary search finds the same step
        cells = Map(&cell, &cell + 1, 1, False)
        fill_index(steps.left, steps.n, cells, entries, n_entries)
        index = index_of(entries, n_entries, cells)
    follow(&steps, &index, NULL, queries, n, linear, outside, False, out)
    free(entries)


cdef inline bint cut_evenly(const Stairs *stairs, Cell *cell) noexcept nogil:
    """Set a cell that divides the range of step starts into parts of equal width; return whether that is possible."""
    cdef Py_ssize_t first = 0, last = stairs.n - 1
    cdef double parts = <double>stairs.n * (PARTS if stairs.n < MANY_STEPS else FEW_PARTS)
    if stairs.left[first] == -INFINITY:
        first += 1
    if stairs.left[last] == INFINITY:
        last -= 1
    if first >= last:
        return False
    cell.scale = parts / (stairs.left[last] - stairs.left[first])
    cell.shift = -stairs.left[first] * cell.scale
    cell.top = parts - 1.0
    cell.base = 0
    return 0.0 < cell.scale < INFINITY and -INFINITY < cell.shift < INFINITY
