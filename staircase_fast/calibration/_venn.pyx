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
gaps are places, too).  Sums are integers and slopes are compared exactly (_edges.pxd): nothing is rounded but the
result.

Kernels here assume clean input: n >= 1, scores ascending and no NaN, labels 0 or 1, weights finite and > 0.  Scores are
read twice: if they change meanwhile, or labels do, the steps are wrong, but every index stays within its array.
"""

from libc.math cimport INFINITY, nextafter
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._exact cimport MAX_W_WORDS, Scale, add_double, add_words, unpacked
from staircase_fast.arithmetic._types cimport floating
from staircase_fast.calibration._edges cimport NO_QUERY, Edge, Path, is_same, reaches, slope_of, width

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
    cdef Path path = Path(s.w_words, sums, &query[0])
    with nogil:
        memset(query, 0, sizeof(query))
        add_double(query, s.w_words, query_weight, s.w_unit)
        # The stack of points below takes one entry per point at most: the links of points above lie just behind it.
        if s.narrow:
            k = sum_up(s, &scores[0], &labels[0], w, n, <int64_t>0, sums)
            link_hulls(&path, k, <int64_t>0, hull + 1)
            n_steps = follow_places(&path, k, &scores[0], n, <int64_t>0, hull, &left[0], &values[0, 0])
        else:
            k = sum_up(s, &scores[0], &labels[0], w, n, <double>0, sums)
            link_hulls(&path, k, <double>0, hull + 1)
            n_steps = follow_places(&path, k, &scores[0], n, <double>0, hull, &left[0], &values[0, 0])
    return n_steps


cdef inline Py_ssize_t sum_up(
    Scale scale, const floating *scores, const uint8_t *labels, const double *weights, Py_ssize_t n, width kind,
    uint64_t *sums
) noexcept nogil:
    """The sums of all points; return how many scores there are."""
    cdef Py_ssize_t i, k = 0
    cdef int n_words = 1 if width is int64_t else scale.w_words, word, label
    cdef uint64_t one[MAX_W_WORDS]
    cdef uint64_t *point = sums
    memset(one, 0, sizeof(one))
    add_double(one, n_words, 1.0, scale.w_unit)
    memset(sums, 0, 2 * n_words * sizeof(uint64_t))
    for i in range(n):
        if i == 0 or scores[i] != scores[i - 1]:
            k += 1
            for word in range(2 * n_words):
                point[2 * n_words + word] = point[word]
            point += 2 * n_words
        label = labels[i] & 1
        if width is int64_t:
            point[label] += 1 if weights == NULL else <uint64_t>weights[i]
        elif weights == NULL:
            add_words(point + label * n_words, one, n_words)
        else:
            add_double(point + label * n_words, n_words, weights[i], scale.w_unit)
    return k


cdef inline void link_hulls(const Path *path, Py_ssize_t k, width kind, Py_ssize_t *after) noexcept nogil:
    """after[i]: the point that follows i on the lower hull of i, .., k."""
    cdef Py_ssize_t i, j
    after[k] = k
    for i in range(k - 1, -1, -1):
        j = i + 1
        if is_same(path, i, j, 1, kind):                  # level: nothing is less steep
            after[i] = after[j] if is_same(path, j, after[j], 1, kind) else j
            continue
        if is_same(path, i, j, 0, kind):                  # upright: nothing is steeper
            j = after[j]
        while j < k and reaches(path, Edge(i, j, NO_QUERY), Edge(j, after[j], NO_QUERY), kind):
            j = after[j]
        after[i] = j


cdef inline Py_ssize_t follow_places(
    const Path *path, Py_ssize_t k, const floating *scores, Py_ssize_t n, width kind, Py_ssize_t *hull, double *left,
    double *values
) noexcept nogil:
    """Steps; return how many."""
    cdef const Py_ssize_t *after = hull + 1
    cdef Py_ssize_t i, row = 0, top = 0, n_steps = 0
    cdef Line zero = Line(0, 0, 0, 0.0), one = Line(1, 0, 0, 0.0)
    cdef double score = -INFINITY
    cdef bint pushed = False
    hull[0] = 0
    settle(path, hull, top, after, 0, k, kind, &one)
    if scores[0] > score:
        n_steps = add_step(zero, one, score, n_steps, left, values)
    for i in range(1, k + 1):
        # at the score: the points above begin with this one
        score = scores[min(row, n - 1)] + 0.0             # -0.0 becomes the 0.0 it equals
        while row < n and scores[row] == score:
            row += 1
        if zero.end < i or (pushed and zero.top + 1 >= top):
            settle(path, hull, top, after, i, k, kind, &zero)
        n_steps = add_step(zero, one, score, n_steps, left, values)

        # in the gap behind it: this point is one of those below, too, but where it is right above the one before it,
        # lines from there are steeper
        pushed = not is_same(path, i - 1, i, 0, kind)
        if pushed:
            if top > 0 and hull[top] == i - 1 and is_same(path, i - 1, i, 1, kind):
                top -= 1
            while top > 0 and reaches(
                path, Edge(hull[top - 1], hull[top], NO_QUERY), Edge(hull[top], i, NO_QUERY), kind
            ):
                top -= 1
            top += 1
            hull[top] = i
        if one.end < i or (pushed and one.top + 1 >= top):
            settle(path, hull, top, after, i, k, kind, &one)
        if one.value != values[2 * n_steps - 1]:
            score = nextafter(score, INFINITY) + 0.0
            if row < n and score < scores[row] or row == n and score > scores[n - 1]:     # else no double is in the gap
                n_steps = add_step(zero, one, score, n_steps, left, values)
    return n_steps


cdef inline void settle(
    const Path *path, const Py_ssize_t *hull, Py_ssize_t top, const Py_ssize_t *after, Py_ssize_t first, Py_ssize_t k,
    width kind, Line *line
) noexcept nogil:
    """Move the ends of a line on until it touches both hulls, where points above begin with `first`.

    The line that does has slope m, say, and both ends are still on or before it.  If both edges that follow have slopes
    >= m, this is the line.  If the lesser, of slope t < m, follows the end below, that one must move.  And then the
    line between the ends is steeper than t: seen along slope m, the end below is less than (m - t) times the distance
    of the ends above the line to be, and the end above is not below it.
    """
    cdef Py_ssize_t start, end
    cdef Edge edge
    cdef bint below
    line.top = min(line.top, top)
    start = hull[line.top]
    end = max(line.end, first)
    while True:
        below = line.top < top
        if below:
            edge = Edge(start, hull[line.top + 1], NO_QUERY)
            below = end == k or reaches(path, Edge(end, after[end], NO_QUERY), edge, kind)
        elif end == k:
            break
        if not below:
            edge = Edge(end, after[end], NO_QUERY)
        if reaches(path, edge, Edge(start, end, line.label), kind):
            break
        if below:
            line.top += 1
            start = hull[line.top]
        else:
            end = after[end]
    line.end = end
    line.value = slope_of(path, Edge(start, end, line.label), kind)


cdef inline Py_ssize_t add_step(
    Line zero, Line one, double score, Py_ssize_t n_steps, double *left, double *values
) noexcept nogil:
    """A step that starts at this score, if its values differ from those before; return how many there are."""
    if n_steps and values[2 * n_steps - 2] == zero.value and values[2 * n_steps - 1] == one.value:
        return n_steps
    left[n_steps] = score
    values[2 * n_steps] = zero.value
    values[2 * n_steps + 1] = one.value
    return n_steps + 1
