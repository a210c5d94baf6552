# A row on its way to its group: a word of 32 bits and one to three doubles, side by side (_together.pyx).

from libc.stdint cimport uint32_t
from libc.string cimport memcpy

cdef enum:
    ONE_DOUBLE = 3        # words
    TWO_DOUBLES = 5
    THREE_DOUBLES = 7


cdef inline void put(uint32_t *words, double value) noexcept nogil:
    memcpy(words, &value, sizeof(double))


cdef inline double double_in(const uint32_t *words) noexcept nogil:
    cdef double value
    memcpy(&value, words, sizeof(double))
    return value
