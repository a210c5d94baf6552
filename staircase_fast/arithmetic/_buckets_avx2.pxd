# The buckets of `_buckets.pxd` where the processor has AVX2: four rows at a time.
#
# Preconditions: n >= 4, any values.

cdef extern from *:
    """
    typedef struct { double s, w, lo, hi; } staircase_bucket;
    typedef struct { double least[2], lowest, highest, odd; int integral; } staircase_range_scan;

    #if defined(__GNUC__) && defined(__x86_64__)
    #include <immintrin.h>
    #include <stdint.h>
    #define STAIRCASE_SCAN __attribute__((target("avx2"))) static inline
    #define STAIRCASE_INLINE __attribute__((always_inline)) STAIRCASE_SCAN

    /* The first `rows` of four entries; zeros instead of the others. */
    STAIRCASE_INLINE __m256d staircase_last(__m256d entries, Py_ssize_t rows) {
        static const int64_t masks[8] = {0, 0, 0, 0, -1, -1, -1, -1};
        return _mm256_and_pd(entries, _mm256_loadu_pd((const double *)(masks + rows)));
    }
    STAIRCASE_INLINE double staircase_sum(__m256d a) {
        __m128d b = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
        return _mm_cvtsd_f64(_mm_add_sd(b, _mm_unpackhi_pd(b, b)));
    }
    STAIRCASE_INLINE double staircase_min(__m256d a) {
        __m128d b = _mm_min_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
        return _mm_cvtsd_f64(_mm_min_sd(b, _mm_unpackhi_pd(b, b)));
    }
    STAIRCASE_INLINE double staircase_max(__m256d a) {
        __m128d b = _mm_max_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
        return _mm_cvtsd_f64(_mm_max_sd(b, _mm_unpackhi_pd(b, b)));
    }
    /* Not zero where an entry is not an integer: adding and subtracting 1.5 * 2**52 rounds below 2**51. */
    STAIRCASE_INLINE __m256d staircase_fraction(__m256d a) {
        __m256d magic = _mm256_set1_pd(6755399441055744.0);
        return _mm256_sub_pd(_mm256_sub_pd(_mm256_add_pd(a, magic), magic), a);
    }
    /* The lesser of the magnitude, unless it is 0, and `least`: min_pd returns its second operand if one is NaN. */
    STAIRCASE_INLINE __m256d staircase_lesser_size(__m256d a, __m256d least) {
        __m256d size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
        return _mm256_min_pd(_mm256_or_pd(size, _mm256_cmp_pd(size, _mm256_setzero_pd(), _CMP_EQ_OQ)), least);
    }

    /* The bucket of n >= 4 entries, as `scan_bucket`.  The last four may overlap with others. */
    STAIRCASE_INLINE staircase_bucket staircase_scan_avx2(const double *v, Py_ssize_t n, staircase_range_scan *scan) {
        __m256d last = _mm256_loadu_pd(v + n - 4), own = _mm256_loadu_pd(v), s = own, lo = own, hi = own, least;
        staircase_bucket bucket;
        Py_ssize_t i;
        for (i = 4; i + 4 <= n; i += 4) {
            own = _mm256_loadu_pd(v + i);
            s = _mm256_add_pd(s, own);
            lo = _mm256_min_pd(lo, own);
            hi = _mm256_max_pd(hi, own);
        }
        if (n % 4) {
            s = _mm256_add_pd(s, staircase_last(last, n % 4));
            lo = _mm256_min_pd(lo, last);
            hi = _mm256_max_pd(hi, last);
        }
        if (scan->integral) {
            __m256d fraction = n % 4 ? staircase_fraction(last) : _mm256_setzero_pd();
            for (i = 0; i + 4 <= n; i += 4)
                fraction = _mm256_or_pd(fraction, staircase_fraction(_mm256_loadu_pd(v + i)));
            if (!_mm256_testz_si256(_mm256_castpd_si256(fraction), _mm256_castpd_si256(fraction))) {
                scan->integral = 0;
                scan->least[0] = scan->least[1] = 1.0;
            }
        }
        if (!scan->integral) {
            least = _mm256_broadcast_pd((const __m128d *)scan->least);
            for (i = 0; i + 4 <= n; i += 4)
                least = staircase_lesser_size(_mm256_loadu_pd(v + i), least);
            if (n % 4)
                least = staircase_lesser_size(last, least);
            _mm_storeu_pd(scan->least, _mm_min_pd(_mm256_castpd256_pd128(least), _mm256_extractf128_pd(least, 1)));
        }
        bucket.s = staircase_sum(s);
        bucket.w = (double)n;
        bucket.lo = staircase_min(lo);
        bucket.hi = staircase_max(hi);
        scan->lowest = bucket.lo < scan->lowest ? bucket.lo : scan->lowest;
        scan->highest = bucket.hi > scan->highest ? bucket.hi : scan->highest;
        scan->odd += bucket.s - bucket.s;
        return bucket;
    }

    /* The bucket of n >= 4 rows, as `fill_bucket`. */
    STAIRCASE_INLINE staircase_bucket staircase_fill_avx2(
        const double *y, const double *w, Py_ssize_t n, staircase_range_scan *y_scan, staircase_range_scan *w_scan
    ) {
        staircase_bucket bucket = staircase_scan_avx2(y, n, y_scan);
        if (w) {
            __m256d s = _mm256_mul_pd(_mm256_loadu_pd(y), _mm256_loadu_pd(w)), last;
            Py_ssize_t i;
            for (i = 4; i + 4 <= n; i += 4)
                s = _mm256_add_pd(s, _mm256_mul_pd(_mm256_loadu_pd(y + i), _mm256_loadu_pd(w + i)));
            if (n % 4) {
                last = _mm256_mul_pd(_mm256_loadu_pd(y + n - 4), _mm256_loadu_pd(w + n - 4));
                s = _mm256_add_pd(s, staircase_last(last, n % 4));
            }
            bucket.s = staircase_sum(s);
            bucket.w = staircase_scan_avx2(w, n, w_scan).s;
        }
        return bucket;
    }
    STAIRCASE_SCAN void staircase_fill_bucket_avx2(
        const double *y, const double *w, Py_ssize_t n, staircase_bucket *out,
        staircase_range_scan *y_scan, staircase_range_scan *w_scan
    ) { *out = staircase_fill_avx2(y, w, n, y_scan, w_scan); }

    /* Buckets of 16 rows; `out` may be NULL. */
    STAIRCASE_SCAN void staircase_fill_buckets_avx2(
        const double *y, const double *w, Py_ssize_t n_buckets, staircase_bucket *out,
        staircase_range_scan *y_scan, staircase_range_scan *w_scan
    ) {
        Py_ssize_t b;
        for (b = 0; b < n_buckets; b++) {
            staircase_bucket bucket = staircase_fill_avx2(y + 16 * b, w ? w + 16 * b : w, 16, y_scan, w_scan);
            if (out)
                out[b] = bucket;
        }
    }
    #else
    #define staircase_fill_bucket_avx2(y, w, n, out, y_scan, w_scan) ((void)(y))
    #define staircase_fill_buckets_avx2(y, w, n_buckets, out, y_scan, w_scan) ((void)(y))
    #endif
    """
    # Sums and extremes of some consecutive rows, or of the rows of a survey bucket.
    ctypedef struct Bucket "staircase_bucket":
        double s          # sum of weight * target
        double w          # sum of weights
        double lo         # least target
        double hi         # greatest target

    # State of a scan that computes a Range.
    ctypedef struct RangeScan "staircase_range_scan":
        double least[2]
        double lowest
        double highest
        double odd        # not 0 if an entry or a sum is not finite
        int integral      # every entry so far is an integer

    void fill_bucket_avx2 "staircase_fill_bucket_avx2" (
        const double *y, const double *w, Py_ssize_t n, Bucket *out, RangeScan *y_scan, RangeScan *w_scan
    ) noexcept nogil
    void fill_buckets_avx2 "staircase_fill_buckets_avx2" (
        const double *y, const double *w, Py_ssize_t n_buckets, Bucket *out, RangeScan *y_scan, RangeScan *w_scan
    ) noexcept nogil
