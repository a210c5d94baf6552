"""Collect: the second scan of a fit that does not sort its rows (survey.py).

Rows of live buckets are collected.  All other rows belong to a *run* and are only summed:

    run q, q <= n_live    the rows of the quiet buckets between live bucket q - 1 and live bucket q
    run q > n_live        the rows of an *atom*, a frequent score inside a live bucket
    rows[q], words[q]     the number of these rows, and their exact sums

Threads, files or machines can each collect from some of the rows: the sums of runs add up.

Preconditions: n >= 1, contiguous columns, no NaN, finite targets and weights, weights > 0.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from staircase_fast.arithmetic._branchless cimport prefetch, prefetch_column
from staircase_fast.arithmetic._exact cimport Scale, add_sums, unpacked
from staircase_fast.arithmetic._row_sums cimport Pending
from staircase_fast.arithmetic._types cimport BATCH, bits_of, double_of, floating, number
from staircase_fast.stack._plan cimport count_bits, is_live, live_before
from staircase_fast.stack._run_sums cimport RunSums, add_batch, flush_all
from staircase_fast.stack._sort cimport RankedRow, rank_of
from staircase_fast.stack._summary cimport ones_of, ones_t, rows_of
from staircase_fast.staircase._cells cimport Map, find_buckets, map_of


def sum_labels(
    const ones_t[:, ::1] table not None,      # IN
    const uint64_t[::1] directory not None,   # IN
    const int32_t[::1] atom_runs not None,    # IN
    const uint64_t[:, ::1] live_rows not None,  # IN  RankedRow: the rows that were collected
    const int32_t[::1] places not None,       # IN  number of live buckets before the bucket of each of them
    int64_t[::1] rows not None,               # IN/OUT
    uint64_t[:, ::1] words not None,          # IN/OUT
):
    """Add the sums of all runs of labels: the counts of their buckets, less the collected rows beside an atom."""
    cdef Py_ssize_t b, i, run, q = 0
    with nogil:
        for b in range(table.shape[0]):
            run = q
            if is_live(&directory[0], b):
                run = atom_runs[q] if atom_runs.shape[0] else -1
                q += 1
            if run >= 0:
                rows[run] += rows_of(table[b, 0])
                words[run, 0] += ones_of(table[b, 0])
                words[run, 1] += rows_of(table[b, 0])
        for i in range(places.shape[0] if atom_runs.shape[0] else 0):
            run = atom_runs[places[i]]
            if run >= 0:
                rows[run] -= 1
                words[run, 0] -= <uint64_t>double_of((<const RankedRow *>&live_rows[i, 0]).y)
                words[run, 1] -= 1


def collect(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    const double[:, ::1] bucket_map not None,  # IN  Cell
    const int32_t[::1] given not None,        # IN  the bucket of each row, or empty: use the map
    const uint64_t[::1] directory not None,   # IN
    const double[::1] atoms not None,         # IN  a frequent score of each live bucket or NaN, then a NaN; or empty
    const int32_t[::1] atom_runs not None,    # IN  the run of each atom
    object scale not None,                    # IN  exact.Scale
    bint summed,                              # IN  whether to sum runs
    bint vectors,                             # IN  whether to use AVX2 for that
    uint64_t[:, ::1] found not None,          # OUT RankedRow: the rows in live buckets; room for all rows
    int32_t[::1] places not None,             # OUT number of live buckets before that of the row; likewise
    int64_t[::1] rows not None,               # IN/OUT
    uint64_t[:, ::1] words not None,          # IN/OUT
    uint8_t[::1] work not None,               # work: if `summed`, collect_size(n_runs) bytes, zeros before and after
):
    """Collect the rows of live buckets, except atoms; return their number."""
    cdef Map cells = map_of(bucket_map)
    cdef Scale exact = unpacked(scale)
    cdef const uint64_t *live = &directory[0]
    cdef const floating *x = &scores[0]
    cdef const number *y = &targets[0]
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef RankedRow *out = <RankedRow *>&found[0, 0]
    cdef Py_ssize_t i, start = 0, size, n_picked, n_filled = 0, n_collected = 0, n_runs = rows.shape[0]
    cdef int32_t buckets[BATCH]
    cdef int32_t runs[BATCH]
    cdef uint8_t picked[BATCH]                # BATCH <= 256
    cdef RunSums sums = RunSums(exact, n_runs, &rows[0], &words[0, 0], <Pending *>&work[0], vectors)
    with nogil:
        while start < scores.shape[0]:
            size = min(BATCH, scores.shape[0] - start)
            if given.shape[0]:
                memcpy(buckets, &given[start], size * sizeof(int32_t))
            else:
                find_buckets(cells, x + start, size, buckets)
            prefetch_column(x + start, size * sizeof(floating))
            if summed:
                prefetch_column(y + start, size * sizeof(number))
                if w != NULL:
                    prefetch_column(w + start, size * sizeof(double))
            n_picked = pick_live(live, size, buckets, n_runs, picked, runs if summed else NULL)
            if atoms.shape[0]:
                n_picked = drop_atoms(
                    live, x + start, &atoms[0], &atom_runs[0], buckets, n_picked, n_runs, picked,
                    runs if summed else NULL
                )
            if summed:
                add_batch(&sums, y + start, w + start if w != NULL else NULL, size, runs)
            fill_rows(out, n_filled, n_collected, y, w)
            n_filled = n_collected
            for i in range(n_picked):
                out[n_collected].rank = rank_of(x[start + picked[i]])
                out[n_collected].y = <uint64_t>(start + picked[i])           # `fill_rows` replaces it
                places[n_collected] = <int32_t>live_before(live, buckets[picked[i]])
                prefetch(y + start + picked[i])
                if w != NULL:
                    prefetch(w + start + picked[i])
                n_collected += 1
            start += size
        fill_rows(out, n_filled, n_collected, y, w)
        if summed:
            flush_all(&sums, w != NULL)
    return n_collected


cdef inline void fill_rows(
    RankedRow *rows, Py_ssize_t i, Py_ssize_t end, const number *y, const double *w
) noexcept nogil:
    """Copy targets and weights, a batch later than scores: by then, they have arrived from memory."""
    for i in range(i, end):
        rows[i].w = bits_of(w[rows[i].y] if w != NULL else 1.0)
        rows[i].y = bits_of(<double>y[rows[i].y])


# Each row is written to `picked`, and overwritten unless it is collected: a branch would often be mispredicted.

cdef inline Py_ssize_t pick_live(
    const uint64_t *live, Py_ssize_t n, const int32_t *buckets, Py_ssize_t no_run, uint8_t *picked, int32_t *runs
) noexcept nogil:
    """Find the rows of a batch in live buckets; return their number.

    Unless `runs` is NULL, also find the run of each row; `no_run` if it is collected.
    """
    cdef uint32_t before[BATCH]
    cdef uint32_t bits[BATCH]
    cdef Py_ssize_t i, n_picked = 0
    cdef uint64_t word
    cdef int32_t alive
    for i in range(n):
        word = live[buckets[i] >> 5]
        alive = <int32_t>(word >> (buckets[i] & 31)) & 1
        picked[n_picked] = <uint8_t>i
        n_picked += alive
        if runs != NULL:
            before[i] = <uint32_t>(word >> 32)
            bits[i] = <uint32_t>word & ((<uint32_t>1 << (buckets[i] & 31)) - 1)
            runs[i] = -alive
    if runs != NULL:                          # in a second loop, which compilers vectorise
        for i in range(n):
            runs[i] = (runs[i] & <int32_t>no_run) | (~runs[i] & <int32_t>(before[i] + count_bits(bits[i])))
    return n_picked


cdef inline Py_ssize_t drop_atoms(
    const uint64_t *live, const floating *x, const double *atoms, const int32_t *atom_runs, const int32_t *buckets,
    Py_ssize_t n_picked, Py_ssize_t no_run, uint8_t *picked, int32_t *runs
) noexcept nogil:
    """Remove the rows of atoms from those that `pick_live` found; return the number of the others."""
    cdef Py_ssize_t i, k, q, n_kept = 0
    cdef int32_t atom
    for k in range(n_picked):
        i = picked[k]
        q = live_before(live, buckets[i])
        atom = x[i] == atoms[q]
        if runs != NULL:
            runs[i] = (-atom & atom_runs[q]) | ((atom - 1) & <int32_t>no_run)
        picked[n_kept] = <uint8_t>i
        n_kept += 1 - atom
    return n_kept


def collect_size(Py_ssize_t n_runs):
    """Bytes of work space for `collect`."""
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
