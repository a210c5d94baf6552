# One pass over scores: copy them, and compare each with the one before it.
#
# Where the processor has AVX2, which is checked at run time, four scores are compared at a time.
#
# Preconditions: n >= 1, any values.

from libc.stdint cimport uint8_t, uint64_t

from staircase_fast.arithmetic._column_scan cimport has_nan
from staircase_fast.arithmetic._types cimport CHUNK, bits_of

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__x86_64__)
    #include <immintrin.h>
    #include <stdint.h>
    #include <string.h>

    /* Scores [start, end), where start >= 1 and end - start is a multiple of 4; see `copy_scores`. */
    __attribute__((target("avx2,popcnt"))) static inline void staircase_copy_scores_avx2(
        const double *x, Py_ssize_t start, Py_ssize_t end, double *out, uint8_t *tied,
        uint64_t *odd, Py_ssize_t *falls, uint8_t *ties
    ) {
        __m256d zero = _mm256_setzero_pd(), any = zero, last = _mm256_set1_pd(x[start - 1]);
        Py_ssize_t i, n_falls = 0;
        int found = 0;
        for (i = start; i < end; i += 4) {
            __m256d own = _mm256_loadu_pd(x + i), joined = _mm256_permute2f128_pd(last, own, 0x21);
            __m256d before = _mm256_shuffle_pd(joined, own, 5);     /* own, shifted by one */
            int equal = _mm256_movemask_pd(_mm256_cmp_pd(own, before, _CMP_EQ_OQ));
            /* bit k of `equal` becomes byte k */
            uint32_t flags = ((uint32_t)equal * 0x00204081u) & 0x01010101u;
            memcpy(tied + i, &flags, 4);
            found |= equal;
            n_falls += __builtin_popcount(_mm256_movemask_pd(_mm256_cmp_pd(own, before, _CMP_LT_OQ)));
            any = _mm256_or_pd(any, _mm256_sub_pd(own, own));
            _mm256_storeu_pd(out + i, _mm256_add_pd(own, zero));
            last = own;
        }
        *falls += n_falls;
        *ties |= found != 0;
        *odd |= !_mm256_testz_si256(_mm256_castpd_si256(any), _mm256_castpd_si256(any));
    }
    #else
    #define staircase_copy_scores_avx2(x, start, end, out, tied, odd, falls, ties) ((void)(x))
    #endif
    """
    void copy_scores_avx2 "staircase_copy_scores_avx2" (
        const double *x, Py_ssize_t start, Py_ssize_t end, double *out, uint8_t *tied,
        uint64_t *odd, Py_ssize_t *falls, uint8_t *ties
    ) noexcept nogil

cdef enum:
    FALLS = 16                # if more than one in FALLS scores is below the one before it, rows are not nearly sorted

ctypedef struct ScoreScan:
    bint nan                  # there is a NaN; the other fields are not valid
    Py_ssize_t falls          # scores below the one before them
    bint tied                 # whether a score equals the one before it


cdef inline ScoreScan copy_scores(
    const double *x, Py_ssize_t n, double *out, uint8_t *tied, bint vectors
) noexcept nogil:
    """Copy scores, -0.0 as 0.0, maybe to the same place; set tied[i] to whether score i equals score i - 1."""
    cdef Py_ssize_t start = 1, end, i, falls = 0
    cdef uint64_t odd = bits_of(x[0] - x[0])  # +0.0, whose bits are all zero, unless the score is NaN or infinite
    cdef uint8_t ties = 0
    out[0] = x[0] + 0.0
    tied[0] = 0
    if vectors:
        end = n - (n - start) % 4
        copy_scores_avx2(x, start, end, out, tied, &odd, &falls, &ties)
        start = end
    while start < n:
        end = min(n, start + CHUNK)
        for i in range(start, end):
            falls += x[i] < x[i - 1]
        for i in range(start, end):
            tied[i] = x[i] == x[i - 1]
            ties |= tied[i]
        for i in range(start, end):
            odd |= bits_of(x[i] - x[i])
            out[i] = x[i] + 0.0
        start = end
    return ScoreScan(odd != 0 and has_nan(out, n), falls, ties != 0)


cdef inline Py_ssize_t count_falls(const double *x, Py_ssize_t n) noexcept nogil:
    """The number of scores below the one before them; n if there are many in the first rows."""
    cdef Py_ssize_t i, start = 1, end, falls = 0
    while start < n:
        end = min(n, start + CHUNK)
        for i in range(start, end):
            falls += x[i] < x[i - 1]
        if falls > 1 + end // FALLS:
            return n
        start = end
    return falls


cdef inline bint nearly_sorted(Py_ssize_t falls, Py_ssize_t n) noexcept nogil:
    """Whether insertion may sort n scores quickly."""
    return falls <= n // FALLS
