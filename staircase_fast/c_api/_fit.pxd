# The fit of the C-level API: memory for it, and the kernels that a fit of rows in order takes.
#
# Assumed of the caller: rows that were judged (_api_rows.pxd), at least one of weight > 0.

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from staircase_fast.arithmetic._exact cimport Scale
from staircase_fast.arithmetic._scale cimport scale_of
from staircase_fast.c_api._rows cimport Found, Rows
from staircase_fast.c_api._staircase cimport Owned, new_staircase
from staircase_fast.cython_api cimport SF_ALL_WEIGHTS_ZERO, SF_NO_MEMORY, SF_OK, SF_TOO_MANY_ROWS
from staircase_fast.stack._rows cimport find_ties, merge_rows, place_work, work_words
from staircase_fast.stack._scatter cimport sort_columns, work_bytes
from staircase_fast.stack._stack cimport Stack, empty_stack

cdef enum:
    MANY_ROWS = 64            # of fewer, each is looked at


cdef inline int fit(Rows rows, Found *found, bint decreasing, Owned **out) noexcept nogil:
    """The staircase of rows in any order."""
    cdef double *present = NULL
    cdef double *sorted_rows = NULL
    cdef bint backwards = found.scores.down and not found.scores.up
    cdef int status = SF_OK
    if rows.w != NULL and found.weights.lowest == 0:
        status = drop_absent(&rows, &present)
    if status == SF_OK and not found.scores.up and not found.scores.down:
        status = sort(&rows, &sorted_rows)
        found.scores.tied = True              # perhaps
    if status == SF_OK:
        status = merge(rows, found, decreasing, backwards, out)
    free(present)
    free(sorted_rows)
    return status


cdef inline int drop_absent(Rows *rows, double **memory) noexcept nogil:
    """Rows without those of weight 0, in memory of their own."""
    cdef Py_ssize_t i, n = 0, n_kept = 0
    cdef double *x
    for i in range(rows.n):
        n_kept += rows.w[i] > 0
    x = memory[0] = <double *>malloc(3 * n_kept * sizeof(double))
    if x == NULL:
        return SF_NO_MEMORY
    for i in range(rows.n):
        if rows.w[i] > 0 and n < n_kept:      # weights that have changed since may be more
            x[n] = rows.x[i]
            x[n_kept + n] = rows.y[i]
            x[2 * n_kept + n] = rows.w[i]
            n += 1
    rows[0] = Rows(x, x + n_kept, x + 2 * n_kept, n)
    return SF_OK if n else SF_ALL_WEIGHTS_ZERO


cdef inline int sort(Rows *rows, double **memory) noexcept nogil:
    """Rows in score order, in memory of their own."""
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
    # targets are moved as the bits they are
    sort_columns(rows.x, <const uint64_t *>rows.y, rows.w, n, x, <uint64_t *>y, w, x + n_columns * n)
    rows.x = x
    rows.y = y
    rows.w = w
    return SF_OK


cdef inline int merge(Rows rows, const Found *found, bint decreasing, bint backwards, Owned **out) noexcept nogil:
    """The staircase of rows in order, or in the opposite one."""
    cdef Scale scale = scale_of(found.targets, found.weights, rows.n)
    cdef int n_words = 0 if scale.narrow else scale.s_words + scale.w_words
    cdef Py_ssize_t n = rows.n
    # what is never touched of this costs nothing
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
    out[0] = described(&stack, rows.x, backwards)
    free(memory)
    return SF_OK if out[0] != NULL else SF_NO_MEMORY


cdef inline Owned *described(const Stack *stack, const double *x, bint backwards) noexcept nogil:
    """Steps in ascending order, with the scores at their ends; adding 0.0 makes -0.0 the 0.0 it equals."""
    cdef Owned *stairs = new_staircase(stack.n)
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
