"""Venn-Abers: both isotonic fits with the query added, for every possible query, in linear time.

Let P_i be the exact sums of weights (label 0, label 1) of the first i of k distinct scores.  A query lies at a score or
in a gap, so there are 2k + 1 places.  The isotonic fit with a query of weight c is the slope of the lower hull of

    P_0, .., P_A                        the points below the query
    P_B + c, .., P_k + c                the points above it, moved by c along the axis of the query's label

with B = A in a gap, and B = A + 1 at a score, where the query is pooled with the rows of that score.  The value at the
query is the slope of the common tangent: the line that touches the hulls of both parts from below.

For label 0 the value at a score equals the value in the gap after it, because a line from the new last point below
would be horizontal.  For label 1 the value at a score equals the value in the gap before it, because a line to the
first point above would be vertical.  So each value changes at one place per score.

From place to place, A and B grow alternately, the tangent gets steeper, and its ends never move back:

    below      the hull is a stack.  A new point removes points from the top.  If the tangent touched one of these, it
               now touches the new point.
    above      following `after`, which one scan from the right fills, gives the hull from any point on.
    tangent    an end moves on while the line is steeper than the flatter of the two edges that follow its ends.

This extends the algorithm of Vovk, Petej and Fedorova (2015), which covers the scores, to the gaps.  Sums are integers
and slopes are compared exactly (_edges.pxd); only the result is rounded.

Preconditions: n >= 1, scores ascending without NaN, labels 0 or 1, weights finite and > 0.  If scores or labels change
during the call, the steps are wrong, but every index stays within its array.
"""

from libc.math cimport INFINITY, nextafter
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._exact cimport MAX_W_WORDS, Scale, add_double, add_words, unpacked
from staircase_fast.arithmetic._types cimport floating
from staircase_fast.calibration._edges cimport NO_QUERY, Edge, Path, is_equal, is_as_steep, slope_of, width

ctypedef struct Tangent:
    int label             # of the query
    Py_ssize_t top        # position in the stack of the point where it touches the hull below
    Py_ssize_t end        # the point where it touches the hull above
    double value          # its slope


def work_size(Py_ssize_t n, int n_words):
    """The number of words of work space for `fit` of n rows, if a sum of weights has `n_words` words."""
    return 2 * (n + 1) * n_words + n + 2


def fit(
    const floating[::1] scores not None,       # IN  ascending
    const uint8_t[::1] labels not None,        # IN
    const double[::1] weights not None,        # IN  or empty: all are 1
    double query_weight,                       # IN
    object scale not None,                     # IN  exact.Scale for the rows and the query
    uint64_t[::1] work not None,               # work: work_size(n, scale.w_words)
    double[::1] left not None,                 # OUT starts of steps, the first is -inf; room for 2n + 1
    double[:, ::1] values not None,            # OUT p0 and p1 of each step; the same room
):
    """Compute the steps; each starts at the least double with its values.  Return the number of steps."""
    cdef Scale s = unpacked(scale)
    cdef Py_ssize_t n = scores.shape[0], k, n_steps
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef uint64_t query[MAX_W_WORDS]
    cdef uint64_t *sums = &work[0]
    cdef Py_ssize_t *hull = <Py_ssize_t *>(sums + (n + 1) * (1 if s.small else 2 * s.w_words))
    cdef Path path = Path(s.w_words, sums, &query[0])
    with nogil:
        memset(query, 0, sizeof(query))
        add_double(query, s.w_words, query_weight, s.w_unit)
        # The stack of points below has at most one entry per point: the links of points above are stored after it.
        if s.small:
            k = fill_sums(s, &scores[0], &labels[0], w, n, <uint32_t>0, sums)
            link_hulls(&path, k, <uint32_t>0, hull + 1)
            n_steps = find_steps(&path, k, &scores[0], n, <uint32_t>0, hull, &left[0], &values[0, 0])
        else:
            k = fill_sums(s, &scores[0], &labels[0], w, n, <double>0, sums)
            link_hulls(&path, k, <double>0, hull + 1)
            n_steps = find_steps(&path, k, &scores[0], n, <double>0, hull, &left[0], &values[0, 0])
    return n_steps


cdef inline Py_ssize_t fill_sums(
    Scale scale, const floating *scores, const uint8_t *labels, const double *weights, Py_ssize_t n, width kind,
    uint64_t *sums
) noexcept nogil:
    """Fill the sums of all points; return the number of distinct scores."""
    cdef Py_ssize_t i, k = 0
    cdef int n_words = scale.w_words, label
    cdef uint64_t one[MAX_W_WORDS]
    cdef uint64_t *point = sums
    cdef uint32_t *shorts = <uint32_t *>sums
    memset(one, 0, sizeof(one))
    add_double(one, n_words, 1.0, scale.w_unit)
    memset(sums, 0, 2 * n_words * sizeof(uint64_t))
    for i in range(n):
        label = labels[i] & 1
        if i == 0 or scores[i] != scores[i - 1]:
            k += 1
            if width is uint32_t:
                shorts[2 * k] = shorts[2 * k - 2]
                shorts[2 * k + 1] = shorts[2 * k - 1]
            else:
                memcpy(point + 2 * n_words, point, 2 * n_words * sizeof(uint64_t))
                point += 2 * n_words
        if width is uint32_t:
            shorts[2 * k + label] += 1 if weights == NULL else <uint32_t>weights[i]
        elif weights == NULL:
            add_words(point + label * n_words, one, n_words)
        else:
            add_double(point + label * n_words, n_words, weights[i], scale.w_unit)
    return k


cdef inline void link_hulls(const Path *path, Py_ssize_t k, width kind, Py_ssize_t *after) noexcept nogil:
    """Fill after[i], the point that follows i on the lower hull of i, .., k."""
    cdef Py_ssize_t i, j
    after[k] = k
    for i in range(k - 1, -1, -1):
        j = i + 1
        if is_equal(path, i, j, 1, kind):                  # horizontal: no edge is flatter
            after[i] = after[j] if is_equal(path, j, after[j], 1, kind) else j
            continue
        if is_equal(path, i, j, 0, kind):                  # vertical: no edge is steeper
            j = after[j]
        while j < k and is_as_steep(path, Edge(i, j, NO_QUERY), Edge(j, after[j], NO_QUERY), kind):
            j = after[j]
        after[i] = j


cdef inline Py_ssize_t find_steps(
    const Path *path, Py_ssize_t k, const floating *scores, Py_ssize_t n, width kind, Py_ssize_t *hull, double *left,
    double *values
) noexcept nogil:
    """Visit all places and fill the steps; return their number."""
    cdef const Py_ssize_t *after = hull + 1
    cdef Py_ssize_t i, row = 0, top = 0, n_steps = 0
    cdef Tangent zero = Tangent(0, 0, 0, 0.0), one = Tangent(1, 0, 0, 0.0)
    cdef double score = -INFINITY
    cdef bint pushed = False
    hull[0] = 0
    move_tangent(path, hull, top, after, 0, k, kind, &one)
    if scores[0] > score:
        n_steps = add_step(zero, one, score, n_steps, left, values)
    for i in range(1, k + 1):
        # At the score: the points above begin with this one.
        score = scores[min(row, n - 1)] + 0.0             # -0.0 becomes the 0.0 it equals
        while row < n and scores[row] == score:
            row += 1
        if zero.end < i or (pushed and zero.top + 1 >= top):
            move_tangent(path, hull, top, after, i, k, kind, &zero)
        n_steps = add_step(zero, one, score, n_steps, left, values)

        # In the gap after it: this point is also the last one below, unless it lies vertically above the one before,
        # from which lines are steeper.
        pushed = not is_equal(path, i - 1, i, 0, kind)
        if pushed:
            if top > 0 and hull[top] == i - 1 and is_equal(path, i - 1, i, 1, kind):
                top -= 1
            while top > 0 and is_as_steep(
                path, Edge(hull[top - 1], hull[top], NO_QUERY), Edge(hull[top], i, NO_QUERY), kind
            ):
                top -= 1
            top += 1
            hull[top] = i
        if one.end < i or (pushed and one.top + 1 >= top):
            move_tangent(path, hull, top, after, i, k, kind, &one)
        if one.value != values[2 * n_steps - 1]:
            score = nextafter(score, INFINITY) + 0.0
            if row < n and score < scores[row] or row == n and score > scores[n - 1]:     # a double lies in the gap
                n_steps = add_step(zero, one, score, n_steps, left, values)
    return n_steps


cdef inline void move_tangent(
    const Path *path, const Py_ssize_t *hull, Py_ssize_t top, const Py_ssize_t *after, Py_ssize_t first, Py_ssize_t k,
    width kind, Tangent *tangent
) noexcept nogil:
    """Move the ends of a tangent forward until it touches both hulls; the points above begin with `first`.

    Let m be the slope of the tangent.  Both ends are still at or before the points where it touches.  If both edges
    that follow have slopes >= m, the ends are final.  Otherwise the end followed by the flatter edge, of slope t < m,
    must move.  The line between the ends is then steeper than t: relative to the tangent, the end below lies less than
    (m - t) times the distance of the ends above it, and the end above does not lie below it.
    """
    cdef Py_ssize_t start, end
    cdef Edge edge
    cdef bint below
    tangent.top = min(tangent.top, top)
    start = hull[tangent.top]
    end = max(tangent.end, first)
    while True:
        below = tangent.top < top
        if below:
            edge = Edge(start, hull[tangent.top + 1], NO_QUERY)
            below = end == k or is_as_steep(path, Edge(end, after[end], NO_QUERY), edge, kind)
        elif end == k:
            break
        if not below:
            edge = Edge(end, after[end], NO_QUERY)
        if is_as_steep(path, edge, Edge(start, end, tangent.label), kind):
            break
        if below:
            tangent.top += 1
            start = hull[tangent.top]
        else:
            end = after[end]
    tangent.end = end
    tangent.value = slope_of(path, Edge(start, end, tangent.label), kind)


cdef inline Py_ssize_t add_step(
    Tangent zero, Tangent one, double score, Py_ssize_t n_steps, double *left, double *values
) noexcept nogil:
    """Add a step that starts at this score, if its values are new; return the number of steps."""
    if n_steps and values[2 * n_steps - 2] == zero.value and values[2 * n_steps - 1] == one.value:
        return n_steps
    left[n_steps] = score
    values[2 * n_steps] = zero.value
    values[2 * n_steps + 1] = one.value
    return n_steps + 1
