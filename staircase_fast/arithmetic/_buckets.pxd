# One pass over targets and weights: their extremes, whether all are integers, and the sums of consecutive rows.
#
# A column is treated as integers until the first entry that is not one; its least magnitude is computed only from there
# on.  The sum and the extremes of each bucket are a by-product, so memory is read once.  Where the processor has AVX2,
# which is checked at run time, four rows are processed at a time.  Only the sums of buckets depend on that, in their
# last bits; their users allow for rounding errors.
#
# Preconditions: n >= 1, any values.

from libc.math cimport INFINITY, floor, isfinite
from libc.stdint cimport uint8_t, uint32_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._buckets_avx2 cimport Bucket, RangeScan, fill_bucket_avx2, fill_buckets_avx2
from staircase_fast.arithmetic._simd cimport (
    Pair, has_avx2, pair_first, pair_greater, pair_lesser, pair_minus, pair_of, pair_plus, pair_positive_or,
    pair_second, pair_size, pair_times,
)
from staircase_fast.arithmetic._types cimport number

cdef extern from *:
    """
    /* Sum, least and greatest of 16 bytes; compilers vectorise the loop. */
    static inline void staircase_scan_bytes(const uint8_t *values, double *found) {
        uint8_t lo = 255, hi = 0;
        uint32_t sum = 0;
        int i;
        for (i = 0; i < 16; i++) {
            sum += values[i];
            lo = values[i] < lo ? values[i] : lo;
            hi = values[i] > hi ? values[i] : hi;
        }
        found[0] = sum, found[1] = lo, found[2] = hi;
    }
    """
    void scan_bytes "staircase_scan_bytes" (const uint8_t *values, double *found) noexcept nogil

cdef enum:
    BUCKET_ROWS = 16      # consecutive rows in a bucket of sorted data
    VECTOR_ROWS = 4       # the vector code needs at least four rows
    MOST_COPIED = 64      # rows of a bucket that are converted to doubles for vector code

# Extremes of a column of targets or weights.
ctypedef struct Range:
    Py_ssize_t first_bad  # index of the first entry that is not finite, or -1; the other fields are valid only if -1
    double lowest
    double highest
    double least          # smallest nonzero magnitude; at most 1 if there are integers; inf if all are 0
    bint integral         # every entry is an integer

cdef inline RangeScan new_range_scan() noexcept nogil:
    cdef RangeScan scan
    scan.least[0] = scan.least[1] = scan.lowest = INFINITY
    scan.highest = -INFINITY
    scan.odd = 0.0
    scan.integral = True
    return scan


cdef inline Bucket scan_bucket(RangeScan *scan, const number *values, Py_ssize_t n) noexcept nogil:
    """Scan n entries; return their sum, number and extremes."""
    cdef Pair s = pair_of(0.0, 0.0), lo = pair_of(INFINITY, INFINITY), hi = pair_of(-INFINITY, -INFINITY), entries
    cdef Bucket bucket
    cdef Py_ssize_t i
    for i in range(n // 2):
        entries = pair_of(<double>values[2 * i], <double>values[2 * i + 1])
        s = pair_plus(s, entries)
        lo = pair_lesser(entries, lo)
        hi = pair_greater(entries, hi)
    if n % 2:
        entries = pair_of(<double>values[n - 1], <double>values[n - 1])
        s = pair_plus(s, pair_of(<double>values[n - 1], 0.0))
        lo = pair_lesser(entries, lo)
        hi = pair_greater(entries, hi)
    if scan.integral and (number is double or number is float) and not are_integers(values, n):
        scan.integral = False
        scan.least[0] = scan.least[1] = 1.0              # of the integers so far
    if not scan.integral:
        scan_sizes(scan, values, n)
    bucket = Bucket(
        pair_first(s) + pair_second(s), <double>n,
        lesser(pair_first(lo), pair_second(lo)), greater(pair_first(hi), pair_second(hi)),
    )
    scan.lowest = lesser(bucket.lo, scan.lowest)
    scan.highest = greater(bucket.hi, scan.highest)
    scan.odd += bucket.s - bucket.s
    return bucket


cdef inline bint are_integers(const number *values, Py_ssize_t n) noexcept nogil:
    """Whether all entries are integers, if they are below 2**51: adding and subtracting 1.5 * 2**52 rounds them."""
    cdef Pair magic = pair_of(6755399441055744.0, 6755399441055744.0), fractions = pair_of(0.0, 0.0), entries
    cdef Py_ssize_t i
    for i in range(0, n, 2):
        entries = pair_of(<double>values[i], <double>values[min(i + 1, n - 1)])
        entries = pair_minus(pair_minus(pair_plus(entries, magic), magic), entries)
        fractions = pair_plus(fractions, pair_size(entries))
    return pair_first(fractions) + pair_second(fractions) == 0


cdef inline void scan_sizes(RangeScan *scan, const number *values, Py_ssize_t n) noexcept nogil:
    """Find the least magnitude except 0."""
    cdef Pair least = pair_of(scan.least[0], scan.least[1]), entries
    cdef Py_ssize_t i
    for i in range(0, n, 2):
        entries = pair_of(<double>values[i], <double>values[min(i + 1, n - 1)])
        least = pair_lesser(pair_positive_or(pair_size(entries), pair_of(INFINITY, INFINITY)), least)
    scan.least[0], scan.least[1] = pair_first(least), pair_second(least)


cdef inline Range range_after(const RangeScan *scan, const number *values, Py_ssize_t n) noexcept nogil:
    """The range of all n entries, after they have been scanned."""
    cdef Range r = Range(-1, scan.lowest, scan.highest, lesser(scan.least[0], scan.least[1]), scan.integral)
    cdef double greatest = max(-r.lowest, r.highest)
    cdef Py_ssize_t i
    if scan.odd != 0:
        for i in range(n):
            if not isfinite(<double>values[i]):
                r.first_bad = i
                break
    if r.integral:
        r.least = 1.0 if greatest > 0 else INFINITY
    if greatest >= 2251799813685248.0:                   # 2**51: beyond it, the test of integers is not exact
        r.integral = True
        for i in range(n):
            r.integral = r.integral and floor(<double>values[i]) == <double>values[i]
    return r


cdef inline Range range_of(const number *values, Py_ssize_t n) noexcept nogil:
    return scan_range(values, n, has_avx2())


cdef inline Range scan_range(const number *values, Py_ssize_t n, bint vectors) noexcept nogil:
    cdef RangeScan scan = new_range_scan()
    cdef Py_ssize_t i = 0
    if number is double and vectors:
        fill_buckets_avx2(<const double *>values, NULL, n // BUCKET_ROWS, NULL, &scan, NULL)
        i = n - n % BUCKET_ROWS
    while i + BUCKET_ROWS <= n:
        scan_bucket(&scan, values + i, BUCKET_ROWS)
        i += BUCKET_ROWS
    scan_bucket(&scan, values + i, n - i)
    return range_after(&scan, values, n)


# Buckets of sorted rows.

cdef inline Py_ssize_t bucket_start(const uint8_t *tied, Py_ssize_t n, Py_ssize_t b, Py_ssize_t before) noexcept nogil:
    """The first row of bucket b.  A bucket holds whole observations: those that start within its rows.

    `before` is a start of an earlier bucket: rows before it are skipped, because a tie can be longer than many buckets.
    """
    cdef Py_ssize_t i = max(b * BUCKET_ROWS, before)
    while tied != NULL and i < n and tied[i]:
        i += 1
    return i


cdef inline double sum_products(const number *y, const double *weights, Py_ssize_t n) noexcept nogil:
    """The sum of weight * target; `weights` may be NULL: all are 1.

    Four sums are added up in turn, so that additions do not wait for each other.
    """
    cdef Pair one = pair_of(0.0, 0.0), two = one, first, second
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        first, second = pair_of(<double>y[i], <double>y[i + 1]), pair_of(<double>y[i + 2], <double>y[i + 3])
        if weights != NULL:
            first = pair_times(first, pair_of(weights[i], weights[i + 1]))
            second = pair_times(second, pair_of(weights[i + 2], weights[i + 3]))
        one = pair_plus(one, first)
        two = pair_plus(two, second)
        i += 4
    for i in range(i, n):
        one = pair_plus(one, pair_of(<double>y[i] * (1.0 if weights == NULL else weights[i]), 0.0))
    one = pair_plus(one, two)
    return pair_first(one) + pair_second(one)


cdef inline Range fill_buckets(
    const number *y, const double *weights, const uint8_t *tied, Py_ssize_t n, Bucket *buckets, Range *w_range
) noexcept nogil:
    """Sum consecutive rows in buckets; return the range of the targets, and set that of the weights."""
    return scan_buckets(y, weights, tied, n, buckets, w_range, has_avx2())


cdef inline Range scan_buckets(
    const number *y, const double *weights, const uint8_t *tied, Py_ssize_t n, Bucket *buckets, Range *w_range,
    bint vectors
) noexcept nogil:
    cdef RangeScan y_scan = new_range_scan(), w_scan = new_range_scan()
    cdef Py_ssize_t n_buckets = n // BUCKET_ROWS, b = 0, i = 0, end
    cdef Bucket rest
    if tied == NULL and number is double and vectors:
        fill_buckets_avx2(<const double *>y, weights, n_buckets, buckets, &y_scan, &w_scan)
        b = n_buckets
    elif tied == NULL and weights == NULL:    # constant arguments are faster
        for b in range(n_buckets):
            fill_bucket(&y_scan, &w_scan, y + b * BUCKET_ROWS, NULL, BUCKET_ROWS, buckets + b, vectors)
        b = n_buckets
    i = b * BUCKET_ROWS
    for b in range(b, n_buckets):
        end = bucket_start(tied, n, b + 1, i)
        fill_bucket(&y_scan, &w_scan, y + i, NULL if weights == NULL else weights + i, end - i, buckets + b, vectors)
        i = end
    fill_bucket(&y_scan, &w_scan, y + i, NULL if weights == NULL else weights + i, n - i, &rest, vectors)
    w_range[0] = range_after(&w_scan, weights, n) if weights != NULL else Range(-1, 1.0, 1.0, 1.0, True)
    return range_after(&y_scan, y, n)


cdef inline void fill_bucket(
    RangeScan *y_scan, RangeScan *w_scan, const number *y, const double *weights, Py_ssize_t n, Bucket *out,
    bint vectors
) noexcept nogil:
    """Sum n rows."""
    cdef double copy[MOST_COPIED]
    cdef double found[3]
    cdef Py_ssize_t i
    if number is uint8_t and weights == NULL and n == BUCKET_ROWS:
        scan_bytes(y, found)
        out[0] = Bucket(found[0], BUCKET_ROWS, found[1], found[2])
        y_scan.lowest = lesser(found[1], y_scan.lowest)
        y_scan.highest = greater(found[2], y_scan.highest)
        return
    if vectors and n >= VECTOR_ROWS and (number is double or n <= MOST_COPIED):
        if number is double:
            fill_bucket_avx2(y, weights, n, out, y_scan, w_scan)
        else:
            for i in range(n):
                copy[i] = <double>y[i]
            fill_bucket_avx2(copy, weights, n, out, y_scan, w_scan)
        return
    out[0] = scan_bucket(y_scan, y, n)
    if weights != NULL:
        out.w = scan_bucket(w_scan, weights, n).s
        out.s = sum_products(y, weights, n)
