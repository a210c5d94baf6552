# The plan: which buckets can contain the end of a step.  (Not in the paper; an argument on the cumulative-sum diagram.)
#
# After each row, in score order, plot the point (sum of weights, sum of weight * target) so far.  The staircase is the
# slope of the greatest convex minorant of this path, and steps end at the vertices of the minorant.  The minorant lies
# on or below the chord between any two points of the path.  So a part of the path that runs strictly above a chord
# contains no vertex.
#
# Of a bucket we know the weight w, the sum s, the least target lo and the greatest target hi.  Inside it, after weight
# m, the path has risen by at least max(lo*m, s - hi*(w - m)).  This bound is two segments that meet in a corner at
# m = (w*hi - s) / (hi - lo).  If the start, the corner and the end of the bucket are above a chord by more than the
# rounding error, all its rows lie on one step: the bucket is *quiet*.  Neighbouring quiet buckets lie on the same step.
# The other buckets are *live*.
#
# Example: a bucket with the labels 1 and 0, and a chord of slope 1/2.  The corner is at m = 1, where the path may not
# have risen but the chord has risen by 1/2.  If the bucket starts on the chord, the corner is below it: live.  If it
# starts 1 above the chord, the corner is 1/2 above it: quiet.
#
# If all targets of several consecutive buckets are equal, the path is straight there, and the minorant can bend only at
# the ends.  So all but the first and the last of these buckets are quiet, even on the chord.
#
# If the rows are sorted, a bucket whose corner is below the chord gets a second look: it is live only if the path
# itself gets down to the chord (`reaches_chord`).  In noisy data, few buckets do.  If nearly all do, later buckets get
# no second look.
#
# Any chords are valid.  We use those of the minorant of every `chord_buckets`-th bucket border, found by a stack in
# plain floating point.  Errors there only make more buckets live.

from libc.math cimport NAN
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from staircase_fast.arithmetic._branchless cimport lesser
from staircase_fast.arithmetic._buckets cimport bucket_start
from staircase_fast.arithmetic._buckets_avx2 cimport Bucket
from staircase_fast.arithmetic._types cimport number
from staircase_fast.stack._summary cimport Summary, bucket_at, rounding_of, summary_t

cdef enum:
    SURVEY_CHORD_BUCKETS = 2          # `chord_buckets` for tables of the survey
    PATIENCE = 32                     # second looks without success until they are given up
    REWARD = 8                        # a success allows so many more


cdef inline void plan(
    const summary_t *table,       # IN
    Py_ssize_t n,
    const number *y,              # IN  targets of sorted rows, whose buckets are Buckets; otherwise not used
    const double *weights,        # IN  theirs, or NULL: all are 1
    const uint8_t *tied,          # IN  or NULL: no row has the score of the row before it
    Py_ssize_t n_rows,
    bint decreasing,
    Py_ssize_t roundings,         # largest number of roundings in a sum
    double greatest,              # largest magnitude of a target
    Py_ssize_t *starts,           # work: n
    double *s,                    # work: n
    double *w,                    # work: n
    uint8_t *live,                # OUT
    Py_ssize_t chord_buckets,     # chords end at multiples of this; small: slower, fewer live buckets
) noexcept nogil:
    """Mark live buckets."""
    cdef Py_ssize_t b, top = -1, start, block, stop, patience = PATIENCE
    cdef double s_b, w_b, slope, margin, lost
    cdef Bucket bucket
    b = 0
    while b < n:
        start = b
        s_b = 0.0
        w_b = 0.0
        for b in range(start, min(n, start + chord_buckets)):
            bucket = bucket_at(table, b, decreasing)
            s_b += bucket.s
            w_b += bucket.w
        b += 1
        while top >= 0 and s[top] * w_b >= s_b * w[top]:
            s_b += s[top]
            w_b += w[top]
            start = starts[top]
            top -= 1
        top += 1
        starts[top] = start
        s[top] = s_b
        w[top] = w_b
    for block in range(top + 1):
        stop = starts[block + 1] if block < top else n
        slope = s[block] / w[block]
        # each rounding is at most 2**-53 of a number below 2 * greatest * weight; eight times that, to be safe
        margin = <double>(roundings + 16) * 1.7763568394002505e-15 * (greatest * w[block])
        # rounding errors of summaries count three times: at the chord's end, at the bucket's start, in its corner
        lost = 0.0
        if summary_t is not Bucket:
            for b in range(starts[block], stop):
                lost += rounding_of(table, b, slope, greatest * 1e-6)
        mark_live(
            table, starts[block], stop, y, weights, tied, n_rows, decreasing, slope, margin + 3.0 * lost, live,
            &patience
        )
    if not (summary_t is Summary):            # its extremes are rounded, so it cannot show that all targets are equal
        unmark_straight(table, n, live)


cdef inline void mark_live(
    const summary_t *table, Py_ssize_t start, Py_ssize_t stop, const number *y, const double *weights,
    const uint8_t *tied, Py_ssize_t n_rows, bint decreasing, double slope, double margin, uint8_t *live,
    Py_ssize_t *patience
) noexcept nogil:
    """Mark the live ones of the buckets [start, stop), whose chord has this slope."""
    cdef Py_ssize_t b, first
    cdef double height = -margin, after   # of the path above the chord, less the margin
    cdef bint quiet, corner_below
    cdef Bucket bucket
    for b in range(start, stop):
        bucket = bucket_at(table, b, decreasing)
        after = height + (bucket.s - slope * bucket.w)
        quiet = lesser(height, after) > 0.0
        # from the start to the corner, the height falls by (slope - lo) * (w*hi - s) / (hi - lo)
        corner_below = (slope - bucket.lo) * (bucket.w * bucket.hi - bucket.s) >= height * (bucket.hi - bucket.lo)
        corner_below &= (bucket.lo < slope) & (slope < bucket.hi)
        live[b] = (bucket.w > 0.0) & ((not quiet) | corner_below)
        if summary_t is Bucket:
            if live[b] and quiet and patience[0] > 0:
                first = bucket_start(tied, n_rows, b, 0)
                live[b] = reaches_chord(
                    y, weights, first, bucket_start(tied, n_rows, b + 1, first), decreasing, slope, height
                )
                patience[0] += -1 if live[b] else REWARD
        height = after


cdef inline bint reaches_chord(
    const number *y, const double *weights, Py_ssize_t i, Py_ssize_t end, bint decreasing, double slope, double height
) noexcept nogil:
    """Whether the path of the rows [i, end), which starts this high above the chord, gets down to the chord."""
    cdef double lowest = height, rise
    for i in range(i, end):
        rise = (-<double>y[i] if decreasing else <double>y[i]) - slope
        height += rise if weights == NULL else rise * weights[i]
        lowest = lesser(height, lowest)
    return not lowest > 0.0


cdef inline void unmark_straight(const summary_t *table, Py_ssize_t n, uint8_t *live) noexcept nogil:
    """Unmark buckets whose targets, and those of both neighbours, all equal one number."""
    cdef Py_ssize_t b
    cdef double value
    for b in range(n):
        if live[b]:
            value = only_target(table, n, b, 0)
            live[b] = not (only_target(table, n, b - 1, -1) == value == only_target(table, n, b + 1, 1))


cdef inline double only_target(const summary_t *table, Py_ssize_t n, Py_ssize_t b, int direction) noexcept nogil:
    """The target that all rows of bucket b have, or NaN if they differ; empty buckets are skipped."""
    cdef Bucket bucket
    while 0 <= b < n:
        bucket = bucket_at(table, b, False)
        if bucket.w > 0.0:
            return bucket.lo if bucket.lo == bucket.hi else NAN
        b += direction
    return NAN


# The directory of live buckets: one word for 32 buckets, so that it stays in cache.  The lower half of directory[k] has
# a bit for each of the buckets 32k .. 32k + 31; the upper half is the number of live buckets before bucket 32k.

cdef inline bint is_live(const uint64_t *directory, Py_ssize_t bucket) noexcept nogil:
    return (directory[bucket >> 5] >> (bucket & 31)) & 1


cdef inline Py_ssize_t live_before(const uint64_t *directory, Py_ssize_t bucket) noexcept nogil:
    """The number of live buckets before this one."""
    cdef uint64_t word = directory[bucket >> 5]
    return <Py_ssize_t>(word >> 32) + count_bits(<uint32_t>word & ((<uint32_t>1 << (bucket & 31)) - 1))


cdef inline uint32_t count_bits(uint32_t bits) noexcept nogil:
    """The number of set bits: in sums over 2, 4, 8, 16 and 32 bits."""
    bits -= (bits >> 1) & <uint32_t>0x55555555
    bits = (bits & <uint32_t>0x33333333) + ((bits >> 2) & <uint32_t>0x33333333)
    bits = (bits + (bits >> 4)) & <uint32_t>0x0F0F0F0F
    bits += bits >> 8
    return (bits + (bits >> 16)) & 63
