"""Fit unsorted rows without sorting them: survey, plan, collect, finish.

    survey     one scan: sums and extremes of the rows in each bucket of scores
    plan       which buckets can hold the end of a step (_plan.pxd): live ones; the others are quiet
    collect    a second scan: rows of live buckets are kept, those of quiet ones only summed
    finish     sort what was kept, bucket by bucket, and push everything through the stack

The two scans know nothing of each other's rows: threads, files or machines may each scan a part.  What they fill are
plain arrays that add up.

    table[b]      Bucket: s, w, lo, hi, rows                          (survey)
    places[b]     where the next row of a live bucket b goes in `kept`, or -1 - r: b belongs to quiet run r
    kept[i]       x, y, w of a row

Kernels here assume clean input: n >= 1, contiguous columns, no NaN, finite targets and weights, weights > 0.
"""

from libc.math cimport NAN
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from staircase_fast._blocks cimport Stack, doubt_of, finish, push, sum_t, words_of
from staircase_fast._cells cimport Cell, bucket_of
from staircase_fast._exact cimport Scale, add_sample, number
from staircase_fast._plan cimport Bucket, plan

ctypedef fused floating:
    float
    double


def survey_labels(
    const floating[::1] scores not None,      # IN
    const number[::1] labels not None,        # IN  0 or 1
    const double[:, ::1] bucket_map not None,  # IN  Cell
    uint64_t[::1] table not None,             # OUT rows + (ones << 32), added
):
    """The survey of labels without weights: one word tells all there is to know of a bucket."""
    cdef const Cell *cells = <const Cell *>&bucket_map[0, 0]
    cdef Py_ssize_t i
    cdef uint64_t *words = &table[0]
    with nogil:
        for i in range(scores.shape[0]):
            words[bucket_of(cells, scores[i])] += 1 + (<uint64_t>labels[i] << 32)


def survey(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    const double[:, ::1] bucket_map not None,  # IN  Cell
    double[:, ::1] table not None,            # OUT Bucket, added
):
    cdef const Cell *cells = <const Cell *>&bucket_map[0, 0]
    cdef Bucket *buckets = <Bucket *>&table[0, 0]
    cdef Bucket *bucket
    cdef Py_ssize_t i
    cdef bint weighted = weights.shape[0] > 0
    cdef double y, w = 1.0
    with nogil:
        for i in range(scores.shape[0]):
            bucket = buckets + bucket_of(cells, scores[i])
            y = <double>targets[i]
            if weighted:
                w = weights[i]
            bucket.s += y * w
            bucket.w += w
            bucket.rows += 1
            if y < bucket.lo:
                bucket.lo = y
            if y > bucket.hi:
                bucket.hi = y


def plan_buckets(
    double[:, ::1] table not None,            # IN  Bucket; signs are turned where the staircase decreases
    bint decreasing,
    double greatest,
    Py_ssize_t[::1] starts not None,          # work
    double[::1] s not None,                   # work
    double[::1] w not None,                   # work
    uint8_t[::1] live not None,               # OUT
):
    cdef Bucket *buckets = <Bucket *>&table[0, 0]
    cdef Py_ssize_t b, n = table.shape[0]
    with nogil:
        if decreasing:
            for b in range(n):
                buckets[b] = Bucket(-buckets[b].s, buckets[b].w, -buckets[b].hi, -buckets[b].lo, buckets[b].rows)
        plan(buckets, n, greatest, &starts[0], &s[0], &w[0], &live[0])


def unpack_labels(const uint64_t[::1] words not None, double[:, ::1] table not None):
    """The table of `survey` from that of `survey_labels`."""
    cdef Bucket *buckets = <Bucket *>&table[0, 0]
    cdef Py_ssize_t b
    cdef uint64_t rows, ones
    with nogil:
        for b in range(words.shape[0]):
            rows = <uint32_t>words[b]
            ones = words[b] >> 32
            buckets[b] = Bucket(
                <double>ones, <double>rows, 0.0 if ones < rows else 1.0, 1.0 if ones else 0.0, <Py_ssize_t>rows
            )


def lay_out(
    const double[:, ::1] table not None,      # IN  Bucket, as `plan_buckets` left it
    bint decreasing,
    const uint8_t[::1] live not None,         # IN
    Py_ssize_t[::1] places not None,          # OUT
    double[:, ::1] runs not None,             # OUT s, w, rows of each quiet run
):
    """Give each live bucket its place and each quiet one its run; return the rows to keep and the number of runs."""
    cdef const Bucket *buckets = <const Bucket *>&table[0, 0]
    cdef Py_ssize_t b, n_kept = 0, n_runs = 0
    cdef bint quiet = False
    with nogil:
        for b in range(table.shape[0]):
            if live[b] and buckets[b].rows:
                places[b] = n_kept
                n_kept += buckets[b].rows
                quiet = False
                continue
            if not quiet:
                runs[n_runs, 0] = 0.0
                runs[n_runs, 1] = 0.0
                runs[n_runs, 2] = 0.0
                n_runs += 1
                quiet = True
            places[b] = -n_runs
            runs[n_runs - 1, 0] += -buckets[b].s if decreasing else buckets[b].s
            runs[n_runs - 1, 1] += buckets[b].w
            runs[n_runs - 1, 2] += <double>buckets[b].rows
    return n_kept, n_runs


ctypedef struct Row:
    double x
    double y
    double w


def collect(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    const double[:, ::1] bucket_map not None,  # IN  Cell
    Py_ssize_t[::1] places not None,          # IN/OUT
    const double[::1] atoms not None,         # IN  a score that fills much of its bucket, or NaN; empty: there are none
    Py_ssize_t[::1] atom_runs not None,       # IN  the run in which rows of that score are summed
    object scale not None,                    # IN  exact.Scale
    double[:, ::1] kept not None,             # OUT Row
    double[:, ::1] runs not None,             # OUT s, w, rows of each atom, added
    uint64_t[:, ::1] run_words not None,      # OUT exact sums of each run and atom, added; empty if the scale is narrow
):
    cdef const Cell *cells = <const Cell *>&bucket_map[0, 0]
    cdef Scale exact = scale._asdict()
    cdef Row *rows = <Row *>&kept[0, 0]
    cdef Py_ssize_t *place = &places[0]
    cdef Py_ssize_t i, b, at
    cdef bint weighted = weights.shape[0] > 0, wide = run_words.shape[0] > 0, atomic = atoms.shape[0] > 0
    cdef double w = 1.0
    with nogil:
        for i in range(scores.shape[0]):
            b = bucket_of(cells, scores[i])
            at = place[b]
            if at < 0:
                if wide:
                    if weighted:
                        w = weights[i]
                    add_sample(exact, &run_words[-1 - at, 0], targets[i], w)
                continue
            if weighted:
                w = weights[i]
            if atomic and scores[i] == atoms[b]:
                at = atom_runs[b]
                runs[at, 0] += <double>targets[i] * w
                runs[at, 1] += w
                runs[at, 2] += 1
                if wide:
                    add_sample(exact, &run_words[at, 0], targets[i], w)
                continue
            rows[at].x = scores[i]
            rows[at].y = <double>targets[i]
            rows[at].w = w
            place[b] = at + 1


cdef void sort_rows(Row *rows, Py_ssize_t n) noexcept nogil:
    """Sort by score: quicksort that sets equal scores apart, insertion for few."""
    cdef Py_ssize_t i, j, below, above
    cdef Row row
    cdef double pivot
    while n > 24:
        pivot = median(rows[0].x, rows[n >> 1].x, rows[n - 1].x)
        below = 0
        above = n
        i = 0
        while i < above:                      # [0, below) < pivot, [below, i) == pivot, [above, n) > pivot
            row = rows[i]
            if row.x < pivot:
                rows[i] = rows[below]
                rows[below] = row
                below += 1
                i += 1
            elif row.x > pivot:
                above -= 1
                rows[i] = rows[above]
                rows[above] = row
            else:
                i += 1
        if below < n - above:                 # the shorter part first, so that the depth stays logarithmic
            sort_rows(rows, below)
            rows += above
            n -= above
        else:
            sort_rows(rows + above, n - above)
            n = below
    for i in range(1, n):
        row = rows[i]
        j = i
        while j > 0 and rows[j - 1].x > row.x:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


cdef inline double median(double a, double b, double c) noexcept nogil:
    return max(min(a, b), min(max(a, b), c))


def sequence(
    double[:, ::1] kept not None,             # IN  Row; sorted here, bucket by bucket
    const Py_ssize_t[::1] begins not None,    # IN  where the rows of each bucket begin in `kept`
    const Py_ssize_t[::1] places not None,    # IN  where they end, or -1 - r: the bucket belongs to quiet run r
    const double[::1] atoms not None,         # IN  see `collect`
    const Py_ssize_t[::1] atom_runs not None,
    const double[:, ::1] runs not None,       # IN
    double[::1] x not None,                   # OUT items in score order, as `finish_items` takes them
    double[::1] y not None,
    double[::1] w not None,                   # or empty
    Py_ssize_t[::1] run not None,
    Py_ssize_t[::1] before not None,          # OUT rows before each item, and all of them
):
    """Put quiet runs and kept rows in order; return how many items there are."""
    cdef Row *rows = <Row *>&kept[0, 0]
    cdef Py_ssize_t b, i, r, end, n = 0, last_run = -1
    cdef bint atomic = atoms.shape[0] > 0, weighted = w.shape[0] > 0
    before[0] = 0
    with nogil:
        for b in range(places.shape[0]):
            if places[b] < 0:
                r = -1 - places[b]
                if r != last_run and runs[r, 2] > 0:
                    x[n] = NAN
                    run[n] = r
                    n += 1
                    before[n] = before[n - 1] + <Py_ssize_t>runs[r, 2]
                    last_run = r
                continue
            end = places[b]
            if atomic and atom_runs[b] >= 0 and runs[atom_runs[b], 2] > 0:
                rows[end] = Row(atoms[b], NAN, <double>atom_runs[b])         # its own rows left room for it
                end += 1
            sort_rows(rows + begins[b], end - begins[b])
            for i in range(begins[b], end):
                x[n] = rows[i].x
                y[n] = rows[i].y
                if weighted:
                    w[n] = rows[i].w
                run[n] = -1 if rows[i].y == rows[i].y else <Py_ssize_t>rows[i].w
                n += 1
                before[n] = before[n - 1] + (1 if run[n - 1] < 0 else <Py_ssize_t>runs[run[n - 1], 2])
    return n


def finish_items(
    const double[::1] x not None,             # IN  score of each item, NaN for a quiet run
    const double[::1] y not None,             # IN  target of each item that is a row
    const double[::1] w not None,             # IN  weight of each item that is a row, or empty: all are 1
    const Py_ssize_t[::1] run not None,       # IN  the run that each item is, or -1: a row
    const double[:, ::1] runs not None,       # IN  s, w, rows
    const uint64_t[:, ::1] run_words not None,
    object scale not None,
    bint decreasing,
    Py_ssize_t n_rows,
    double lo,
    double hi,
    Py_ssize_t[::1] starts not None,          # OUT first item of each step
    double[::1] values not None,              # OUT
    double[::1] step_weights not None,        # OUT
    uint8_t[::1] known not None,              # work
    uint64_t[::1] words not None,             # work
):
    cdef Stack stack
    cdef Py_ssize_t n = x.shape[0]
    cdef const double *weights = &w[0] if w.shape[0] else NULL
    stack.scale = scale._asdict()
    stack.decreasing = decreasing
    stack.doubt = doubt_of(stack.scale) * (<double>n_rows / 8 + 1)      # an item may stand for any number of rows
    stack.n_words = stack.scale.s_words + stack.scale.w_words
    stack.n = 0
    stack.starts = &starts[0]
    stack.s = &values[0]
    stack.w = &step_weights[0]
    stack.known = &known[0]
    stack.words = &words[0] if words.shape[0] else NULL
    with nogil:
        if stack.scale.narrow:
            push_items(&stack, &x[0], &y[0], weights, &run[0], runs, run_words, n, <int64_t>0)
            finish(&stack, &y[0], weights, <int64_t>0, n, lo, hi)
        else:
            push_items(&stack, &x[0], &y[0], weights, &run[0], runs, run_words, n, <double>0)
            finish(&stack, &y[0], weights, <double>0, n, lo, hi)
    return stack.n


cdef inline void push_items(
    Stack *stack,
    const double *x,
    const double *y,
    const double *weights,
    const Py_ssize_t *run,
    const double[:, ::1] runs,
    const uint64_t[:, ::1] run_words,
    Py_ssize_t n,
    sum_t kind,
) noexcept nogil:
    cdef Py_ssize_t i = 0, start
    cdef sum_t s, w, weight
    while i < n:
        start = i
        if run[i] >= 0:                       # a quiet run, or all rows of one score
            i += 1
            if sum_t is double:
                memcpy(words_of(stack, stack.n), &run_words[run[start], 0], stack.n_words * sizeof(uint64_t))
            push(stack, y, weights, start, i, <sum_t>runs[run[start], 0], <sum_t>runs[run[start], 1], sum_t is double)
            continue
        s = 0
        w = 0
        while True:
            weight = <sum_t>weights[i] if weights != NULL else 1
            s += <sum_t>y[i] * weight
            w += weight
            i += 1
            if i == n or x[i] != x[start]:
                break
        push(stack, y, weights, start, i, s, w, False)
