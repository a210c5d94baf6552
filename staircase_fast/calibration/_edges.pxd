# Exact comparison of the slopes of edges between points of the cumulative-sum diagram.
#
# A point is a pair of sums of weights: the rows of label 0, and the rows of label 1.  An edge leads from one point to a
# later one.  Its slope is the share of label 1 between them.  Slopes are compared as odds, label 1 over label 0.
#
# Preconditions: sums never decrease, edges have a weight > 0, words are wide enough for the sum of all weights.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from staircase_fast.arithmetic._exact cimport MAX_W_WORDS, add_words, compare_words, multiply
from staircase_fast.arithmetic._rounded cimport rounded

cdef enum:
    NO_QUERY = -1

ctypedef fused width:     # of sums: uint32_t if the scale is small, else double (n_words each)
    uint32_t
    double

ctypedef struct Path:
    int n_words               # words per sum
    const uint64_t *sums      # point i: label 0, then label 1, from 2 * i * n_words on; or uint32_t sums
    const uint64_t *query     # the weight of the query

# From one point to another; `label` is that of a query between them, or NO_QUERY.
ctypedef struct Edge:
    Py_ssize_t start
    Py_ssize_t end
    int label


cdef inline bint is_equal(const Path *path, Py_ssize_t i, Py_ssize_t j, int label, width kind) noexcept nogil:
    """Whether the sums of a label are equal at two points."""
    cdef Py_ssize_t word
    cdef bint same = True
    if width is uint32_t:
        return (<const uint32_t *>path.sums)[2 * i + label] == (<const uint32_t *>path.sums)[2 * j + label]
    else:
        for word in range((2 * i + label) * path.n_words, (2 * i + label + 1) * path.n_words):
            same &= path.sums[word] == path.sums[word + 2 * (j - i) * path.n_words]
        return same


cdef inline uint64_t short_sum(const Path *path, Edge edge, int label) noexcept nogil:
    """The weight of one label on an edge, if the scale is small."""
    cdef const uint32_t *sums = <const uint32_t *>path.sums
    return sums[2 * edge.end + label] - sums[2 * edge.start + label] + (path.query[0] if edge.label == label else 0)


cdef inline double approximate_sum(const Path *path, Edge edge, int label) noexcept nogil:
    """The same in one or two words, as a double with a relative error below 2**-51."""
    cdef const uint64_t *end = path.sums + (2 * edge.end + label) * path.n_words
    cdef const uint64_t *start = path.sums + (2 * edge.start + label) * path.n_words
    cdef uint64_t low = end[0] - start[0], high = 0
    if path.n_words == 2:
        high = end[1] - start[1] - (end[0] < start[0])
    if edge.label == label:
        low += path.query[0]
        if path.n_words == 2:
            high += path.query[1] + (low < path.query[0])
    return as_double(high) * 18446744073709551616.0 + as_double(low)


cdef inline double as_double(uint64_t word) noexcept nogil:
    """Convert a word in two halves: the direct conversion branches on the first bit, which is unpredictable."""
    return <double><int64_t>(word >> 32) * 4294967296.0 + <double><uint32_t>word


cdef inline void exact_sum(const Path *path, Edge edge, int label, uint64_t *out) noexcept nogil:
    """The same in any number of words, exactly."""
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


cdef inline bint is_as_steep_exactly(const Path *path, Edge a, Edge b) noexcept nogil:
    """Whether the slope of a is >= that of b, by exact products."""
    cdef uint64_t a_one[MAX_W_WORDS]
    cdef uint64_t a_zero[MAX_W_WORDS]
    cdef uint64_t b_one[MAX_W_WORDS]
    cdef uint64_t b_zero[MAX_W_WORDS]
    cdef uint64_t product[2 * MAX_W_WORDS]
    cdef uint64_t other[2 * MAX_W_WORDS]
    exact_sum(path, a, 1, a_one)
    exact_sum(path, a, 0, a_zero)
    exact_sum(path, b, 1, b_one)
    exact_sum(path, b, 0, b_zero)
    multiply(a_one, path.n_words, b_zero, path.n_words, product)
    multiply(b_one, path.n_words, a_zero, path.n_words, other)
    return compare_words(product, other, 2 * path.n_words) >= 0


cdef inline bint is_as_steep(const Path *path, Edge a, Edge b, width kind) noexcept nogil:
    """The same, with less work if the sums are short."""
    cdef double product, other
    if width is uint32_t:
        return short_sum(path, a, 1) * short_sum(path, b, 0) >= short_sum(path, b, 1) * short_sum(path, a, 0)
    else:
        if path.n_words <= 2:
            product = approximate_sum(path, a, 1) * approximate_sum(path, b, 0)
            other = approximate_sum(path, b, 1) * approximate_sum(path, a, 0)
            if product == 0 or other == 0:
                return other == 0
            if product > other * (1 + 1e-14) or product < other * (1 - 1e-14):       # relative errors are below 2**-49
                return product > other
        return is_as_steep_exactly(path, a, b)


cdef inline double slope_of(const Path *path, Edge edge, width kind) noexcept nogil:
    """The share of label 1, rounded to nearest."""
    cdef uint64_t one[MAX_W_WORDS]
    cdef uint64_t both[MAX_W_WORDS]
    if width is uint32_t:
        return <double>short_sum(path, edge, 1) / <double>(short_sum(path, edge, 0) + short_sum(path, edge, 1))
    else:
        one[0] = both[0] = 0                 # the compiler does not know that n_words > 0
        exact_sum(path, edge, 1, one)
        exact_sum(path, edge, 0, both)
        add_words(both, one, path.n_words)
        return rounded(one, path.n_words, both, path.n_words, 0)
