# Types and sizes that all kernels share, and the bits of doubles.

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

# Scores, read in place.
ctypedef fused floating:
    float
    double

# Targets and labels, read in place.
ctypedef fused number:
    uint8_t
    int8_t
    int32_t
    int64_t
    float
    double

cdef enum:
    # Loops over rows compute an index for each row of a batch first and use the indices afterwards.  The processor can
    # then overlap the memory accesses of many rows.
    BATCH = 256
    # Loops over a column stop after each chunk to test whether they can end early.
    CHUNK = 1024


cdef inline uint64_t bits_of(floating value) noexcept nogil:
    cdef uint64_t bits = 0
    cdef uint32_t half = 0
    if floating is double:
        memcpy(&bits, &value, sizeof(double))
        return bits
    else:
        memcpy(&half, &value, sizeof(float))
        return half


cdef inline double double_of(uint64_t bits) noexcept nogil:
    cdef double value
    memcpy(&value, &bits, sizeof(double))
    return value
