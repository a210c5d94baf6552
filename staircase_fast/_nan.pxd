# Whether any score is NaN, several at a time.

from staircase_fast._cells cimport floating


cdef inline bint has_nan(const floating *scores, Py_ssize_t n) noexcept nogil:
    # zero times a number is zero, unless it is NaN or infinite: these are looked at again
    cdef floating a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        a += scores[i] * <floating>0.0
        b += scores[i + 1] * <floating>0.0
        c += scores[i + 2] * <floating>0.0
        d += scores[i + 3] * <floating>0.0
        i += 4
    if (a + b) + (c + d) == 0.0:
        return first_nan(scores + i, n - i) < n - i
    return first_nan(scores, n) < n


cdef inline Py_ssize_t first_nan(const floating *scores, Py_ssize_t n) noexcept nogil:
    """Index of the first NaN, or n."""
    cdef Py_ssize_t i = 0
    while i < n and scores[i] == scores[i]:
        i += 1
    return i
