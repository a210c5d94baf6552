# Edges between points of a path, and which of two is steeper, exactly.
#
# A point is a pair of sums of weights: that of rows of label 0, and that of rows of label 1.  An edge leads from one to
# a later one, and its slope is the share of label 1 in what lies between.  Slopes are compared as odds, label 1 over
# label 0: rows of one label move along one axis, and ties among them are seen at once.
#
# Assumed of the caller: sums that never decrease, edges with a weight > 0, words wide enough for all weights together.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from staircase_fast.arithmetic._exact cimport MAX_W_WORDS, add_words, compare_words, multiply, multiply_words
from staircase_fast.arithmetic._rounded cimport leading, narrow_mean, power_of_two, rounded

cdef enum:
    NO_QUERY = -1

ctypedef fused width:     # of sums: one word for small integers, n_words for all else
    int64_t
    double

ctypedef struct Path:
    int n_words               # of a sum
    const uint64_t *sums      # of point i: label 0, then label 1, from 2 * i * n_words on
    const uint64_t *query     # the query's weight

# From one point to another; with a query of some label between them, or NO_QUERY.
ctypedef struct Edge:
    Py_ssize_t start
    Py_ssize_t end
    int label


cdef inline bint is_same(const Path *path, Py_ssize_t i, Py_ssize_t j, int label, width kind) noexcept nogil:
    """Whether two points have the same sum of a label."""
    cdef int n_words = 1 if width is int64_t else path.n_words, word
    cdef bint same = True
    for word in range(n_words):
        same &= path.sums[(2 * i + label) * n_words + word] == path.sums[(2 * j + label) * n_words + word]
    return same


cdef inline uint64_t narrow_sum(const Path *path, Edge edge, int label) noexcept nogil:
    """The weight of one label on an edge."""
    cdef uint64_t sum_ = path.sums[2 * edge.end + label] - path.sums[2 * edge.start + label]
    return sum_ + (path.query[0] if edge.label == label else 0)


cdef inline double near_sum(const Path *path, Edge edge, int label) noexcept nogil:
    """The same, of one or two words, off by less than 2**-51 of it."""
    cdef const uint64_t *end = path.sums + (2 * edge.end + label) * path.n_words
    cdef const uint64_t *start = path.sums + (2 * edge.start + label) * path.n_words
    cdef uint64_t low = end[0] - start[0], high = 0
    if path.n_words == 2:
        high = end[1] - start[1] - (end[0] < start[0])
    if edge.label == label:
        low += path.query[0]
        if path.n_words == 2:
            high += path.query[1] + (low < path.query[0])
    return real(high) * 18446744073709551616.0 + real(low)


cdef inline double real(uint64_t word) noexcept nogil:
    """Half words are doubles without a branch on their first bit, which no processor foresees."""
    return <double><int64_t>(word >> 32) * 4294967296.0 + <double><uint32_t>word


cdef inline void wide_sum(const Path *path, Edge edge, int label, uint64_t *out) noexcept nogil:
    """The same, of any size."""
    cdef const uint64_t *end = path.sums + (2 * edge.end + label) * path.n_words
    cdef const uint64_t *start = path.sums + (2 * edge.start + label) * path.n_words
    cdef uint64_t borrow = 0, difference
    cdef int i
    for i in range(path.n_words):
        difference = end[i] - start[i]
        out[i] = difference - borrow
        borrow = end[i] < start[i] or difference < borrow
    if edge.label == label:
        add_words(out, path.query, path.n_words)


cdef inline bint wide_reaches(const Path *path, Edge a, Edge b) noexcept nogil:
    """Whether the slope of a is >= that of b: by doubles where these can tell, else by products of any size."""
    cdef uint64_t a_one[MAX_W_WORDS]
    cdef uint64_t a_zero[MAX_W_WORDS]
    cdef uint64_t b_one[MAX_W_WORDS]
    cdef uint64_t b_zero[MAX_W_WORDS]
    cdef uint64_t one_way[2 * MAX_W_WORDS]
    cdef uint64_t other_way[2 * MAX_W_WORDS]
    cdef int n_words = path.n_words
    cdef int up[2]
    cdef int down[2]
    cdef double product, other
    wide_sum(path, a, 1, a_one)
    wide_sum(path, a, 0, a_zero)
    wide_sum(path, b, 1, b_one)
    wide_sum(path, b, 0, b_zero)
    product = leading(a_one, n_words, &up[0]) * leading(b_zero, n_words, &up[1])
    other = leading(b_one, n_words, &down[0]) * leading(a_zero, n_words, &down[1])
    if product == 0 or other == 0:
        return other == 0
    up[0] += up[1] - down[0] - down[1]
    if not -192 < up[0] < 192:               # both products are below 2**129, and not below 1
        return up[0] > 0
    product *= power_of_two(up[0])
    if product > other * (1 + 1e-14) or product < other * (1 - 1e-14):       # each is off by less than 2**-49 of it
        return product > other
    multiply(a_one, n_words, b_zero, n_words, one_way)
    multiply(b_one, n_words, a_zero, n_words, other_way)
    return compare_words(one_way, other_way, 2 * n_words) >= 0


cdef inline bint reaches(const Path *path, Edge a, Edge b, width kind) noexcept nogil:
    """The same; by less work for short sums."""
    cdef uint64_t low, high, other_low, other_high
    cdef double product, other
    if width is int64_t:
        low = multiply_words(narrow_sum(path, a, 1), narrow_sum(path, b, 0), &high)
        other_low = multiply_words(narrow_sum(path, b, 1), narrow_sum(path, a, 0), &other_high)
        return high > other_high or (high == other_high and low >= other_low)
    else:
        if path.n_words <= 2:
            product = near_sum(path, a, 1) * near_sum(path, b, 0)
            other = near_sum(path, b, 1) * near_sum(path, a, 0)
            if product == 0 or other == 0:
                return other == 0
            if product > other * (1 + 1e-14) or product < other * (1 - 1e-14):
                return product > other
        return wide_reaches(path, a, b)


cdef inline double slope_of(const Path *path, Edge edge, width kind) noexcept nogil:
    """The share of label 1, rounded to nearest."""
    cdef uint64_t one[MAX_W_WORDS]
    cdef uint64_t both[MAX_W_WORDS]
    if width is int64_t:
        return narrow_mean(
            <int64_t>narrow_sum(path, edge, 1), <int64_t>(narrow_sum(path, edge, 0) + narrow_sum(path, edge, 1))
        )
    else:
        one[0] = both[0] = 0                 # to the compiler, there may be no words
        wide_sum(path, edge, 1, one)
        wide_sum(path, edge, 0, both)
        add_words(both, one, path.n_words)
        return rounded(one, path.n_words, both, path.n_words, 0)
