# Random numbers: xoshiro256++ (Blackman & Vigna 2019), a generator of four words.
#
# Each replicate has a state of its own, which numpy's SeedSequence makes from the seed and the replicate's number: what
# is drawn depends on neither the number of threads nor on who draws it.

from libc.stdint cimport int64_t, uint64_t

from staircase_fast.arithmetic._exact cimport multiply_words

ctypedef struct Random:
    uint64_t a
    uint64_t b
    uint64_t c
    uint64_t d


cdef inline uint64_t rotated(uint64_t x, int k) noexcept nogil:
    return (x << k) | (x >> (64 - k))


cdef inline uint64_t next_word(Random *random) noexcept nogil:
    cdef uint64_t result = rotated(random.a + random.d, 23) + random.a, t = random.b << 17
    random.c ^= random.a
    random.d ^= random.b
    random.b ^= random.c
    random.a ^= random.d
    random.c ^= t
    random.d = rotated(random.d, 45)
    return result


cdef inline double fraction(uint64_t word) noexcept nogil:
    """A number in [0, 1), of the upper 53 bits."""
    return <double>(word >> 11) * 1.1102230246251565e-16     # 2**-53


cdef inline int64_t below(Random *random, int64_t n) noexcept nogil:
    """An integer in [0, n): the word as a fraction of n; no integer is favoured by more than 2**-64."""
    cdef uint64_t high
    multiply_words(next_word(random), <uint64_t>n, &high)
    return <int64_t>high
