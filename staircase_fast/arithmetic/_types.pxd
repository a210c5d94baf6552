# Types and sizes that all kernels share.

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

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
