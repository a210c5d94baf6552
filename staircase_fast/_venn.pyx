"""Both fits that a Venn-Abers predictor asks for, at every place where a query can be.

Points P_0, .., P_k: the exact sums of weights, of label 0 and of label 1, of the first i scores.  A query stands at a
score or in a gap between two, so that there are 2k + 1 places.  The isotonic fit with a query of weight c added is the
slope of the lower hull of

    P_0, .., P_A                        what is below the query
    P_B + c, .., P_k + c                what is above it, moved by the query's own weight: along label 0, or label 1

with B = A in a gap and B = A + 1 at a score, where the query is pooled with the rows of that score.  Its value is the
slope of the one line that touches the hulls of both parts from below.

That of label 0 is the same at a score and in the gap behind it: a line from the last point below, which is new there,
would be level.  That of label 1 is the same at a score and in the gap before it, as a line to the first point above
would be as steep as can be.  So each changes at one place per score.

From place to place, A and B grow by turns.  Then the touching line gets steeper, and its ends never move back:

    below      the hull is a stack: a new point removes some from its top.  If that is where the line touched, it
               touches the new point now.
    above      the hull from any point on is found by following `after`, which one scan from the right fills.
    the line   an end moves on while the line is steeper than the lesser of the two edges that follow its ends.

So all places together take linear time (the idea is that of Vovk, Petej and Fedorova, 2015, who look at scores; here
gaps are places, too).  Slopes are compared as odds, label 1 over label 0: rows of one label move along one axis, and
ties among them are seen at once.  All sums are integers, and nothing is rounded but the result.

Kernels here assume clean input: n >= 1, scores ascending and no NaN, labels 0 or 1, weights finite and > 0.
"""

from libc.math cimport INFINITY, nextafter
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast._blocks cimport narrow_mean
from staircase_fast._cells cimport floating
from staircase_fast._exact cimport (
    MAX_W_WORDS, Scale, add_double, add_words, compare_words, multiply, multiply_words, unpacked
)
from staircase_fast._rounded cimport leading, power_of_two, rounded

cdef enum:
    NO_QUERY = -1

ctypedef struct Path:
    bint narrow           # a word is enough for a sum, with its sign
    int n_words           # of a sum
    const uint64_t *sums  # of point i: label 0, then label 1, from 2 * i * n_words on
    const uint64_t *query     # the query's weight

# From one point to another; with a query of some label between them, or NO_QUERY.
ctypedef struct Edge:
    Py_ssize_t start
    Py_ssize_t end
    int label

ctypedef struct Line:
    int label             # of the query
    Py_ssize_t top        # where in the stack of the hull below it touches that
    Py_ssize_t end        # the point where it touches the hull above
    double value


def work_size(Py_ssize_t n, int n_words):
    """Words that `fit` of n rows wants for its work, where the sum of weights has `n_words` of them."""
    return 2 * (n + 1) * n_words + n + 2


def fit(
    const floating[::1] scores not None,       # IN  ascending
    const uint8_t[::1] labels not None,        # IN
    const double[::1] weights not None,        # IN  or empty: all are 1
    double query_weight,                       # IN
    object scale not None,                     # IN  exact.Scale for the rows and the query
    uint64_t[::1] work not None,               # work: work_size(n, scale.w_words)
    double[::1] left not None,                 # OUT where steps start, the first at -inf; room for 2n + 1
    double[:, ::1] values not None,            # OUT the values of the query's label 0 and label 1; the same room
):
    """Steps of scores, from the least double on that has other values than those below it; return how many."""
    cdef Scale s = unpacked(scale)
    cdef Py_ssize_t n = scores.shape[0], k, n_steps
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef uint64_t query[MAX_W_WORDS]
    cdef uint64_t *sums = &work[0]
    cdef Py_ssize_t *hull = <Py_ssize_t *>(sums + 2 * (n + 1) * s.w_words)
    cdef Path path = Path(s.narrow, s.w_words, sums, &query[0])
    with nogil:
        memset(query, 0, sizeof(query))
        add_double(query, s.w_words, query_weight, s.w_unit)
        k = sum_up(s, &scores[0], &labels[0], w, n, sums)
        # The stack of points below takes one entry per point at most: the links of points above lie just behind it.
        link_hulls(&path, k, hull + 1)
        n_steps = follow_places(&path, k, &scores[0], n, hull, &left[0], &values[0, 0])
    return n_steps


cdef inline Py_ssize_t sum_up(
    Scale scale, const floating *scores, const uint8_t *labels, const double *weights, Py_ssize_t n, uint64_t *sums
) noexcept nogil:
    """The sums of all points; return how many scores there are."""
    cdef Py_ssize_t i, k = 0
    cdef int n_words = scale.w_words
    cdef uint64_t one[MAX_W_WORDS]
    cdef uint64_t *point = sums
    memset(one, 0, sizeof(one))
    add_double(one, n_words, 1.0, scale.w_unit)
    memset(sums, 0, 2 * n_words * sizeof(uint64_t))
    for i in range(n):
        if i == 0 or scores[i] != scores[i - 1]:
            k += 1
            point += 2 * n_words
            memcpy(point, point - 2 * n_words, 2 * n_words * sizeof(uint64_t))
        if weights == NULL:
            add_words(point + labels[i] * n_words, one, n_words)
        else:
            add_double(point + labels[i] * n_words, n_words, weights[i], scale.w_unit)
    return k


cdef inline void link_hulls(const Path *path, Py_ssize_t k, Py_ssize_t *after) noexcept nogil:
    """after[i]: the point that follows i on the lower hull of i, .., k."""
    cdef Py_ssize_t i, j
    for i in range(k - 1, -1, -1):
        j = i + 1
        while j < k and reaches(path, Edge(i, j, NO_QUERY), Edge(j, after[j], NO_QUERY)):
            j = after[j]
        after[i] = j


cdef inline Py_ssize_t follow_places(
    const Path *path, Py_ssize_t k, const floating *scores, Py_ssize_t n, Py_ssize_t *hull, double *left, double *values
) noexcept nogil:
    """Steps; return how many."""
    cdef const Py_ssize_t *after = hull + 1
    cdef Py_ssize_t i, row = 0, top = 0, n_steps = 0
    cdef Line zero = Line(0, 0, 0, 0.0), one = Line(1, 0, 0, 0.0)
    cdef double score = -INFINITY
    hull[0] = 0
    settle(path, hull, top, after, 0, k, &one)
    if scores[0] > score:
        n_steps = add_step(zero, one, score, n_steps, left, values)
    for i in range(1, k + 1):
        # at the score: the points above begin with this one
        score = scores[row] + 0.0                         # -0.0 becomes the 0.0 it equals
        while row < n and scores[row] == score:
            row += 1
        settle(path, hull, top, after, i, k, &zero)
        n_steps = add_step(zero, one, score, n_steps, left, values)

        # in the gap behind it: this point is one of those below, too
        while top > 0 and reaches(path, Edge(hull[top - 1], hull[top], NO_QUERY), Edge(hull[top], i, NO_QUERY)):
            top -= 1
        top += 1
        hull[top] = i
        settle(path, hull, top, after, i, k, &one)
        if n_steps == 0 or one.value != values[2 * n_steps - 1]:
            score = nextafter(score, INFINITY) + 0.0
            if row < n and score < scores[row] or row == n and score > scores[n - 1]:     # else no double is in the gap
                n_steps = add_step(zero, one, score, n_steps, left, values)
    return n_steps


cdef inline void settle(
    const Path *path, const Py_ssize_t *hull, Py_ssize_t top, const Py_ssize_t *after, Py_ssize_t first, Py_ssize_t k,
    Line *line
) noexcept nogil:
    """Move the ends of a line on until it touches both hulls, where points above begin with the first, and one point
    was added to those below since it last did.

    The line that does has slope m, say, and both ends are still on or before it.  If both edges that follow have slopes
    >= m, this is the line.  If the lesser, of slope t < m, follows the end below, that one must move.  And then the
    line between the ends is steeper than t: seen along slope m, the end below is less than (m - t) times the distance
    of the ends above the line to be, and the end above is not below it.
    """
    cdef Py_ssize_t start, end
    cdef Edge edge
    cdef bint below
    if line.end >= first and line.top + 1 < top:          # neither the ends nor what follows them is new
        return
    line.top = min(line.top, top)
    start = hull[line.top]
    end = max(line.end, first)
    while True:
        below = line.top < top
        if below:
            edge = Edge(start, hull[line.top + 1], NO_QUERY)
            below = end == k or reaches(path, Edge(end, after[end], NO_QUERY), edge)
        elif end == k:
            break
        if not below:
            edge = Edge(end, after[end], NO_QUERY)
        if reaches(path, edge, Edge(start, end, line.label)):
            break
        if below:
            line.top += 1
            start = hull[line.top]
        else:
            end = after[end]
    line.end = end
    line.value = slope_of(path, Edge(start, end, line.label))


cdef inline Py_ssize_t add_step(
    Line zero, Line one, double score, Py_ssize_t n_steps, double *left, double *values
) noexcept nogil:
    """A step that starts at this score, if its values differ from those before; return how many there are."""
    cdef double *last = values + 2 * (n_steps - 1)
    if n_steps and last[0] == zero.value and last[1] == one.value:
        return n_steps
    left[n_steps] = score
    last[2] = zero.value
    last[3] = one.value
    return n_steps + 1


# Slopes of edges, exactly.

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


cdef inline bint reaches(const Path *path, Edge a, Edge b) noexcept nogil:
    """Whether the slope of a is >= that of b."""
    cdef uint64_t low, high, other_low, other_high
    cdef double product, other
    if path.narrow:
        low = multiply_words(narrow_sum(path, a, 1), narrow_sum(path, b, 0), &high)
        other_low = multiply_words(narrow_sum(path, b, 1), narrow_sum(path, a, 0), &other_high)
        return high > other_high or (high == other_high and low >= other_low)
    if path.n_words <= 2:
        product = near_sum(path, a, 1) * near_sum(path, b, 0)
        other = near_sum(path, b, 1) * near_sum(path, a, 0)
        if product == 0 or other == 0:
            return other == 0
        if product > other * (1 + 1e-14) or product < other * (1 - 1e-14):
            return product > other
    return wide_reaches(path, a, b)


cdef bint wide_reaches(const Path *path, Edge a, Edge b) noexcept nogil:
    """The same for any size: by doubles where these can tell, else by products."""
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


cdef inline double slope_of(const Path *path, Edge edge) noexcept nogil:
    """The share of label 1, rounded to nearest."""
    cdef uint64_t one[MAX_W_WORDS]
    cdef uint64_t both[MAX_W_WORDS]
    if path.narrow:
        return narrow_mean(
            <int64_t>narrow_sum(path, edge, 1), <int64_t>(narrow_sum(path, edge, 0) + narrow_sum(path, edge, 1))
        )
    one[0] = both[0] = 0                     # to the compiler, there may be no words
    wide_sum(path, edge, 1, one)
    wide_sum(path, edge, 0, both)
    add_words(both, one, path.n_words)
    return rounded(one, path.n_words, both, path.n_words, 0)
