"""Fit unsorted rows without sorting them: survey, plan, collect, finish.

    survey     one scan: sums and extremes of the rows in each bucket of scores
    plan       which buckets can hold the end of a step (_plan.pxd): live ones; the others are quiet
    collect    a second scan: the rows of live buckets
    finish     sort those, bucket by bucket, and push them and the quiet runs between them through the stack
    value      where sums were rounded: a third scan, exact sums of the few steps there are

The scans know nothing of each other's rows: threads, files or machines may each scan a part.  What they fill are plain
arrays that add up.

    table[b]      Bucket: s, w, lo, hi                                (survey)
    kept[i]       Row: x, y, w of a row in a live bucket              (collect)
    run r         quiet buckets side by side, or an atom: all rows of one frequent score

Kernels here assume clean input: n >= 1, contiguous columns, no NaN, finite targets and weights, weights > 0.
"""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from staircase_fast._blocks cimport Stack, doubt_of, finish, push, sum_t
from staircase_fast._cells cimport BATCH, Cell, bucket_of, find_buckets, floating
from staircase_fast._exact cimport CUT_ROWS, Pending, Scale, add_sample, flush, number, pend, pend_weighted
from staircase_fast._plan cimport Bucket, plan
from staircase_fast._select cimport greater, lesser
from staircase_fast._sort cimport Triple, bits_of, double_of, rank_of, score_of, sort_rows
from staircase_fast._steps cimport Stairs, started_by


def survey_labels(
    const floating[::1] scores not None,      # IN
    const number[::1] labels not None,        # IN  0 or 1
    const double[:, ::1] bucket_map not None,  # IN  Cell
    uint64_t[::1] table not None,             # OUT rows + (ones << 32), added
):
    """The survey of labels without weights: one word tells all there is to know of a bucket."""
    cdef const Cell *cells = <const Cell *>&bucket_map[0, 0]
    cdef Py_ssize_t i, start, size
    cdef Py_ssize_t buckets[BATCH]
    cdef uint64_t *words = &table[0]
    with nogil:
        start = 0
        while start < scores.shape[0]:
            size = min(BATCH, scores.shape[0] - start)
            find_buckets(cells, &scores[start], size, buckets)
            for i in range(size):
                words[buckets[i]] += 1 + (<uint64_t>labels[start + i] << 32)
            start += size


def survey(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    const double[:, ::1] bucket_map not None,  # IN  Cell
    double[:, ::1] table not None,            # OUT Bucket, added
):
    cdef const Cell *cells = <const Cell *>&bucket_map[0, 0]
    cdef Bucket *bucket
    cdef Py_ssize_t i, start, size
    cdef Py_ssize_t buckets[BATCH]
    cdef bint weighted = weights.shape[0] > 0
    cdef double y, w = 1.0
    with nogil:
        start = 0
        while start < scores.shape[0]:
            size = min(BATCH, scores.shape[0] - start)
            find_buckets(cells, &scores[start], size, buckets)
            for i in range(size):
                bucket = <Bucket *>&table[0, 0] + buckets[i]
                y = <double>targets[start + i]
                if weighted:
                    w = weights[start + i]
                bucket.s += y * w
                bucket.w += w
                # no branches: one that waits for memory holds up all that follow
                bucket.lo = lesser(y, bucket.lo)
                bucket.hi = greater(y, bucket.hi)
            start += size


def plan_buckets(
    double[:, ::1] table not None,            # IN  Bucket; signs are turned where the staircase decreases
    bint decreasing,
    Py_ssize_t n_rows,
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
                buckets[b] = Bucket(-buckets[b].s, buckets[b].w, -buckets[b].hi, -buckets[b].lo)
        plan(buckets, n, n_rows, greatest, &starts[0], &s[0], &w[0], &live[0])


def unpack_labels(const uint64_t[::1] words not None, double[:, ::1] table not None):
    """The table of `survey` from that of `survey_labels`."""
    cdef Bucket *buckets = <Bucket *>&table[0, 0]
    cdef Py_ssize_t b
    cdef uint64_t rows, ones
    with nogil:
        for b in range(words.shape[0]):
            rows = <uint32_t>words[b]
            ones = words[b] >> 32
            buckets[b] = Bucket(<double>ones, <double>rows, 0.0 if ones < rows else 1.0, 1.0 if ones else 0.0)


ctypedef struct Row:
    double x
    double y
    double w


cdef inline bint is_set(const uint64_t *bits, Py_ssize_t b) noexcept nogil:
    return (bits[b >> 6] >> (b & 63)) & 1


def collect(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    const double[:, ::1] bucket_map not None,  # IN  Cell
    const uint64_t[::1] live not None,        # IN  a bit per bucket: small enough to stay in cache
    const double[::1] atoms not None,         # IN  a frequent score of each bucket, or NaN; empty: there are none
    const int32_t[::1] atom_runs not None,    # IN  the run of each atom
    double[:, ::1] kept not None,             # OUT Row; room for one more than there can be
    double[:, ::1] runs not None,             # OUT s, w of each atom, added
):
    """Keep the rows of live buckets, in any order; return how many."""
    cdef const Cell *cells = <const Cell *>&bucket_map[0, 0]
    cdef const uint64_t *bits = &live[0]
    cdef Row *row = <Row *>&kept[0, 0]
    cdef Row *first = row
    cdef Py_ssize_t i, b, alive, start, size
    cdef Py_ssize_t buckets[BATCH]
    cdef bint weighted = weights.shape[0] > 0, atomic = atoms.shape[0] > 0
    cdef double w = 1.0
    with nogil:
        start = 0
        while start < scores.shape[0]:
            size = min(BATCH, scores.shape[0] - start)
            find_buckets(cells, &scores[start], size, buckets)
            for i in range(start, start + size):
                b = buckets[i - start]
                alive = is_set(bits, b)
                if weighted:
                    w = weights[i]
                if atomic and alive and scores[i] == atoms[b]:
                    runs[atom_runs[b], 0] += <double>targets[i] * w
                    runs[atom_runs[b], 1] += w
                    continue
                # every row is written, and overwritten unless it is alive: a branch would often be mispredicted
                row.x = scores[i]
                row.y = <double>targets[i]
                row.w = w
                row += alive
            start += size
    return row - first


def sequence(
    double[:, ::1] kept not None,             # IN  Row; then work
    Py_ssize_t n_kept,
    const double[:, ::1] table not None,      # IN  Bucket
    const double[:, ::1] bucket_map not None,  # IN  Cell
    const uint64_t[::1] live not None,        # IN
    const double[::1] atoms not None,         # IN
    const int32_t[::1] atom_runs not None,    # IN
    bint decreasing,                          # IN  whether signs in the table are turned
    double[:, ::1] ordered not None,          # work: Triple, in score order
    Py_ssize_t[::1] ends not None,            # work: one more than there are buckets
    double[:, ::1] runs not None,             # OUT s, w of each quiet run; IN of each atom
    double[::1] x not None,                   # OUT items in score order, as `finish_items` takes them
    double[::1] y not None,
    double[::1] w not None,                   # or empty
    Py_ssize_t[::1] run not None,
):
    """Sort the kept rows and put quiet runs between them; return how many items there are."""
    cdef const Cell *cells = <const Cell *>&bucket_map[0, 0]
    cdef const Row *rows = <const Row *>&kept[0, 0]
    cdef Triple *sorted_rows = <Triple *>&ordered[0, 0]
    cdef Triple *spare = <Triple *>&kept[0, 0]
    cdef const Bucket *buckets = <const Bucket *>&table[0, 0]
    cdef const uint64_t *bits = &live[0]
    cdef Py_ssize_t n_buckets = table.shape[0], b, i, n = 0, start, n_runs = 0
    cdef bint atomic = atoms.shape[0] > 0, weighted = w.shape[0] > 0, quiet = False
    with nogil:
        # a counting sort by bucket, then a sort within each; ends[b] moves from the start to the end of bucket b
        memset(&ends[0], 0, (n_buckets + 1) * sizeof(Py_ssize_t))
        for i in range(n_kept):
            ends[bucket_of(cells, rows[i].x) + 1] += 1
        for b in range(n_buckets):
            ends[b + 1] += ends[b]
        for i in range(n_kept):
            b = bucket_of(cells, rows[i].x)
            sorted_rows[ends[b]] = Triple(rank_of(rows[i].x), bits_of(rows[i].y), bits_of(rows[i].w))
            ends[b] += 1
        start = 0
        for b in range(n_buckets):
            if not is_set(bits, b):
                if buckets[b].w == 0:
                    continue
                if not quiet:
                    runs[n_runs, 0] = 0.0
                    runs[n_runs, 1] = 0.0
                    x[n] = NAN
                    y[n] = 0.0
                    run[n] = n_runs
                    n += 1
                    n_runs += 1
                    quiet = True
                runs[n_runs - 1, 0] += -buckets[b].s if decreasing else buckets[b].s
                runs[n_runs - 1, 1] += buckets[b].w
                continue
            quiet = False
            sort_rows(sorted_rows + start, ends[b] - start, spare)
            i = start
            start = ends[b]
            if atomic and atom_runs[b] >= 0 and runs[atom_runs[b], 1] > 0:
                n = append(sorted_rows, &i, ends[b], atoms[b], &x[0], &y[0], &w[0] if weighted else NULL, &run[0], n)
                x[n] = atoms[b]
                y[n] = 0.0
                run[n] = atom_runs[b]
                n += 1
            n = append(sorted_rows, &i, ends[b], INFINITY, &x[0], &y[0], &w[0] if weighted else NULL, &run[0], n)
    return n


cdef inline Py_ssize_t append(
    const Triple *rows, Py_ssize_t *i, Py_ssize_t end, double up_to, double *x, double *y, double *w, Py_ssize_t *run,
    Py_ssize_t n,
) noexcept nogil:
    """Append the rows from i on with scores up to a limit to the items."""
    while i[0] < end and score_of(rows[i[0]].rank) <= up_to:
        x[n] = score_of(rows[i[0]].rank)
        y[n] = double_of(rows[i[0]].y)
        if w != NULL:
            w[n] = double_of(rows[i[0]].w)
        run[n] = -1
        n += 1
        i[0] += 1
    return n


def finish_items(
    const double[::1] x not None,             # IN  score of each item, NaN for a quiet run
    const double[::1] y not None,             # IN  target of each item that is a row
    const double[::1] w not None,             # IN  weight of each item that is a row, or empty: all are 1
    const Py_ssize_t[::1] run not None,       # IN  the run that each item is, or -1: a row
    const double[:, ::1] runs not None,       # IN  s, w
    object scale not None,                    # IN  exact.Scale
    bint decreasing,
    double least_weight,                      # IN  of any row
    double lo,
    double hi,
    Py_ssize_t[::1] starts not None,          # OUT first item of each step
    double[::1] values not None,              # OUT
    double[::1] step_weights not None,        # OUT
    uint8_t[::1] known not None,              # work
    uint64_t[::1] words not None,             # work
):
    """Steps, or, where the scale is not narrow, blocks without values; return how many, or -1: in doubt."""
    cdef Stack stack
    cdef Py_ssize_t n = x.shape[0]
    cdef const double *weights = &w[0] if w.shape[0] else NULL
    stack.scale = scale._asdict()
    stack.decreasing = decreasing
    stack.doubt = doubt_of(stack.scale)
    stack.rows_per_weight = 1.0 / least_weight
    stack.n_words = stack.scale.s_words + stack.scale.w_words
    stack.n = 0
    stack.starts = &starts[0]
    stack.s = &values[0]
    stack.w = &step_weights[0]
    stack.known = &known[0]
    stack.words = &words[0] if words.shape[0] else NULL
    stack.run = &run[0]
    stack.lost = False
    with nogil:
        if stack.scale.narrow:
            push_items(&stack, &x[0], &y[0], weights, runs, n, <int64_t>0)
            finish(&stack, &y[0], weights, <int64_t>0, n, lo, hi)
        else:
            push_items(&stack, &x[0], &y[0], weights, runs, n, <double>0)
    return -1 if stack.lost else stack.n


cdef inline void push_items(
    Stack *stack, const double *x, const double *y, const double *weights, const double[:, ::1] runs, Py_ssize_t n,
    sum_t kind,
) noexcept nogil:
    cdef Py_ssize_t i = 0, start
    cdef sum_t s, w, weight
    while i < n and not stack.lost:
        start = i
        if stack.run[i] >= 0:                 # a quiet run, or all rows of one score
            i += 1
            push(stack, y, weights, start, i, <sum_t>runs[stack.run[start], 0], <sum_t>runs[stack.run[start], 1], False)
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


ctypedef struct Tally:
    Pending pending
    int64_t rows


def tally(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    const double[::1] left not None,          # IN  where each step starts
    const double[:, ::1] bucket_map not None,  # IN  Cell; the index of these steps
    const int32_t[::1] first not None,        # IN
    object scale not None,                    # IN  exact.Scale
    uint8_t[::1] work not None,               # work: tally_size(n_steps) bytes, zeros
    Py_ssize_t[::1] counts not None,          # OUT rows on each step, added
    uint64_t[:, ::1] words not None,          # OUT exact sums of each step, added; empty: count only
):
    """The third scan: rows and exact sums of each step."""
    cdef Stairs stairs
    cdef Scale exact = scale._asdict()
    cdef Tally *tallies = <Tally *>&work[0]
    cdef Tally *one
    cdef Py_ssize_t i, step, start, size
    cdef Py_ssize_t buckets[BATCH]
    cdef bint weighted = weights.shape[0] > 0, summed = words.shape[0] > 0
    cdef bint cut = exact.cut != 0
    stairs.left = &left[0]
    stairs.n = left.shape[0]
    stairs.cells = <const Cell *>&bucket_map[0, 0]
    stairs.first = &first[0]
    with nogil:
        start = 0
        while start < scores.shape[0]:
            size = min(BATCH, scores.shape[0] - start)
            find_buckets(stairs.cells, &scores[start], size, buckets)
            for i in range(start, start + size):
                step = started_by(&stairs, buckets[i - start], scores[i]) - 1
                one = tallies + step
                one.rows += 1
                if not summed:
                    continue
                if not cut:
                    add_sample(exact, &words[step, 0], targets[i], weights[i] if weighted else 1.0)
                    continue
                if weighted:
                    pend_weighted(exact, &one.pending, <double>targets[i], weights[i])
                else:
                    pend(exact, &one.pending, <double>targets[i])
                if one.pending.rows == CUT_ROWS:
                    flush(exact, &one.pending, &words[step, 0], weighted)
            start += size
        for step in range(left.shape[0]):
            counts[step] += tallies[step].rows
            if cut and summed:
                flush(exact, &tallies[step].pending, &words[step, 0], weighted)


def tally_size(Py_ssize_t n_steps):
    """Bytes that `tally` wants for its work."""
    return n_steps * sizeof(Tally)


def round_steps(
    object scale not None,                    # IN  exact.Scale
    double lo,
    double hi,
    Py_ssize_t[::1] starts not None,          # IN/OUT first item of each block, then of each step
    double[::1] values not None,              # OUT
    double[::1] step_weights not None,        # OUT
    uint64_t[:, ::1] words not None,          # IN  exact sums of each block
    Py_ssize_t n_items,
):
    """Blocks with exact sums become steps; return how many."""
    cdef Stack stack
    cdef uint8_t[::1] known = bytearray(b"\x01" * words.shape[0])
    stack.scale = scale._asdict()
    stack.n_words = stack.scale.s_words + stack.scale.w_words
    stack.n = words.shape[0]
    stack.starts = &starts[0]
    stack.s = &values[0]
    stack.w = &step_weights[0]
    stack.known = &known[0]
    stack.words = &words[0, 0]
    stack.run = NULL
    with nogil:
        # all sums are known, so that the rows are not looked at: any array will do
        finish(&stack, <const double *>&values[0], NULL, <double>0, n_items, lo, hi)
    return stack.n
