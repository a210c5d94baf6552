"""Survey and plan: the first scan of a fit that does not sort its rows (survey.py).

The table has a row per bucket: one word for labels, or the four words of a Summary (_summary.pxd).  Threads, files or
machines can each survey some of the rows: tables add up.

Preconditions: n >= 1, contiguous columns, no NaN, finite targets and weights, weights > 0.  survey_labels has fewer: it
is the first to read its rows, and reports whether they are valid.
"""

from libc.stdint cimport INT16_MAX, INT16_MIN, int16_t, int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._branchless cimport greater_key, lesser_key, prefetch, prefetch_column
from staircase_fast.arithmetic._column_scan cimport are_labels, has_nan
from staircase_fast.arithmetic._types cimport BATCH, floating, number
from staircase_fast.stack._plan cimport SURVEY_CHORD_BUCKETS, plan
from staircase_fast.stack._summary cimport Summary, key_of, ones_t
from staircase_fast.staircase._cells cimport Map, find_buckets, map_of

cdef enum:
    AHEAD = 32            # the summary of a row is prefetched this many rows before the row is added


def survey_labels(
    const floating[::1] scores not None,      # IN
    const number[::1] labels not None,        # IN  probably 0 or 1
    const double[:, ::1] bucket_map not None,  # IN  Cell
    const int32_t[::1] given not None,        # IN  the bucket of each row, or empty: use the map
    ones_t[:, ::1] table not None,            # IN/OUT one word per bucket
):
    """Add labels without weights to the table; return whether all are labels and no score is NaN."""
    cdef Map cells = map_of(bucket_map)
    cdef Py_ssize_t i, start = 0, size
    cdef int32_t buckets[BATCH]
    cdef const number *ones = &labels[0]
    cdef ones_t *words = &table[0, 0]
    cdef int half = 4 * sizeof(ones_t)
    cdef bint clean = True
    with nogil:
        while start < scores.shape[0] and clean:
            size = min(BATCH, scores.shape[0] - start)
            # this check is almost free here, because the rows must be loaded from memory anyway
            clean = are_labels(ones + start, size) and not has_nan(&scores[start], size)
            if clean:
                if given.shape[0]:
                    memcpy(buckets, &given[start], size * sizeof(int32_t))
                else:
                    find_buckets(cells, &scores[start], size, buckets)
                prefetch_column(&scores[start], size * sizeof(floating))
                prefetch_column(ones + start, size * sizeof(number))
                for i in range(size):
                    words[buckets[i]] += 1 + (<ones_t><uint32_t>ones[start + i] << half)
            start += size
    return bool(clean)


def survey(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    double centre,                            # IN  a number amid the targets
    const double[:, ::1] bucket_map not None,  # IN  Cell
    const int32_t[::1] given not None,        # IN  the bucket of each row, or empty: use the map
    uint32_t[:, ::1] table not None,          # IN/OUT Summary
):
    """Add rows to the summaries of their buckets."""
    cdef Map cells = map_of(bucket_map)
    cdef Summary *summaries = <Summary *>&table[0, 0]
    cdef Summary *summary
    cdef Py_ssize_t i, start = 0, size
    cdef int32_t buckets[BATCH + AHEAD]       # after the last row of a batch, any bucket is prefetched
    cdef int32_t keys[BATCH]
    cdef float products[BATCH]
    cdef float masses[BATCH]
    cdef const number *y = &targets[0]
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef double distance
    with nogil:
        for i in range(BATCH):
            masses[i] = 1.0
        memset(buckets, 0, sizeof(buckets))
        while start < scores.shape[0]:
            size = min(BATCH, scores.shape[0] - start)
            if given.shape[0]:
                memcpy(buckets, &given[start], size * sizeof(int32_t))
            else:
                find_buckets(cells, &scores[start], size, buckets)
            prefetch_column(&scores[start], size * sizeof(floating))
            prefetch_column(y + start, size * sizeof(number))
            if w != NULL:
                prefetch_column(w + start, size * sizeof(double))
            for i in range(AHEAD):
                prefetch(summaries + buckets[i])
            if w != NULL:
                for i in range(size):
                    distance = <double>y[start + i] - centre
                    keys[i] = key_of(<float>distance)
                    products[i] = <float>(distance * w[start + i])
                    masses[i] = <float>w[start + i]
            else:
                for i in range(size):
                    products[i] = <float>(<double>y[start + i] - centre)
                    keys[i] = key_of(products[i])
            for i in range(size):
                prefetch(summaries + buckets[i + AHEAD])
                summary = summaries + buckets[i]
                summary.s += products[i]
                summary.w += masses[i]
                summary.rows += 1
                # no branch: a mispredicted one would also discard the work on the following rows
                summary.lo = <int16_t>lesser_key(keys[i], summary.lo)
                summary.hi = <int16_t>greater_key(keys[i], summary.hi)
            start += size


def clear_summaries(uint32_t[:, ::1] table not None):
    """Make all buckets empty."""
    cdef Py_ssize_t b
    with nogil:
        for b in range(table.shape[0]):
            (<Summary *>&table[b, 0])[0] = Summary(0.0, 0.0, 0, INT16_MAX, INT16_MIN)


def add_summaries(uint32_t[:, ::1] table not None, const uint32_t[:, ::1] other not None):
    """table += other."""
    cdef Summary *a
    cdef const Summary *b
    cdef Py_ssize_t bucket
    with nogil:
        for bucket in range(table.shape[0]):
            a = <Summary *>&table[bucket, 0]
            b = <const Summary *>&other[bucket, 0]
            a.s += b.s
            a.w += b.w
            a.rows += b.rows
            a.lo = <int16_t>lesser_key(a.lo, b.lo)
            a.hi = <int16_t>greater_key(a.hi, b.hi)


def plan_buckets(
    const ones_t[:, ::1] table not None,      # IN
    bint decreasing,
    Py_ssize_t n_rows,
    double greatest,                          # IN  largest magnitude of a target
    double[:, ::1] work not None,             # work: three rows, an entry per bucket
    uint8_t[::1] live not None,               # OUT
):
    """Mark the live buckets."""
    cdef Py_ssize_t n = table.shape[0]
    cdef Py_ssize_t *starts = <Py_ssize_t *>&work[0, 0]
    cdef const Summary *summaries = <const Summary *>&table[0, 0]
    with nogil:
        if table.shape[1] == 1:
            plan(
                &table[0, 0], n, <const double *>NULL, NULL, NULL, 0, decreasing, n_rows, 1.0, starts, &work[1, 0],
                &work[2, 0], &live[0], SURVEY_CHORD_BUCKETS
            )
        else:
            plan(
                summaries, n, <const double *>NULL, NULL, NULL, 0, decreasing, n_rows, greatest, starts, &work[1, 0],
                &work[2, 0], &live[0], SURVEY_CHORD_BUCKETS
            )


def index_live(const uint8_t[::1] live not None, uint64_t[::1] directory not None):
    """Fill the directory; return the number of live buckets."""
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
