"""The two scans of a fit that does not sort its rows, and the plan between them.

    survey     what is known of the rows in each bucket of scores (_summary.pxd)
    plan       which buckets can hold the end of a step (_plan.pxd): live ones; the others are quiet
    collect    which rows are in live buckets, and exact sums of the others
    finish     (_finish.pyx) sort those rows, bucket by bucket, and push them and the sums through the stack

The scans know nothing of each other's rows: threads, files or machines may each scan a part.  What they fill are plain
arrays that add up.

    table[b]       summary of bucket b                                                      (survey)
    directory[k]   of buckets 32k .. 32k + 31: a bit for each live one, and above them, how many are live before  (plan)
    kept[i]        number of a row in a live bucket                                         (collect)
    run q          the rows of quiet buckets after live bucket q - 1 and before live bucket q; or all rows of an atom, a
                   frequent score in a live bucket.  rows[q] counts them, words[q] are their exact sums  (collect)

Kernels here assume clean input: n >= 1, contiguous columns, no NaN, finite targets and weights, weights > 0.  Only
survey_labels, which is the first to see labels, does not.
"""

from libc.stdint cimport INT16_MAX, INT16_MIN, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._branchless cimport greater_key, lesser_key, prefetch
from staircase_fast.arithmetic._column_scan cimport are_labels, has_nan
from staircase_fast.arithmetic._exact cimport (
    CUT_ROWS, Pending, Scale, add_sample, add_sums, flush, pend, pend_weighted, unpacked,
)
from staircase_fast.arithmetic._types cimport BATCH, floating, number
from staircase_fast.stack._live cimport is_live, live_before
from staircase_fast.stack._plan cimport plan
from staircase_fast.stack._sort cimport Triple, double_of
from staircase_fast.stack._summary cimport Summary, key_of, ones_of, ones_t, rows_of
from staircase_fast.staircase._cells cimport Map, find_buckets, map_of


cdef enum:
    GROUP = 2             # of buckets, in the plan


def survey_labels(
    const floating[::1] scores not None,      # IN
    const number[::1] labels not None,        # IN  0 or 1, or so it seems
    const double[:, ::1] bucket_map not None,  # IN  Cell
    ones_t[::1] table not None,               # OUT added
):
    """The survey of labels without weights; return whether that is what they are, and no score is NaN."""
    cdef Map cells = map_of(bucket_map)
    cdef Py_ssize_t i, start = 0, size
    cdef int32_t buckets[BATCH]
    cdef const number *ones = &labels[0]
    cdef ones_t *words = &table[0]
    cdef int half = 4 * sizeof(ones_t)
    cdef bint clean = True
    with nogil:
        while start < scores.shape[0] and clean:
            size = min(BATCH, scores.shape[0] - start)
            # here, where the rows have just come from memory, to look at them costs next to nothing
            clean = are_labels(ones + start, size) and not has_nan(&scores[start], size)
            if clean:
                find_buckets(cells, &scores[start], size, buckets)
                for i in range(size):
                    words[buckets[i]] += 1 + (<ones_t><uint32_t>ones[start + i] << half)
            start += size
    return bool(clean)


def survey(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    double centre,                            # IN  of the targets, more or less
    const double[:, ::1] bucket_map not None,  # IN  Cell
    uint32_t[:, ::1] table not None,          # OUT Summary
):
    cdef Map cells = map_of(bucket_map)
    cdef Summary *summaries = <Summary *>&table[0, 0]
    cdef Summary *one
    cdef Py_ssize_t i, start = 0, size
    cdef int32_t buckets[BATCH]
    cdef int32_t keys[BATCH]
    cdef float products[BATCH]
    cdef float masses[BATCH]
    cdef const number *y = &targets[0]
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef double off
    with nogil:
        for i in range(table.shape[0]):
            summaries[i] = Summary(0.0, 0.0, 0, INT16_MAX, INT16_MIN)
        for i in range(BATCH):
            masses[i] = 1.0
        while start < scores.shape[0]:
            size = min(BATCH, scores.shape[0] - start)
            find_buckets(cells, &scores[start], size, buckets)
            for i in range(size):
                prefetch(summaries + buckets[i])
            if w != NULL:
                for i in range(size):
                    off = <double>y[start + i] - centre
                    keys[i] = key_of(<float>off)
                    products[i] = <float>(off * w[start + i])
                    masses[i] = <float>w[start + i]
            else:
                for i in range(size):
                    products[i] = <float>(<double>y[start + i] - centre)
                    keys[i] = key_of(products[i])
            for i in range(size):
                one = summaries + buckets[i]
                one.s += products[i]
                one.w += masses[i]
                one.rows += 1
                # no branches: one that waits for memory holds up all that follow
                one.lo = <int16_t>lesser_key(keys[i], one.lo)
                one.hi = <int16_t>greater_key(keys[i], one.hi)
            start += size


def add_summaries(uint32_t[:, ::1] table not None, const uint32_t[:, ::1] other not None):
    """table += other."""
    cdef Summary *one
    cdef const Summary *two
    cdef Py_ssize_t b
    with nogil:
        for b in range(table.shape[0]):
            one = <Summary *>&table[b, 0]
            two = <const Summary *>&other[b, 0]
            one.s += two.s
            one.w += two.w
            one.rows += two.rows
            one.lo = <int16_t>lesser_key(one.lo, two.lo)
            one.hi = <int16_t>greater_key(one.hi, two.hi)


def plan_labels(
    const ones_t[::1] table not None,         # IN
    bint decreasing,
    Py_ssize_t n_rows,
    Py_ssize_t[::1] starts not None,          # work
    double[::1] s not None,                   # work
    double[::1] w not None,                   # work
    uint8_t[::1] live not None,               # OUT
):
    with nogil:
        plan(&table[0], table.shape[0], decreasing, n_rows, 1.0, &starts[0], &s[0], &w[0], &live[0], GROUP)


def plan_summaries(
    const uint32_t[:, ::1] table not None,    # IN  Summary
    bint decreasing,
    Py_ssize_t n_rows,
    double greatest,
    Py_ssize_t[::1] starts not None,          # work
    double[::1] s not None,                   # work
    double[::1] w not None,                   # work
    uint8_t[::1] live not None,               # OUT
):
    cdef const Summary *summaries = <const Summary *>&table[0, 0]
    with nogil:
        plan(summaries, table.shape[0], decreasing, n_rows, greatest, &starts[0], &s[0], &w[0], &live[0], GROUP)


def index_live(const uint8_t[::1] live not None, uint64_t[::1] directory not None):
    """Fill the directory; return how many buckets are live."""
    cdef Py_ssize_t b
    cdef uint64_t n_live = 0, word = 0
    with nogil:
        for b in range(live.shape[0]):
            if b & 31 == 0:
                word = n_live << 32
            word |= <uint64_t>live[b] << (b & 31)
            n_live += live[b]
            directory[b >> 5] = word
    return n_live


def sum_labels(
    const ones_t[::1] table not None,         # IN
    const uint64_t[::1] directory not None,   # IN
    const int32_t[::1] atom_runs not None,    # IN
    const uint64_t[:, ::1] kept_rows not None,  # IN  Triple
    const int32_t[::1] places not None,       # IN
    int64_t[::1] rows not None,               # OUT added
    uint64_t[:, ::1] words not None,          # OUT added
):
    """The sums of all runs of labels: those of whole buckets, from the table, less what was kept beside an atom."""
    cdef Py_ssize_t b, i, run, q = 0
    with nogil:
        for b in range(table.shape[0]):
            run = q
            if is_live(&directory[0], b):
                run = atom_runs[q] if atom_runs.shape[0] else -1
                q += 1
            if run >= 0:
                rows[run] += rows_of(table[b])
                words[run, 0] += ones_of(table[b])
                words[run, 1] += rows_of(table[b])
        for i in range(places.shape[0] if atom_runs.shape[0] else 0):
            run = atom_runs[places[i]]
            if run >= 0:
                rows[run] -= 1
                words[run, 0] -= <uint64_t>double_of((<const Triple *>&kept_rows[i, 0]).y)
                words[run, 1] -= 1


def collect(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    Py_ssize_t first,                         # IN  number of the first of these rows
    const double[:, ::1] bucket_map not None,  # IN  Cell
    const uint64_t[::1] directory not None,   # IN
    const double[::1] atoms not None,         # IN  a frequent score of each live bucket or NaN, then a NaN; or empty
    const int32_t[::1] atom_runs not None,    # IN  the run of each atom
    object scale not None,                    # IN  exact.Scale
    bint summed,                              # IN  whether to sum what is not kept
    uint32_t[::1] kept not None,              # OUT room for one more than there can be
    int64_t[::1] rows not None,               # OUT rows of each run, added
    uint64_t[:, ::1] words not None,          # OUT exact sums of each run, added
    uint8_t[::1] work not None,               # work: collect_size(n_runs) bytes, zeros
):
    """Keep the rows of live buckets, in any order; return how many."""
    cdef Map cells = map_of(bucket_map)
    cdef Scale exact = unpacked(scale)
    cdef const uint64_t *live = &directory[0]
    cdef const floating *x = &scores[0]
    cdef const number *y = &targets[0]
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef uint32_t *out = &kept[0]
    cdef Py_ssize_t start = 0, size, n_kept = 0, n_runs = rows.shape[0]
    cdef int32_t buckets[BATCH]
    cdef int32_t runs[BATCH]
    cdef Sums sums = Sums(exact, n_runs, &rows[0], &words[0, 0], <Pending *>&work[0])
    with nogil:
        while start < scores.shape[0]:
            size = min(BATCH, scores.shape[0] - start)
            find_buckets(cells, x + start, size, buckets)
            if atoms.shape[0]:
                n_kept = keep_but_atoms(
                    live, x + start, &atoms[0], &atom_runs[0], first + start, size, buckets, n_runs, out, n_kept, runs
                )
            elif summed:
                n_kept = keep_or_sum(live, first + start, size, buckets, n_runs, out, n_kept, runs)
            else:
                n_kept = keep(live, first + start, size, buckets, out, n_kept)
            if summed:
                add_batch(&sums, y + start, w + start if w != NULL else NULL, size, runs)
            start += size
        flush_all(&sums, w != NULL)
    return n_kept


# Every row is written to `out`, and overwritten unless it is to be kept: a branch would often be mispredicted.

cdef inline Py_ssize_t keep(
    const uint64_t *live, Py_ssize_t first, Py_ssize_t n, const int32_t *buckets, uint32_t *out, Py_ssize_t n_kept
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[n_kept] = <uint32_t>(first + i)
        n_kept += is_live(live, buckets[i])
    return n_kept


cdef inline Py_ssize_t keep_or_sum(
    const uint64_t *live, Py_ssize_t first, Py_ssize_t n, const int32_t *buckets, Py_ssize_t nowhere, uint32_t *out,
    Py_ssize_t n_kept, int32_t *runs
) noexcept nogil:
    """Which run each row belongs to; `nowhere` if it is kept."""
    cdef Py_ssize_t i
    cdef bint alive
    for i in range(n):
        alive = is_live(live, buckets[i])
        out[n_kept] = <uint32_t>(first + i)
        n_kept += alive
        runs[i] = <int32_t>(nowhere if alive else live_before(live, buckets[i]))
    return n_kept


cdef inline Py_ssize_t keep_but_atoms(
    const uint64_t *live, const floating *x, const double *atoms, const int32_t *atom_runs, Py_ssize_t first,
    Py_ssize_t n, const int32_t *buckets, Py_ssize_t nowhere, uint32_t *out, Py_ssize_t n_kept, int32_t *runs
) noexcept nogil:
    """As above; an atom is summed as well.  (There is an atom more than live buckets, so that atoms[q] is there.)"""
    cdef Py_ssize_t i, q, run
    cdef bint alive, atom
    for i in range(n):
        alive = is_live(live, buckets[i])
        q = live_before(live, buckets[i])
        atom = alive & (x[i] == atoms[q])
        run = atom_runs[q] if atom else q
        alive &= not atom
        runs[i] = <int32_t>(nowhere if alive else run)
        out[n_kept] = <uint32_t>(first + i)
        n_kept += alive
    return n_kept


ctypedef struct Sums:
    Scale scale
    Py_ssize_t n              # runs, and one more that nobody asks for
    int64_t *rows
    uint64_t *words
    Pending *pending


cdef inline void add_batch(
    Sums *sums, const number *y, const double *w, Py_ssize_t n, const int32_t *runs
) noexcept nogil:
    """Add each row to the sums of its run."""
    cdef Pending *one
    cdef Py_ssize_t i
    if sums.scale.cut == 0:
        for i in range(n):
            if runs[i] < sums.n:
                sums.rows[runs[i]] += 1
                add_sample(sums.scale, words_at(sums, runs[i]), y[i], 1.0 if w == NULL else w[i])
        return
    for i in range(n):
        one = sums.pending + runs[i]
        if w == NULL:
            pend(sums.scale, one, <double>y[i])
        else:
            pend_weighted(sums.scale, one, <double>y[i], w[i])
        if one.rows == CUT_ROWS:
            flush_run(sums, runs[i], w != NULL)


cdef inline uint64_t *words_at(Sums *sums, Py_ssize_t q) noexcept nogil:
    return sums.words + q * (sums.scale.s_words + sums.scale.w_words)


cdef void flush_run(Sums *sums, Py_ssize_t q, bint weighted) noexcept nogil:
    if q == sums.n:
        memset(sums.pending + q, 0, sizeof(Pending))
        return
    sums.rows[q] += sums.pending[q].rows
    flush(sums.scale, sums.pending + q, words_at(sums, q), weighted)


cdef inline void flush_all(Sums *sums, bint weighted) noexcept nogil:
    cdef Py_ssize_t q
    for q in range(sums.n):
        if sums.pending[q].rows:
            flush_run(sums, q, weighted)


def collect_size(Py_ssize_t n_runs):
    """Bytes that `collect` wants for its work."""
    return (n_runs + 1) * sizeof(Pending)


def add_runs(
    object scale not None,
    int64_t[::1] rows not None,
    uint64_t[:, ::1] words not None,
    const int64_t[::1] other_rows not None,
    const uint64_t[:, ::1] other_words not None,
):
    """rows += other_rows, words += other_words."""
    cdef Scale exact = unpacked(scale)
    cdef Py_ssize_t q
    with nogil:
        for q in range(rows.shape[0]):
            rows[q] += other_rows[q]
            add_sums(exact, &words[q, 0], &other_words[q, 0])
