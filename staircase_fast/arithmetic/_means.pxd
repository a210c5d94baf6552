# The mean of rows, correctly rounded, from sums in two doubles.
#
# The rounding errors of sums and products are doubles, too (`_double_double.pxd`).  Collecting them gives twice the
# precision, and a proven bound on what is still missing.  That decides the rounding of nearly every mean; the others
# need exact sums (`_row_sums.pxd`), which take several times as long.
#
# Error bounds, for n rows and u = 2**-53:
#
#     A two_sum is exact.  The collected errors are at most n * u * A in all, where A is the sum of magnitudes.  Adding
#     them up takes at most two additions per row (a product has an error of its own), so the sum of the errors is off
#     by at most 2n * u * (n + 1) * u * A <= 4 n**2 u**2 A.  We allow twice that.
#     All terms are multiples of a unit (`_scale.pxd`).  If the bound is below the unit, the sum is exact.
#     A is first taken as the weight times the greatest target, and computed only if that leaves the rounding in doubt.
#
# So the bound holds in any order of rows.  Four rows are added at a time where the processor has AVX2 and FMA, which is
# checked at run time; the means are the same.
#
# Preconditions: scale.tame, targets that doubles represent, n >= 1.

from libc.math cimport NAN, fabs
from libc.stdint cimport uint64_t

from staircase_fast.arithmetic._double_double cimport Twofold, add, two_product, two_sum
from staircase_fast.arithmetic._exact cimport Scale
from staircase_fast.arithmetic._rounded cimport power_of_two
from staircase_fast.arithmetic._simd cimport Pair, pair_first, pair_minus, pair_of, pair_plus, pair_second
from staircase_fast.arithmetic._types cimport BATCH, number

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__x86_64__)
    #include <immintrin.h>
    #define STAIRCASE_AVX2 __attribute__((target("avx2,fma")))

    /* sum += value; the rounding errors are added to `errors` */
    #define STAIRCASE_ADD(sum, errors, value) do { \\
        __m256d total_ = _mm256_add_pd(sum, value), part_ = _mm256_sub_pd(total_, sum); \\
        errors = _mm256_add_pd(errors, _mm256_add_pd( \\
            _mm256_sub_pd(sum, _mm256_sub_pd(total_, part_)), _mm256_sub_pd(value, part_))); \\
        sum = total_; \\
    } while (0)

    /* lanes[0..7] = sums of y, lanes[8..15] = their errors; n is a multiple of 8 */
    STAIRCASE_AVX2 static inline void staircase_sum_avx2(const double *y, Py_ssize_t n, double *lanes) {
        __m256d a = _mm256_setzero_pd(), b = a, c = a, d = a;
        Py_ssize_t i;
        for (i = 0; i < n; i += 8) {
            __m256d first = _mm256_loadu_pd(y + i), second = _mm256_loadu_pd(y + i + 4);
            STAIRCASE_ADD(a, c, first);
            STAIRCASE_ADD(b, d, second);
        }
        _mm256_storeu_pd(lanes, a); _mm256_storeu_pd(lanes + 4, b);
        _mm256_storeu_pd(lanes + 8, c); _mm256_storeu_pd(lanes + 12, d);
    }

    /* lanes[0..3] = sums of w*y, lanes[4..7] = sums of w, lanes[8..15] = their errors; n is a multiple of 4 */
    STAIRCASE_AVX2 static inline void staircase_sum_weighted_avx2(
        const double *y, const double *w, Py_ssize_t n, double *lanes
    ) {
        __m256d a = _mm256_setzero_pd(), b = a, c = a, d = a;
        Py_ssize_t i;
        for (i = 0; i < n; i += 4) {
            __m256d target = _mm256_loadu_pd(y + i), weight = _mm256_loadu_pd(w + i);
            __m256d product = _mm256_mul_pd(target, weight);
            c = _mm256_add_pd(c, _mm256_fmsub_pd(target, weight, product));
            STAIRCASE_ADD(a, c, product);
            STAIRCASE_ADD(b, d, weight);
        }
        _mm256_storeu_pd(lanes, a); _mm256_storeu_pd(lanes + 4, b);
        _mm256_storeu_pd(lanes + 8, c); _mm256_storeu_pd(lanes + 12, d);
    }
    #else
    #define staircase_sum_avx2(y, n, lanes) ((void)(lanes))
    #define staircase_sum_weighted_avx2(y, w, n, lanes) ((void)(lanes))
    #endif
    """
    void sum_avx2 "staircase_sum_avx2" (const double *y, Py_ssize_t n, double *lanes) noexcept nogil
    void sum_weighted_avx2 "staircase_sum_weighted_avx2" (
        const double *y, const double *w, Py_ssize_t n, double *lanes
    ) noexcept nogil

cdef enum:
    VECTOR_ROWS = 16      # fewer rows are added one by one
    MOST_FEW = 64         # the remainders of sums of few rows are exact: see `remainder`


cdef inline Py_ssize_t few_rows(const Scale *scale) noexcept nogil:
    """The largest number of rows, up to MOST_FEW, for `mean_of_few`: their sum in two doubles is exact."""
    return MOST_FEW if MOST_FEW**3 * sum_error(scale) < power_of_two(max(scale.y_unit, -1000)) else 0


cdef inline double sum_error(const Scale *scale) noexcept nogil:
    """The error bound of a sum of n rows without weights, divided by n**3: 8 n**2 u**2 A, where A <= n * greatest."""
    return 9.860761315262648e-32 * scale.greatest


cdef inline double mean_of_few(const number *y, Py_ssize_t n) noexcept nogil:
    """The mean of n <= few_rows rows without weights, rounded to nearest, or NaN if it is too close to zero."""
    cdef Pair sums = pair_of(0.0, 0.0), errors = sums, entries, total, part
    cdef Twofold s
    cdef double count = <double>n, inverse = 1.0 / count, quotient, rest, margin, below, above
    cdef Py_ssize_t i
    for i in range(n // 2):                   # `add` for two sums at a time
        entries = pair_of(<double>y[2 * i], <double>y[2 * i + 1])
        total = pair_plus(sums, entries)
        part = pair_minus(total, sums)
        sums = pair_minus(sums, pair_minus(total, part))
        errors = pair_plus(errors, pair_plus(sums, pair_minus(entries, part)))
        sums = total
    s = Twofold(pair_first(sums), pair_first(errors) + pair_second(errors))
    add(&s, pair_second(sums))
    if n % 2:
        add(&s, <double>y[n - 1])
    s.hi = two_sum(s.hi, s.lo, &s.lo)
    quotient = s.hi / count
    if not fabs(quotient) > 1e-200:
        return 0.0 if s.hi == 0.0 else NAN
    rest = (remainder(s.hi, quotient, count) + s.lo) * inverse
    margin = fabs(rest) * 1e-14 + fabs(quotient) * 1e-29            # far above the error of `rest`
    below = quotient + (rest - margin)
    above = quotient + (rest + margin)
    # In doubt only on the midpoint of two neighbours.  The sum is a multiple of a unit above 2e-26 * greatest.  So if
    # the mean is not on a midpoint, it differs from it by more than 4e-28 * |mean|, or by 2**-60 of it; the margin is
    # less.
    return below if below == above else below + (above - below) * 0.5        # to even


cdef inline double remainder(double total, double quotient, double count) noexcept nogil:
    """total - quotient*count, for a count <= MOST_FEW and a quotient within some ulps of total/count.

    The result is a small multiple of the quotient's last bit, so it is exact.
    """
    cdef double c = 134217729.0 * quotient, upper = c - (c - quotient)
    return (total - upper * count) - (quotient - upper) * count


cdef inline double quick_mean(
    const Scale *scale, const number *y, const double *weights, Py_ssize_t n, bint vectors, double *weight
) noexcept nogil:
    """The mean, rounded to nearest, or NaN if its rounding is in doubt; `weight` is set to the rounded total weight."""
    cdef Twofold s = Twofold(0.0, 0.0), w = Twofold(<double>n, 0.0)
    cdef double bound = <double>n * <double>n * 9.860761315262648e-32, w_error = 0.0      # 8 n**2 u**2
    cdef double mean
    sum_rows(y, weights, n, vectors, &s, &w)
    weight[0] = w.hi
    if weights != NULL:
        w_error = below_unit(bound * w.hi, scale.w_unit)
        if w.hi + (w.lo - w_error) != w.hi + (w.lo + w_error):
            return NAN
    mean = rounded_quotient(s, w, below_unit(bound * (scale.greatest * w.hi), scale.y_unit + scale.w_unit), w_error)
    if mean != mean:                          # most targets may be far smaller than the greatest
        mean = rounded_quotient(s, w, bound * 1.01 * sum_magnitudes(y, weights, n), w_error)
    return mean


cdef inline double rounded_quotient(Twofold s, Twofold w, double s_error, double w_error) noexcept nogil:
    """s / w, rounded to nearest, for sums with at most these errors, or NaN if its rounding is in doubt."""
    cdef double quotient, inverse, product, error, rest, margin, below, above
    if s.hi == 0.0 and s_error == 0.0:
        return 0.0
    inverse = 1.0 / w.hi
    quotient = s.hi / w.hi
    if not fabs(quotient) > 1e-200:
        return NAN
    product = two_product(quotient, w.hi, &error)
    rest = (((s.hi - product) - error) + (s.lo - quotient * w.lo)) * inverse
    # the six roundings in `rest` are at most 2**-100 of the quotient and a few ulps of the rest
    margin = fabs(rest) * 1e-14 + fabs(quotient) * 1e-29 + 2.0 * (s_error + fabs(quotient) * w_error) * inverse
    below = quotient + (rest - margin)
    above = quotient + (rest + margin)
    return below if below == above else NAN


cdef inline double sum_magnitudes(const number *y, const double *weights, Py_ssize_t n) noexcept nogil:
    """The sum of |weight * target|, rounded; four sums are added up in turn."""
    cdef double sums[4]
    cdef Py_ssize_t i
    sums[0] = sums[1] = sums[2] = sums[3] = 0.0
    for i in range(n):
        sums[i % 4] += fabs(<double>y[i]) * (1.0 if weights == NULL else weights[i])
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


cdef inline double below_unit(double error, int unit) noexcept nogil:
    """0 if the error of a sum of multiples of 2**unit is below the unit: the sum is exact."""
    return 0.0 if unit > -1000 and error < power_of_two(unit) else error


cdef inline void sum_rows(
    const number *y, const double *weights, Py_ssize_t n, bint vectors, Twofold *s, Twofold *w
) noexcept nogil:
    """Set `s` to the sum of weight * target and, if there are weights, `w` to their sum."""
    cdef double chunk[BATCH]
    cdef Py_ssize_t start = 0, end, i
    if weights != NULL:
        w.hi = 0.0
    if number is double:
        add_rows(y, weights, n, vectors, s, w)
    else:
        while start < n:
            end = min(n, start + BATCH)
            for i in range(start, end):
                chunk[i - start] = <double>y[i]
            add_rows(chunk, NULL if weights == NULL else weights + start, end - start, vectors, s, w)
            start = end
    s.hi = two_sum(s.hi, s.lo, &s.lo)
    if weights != NULL:
        w.hi = two_sum(w.hi, w.lo, &w.lo)


cdef inline void add_rows(
    const double *y, const double *weights, Py_ssize_t n, bint vectors, Twofold *s, Twofold *w
) noexcept nogil:
    cdef double lanes[16]
    cdef double error, product
    cdef Py_ssize_t i = 0, lane
    if vectors and n >= VECTOR_ROWS:
        i = n & ~<Py_ssize_t>7
        if weights == NULL:
            sum_avx2(y, i, lanes)
        else:
            sum_weighted_avx2(y, weights, i, lanes)
        for lane in range(8):
            if weights == NULL or lane < 4:
                add(s, lanes[lane])
                s.lo += lanes[8 + lane]
            else:
                add(w, lanes[lane])
                w.lo += lanes[8 + lane]
    for i in range(i, n):
        if weights == NULL:
            add(s, y[i])
        else:
            product = two_product(y[i], weights[i], &error)
            add(s, product)
            s.lo += error
            add(w, weights[i])
