# One pass over a column: NaN, labels, sort order, extremes, and whether all entries are integers.
#
# Preconditions: n >= 1, any values.

from libc.math cimport INFINITY, floor, isfinite
from libc.stdint cimport uint8_t, uint64_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._simd cimport (
    Pair, pair_first, pair_greater, pair_lesser, pair_minus, pair_of, pair_plus, pair_positive_or, pair_second,
    pair_size, pair_times,
)
from staircase_fast.arithmetic._types cimport CHUNK, bits_of, floating, number

cdef enum:
    BUCKET_ROWS = 16      # consecutive rows in a bucket of sorted data

# Sort order of a column of scores.
ctypedef struct Monotonicity:
    Py_ssize_t first_nan  # index, or -1; if there is a NaN, `up` and `down` are false
    bint up               # no score is below the previous one
    bint down             # no score is above the previous one
    bint tied             # two neighbours are equal; valid only if `up` or `down`

# Extremes of a column of targets or weights.
ctypedef struct Range:
    Py_ssize_t first_bad  # index of the first entry that is not finite, or -1; the other fields are valid only if -1
    double lowest
    double highest
    double least          # smallest nonzero magnitude; at most 1 if there are integers; inf if all are 0
    bint integral         # every entry is an integer

# Sums and extremes of some consecutive rows, or of the rows of a survey bucket.
ctypedef struct Bucket:
    double s              # sum of weight * target
    double w              # sum of weights
    double lo             # least target
    double hi             # greatest target

# State of a scan that computes a Range.
ctypedef struct RangeScan:
    Range range
    Pair least
    Pair fractions        # nonzero once an entry was not an integer

ctypedef struct PairSums:
    Pair s
    Pair lo
    Pair hi


# NaN and labels.  A valid entry gives +0.0, whose bits are all zero.  Compilers may combine bits in any order, so they
# vectorise these loops.

cdef inline Py_ssize_t first_nan(const floating *scores, Py_ssize_t n) noexcept nogil:
    """Index of the first NaN, or -1."""
    cdef Py_ssize_t start = 0, end, i
    cdef uint64_t odd
    while start < n:
        end = min(n, start + CHUNK)
        odd = 0
        for i in range(start, end):
            odd |= bits_of(scores[i] - scores[i])
        if odd:                               # NaN or infinite
            for i in range(start, end):
                if scores[i] != scores[i]:
                    return i
        start = end
    return -1


cdef inline bint has_nan(const floating *scores, Py_ssize_t n) noexcept nogil:
    return first_nan(scores, n) >= 0


cdef inline bint are_labels(const number *y, Py_ssize_t n) noexcept nogil:
    """Whether each entry is 0 or 1, that is, equal to its square."""
    cdef Py_ssize_t i
    cdef uint64_t odd = 0
    for i in range(n):
        if number is double or number is float:
            odd |= bits_of(y[i] * y[i] - y[i])
        else:
            odd |= <uint64_t>(y[i] & ~<number>1)
    return odd == 0


# Sort order.

cdef inline Monotonicity monotonicity_of(const floating *scores, Py_ssize_t n) noexcept nogil:
    cdef Monotonicity found = Monotonicity(-1, True, True, False)
    cdef Py_ssize_t start = 1, end
    if scores[0] != scores[0]:
        found.up = found.down = False
    while start < n and (found.up or found.down):
        end = min(n, start + CHUNK)
        compare_neighbours(&found, scores, start, end)
        start = end
    if not (found.up or found.down):
        found.first_nan = first_nan(scores, n)
    return found


cdef inline void compare_neighbours(
    Monotonicity *found, const floating *scores, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Compare the scores [start, end) with their predecessors, two at a time, by their differences."""
    cdef Pair low = pair_of(INFINITY, INFINITY), high = pair_of(-INFINITY, -INFINITY), least = low
    cdef Pair odd = pair_of(0.0, 0.0), step
    cdef Py_ssize_t i = start
    while i + 2 <= end:
        step = pair_minus(pair_of(scores[i], scores[i + 1]), pair_of(scores[i - 1], scores[i]))
        low = pair_lesser(step, low)
        high = pair_greater(step, high)
        least = pair_lesser(pair_size(step), least)
        odd = pair_plus(odd, pair_minus(step, step))
        i += 2
    if pair_first(odd) + pair_second(odd) == 0:
        found.up &= (pair_first(low) >= 0) & (pair_second(low) >= 0)
        found.down &= (pair_first(high) <= 0) & (pair_second(high) <= 0)
        found.tied |= (pair_first(least) == 0) | (pair_second(least) == 0)
    else:
        i = start                             # a NaN or an infinity: compare one by one
    for i in range(i, end):
        found.up &= scores[i - 1] <= scores[i]                # comparisons with NaN are false
        found.down &= scores[i - 1] >= scores[i]
        found.tied |= scores[i - 1] == scores[i]


# Extremes and integers.  A column is treated as integers until the first entry that is not one; its least magnitude is
# computed only from there on.  The sum and the extremes of each bucket are a by-product, so memory is read once.

cdef inline RangeScan new_range_scan() noexcept nogil:
    cdef RangeScan scan
    scan.range = Range(-1, INFINITY, -INFINITY, INFINITY, True)
    scan.least = pair_of(INFINITY, INFINITY)
    scan.fractions = pair_of(0.0, 0.0)
    return scan


cdef inline Bucket scan_bucket(RangeScan *scan, const number *values, Py_ssize_t start, Py_ssize_t size) noexcept nogil:
    """Scan the entries [start, start + size); return their sum, number and extremes."""
    cdef Bucket bucket = scan_pairs(scan, values + start, size)
    cdef Py_ssize_t i
    if scan.range.integral and pair_first(scan.fractions) + pair_second(scan.fractions) != 0:
        scan.range.integral = False
        scan.least = pair_of(1.0, 1.0)                   # of the integers so far
        scan_pairs(scan, values + start, size)
    if bucket.s - bucket.s != 0 and scan.range.first_bad < 0:       # not finite, or the sum has overflowed
        for i in range(start, start + size):
            if not isfinite(<double>values[i]):
                scan.range.first_bad = i
                break
    scan.range.lowest = lesser(bucket.lo, scan.range.lowest)
    scan.range.highest = greater(bucket.hi, scan.range.highest)
    return bucket


cdef inline Bucket scan_pairs(RangeScan *scan, const number *values, Py_ssize_t n) noexcept nogil:
    cdef PairSums sums
    cdef Pair entries
    cdef double last
    cdef Py_ssize_t i
    sums.s = pair_of(0.0, 0.0)
    sums.lo = pair_of(INFINITY, INFINITY)
    sums.hi = pair_of(-INFINITY, -INFINITY)
    for i in range(n // 2):
        entries = pair_of(<double>values[2 * i], <double>values[2 * i + 1])
        add_entries(scan, &sums, entries, entries)
    if n % 2:
        last = <double>values[n - 1]
        add_entries(scan, &sums, pair_of(last, last), pair_of(last, 0.0))
    return Bucket(
        pair_first(sums.s) + pair_second(sums.s), <double>n,
        lesser(pair_first(sums.lo), pair_second(sums.lo)), greater(pair_first(sums.hi), pair_second(sums.hi)),
    )


cdef inline void add_entries(RangeScan *scan, PairSums *sums, Pair entries, Pair terms) noexcept nogil:
    # adding and subtracting 1.5 * 2**52 rounds to an integer if the magnitude is below 2**51
    cdef Pair magic = pair_of(6755399441055744.0, 6755399441055744.0), sizes
    sums.s = pair_plus(sums.s, terms)
    sums.lo = pair_lesser(entries, sums.lo)
    sums.hi = pair_greater(entries, sums.hi)
    if scan.range.integral:
        entries = pair_minus(pair_minus(pair_plus(entries, magic), magic), entries)
        scan.fractions = pair_plus(scan.fractions, pair_size(entries))
    else:
        sizes = pair_positive_or(pair_size(entries), pair_of(INFINITY, INFINITY))
        scan.least = pair_lesser(sizes, scan.least)


cdef inline Range range_after(const RangeScan *scan, const number *values, Py_ssize_t n) noexcept nogil:
    """The range of all n entries, after they have been scanned."""
    cdef Range r = scan.range
    cdef double greatest = max(-r.lowest, r.highest)
    cdef Py_ssize_t i
    r.least = min(pair_first(scan.least), pair_second(scan.least))
    if r.integral:
        r.least = 1.0 if greatest > 0 else INFINITY
    if greatest >= 2251799813685248.0:                   # 2**51: beyond it, the rounding in `add_entries` is not exact
        r.integral = True
        for i in range(n):
            r.integral = r.integral and floor(<double>values[i]) == <double>values[i]
    return r


cdef inline Range range_of(const number *values, Py_ssize_t n) noexcept nogil:
    cdef RangeScan scan = new_range_scan()
    cdef Py_ssize_t i = 0
    while i + BUCKET_ROWS <= n:
        scan_bucket(&scan, values, i, BUCKET_ROWS)
        i += BUCKET_ROWS
    scan_bucket(&scan, values, i, n - i)
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
    cdef RangeScan y_scan = new_range_scan(), w_scan = new_range_scan()
    cdef Py_ssize_t n_buckets = n // BUCKET_ROWS, b = 0, i = 0, end
    if tied == NULL:                          # constant arguments are faster
        if weights == NULL:
            for b in range(n_buckets):
                buckets[b] = scan_bucket(&y_scan, y, b * BUCKET_ROWS, BUCKET_ROWS)
        else:
            for b in range(n_buckets):
                buckets[b] = fill_bucket(&y_scan, &w_scan, y, weights, b * BUCKET_ROWS, BUCKET_ROWS)
        b = n_buckets
        i = b * BUCKET_ROWS
    for b in range(b, n_buckets):
        end = bucket_start(tied, n, b + 1, i)
        buckets[b] = fill_bucket(&y_scan, &w_scan, y, weights, i, end - i)
        i = end
    fill_bucket(&y_scan, &w_scan, y, weights, i, n - i)
    w_range[0] = range_after(&w_scan, weights, n) if weights != NULL else Range(-1, 1.0, 1.0, 1.0, True)
    return range_after(&y_scan, y, n)


cdef inline Bucket fill_bucket(
    RangeScan *y_scan, RangeScan *w_scan, const number *y, const double *weights, Py_ssize_t start, Py_ssize_t size
) noexcept nogil:
    """Sum the rows [start, start + size)."""
    cdef Bucket bucket = scan_bucket(y_scan, y, start, size)
    if weights != NULL:
        bucket.w = scan_bucket(w_scan, weights, start, size).s
        bucket.s = sum_products(y + start, weights + start, size)
    return bucket
