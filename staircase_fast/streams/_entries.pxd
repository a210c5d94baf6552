# Entries of an accumulator: the exact sums of all rows of one score, in 24 bytes.
#
# An entry has a score x, and y and w.  The sign of w, as an integer, tells its kind:
#
#     w > 0     one row: y is its target, w the bits of its weight, a double
#     w < 0     a tally of small integers: y has the bits of the sum of weight * target, an int64; below its sign bit, w
#               has the number of rows (31 bits) and the sum of weights (32 bits)
#     w = 0     a pool: the number of rows and exact sums of any width (_exact.pxd) are stored beside, in score order
#
# Entries are in ascending order of score.  Two entries of one score become a tally if possible, otherwise a pool.
#
# Preconditions: finite numbers (scores may be infinite), no NaN, weights > 0, a Scale for all rows.

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._exact cimport (
    MAX_WORDS, Dyadic, Scale, add_sample, add_shifted, add_sums, dyadic, is_negative,
)
from staircase_fast.arithmetic._rounded cimport shifted_word
from staircase_fast.stack._sort cimport bits_of, double_of

ctypedef fused target:        # targets of other types are converted to one of these without loss
    int64_t
    double

cdef enum:
    WEIGHT_BITS = 32
    ROWS_BITS = 31

ctypedef struct Entries:
    double *x                 # read only, except in an output
    double *y
    int64_t *w
    int64_t *rows             # of pools
    uint64_t *words
    Py_ssize_t n
    Scale scale
    Py_ssize_t i              # next entry
    Py_ssize_t pool           # next pool

ctypedef struct Tally:
    int64_t s
    int64_t w
    int64_t rows


cdef inline bint add_row(Tally *tally, target y, double weight) noexcept nogil:
    """Add a row; return whether the result is a tally: its sum is below 2**62, so that two of them do not overflow."""
    cdef double size = fabs(<double>y) * weight
    if not (size < 4611686018427387904.0 and 1.0 <= weight < 4294967296.0 and weight == <double><int64_t>weight):
        return False
    if target is double:
        if y != <double><int64_t>y:
            return False
    return add_tally(tally, Tally(<int64_t>y * <int64_t>weight, <int64_t>weight, 1))


cdef inline bint add_tally(Tally *tally, Tally other) noexcept nogil:
    tally.s += other.s
    tally.w += other.w
    tally.rows += other.rows
    if fabs(<double>tally.s) >= 4611686018427387904.0:
        return False
    return tally.w >> WEIGHT_BITS == 0 and tally.rows >> ROWS_BITS == 0


cdef inline int64_t rows_of_tally(int64_t w) noexcept nogil:
    return (w >> WEIGHT_BITS) & ((<int64_t>1 << ROWS_BITS) - 1)


cdef inline Tally tally_of(double y, int64_t w) noexcept nogil:
    """The tally of an entry with w < 0."""
    return Tally(<int64_t>bits_of(y), w & ((<int64_t>1 << WEIGHT_BITS) - 1), rows_of_tally(w))


cdef inline bint add_entry(Tally *tally, const Entries *a) noexcept nogil:
    """Add the next entry; return whether the result is a tally."""
    cdef int64_t w = a.w[a.i]
    if w < 0:
        return add_tally(tally, tally_of(a.y[a.i], w))
    return w > 0 and add_row(tally, a.y[a.i], double_of(<uint64_t>w))


cdef inline void write_tally(Tally tally, double *y, int64_t *w) noexcept nogil:
    y[0] = double_of(<uint64_t>tally.s)
    w[0] = <int64_t>((<uint64_t>1 << 63) | (<uint64_t>tally.rows << WEIGHT_BITS) | <uint64_t>tally.w)


cdef inline uint64_t *next_pool(const Entries *entries) noexcept nogil:
    return entries.words + entries.pool * (entries.scale.s_words + entries.scale.w_words)


cdef inline int64_t add_exactly(Entries *a, Scale scale, uint64_t *sums) noexcept nogil:
    """Add the next entry to exact sums in this scale and go on to the entry after it; return its number of rows."""
    cdef int64_t w = a.w[a.i], n_rows = 1
    cdef uint64_t converted[MAX_WORDS]
    cdef Tally tally
    if w > 0:
        add_sample(scale, sums, a.y[a.i], double_of(<uint64_t>w))
    elif w < 0:
        tally = tally_of(a.y[a.i], w)
        add_integer(sums, scale.s_words, tally.s, scale.y_unit + scale.w_unit)
        add_integer(sums + scale.s_words, scale.w_words, tally.w, scale.w_unit)
        n_rows = tally.rows
    else:
        convert_sums(a.scale, next_pool(a), scale, converted)
        add_sums(scale, sums, converted)
        n_rows = a.rows[a.pool]
        a.pool += 1
    a.i += 1
    return n_rows


cdef inline void add_integer(uint64_t *words, int n_words, int64_t value, int unit) noexcept nogil:
    """words += value / 2**unit; the quotient must be an integer."""
    cdef Dyadic d = dyadic(value, unit)
    add_shifted(words, n_words, d.m, 0, d.q - unit, d.negative)


cdef inline void convert_sums(Scale old, const uint64_t *sums, Scale new, uint64_t *out) noexcept nogil:
    """Convert exact sums to a scale with units as fine or finer, and with as many words or more."""
    cdef int finer = old.w_unit - new.w_unit
    cdef bint negative = is_negative(sums, old.s_words)
    widen(sums, old.s_words, negative, finer + old.y_unit - new.y_unit, out, new.s_words)
    widen(sums + old.s_words, old.w_words, False, finer, out + new.s_words, new.w_words)


cdef inline void widen(
    const uint64_t *words, int n_words, bint negative, int shift, uint64_t *out, int n_out
) noexcept nogil:
    """Convert an integer to a unit that is `shift` bits finer, and to as many words or more."""
    cdef uint64_t part[MAX_WORDS + 1]
    cdef int i
    if shift == 0 and n_out == n_words:
        memcpy(out, words, n_words * sizeof(uint64_t))
        return
    # one more word, which holds only the sign; all words above it are equal to it
    memcpy(part, words, n_words * sizeof(uint64_t))
    part[n_words] = 0 - <uint64_t>negative
    for i in range(n_out):
        out[i] = shifted_word(part, n_words + 1, shift, i) if i <= n_words + (shift >> 6) else part[n_words]


cdef inline void start_pool(Entries *out) noexcept nogil:
    """Make the next entry of an output a pool without rows."""
    out.y[out.i] = 0.0
    out.w[out.i] = 0
    out.rows[out.pool] = 0
    memset(next_pool(out), 0, (out.scale.s_words + out.scale.w_words) * sizeof(uint64_t))


cdef inline void add_to_pool(Entries *a, Entries *out) noexcept nogil:
    """Add the next entry of `a` to the next pool of `out`."""
    out.rows[out.pool] += add_exactly(a, out.scale, next_pool(out))


cdef inline void copy_entry(Entries *a, Entries *out) noexcept nogil:
    """Append the next entry of `a` to `out`."""
    out.x[out.i] = a.x[a.i]
    if a.w[a.i] == 0:
        start_pool(out)
        add_to_pool(a, out)
        out.pool += 1
    else:
        out.y[out.i] = a.y[a.i]
        out.w[out.i] = a.w[a.i]
        a.i += 1
    out.i += 1


cdef inline void merge_equal_scores(Entries *a, Entries *b, Entries *out) noexcept nogil:
    """Append the sums of the next entries of `a` and `b`."""
    cdef Tally tally = Tally(0, 0, 0)
    out.x[out.i] = a.x[a.i]
    if add_entry(&tally, a) and add_entry(&tally, b):
        write_tally(tally, &out.y[out.i], &out.w[out.i])
        a.i += 1
        b.i += 1
    else:
        start_pool(out)
        add_to_pool(a, out)
        add_to_pool(b, out)
        out.pool += 1
    out.i += 1
