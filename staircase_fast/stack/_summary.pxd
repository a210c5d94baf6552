# What is known of the rows of a bucket: all that the plan asks for (_plan.pxd).
#
# The table of summaries is what the survey waits for, so an entry is as short as it can be; the plan allows for what
# that loses.  Labels without weights need only be counted, in one word: rows, and the ones among them.  Else, with
# d = target - centre,
#
#     s      sum of weight*d      in float32, one rounding per row and a few more
#     w      sum of weights       likewise
#     rows   how many
#     lo     floor of the least, and floor of the greatest d, as the upper halves of their float32
#     hi     (the key of a float32: its bits as an integer that has the same order)
#
# Subtracting a centre from all targets changes slopes by a constant and nothing else; near the bulk of the targets, it
# leaves the bits to what matters.

from libc.stdint cimport int16_t, int32_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from staircase_fast.arithmetic._column_scan cimport Bucket

# Rows in the lower half, ones in the upper.
ctypedef fused ones_t:
    uint32_t
    uint64_t

ctypedef struct Summary:
    float s
    float w
    uint32_t rows
    int16_t lo
    int16_t hi

ctypedef fused summary_t:
    uint32_t
    uint64_t
    Summary
    Bucket


cdef inline int32_t key_of(float value) noexcept nogil:
    """The upper half of a float32, as an integer of the same order: floor, in that order."""
    cdef int32_t bits
    memcpy(&bits, &value, sizeof(float))
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)) >> 16


cdef inline float value_of(int32_t key) noexcept nogil:
    cdef float value
    cdef uint32_t bits = <uint32_t>key << 16
    bits ^= <uint32_t>(<int32_t>bits >> 31) & <uint32_t>0x7FFFFFFF
    memcpy(&value, &bits, sizeof(float))
    return value


cdef inline uint64_t rows_of(ones_t word) noexcept nogil:
    return <uint16_t>word if ones_t is uint32_t else <uint32_t>word


cdef inline uint64_t ones_of(ones_t word) noexcept nogil:
    return word >> (4 * sizeof(ones_t))


cdef inline Bucket bucket_at(const summary_t *table, Py_ssize_t b, bint decreasing) noexcept nogil:
    """The bucket, with signs turned where the staircase decreases."""
    cdef Bucket bucket
    cdef uint64_t rows, ones
    if summary_t is Bucket:
        bucket = table[b]
    elif summary_t is Summary:
        bucket = Bucket(table[b].s, table[b].w, value_of(table[b].lo), value_of(table[b].hi + 1))
    else:
        rows = rows_of(table[b])
        ones = ones_of(table[b])
        bucket = Bucket(<double>ones, <double>rows, 0.0 if ones < rows else 1.0, 1.0 if ones else 0.0)
    if decreasing:
        bucket = Bucket(-bucket.s, bucket.w, -bucket.hi, -bucket.lo)
    return bucket


cdef inline double rounding_of(const summary_t *table, Py_ssize_t b, double slope, double floor) noexcept nogil:
    """A bound on how far s - slope*w is off: each row adds once to s and once to w, a few roundings come on top.

    No target is taken for smaller than `floor`, which covers what float32 loses near its smallest numbers.
    """
    cdef double size, rows
    if not (summary_t is Summary):
        return 0.0
    elif table[b].rows == 0:
        return 0.0
    else:
        size = max(max(-value_of(table[b].lo), value_of(table[b].hi + 1)), floor)
        rows = <double>table[b].rows
        # 2**-24 per row; where rows are so many that w itself lost much of what was added to it, more
        rows = (rows + 4.0) * 5.960464477539063e-08 * (1.0 + rows * 2.384185791015625e-07)
        return rows * table[b].w * (size + abs(slope))
