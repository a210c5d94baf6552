# Which buckets are live, and how many are before each: 32 buckets to a word, so that it all stays in cache.
#
#     directory[k]   lower half: a bit for each of the buckets 32k .. 32k + 31; upper half: live ones before bucket 32k

from libc.stdint cimport uint32_t, uint64_t


cdef inline bint is_live(const uint64_t *directory, Py_ssize_t bucket) noexcept nogil:
    return (directory[bucket >> 5] >> (bucket & 31)) & 1


cdef inline Py_ssize_t live_before(const uint64_t *directory, Py_ssize_t bucket) noexcept nogil:
    """How many buckets before this one are live."""
    cdef uint64_t word = directory[bucket >> 5]
    return <Py_ssize_t>(word >> 32) + count_bits(<uint32_t>word & ((<uint32_t>1 << (bucket & 31)) - 1))


cdef inline uint32_t count_bits(uint32_t bits) noexcept nogil:
    """In sums of 2, 4, 8 bits, then all of them at once."""
    bits -= (bits >> 1) & <uint32_t>0x55555555
    bits = (bits & <uint32_t>0x33333333) + ((bits >> 2) & <uint32_t>0x33333333)
    bits = (bits + (bits >> 4)) & <uint32_t>0x0F0F0F0F
    return (bits * <uint32_t>0x01010101) >> 24
