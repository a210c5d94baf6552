"""Bring the rows of each group together.

    number     each row gets the number of its group; the rows of each group are counted
    scatter    rows go to parts, each of them some groups whose rows a cache holds; there they find their group
               (_groups.pyx).  Written to as many places as there are groups, every row would miss the cache.

A row on its way is some words of 32 bits, side by side so that it is written once, and no more of them than it needs:
fresh memory is dear.  It is

    labels           number << 1 | label, and the score
    other targets    the number, the score, the target, and the weight if there are weights

Kernels here assume clean input: n >= 1 and contiguous columns; but not that scores are no NaN, nor that what looks like
labels is, nor that groups are still those that `look` has seen.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from staircase_fast.arithmetic._column_scan cimport are_labels
from staircase_fast.arithmetic._types cimport BATCH, floating, number as number_t
from staircase_fast.groups._travel cimport ONE_DOUBLE, THREE_DOUBLES, TWO_DOUBLES, put

ctypedef fused integer:
    uint8_t
    int32_t
    int64_t


# Of a row with a label; with another target; with a weight as well.
ROW_WORDS = ONE_DOUBLE, TWO_DOUBLES, THREE_DOUBLES


def look(const integer[::1] groups not None):
    """(least, greatest, how many runs of one group side by side)."""
    cdef integer low = groups[0], high = groups[0]
    cdef Py_ssize_t i, runs = 1
    with nogil:
        for i in range(1, groups.shape[0]):
            low = groups[i] if groups[i] < low else low
            high = groups[i] if groups[i] > high else high
            runs += groups[i] != groups[i - 1]
    return low, high, runs


def number(
    const integer[::1] groups not None,        # IN
    int64_t low,                               # IN  the least group
    const int32_t[::1] ranks not None,         # IN  the number of each group from the least on, or empty: 0, 1, ..
    int32_t[::1] numbers not None,             # OUT of each row
    uint32_t[::1] counts not None,             # IN/OUT rows of each number, fewer than 2**32
):
    cdef Py_ssize_t i
    cdef uint64_t own
    cdef bint ranked = ranks.shape[0] > 0
    cdef uint64_t n_ranks = ranks.shape[0], n_numbers = counts.shape[0]
    with nogil:
        for i in range(groups.shape[0]):
            own = <uint64_t><int64_t>groups[i] - <uint64_t>low
            if ranked:
                own = <uint64_t>ranks[own] if own < n_ranks else 0
            if own >= n_numbers:                          # a group that has changed since `look`
                own = 0
            numbers[i] = <int32_t>own
            counts[own] += 1


def find_begins(
    const int32_t[::1] numbers not None,       # IN  rows of one number stand together
    int64_t[::1] begins not None,              # OUT the first row of each number
):
    """Return how many runs of one number there are: more than numbers in use if rows do not stand together."""
    cdef Py_ssize_t i, runs = 1
    with nogil:
        begins[numbers[0]] = 0
        for i in range(1, numbers.shape[0]):
            if numbers[i] != numbers[i - 1]:
                begins[numbers[i]] = i
                runs += 1
    return runs


def scatter(
    const floating[::1] scores not None,       # IN
    const number_t[::1] targets not None,      # IN
    const double[::1] weights not None,        # IN  or empty: all are 1
    const int32_t[::1] numbers not None,       # IN
    const uint16_t[::1] part_of not None,      # IN  the part of each number
    int64_t[::1] places not None,              # IN/OUT where the next row of each part belongs
    uint32_t[:, ::1] rows not None,            # OUT in ONE_DOUBLE columns: labels
):
    """Return whether all is as it looked: False if a target that should be 0 or 1 is not."""
    cdef Py_ssize_t n = scores.shape[0], start = 0, size
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef bint labels = rows.shape[1] == ONE_DOUBLE, fine = True
    with nogil:
        while start < n and fine:
            size = min(BATCH, n - start)
            if labels:
                fine = are_labels(&targets[start], size)
            scatter_batch(
                &scores[start], &targets[start], w if w == NULL else w + start, &numbers[start], size, &part_of[0],
                &places[0], &rows[0, 0], labels
            )
            start += size
    return bool(fine)


cdef inline void scatter_batch(
    const floating *x, const number_t *y, const double *w, const int32_t *numbers, Py_ssize_t n,
    const uint16_t *part_of, int64_t *places, uint32_t *rows, bint labels
) noexcept nogil:
    cdef uint16_t parts[BATCH]
    cdef Py_ssize_t i
    cdef uint32_t *out
    for i in range(n):
        parts[i] = part_of[numbers[i]]
    if labels:
        for i in range(n):
            out = next_row(rows, ONE_DOUBLE, places + parts[i])
            out[0] = <uint32_t>numbers[i] << 1 | (y[i] != 0)
            put(out + 1, <double>x[i] + 0.0)              # -0.0 becomes the 0.0 it equals
    elif w == NULL:
        for i in range(n):
            out = next_row(rows, TWO_DOUBLES, places + parts[i])
            out[0] = <uint32_t>numbers[i]
            put(out + 1, <double>x[i] + 0.0)
            put(out + 3, <double>y[i])
    else:
        for i in range(n):
            out = next_row(rows, THREE_DOUBLES, places + parts[i])
            out[0] = <uint32_t>numbers[i]
            put(out + 1, <double>x[i] + 0.0)
            put(out + 3, <double>y[i])
            put(out + 5, w[i])


cdef inline uint32_t *next_row(uint32_t *rows, int width, int64_t *place) noexcept nogil:
    place[0] += 1
    return rows + width * (place[0] - 1)
