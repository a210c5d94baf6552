# Bucket summaries: sums and extremes of the rows of a bucket, for the plan (`_plan.pxd`).
#
# The survey mostly waits for memory, so summaries are small, and the plan allows for their rounding errors
# (`rounding_of`).  Labels without weights are counted in one word (`ones_t`).  Other rows have a 16-byte `Summary` of
# d = target - centre.  Subtracting a centre changes all slopes by the same constant; with a centre amid the targets,
# float32 loses less.

from libc.stdint cimport int16_t, int32_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from staircase_fast.arithmetic._buckets_avx2 cimport Bucket

# The number of rows in the lower half, the number of ones among them in the upper half.
ctypedef fused ones_t:
    uint32_t
    uint64_t

ctypedef struct Summary:
    float s               # sum of weight * d, rounded once per row and a few times more
    float w               # sum of weights, likewise
    uint32_t rows         # number of rows
    int16_t lo            # key_of the least d
    int16_t hi            # key_of the greatest d

# Sums of many summaries or words, for more rows than those can hold (`_wide.pyx`).
ctypedef struct WideSummary:
    double s              # sum of weight * d
    double w              # sum of weights
    float error           # a bound on the rounding error of s - slope*w is this times (largest magnitude of d, + slope)
    float lo              # the least d or less
    float hi              # the greatest d or more
    float rows            # number of rows, rounded

ctypedef fused summary_t:
    uint32_t
    uint64_t
    Summary
    WideSummary
    Bucket


cdef inline int32_t key_of(float value) noexcept nogil:
    """The upper half of a float32, as an integer with the same order; rounds down."""
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
    """The bucket; if the staircase decreases, that of the negated targets."""
    cdef Bucket bucket
    cdef uint64_t rows, ones
    if summary_t is Bucket:
        bucket = table[b]
    elif summary_t is Summary:
        bucket = Bucket(table[b].s, table[b].w, value_of(table[b].lo), value_of(table[b].hi + 1))
    elif summary_t is WideSummary:
        bucket = Bucket(table[b].s, table[b].w, table[b].lo, table[b].hi)
    else:
        rows = rows_of(table[b])
        ones = ones_of(table[b])
        bucket = Bucket(<double>ones, <double>rows, 0.0 if ones < rows else 1.0, 1.0 if ones else 0.0)
    if decreasing:
        bucket = Bucket(-bucket.s, bucket.w, -bucket.hi, -bucket.lo)
    return bucket


cdef inline double rounding_of(const summary_t *table, Py_ssize_t b, double slope, double floor) noexcept nogil:
    """A bound on the rounding error of s - slope*w: one rounding of each sum per row, and a few more.

    Targets count as at least `floor`, which covers the underflow of float32.
    """
    cdef double size
    if summary_t is WideSummary:
        return table[b].error * (max(max(-table[b].lo, table[b].hi), floor) + abs(slope)) if table[b].w > 0.0 else 0.0
    elif not (summary_t is Summary):
        return 0.0
    elif table[b].rows == 0:
        return 0.0
    else:
        size = max(max(-value_of(table[b].lo), value_of(table[b].hi + 1)), floor)
        return lost_weight(table + b) * (size + abs(slope))


cdef inline double lost_weight(const Summary *summary) noexcept nogil:
    """A bound on the rounding error of the sum of weights."""
    cdef double rows = <double>summary.rows
    # 2**-24 per row; the last factor covers the error of w itself, if there are many rows
    return (rows + 4.0) * 5.960464477539063e-08 * (1.0 + rows * 2.384185791015625e-07) * summary.w
