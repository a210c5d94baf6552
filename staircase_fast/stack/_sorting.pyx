"""Sort columns by score: here (_scatter.pxd), or by keys that NumPy sorts (_keys.pxd).

Preconditions: 1 <= n < 2**32, contiguous columns, no NaN.
"""

from libc.stdint cimport uint8_t, uint64_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._types cimport floating
from staircase_fast.stack._keys cimport bits, insert_columns as insert, make_keys as make
from staircase_fast.stack._scatter cimport looks_sorted, sort_columns as sort, work_bytes


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
    uint8_t[::1] work not None,               # work: work_size(n) bytes
):
    """Sort the rows into x, y and w; the order of equal scores is unspecified but reproducible."""
    cdef const double *w_in = &weights[0] if weights.shape[0] else NULL
    cdef double *w_out = &w[0] if weights.shape[0] else NULL
    cdef Py_ssize_t n = scores.shape[0]
    with nogil:
        sort(&scores[0], &targets[0], w_in, n, &x[0], &y[0], w_out, &work[0])


def is_nearly_sorted(const floating[::1] scores not None):
    """Whether few scores are below the one before them, according to some of the rows."""
    return bool(looks_sorted(&scores[0], scores.shape[0]))


def make_keys(const floating[::1] scores not None, uint64_t[::1] keys not None):
    """Fill the keys."""
    cdef const floating *x = &scores[0]
    cdef Py_ssize_t i, n = scores.shape[0]
    cdef double low = x[0], high = x[0]
    with nogil:
        for i in range(n):
            low = lesser(x[i], low)
            high = greater(x[i], high)
        make(x, n, <floating>low, <floating>high, &keys[0])


def insert_columns(
    const uint64_t[::1] keys not None,        # IN  sorted; or empty: the rows are nearly sorted
    const floating[::1] scores not None,      # IN
    const bits[::1] targets not None,         # IN
    const double[::1] weights not None,       # IN  or empty
    floating[::1] x not None,                 # OUT
    bits[::1] y not None,                     # OUT
    double[::1] w not None,                   # OUT or empty
):
    """Sort the rows into x, y and w by insertion.  Return False if that would take too long."""
    cdef const uint64_t *order = &keys[0] if keys.shape[0] else NULL
    cdef const double *w_in = &weights[0] if weights.shape[0] else NULL
    cdef double *w_out = &w[0] if weights.shape[0] else NULL
    cdef bint done
    with nogil:
        done = insert(order, &scores[0], &targets[0], w_in, scores.shape[0], &x[0], &y[0], w_out)
    return bool(done)
