# Exact sums: wide integers that are never rounded.
#
# Every finite double is an integer times a power of two.  So the targets, their products with the weights, and all sums
# of these are integers in a common unit.  A block has two such sums, S = sum(w*y) and W = sum(w).  Each is a
# little-endian array of 64-bit words in two's complement, as wide as the data needs (`_scale.pxd`).
#
#     one sample     y = m_y * 2**q_y,  w = m_w * 2**q_w,  with m < 2**64
#     unit of S      2**(y_unit + w_unit)
#     unit of W      2**w_unit
#
# Why not double-double sums?  They are exact for most data and wrong for the rest: a comparison that depends on the
# last bit of a rounded sum can put samples on the wrong step.  Integers are exact for all data, and their sum does not
# depend on the order of rows, on chunks or on threads.  They cannot overflow here.  Labels and counts need one word.
#
# Preconditions: finite numbers, a Scale made for them, buffers of the Scale's size.

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._types cimport bits_of, number

cdef extern from *:
    """
    #if defined(__SIZEOF_INT128__)
    static inline uint64_t staircase_multiply(uint64_t a, uint64_t b, uint64_t *high) {
        unsigned __int128 product = (unsigned __int128)a * b;
        *high = (uint64_t)(product >> 64);
        return (uint64_t)product;
    }
    #elif defined(_M_X64)
    #include <intrin.h>
    static inline uint64_t staircase_multiply(uint64_t a, uint64_t b, uint64_t *high) {
        return _umul128(a, b, high);
    }
    #else
    static inline uint64_t staircase_multiply(uint64_t a, uint64_t b, uint64_t *high) {
        uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
        uint64_t low = a0 * b0, mid = a1 * b0 + (low >> 32), cross = a0 * b1 + (uint32_t)mid;
        *high = a1 * b1 + (mid >> 32) + (cross >> 32);
        return (cross << 32) | (uint32_t)low;
    }
    #endif
    """
    uint64_t multiply_words "staircase_multiply" (uint64_t a, uint64_t b, uint64_t *high) noexcept nogil

# The widest sums: products reach from 2**-2148 to 2**2048, up to 2**63 of them are added, and there is a sign.
cdef enum:
    MAX_S_WORDS = 67
    MAX_W_WORDS = 34
    MAX_WORDS = MAX_S_WORDS + MAX_W_WORDS

# Units and widths of exact sums.  Python has the same fields in `exact.Scale`; they are always passed by name.
ctypedef struct Scale:
    int y_unit            # targets are multiples of 2**y_unit
    int w_unit            # weights are multiples of 2**w_unit
    int s_words           # words of S
    int w_words           # words of W
    bint narrow           # integer targets and weights whose sums fit int64: no shifts, exact comparisons at once
    bint small            # narrow, and products of two sums fit int64, too
    bint tame             # sums and products of two sums stay well within the range of doubles
    double greatest       # largest magnitude of a target
    double cut            # splits products into parts (see _row_sums.pxd); 0 if the parts would not be short enough
    double cut_weight     # splits weights


cdef inline Scale unpacked(object scale) except *:
    """An exact.Scale as a struct; Cython reads the fields by name."""
    return scale._asdict()


ctypedef struct Dyadic:
    uint64_t m        # value = +-m * 2**q
    int q
    bint negative


cdef inline Dyadic dyadic(number value, int unit) noexcept nogil:
    """`value` as an integer times a power of two, with an exponent of at least `unit`."""
    cdef Dyadic d
    cdef uint64_t bits
    d.negative = value < 0
    if number is float or number is double:
        bits = bits_of(<double>value)
        d.m = bits & ((<uint64_t>1 << 52) - 1)
        d.q = <int>((bits >> 52) & 0x7FF)
        if d.q:
            d.m |= <uint64_t>1 << 52
            d.q -= 1075
        else:
            d.q = -1074
    else:
        d.m = (~<uint64_t>value) + 1 if d.negative else <uint64_t>value
        d.q = 0
    if d.q < unit:                           # shifts out zeros only: every value is a multiple of 2**unit
        d.m = d.m >> (unit - d.q) if unit - d.q < 64 else 0
        d.q = unit
    return d


cdef inline void add_shifted(
    uint64_t *words, int n_words, uint64_t low, uint64_t high, int shift, bint negative
) noexcept nogil:
    """words += +-(high:low << shift)."""
    cdef int at = shift >> 6, r = shift & 63, i
    cdef uint64_t part[3]
    cdef uint64_t before, carry = 0
    part[0] = low << r
    part[1] = (high << r) | (low >> (64 - r)) if r else high
    part[2] = high >> (64 - r) if r else 0
    for i in range(at, n_words):
        before = words[i]
        if i - at >= 3:
            if not carry:
                break
            words[i] = before - carry if negative else before + carry
            carry = before < carry if negative else words[i] < carry
        elif negative:
            words[i] = before - part[i - at] - carry
            carry = before < part[i - at] or (carry and before == part[i - at])
        else:
            words[i] = before + part[i - at] + carry
            carry = words[i] < before or (carry and words[i] == before)


cdef inline void add_sample(Scale scale, uint64_t *sums, number y, double w) noexcept nogil:
    """S += w*y and W += w for one sample."""
    cdef Dyadic target, weight
    cdef uint64_t low, high
    target = dyadic(y, scale.y_unit)
    weight = dyadic(w, scale.w_unit)
    low = multiply_words(target.m, weight.m, &high)
    add_shifted(sums, scale.s_words, low, high, target.q + weight.q - scale.y_unit - scale.w_unit, target.negative)
    add_shifted(sums + scale.s_words, scale.w_words, weight.m, 0, weight.q - scale.w_unit, False)


cdef inline void add_double(uint64_t *words, int n_words, double value, int unit) noexcept nogil:
    """words += value / 2**unit; the quotient must be an integer."""
    cdef Dyadic d = dyadic(value, unit)
    add_shifted(words, n_words, d.m, 0, d.q - unit, d.negative)


cdef inline void add_words(uint64_t *total, const uint64_t *term, int n_words) noexcept nogil:
    cdef uint64_t sum_, carry = 0
    cdef int i
    for i in range(n_words):
        sum_ = total[i] + term[i]
        total[i] = sum_ + carry
        carry = sum_ < term[i] or total[i] < sum_


cdef inline void add_sums(Scale scale, uint64_t *total, const uint64_t *term) noexcept nogil:
    add_words(total, term, scale.s_words)
    add_words(total + scale.s_words, term + scale.s_words, scale.w_words)


cdef inline bint is_negative(const uint64_t *words, int n_words) noexcept nogil:
    return <int64_t>words[n_words - 1] < 0


cdef inline void magnitude(const uint64_t *words, int n_words, uint64_t *out) noexcept nogil:
    cdef uint64_t carry = is_negative(words, n_words), flip = -carry
    cdef int i
    for i in range(n_words):
        out[i] = (words[i] ^ flip) + carry
        carry = carry and out[i] == 0


cdef inline int compare_words(const uint64_t *a, const uint64_t *b, int n_words) noexcept nogil:
    cdef int i
    for i in range(n_words - 1, -1, -1):
        if a[i] != b[i]:
            return 1 if a[i] > b[i] else -1
    return 0


cdef inline void multiply(const uint64_t *a, int n_a, const uint64_t *b, int n_b, uint64_t *out) noexcept nogil:
    """out[0 : n_a + n_b] = a * b."""
    cdef uint64_t low, high, carry
    cdef int i, j
    memset(out, 0, (n_a + n_b) * sizeof(uint64_t))
    for i in range(n_a):
        carry = 0
        for j in range(n_b):
            low = multiply_words(a[i], b[j], &high)
            low += carry
            high += low < carry
            out[i + j] += low
            carry = high + (out[i + j] < low)
        out[i + n_b] = carry


cdef inline int exact_order(Scale scale, const uint64_t *a, const uint64_t *b) noexcept nogil:
    """The sign of mean(a) - mean(b), that is, of S_a * W_b - S_b * W_a."""
    cdef bint a_negative = is_negative(a, scale.s_words), b_negative = is_negative(b, scale.s_words)
    cdef int n_words = scale.s_words + scale.w_words, order
    cdef uint64_t s[MAX_S_WORDS]
    cdef uint64_t left[MAX_WORDS]
    cdef uint64_t right[MAX_WORDS]
    if a_negative != b_negative:
        return -1 if a_negative else 1
    magnitude(a, scale.s_words, s)
    multiply(s, scale.s_words, b + scale.s_words, scale.w_words, left)
    magnitude(b, scale.s_words, s)
    multiply(s, scale.s_words, a + scale.s_words, scale.w_words, right)
    order = compare_words(left, right, n_words)
    return -order if a_negative else order
