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

Kernels here assume clean input: n >= 1, contiguous columns, no NaN, finite targets and weights, weights > 0.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from staircase_fast._cells cimport BATCH, Map, find_buckets, floating, map_of
from staircase_fast._exact cimport CUT_ROWS, Pending, Scale, add_sample, add_sums, flush, number, pend, pend_weighted
from staircase_fast._live cimport is_live, live_before
from staircase_fast._plan cimport plan
from staircase_fast._select cimport greater_key, lesser_key, prefetch
from staircase_fast._summary cimport Summary, key_of, ones_of, ones_t, rows_of


def survey_labels(
    const floating[::1] scores not None,      # IN
    const number[::1] labels not None,        # IN  0 or 1
    const double[:, ::1] bucket_map not None,  # IN  Cell
    ones_t[::1] table not None,               # OUT added
):
    """The survey of labels without weights."""
    cdef Map cells = map_of(bucket_map)
    cdef Py_ssize_t i, start = 0, size
    cdef int32_t buckets[BATCH]
    cdef ones_t *words = &table[0]
    cdef int half = 4 * sizeof(ones_t)
    with nogil:
        while start < scores.shape[0]:
            size = min(BATCH, scores.shape[0] - start)
            find_buckets(cells, &scores[start], size, buckets)
            for i in range(size):
                words[buckets[i]] += 1 + (<ones_t><uint32_t>labels[start + i] << half)
            start += size


def survey(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    double centre,                            # IN  of the targets, more or less
    const double[:, ::1] bucket_map not None,  # IN  Cell
    uint32_t[:, ::1] table not None,          # OUT Summary, added
):
    cdef Map cells = map_of(bucket_map)
    cdef Summary *summaries = <Summary *>&table[0, 0]
    cdef Summary *one
    cdef Py_ssize_t i, start = 0, size
    cdef int32_t buckets[BATCH]
    cdef int32_t keys[BATCH]
    cdef float products[BATCH]
    cdef float masses[BATCH]
    cdef double off
    with nogil:
        for i in range(BATCH):
            masses[i] = 1.0
        while start < scores.shape[0]:
            size = min(BATCH, scores.shape[0] - start)
            find_buckets(cells, &scores[start], size, buckets)
            for i in range(size):
                prefetch(summaries + buckets[i])
            if weights.shape[0]:
                for i in range(size):
                    off = <double>targets[start + i] - centre
                    keys[i] = key_of(<float>off)
                    products[i] = <float>(off * weights[start + i])
                    masses[i] = <float>weights[start + i]
            else:
                for i in range(size):
                    products[i] = <float>(<double>targets[start + i] - centre)
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
    """Fill `live`; return how many rows are in live buckets."""
    cdef Py_ssize_t b
    cdef uint64_t alive = 0
    with nogil:
        plan(&table[0], table.shape[0], decreasing, n_rows, 1.0, &starts[0], &s[0], &w[0], &live[0])
        for b in range(table.shape[0]):
            alive += rows_of(table[b]) if live[b] else 0
    return alive


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
    """Fill `live`; return how many rows are in live buckets."""
    cdef const Summary *summaries = <const Summary *>&table[0, 0]
    cdef Py_ssize_t b
    cdef uint64_t alive = 0
    with nogil:
        plan(summaries, table.shape[0], decreasing, n_rows, greatest, &starts[0], &s[0], &w[0], &live[0])
        for b in range(table.shape[0]):
            alive += summaries[b].rows if live[b] else 0
    return alive


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


def sum_quiet_labels(
    const ones_t[::1] table not None,         # IN
    const uint64_t[::1] directory not None,   # IN
    int64_t[::1] rows not None,               # OUT added
    uint64_t[:, ::1] words not None,          # OUT added
):
    """What `collect` would find of labels in quiet buckets; the table has it."""
    cdef Py_ssize_t b, q = 0
    with nogil:
        for b in range(table.shape[0]):
            if is_live(&directory[0], b):
                q += 1
                continue
            rows[q] += rows_of(table[b])
            words[q, 0] += ones_of(table[b])
            words[q, 1] += rows_of(table[b])


def collect(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    Py_ssize_t first,                         # IN  number of the first of these rows
    const double[:, ::1] bucket_map not None,  # IN  Cell
    const uint64_t[::1] directory not None,   # IN
    const double[::1] atoms not None,         # IN  a frequent score of each live bucket, or NaN; empty: there are none
    const int32_t[::1] atom_runs not None,    # IN  the run of each atom
    object scale not None,                    # IN  exact.Scale
    bint summed,                              # IN  whether to sum quiet rows
    uint32_t[::1] kept not None,              # OUT room for one more than there can be
    int64_t[::1] rows not None,               # OUT rows of each run, added
    uint64_t[:, ::1] words not None,          # OUT exact sums of each run, added
    uint8_t[::1] work not None,               # work: collect_size(n_runs) bytes, zeros
):
    """Keep the rows of live buckets, in any order; return how many."""
    cdef Map cells = map_of(bucket_map)
    cdef Scale exact = scale._asdict()
    cdef const uint64_t *live = &directory[0]
    cdef Pending *pending = <Pending *>&work[0]
    cdef uint32_t *out = &kept[0]
    cdef Py_ssize_t i, b, q, start = 0, size, n_kept = 0
    cdef int32_t buckets[BATCH]
    cdef bint atomic = atoms.shape[0] > 0, alive
    with nogil:
        while start < scores.shape[0]:
            size = min(BATCH, scores.shape[0] - start)
            find_buckets(cells, &scores[start], size, buckets)
            if not summed and not atomic:
                for i in range(size):
                    # every row is written, and overwritten unless it is alive: a branch would often be mispredicted
                    out[n_kept] = <uint32_t>(first + start + i)
                    n_kept += is_live(live, buckets[i])
            else:
                for i in range(start, start + size):
                    b = buckets[i - start]
                    alive = is_live(live, b)
                    if not (alive or summed):
                        continue
                    q = live_before(live, b)
                    if alive:
                        if not (atomic and scores[i] == atoms[q]):
                            out[n_kept] = <uint32_t>(first + i)
                            n_kept += 1
                            continue
                        q = atom_runs[q]
                    if exact.cut == 0:
                        add_sample(exact, &words[q, 0], targets[i], weights[i] if weights.shape[0] else 1.0)
                        rows[q] += 1
                        continue
                    if weights.shape[0]:
                        pend_weighted(exact, &pending[q], <double>targets[i], weights[i])
                    else:
                        pend(exact, &pending[q], <double>targets[i])
                    if pending[q].rows == CUT_ROWS:
                        rows[q] += CUT_ROWS
                        flush(exact, &pending[q], &words[q, 0], weights.shape[0] > 0)
            start += size
        for q in range(rows.shape[0]):
            if pending[q].rows:
                rows[q] += pending[q].rows
                flush(exact, &pending[q], &words[q, 0], weights.shape[0] > 0)
    return n_kept


def collect_size(Py_ssize_t n_runs):
    """Bytes that `collect` wants for its work."""
    return n_runs * sizeof(Pending)


def add_runs(
    object scale not None,
    int64_t[::1] rows not None,
    uint64_t[:, ::1] words not None,
    const int64_t[::1] other_rows not None,
    const uint64_t[:, ::1] other_words not None,
):
    """rows += other_rows, words += other_words."""
    cdef Scale exact = scale._asdict()
    cdef Py_ssize_t q
    with nogil:
        for q in range(rows.shape[0]):
            rows[q] += other_rows[q]
            add_sums(exact, &words[q, 0], &other_words[q, 0])
