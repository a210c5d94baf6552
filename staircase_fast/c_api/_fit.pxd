# The fit of the C API: it allocates memory, sorts the rows and merges them.
#
# Preconditions: rows that passed the checks of _rows.pxd, at least one of weight > 0.

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from staircase_fast.arithmetic._exact cimport Scale
from staircase_fast.arithmetic._scale cimport scale_of
from staircase_fast.c_api._rows cimport Ranges, Rows
from staircase_fast.cython_api cimport SF_ALL_WEIGHTS_ZERO, SF_NO_MEMORY, SF_OK, SF_TOO_MANY_ROWS
from staircase_fast.stack._rows cimport find_ties, merge_rows, place_work, work_words
from staircase_fast.stack._scatter cimport sort_columns, work_bytes
from staircase_fast.stack._stack cimport Stack, empty_stack
from staircase_fast.streams._online_stack cimport OwnedStairs, new_staircase

cdef enum:
    MANY_ROWS = 64            # fewer rows are pushed without summing buckets first


cdef inline int fit(Rows rows, Ranges *found, bint decreasing, OwnedStairs **out) noexcept nogil:
    """Fit rows in any order."""
    cdef double *present = NULL
    cdef double *sorted_rows = NULL
    cdef bint backwards = found.scores.down and not found.scores.up
    cdef int status = SF_OK
    if rows.w != NULL and found.weights.lowest == 0:
        status = drop_absent(&rows, &present)
    if status == SF_OK and not found.scores.up and not found.scores.down:
        status = sort(&rows, &sorted_rows)
        found.scores.tied = True              # possibly; find_ties will tell
    if status == SF_OK:
        status = merge(rows, found, decreasing, backwards, out)
    free(present)
    free(sorted_rows)
    return status


cdef inline int drop_absent(Rows *rows, double **memory) noexcept nogil:
    """Copy the rows of weight > 0 to new memory."""
    cdef Py_ssize_t i, n = 0, n_present = 0
    cdef double *x
    for i in range(rows.n):
        n_present += rows.w[i] > 0
    x = memory[0] = <double *>malloc(3 * n_present * sizeof(double))
    if x == NULL:
        return SF_NO_MEMORY
    for i in range(rows.n):
        if rows.w[i] > 0 and n < n_present:      # the weights may have changed since they were counted
            x[n] = rows.x[i]
            x[n_present + n] = rows.y[i]
            x[2 * n_present + n] = rows.w[i]
            n += 1
    rows[0] = Rows(x, x + n_present, x + 2 * n_present, n)
    return SF_OK if n else SF_ALL_WEIGHTS_ZERO


cdef inline int sort(Rows *rows, double **memory) noexcept nogil:
    """Copy the rows to new memory, in score order."""
    cdef Py_ssize_t n = rows.n, n_columns = 2 if rows.w == NULL else 3
    cdef double *x
    cdef double *y
    cdef double *w
    if <uint64_t>n >> 32:
        return SF_TOO_MANY_ROWS
    x = memory[0] = <double *>malloc(n_columns * n * sizeof(double) + work_bytes(n))
    if x == NULL:
        return SF_NO_MEMORY
    y = x + n
    w = NULL if rows.w == NULL else y + n
    # targets are moved as 64-bit words
    sort_columns(rows.x, <const uint64_t *>rows.y, rows.w, n, x, <uint64_t *>y, w, x + n_columns * n)
    rows.x = x
    rows.y = y
    rows.w = w
    return SF_OK


cdef inline int merge(
    Rows rows, const Ranges *found, bint decreasing, bint backwards, OwnedStairs **out
) noexcept nogil:
    """Fit rows in ascending or, if `backwards`, in descending order of score."""
    cdef Scale scale = scale_of(found.targets, found.weights, rows.n)
    cdef int n_words = 0 if scale.narrow else scale.s_words + scale.w_words
    cdef Py_ssize_t n = rows.n
    # memory that is never touched costs nothing
    cdef double *memory = <double *>malloc((3 * n + 1 + work_words(n, n_words)) * sizeof(double))
    cdef Stack stack
    cdef uint8_t *tied
    cdef uint8_t *live
    if memory == NULL:
        return SF_NO_MEMORY
    stack = empty_stack(scale, decreasing != backwards, <Py_ssize_t *>(memory + 2 * n), memory, memory + n)
    tied = place_work(&stack, <uint64_t *>(memory + 3 * n + 1), n)
    live = tied + n if n >= MANY_ROWS and scale.tame else NULL
    if not found.scores.tied or not find_ties(rows.x, n, tied):
        tied = NULL
    merge_rows(&stack, rows.y, rows.w, tied, n, -INFINITY, INFINITY, live, False)
    stack.starts[stack.n] = n
    out[0] = staircase_of(&stack, rows.x, backwards)
    free(memory)
    return SF_OK if out[0] != NULL else SF_NO_MEMORY


cdef inline OwnedStairs *staircase_of(const Stack *stack, const double *x, bint backwards) noexcept nogil:
    """Steps in ascending order of score; adding 0.0 turns -0.0 into 0.0."""
    cdef OwnedStairs *stairs = new_staircase(stack.n)
    cdef Py_ssize_t i, step, start, end
    if stairs == NULL:
        return NULL
    for i in range(stack.n):
        step = stack.n - 1 - i if backwards else i
        start = stack.starts[i]
        end = stack.starts[i + 1]
        stairs.left[step] = x[end - 1 if backwards else start] + 0.0
        stairs.right[step] = x[start if backwards else end - 1] + 0.0
        stairs.values[step] = stack.s[i]
        stairs.weights[step] = stack.w[i]
        stairs.counts[step] = end - start
    return stairs
