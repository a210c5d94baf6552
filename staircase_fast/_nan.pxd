# Whether any score is NaN, any label neither 0 nor 1: several at a time.
#
# What is right gives +0.0, whose bits are all 0.  Compilers may join bits in any order, so they do many at once.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from staircase_fast._cells cimport floating
from staircase_fast._exact cimport number


cdef inline uint64_t bits_of(floating value) noexcept nogil:
    cdef uint64_t bits = 0
    cdef uint32_t half = 0
    if floating is double:
        memcpy(&bits, &value, sizeof(double))
        return bits
    else:
        memcpy(&half, &value, sizeof(float))
        return half


cdef inline bint has_nan(const floating *scores, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint64_t odd = 0
    for i in range(n):
        odd |= bits_of(scores[i] - scores[i])
    return odd != 0 and first_nan(scores, n) < n              # infinite ones are odd, too


cdef inline bint are_labels(const number *y, Py_ssize_t n) noexcept nogil:
    """Whether each is 0 or 1: what is its own square."""
    cdef Py_ssize_t i
    cdef uint64_t odd = 0
    for i in range(n):
        if number is double or number is float:
            odd |= bits_of(y[i] * y[i] - y[i])
        else:
            odd |= <uint64_t>(y[i] & ~<number>1)
    return odd == 0


cdef inline Py_ssize_t first_nan(const floating *scores, Py_ssize_t n) noexcept nogil:
    """Index of the first NaN, or n."""
    cdef Py_ssize_t i = 0
    while i < n and scores[i] == scores[i]:
        i += 1
    return i
