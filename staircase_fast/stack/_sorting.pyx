"""Sort columns by score (_scatter.pxd).

Preconditions: 1 <= n < 2**32, contiguous columns, no NaN.
"""

from libc.stdint cimport uint8_t

from staircase_fast.arithmetic._types cimport floating
from staircase_fast.stack._scatter cimport (
    bits, insert_columns, looks_sorted, sort_columns as sort, work_bytes,
)


def work_size(Py_ssize_t n):
    """Bytes of work space for `sort_columns`."""
    return work_bytes(n)


def sort_columns(
    const floating[::1] scores not None,      # IN
    const bits[::1] targets not None,         # IN
    const double[::1] weights not None,       # IN  or empty
    floating[::1] x not None,                 # OUT
    bits[::1] y not None,                     # OUT
    double[::1] w not None,                   # OUT or empty
    uint8_t[::1] work not None,               # work: work_size(n) bytes; or empty: sort only nearly sorted rows
):
    """Sort the rows into x, y and w; the order of equal scores is unspecified but reproducible.

    Return whether they are sorted.
    """
    cdef const double *w_in = &weights[0] if weights.shape[0] else NULL
    cdef double *w_out = &w[0] if weights.shape[0] else NULL
    cdef Py_ssize_t n = scores.shape[0]
    cdef bint done = True
    with nogil:
        if work.shape[0]:
            sort(&scores[0], &targets[0], w_in, n, &x[0], &y[0], w_out, &work[0])
        else:
            done = looks_sorted(&scores[0], n) and insert_columns(&scores[0], &targets[0], w_in, n, &x[0], &y[0], w_out)
    return bool(done)
