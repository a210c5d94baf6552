# Exact sums of many rows.
#
# Integer arithmetic for every row would be slow.  Instead, each double is split into short parts: adding and
# subtracting a large constant, a *cut*, rounds it to a multiple of the cut's last bit, and the remainder is exact.
# Doubles hold the sums of such parts over CUT_ROWS rows without rounding.  These pending sums are then added to the
# integers at once.
#
#     targets, weights     two parts of PART_BITS (`_scale.pxd`)
#     products w*y         the rounded product and its rounding error, in four parts together: each cut is 2**-PART_BITS
#                          times the one before.  The error is too small for the first part.
#
# Sums that are never rounded are the same in any order.  So four rows are added at a time where the processor has AVX2
# and FMA, which is checked at run time, with the same result.  A fused multiply-add gives the rounding error of a
# product; the plain path finds the same number by Dekker's splitting.
#
# Preconditions: those of _exact.pxd.

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._double_double cimport two_product
from staircase_fast.arithmetic._exact cimport Scale, add_double, add_sample, add_shifted
from staircase_fast.arithmetic._scale cimport PART_BITS
from staircase_fast.arithmetic._types cimport number

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__x86_64__)
    #include <immintrin.h>
    #define STAIRCASE_AVX2 __attribute__((target("avx2,fma")))

    static inline int staircase_has_avx2(void) {
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }

    /* four numbers: their upper parts are added to `sum`, and `value` becomes the remainders */
    #define STAIRCASE_SPLIT(sum, value, cut) do { \\
        __m256d part_ = _mm256_sub_pd(_mm256_add_pd(value, cut), cut); \\
        sum = _mm256_add_pd(sum, part_); \\
        value = _mm256_sub_pd(value, part_); \\
    } while (0)

    STAIRCASE_AVX2 static inline double staircase_lanes(__m256d v) {
        __m128d two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
        return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
    }

    /* parts[0..1] += both parts of y; n is a multiple of 8 */
    STAIRCASE_AVX2 static inline void staircase_sum_avx2(const double *y, Py_ssize_t n, double cut, double *parts) {
        __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
        __m256d c = _mm256_set1_pd(cut);
        Py_ssize_t i;
        for (i = 0; i < n; i += 8) {
            __m256d a = _mm256_loadu_pd(y + i), b = _mm256_loadu_pd(y + i + 4);
            STAIRCASE_SPLIT(sums[0], a, c);
            STAIRCASE_SPLIT(sums[2], b, c);
            sums[1] = _mm256_add_pd(sums[1], a);
            sums[3] = _mm256_add_pd(sums[3], b);
        }
        parts[0] += staircase_lanes(_mm256_add_pd(sums[0], sums[2]));
        parts[1] += staircase_lanes(_mm256_add_pd(sums[1], sums[3]));
    }

    /* parts[0..3] += the parts of w*y, parts[4..5] += both parts of w; n is a multiple of 4 */
    STAIRCASE_AVX2 static inline void staircase_sum_weighted_avx2(
        const double *y, const double *w, Py_ssize_t n, double cut, double second, double third, double cut_weight,
        double *parts
    ) {
        __m256d sums[6], c = _mm256_set1_pd(cut), d = _mm256_set1_pd(second), e = _mm256_set1_pd(third);
        __m256d f = _mm256_set1_pd(cut_weight);
        Py_ssize_t i;
        int part;
        for (part = 0; part < 6; part++) sums[part] = _mm256_setzero_pd();
        for (i = 0; i < n; i += 4) {
            __m256d a = _mm256_loadu_pd(y + i), b = _mm256_loadu_pd(w + i);
            __m256d product = _mm256_mul_pd(a, b), error = _mm256_fmsub_pd(a, b, product);
            STAIRCASE_SPLIT(sums[0], product, c);
            STAIRCASE_SPLIT(sums[1], product, d);
            STAIRCASE_SPLIT(sums[1], error, d);
            STAIRCASE_SPLIT(sums[2], product, e);
            STAIRCASE_SPLIT(sums[2], error, e);
            sums[3] = _mm256_add_pd(sums[3], _mm256_add_pd(product, error));
            STAIRCASE_SPLIT(sums[4], b, f);
            sums[5] = _mm256_add_pd(sums[5], b);
        }
        for (part = 0; part < 6; part++) parts[part] += staircase_lanes(sums[part]);
    }
    #else
    static inline int staircase_has_avx2(void) { return 0; }
    #define staircase_sum_avx2(y, n, cut, parts) ((void)0)
    #define staircase_sum_weighted_avx2(y, w, n, cut, second, third, cut_weight, parts) ((void)0)
    #endif
    """
    bint has_avx2 "staircase_has_avx2" () noexcept nogil
    void sum_avx2 "staircase_sum_avx2" (const double *y, Py_ssize_t n, double cut, double *parts) noexcept nogil
    void sum_weighted_avx2 "staircase_sum_weighted_avx2" (
        const double *y, const double *w, Py_ssize_t n, double cut, double second, double third, double cut_weight,
        double *parts
    ) noexcept nogil

cdef enum:
    CUT_ROWS = 1024
    VECTOR_ROWS = 16      # fewer rows are added one by one

ctypedef struct Pending:
    double product[4]     # sums of the parts of w*y; without weights only the first two are used
    double weight[2]      # sums of both parts of w; not used without weights
    int64_t rows


cdef inline double next_cut(double cut) noexcept nogil:
    return cut / (<int64_t>1 << PART_BITS)


cdef inline double split(double *sum, double value, double cut) noexcept nogil:
    """Add the upper part of `value` to the sum; return the remainder."""
    cdef double part = (value + cut) - cut
    sum[0] += part
    return value - part


cdef inline void pend(Scale scale, Pending *pending, double y) noexcept nogil:
    """Add one row of weight 1 to the pending sums."""
    pending.product[1] += split(&pending.product[0], y, scale.cut)
    pending.rows += 1


cdef inline void pend_weighted(Scale scale, Pending *pending, double y, double w) noexcept nogil:
    cdef double error, product = two_product(y, w, &error), second = next_cut(scale.cut), third = next_cut(second)
    product = split(&pending.product[0], product, scale.cut)
    product = split(&pending.product[1], product, second)
    error = split(&pending.product[1], error, second)
    product = split(&pending.product[2], product, third)
    error = split(&pending.product[2], error, third)
    pending.product[3] += product + error
    pending.weight[1] += split(&pending.weight[0], w, scale.cut_weight)
    pending.rows += 1


cdef inline void flush(Scale scale, Pending *pending, uint64_t *sums, bint weighted) noexcept nogil:
    """Add the pending sums to the exact sums, and reset them."""
    cdef int unit = scale.y_unit + scale.w_unit, part
    for part in range(4 if weighted else 2):
        add_double(sums, scale.s_words, pending.product[part], unit)
    for part in range(2 if weighted else 0):
        add_double(sums + scale.s_words, scale.w_words, pending.weight[part], scale.w_unit)
    if not weighted:
        # the unit of weights is not 1 if other batches of a stream have fractional weights
        add_shifted(sums + scale.s_words, scale.w_words, <uint64_t>pending.rows, 0, -scale.w_unit, False)
    memset(pending, 0, sizeof(Pending))


cdef inline void add_rows(
    Scale scale, uint64_t *sums, const number *y, const double *weights, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """S += w*y and W += w for the rows [start, end); if `weights` is NULL, all are 1."""
    cdef Pending pending[2]
    cdef Py_ssize_t i, stop
    if scale.cut == 0 or end - start < 4 or not (number is float or number is double):
        for i in range(start, end):
            add_sample(scale, sums, y[i], 1.0 if weights == NULL else weights[i])
        return
    memset(pending, 0, 2 * sizeof(Pending))
    while start < end:
        stop = min(end, start + CUT_ROWS)
        pend_rows(scale, pending, y, weights, start, stop, has_avx2())
        flush(scale, &pending[0], sums, weights != NULL)
        if pending[1].rows:
            flush(scale, &pending[1], sums, weights != NULL)
        start = stop


cdef inline void pend_rows(
    Scale scale, Pending *pending, const number *y, const double *weights, Py_ssize_t i, Py_ssize_t end, bint vectors
) noexcept nogil:
    """Add the rows [i, end), at most CUT_ROWS, to two pending sums; `vectors`: use AVX2.

    Rows alternate between both sums, so that consecutive additions do not wait for each other.
    """
    cdef Py_ssize_t n = (end - i) & ~<Py_ssize_t>7
    if number is double and vectors and n >= VECTOR_ROWS:
        if weights == NULL:
            sum_avx2(y + i, n, scale.cut, pending[0].product)
        else:
            # product and weight are adjacent
            sum_weighted_avx2(
                y + i, weights + i, n, scale.cut, next_cut(scale.cut), next_cut(next_cut(scale.cut)), scale.cut_weight,
                pending[0].product
            )
        pending[0].rows += n
        i += n
    for i in range(i, end):
        if weights == NULL:
            pend(scale, &pending[i & 1], y[i])
        else:
            pend_weighted(scale, &pending[i & 1], y[i], weights[i])
