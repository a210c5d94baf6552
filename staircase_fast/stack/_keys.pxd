# Sort keys: integers with the order of the scores, which NumPy sorts.
#
# NumPy sorts integers with vector instructions where the processor has them.  That takes a third of the time of the
# bucket sort (`_sort.pxd`).  A key holds the upper bits of a score's rank, and the number of its row in the lower bits:
#
#     key = (rank - least rank) >> shift << bits | row
#
# Scores whose upper bits are equal come in the order of their rows; insertion puts them in the order of the scores.
# Instead of the row, the key of a label holds the label:
#
#     key = (rank - least rank) << 1 | label
#
# Precondition: no NaN.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._simd cimport Pair, pair_first, pair_greater, pair_lesser, pair_of, pair_second
from staircase_fast.arithmetic._types cimport floating
from staircase_fast.stack._sort cimport rank_of

ctypedef fused bits:      # targets are moved as integers of the same size
    uint8_t
    uint32_t
    uint64_t


cdef inline void find_ends(const double *x, Py_ssize_t n, double *low, double *high) noexcept nogil:
    """Find the least and the greatest score."""
    cdef Pair least = pair_of(x[0], x[n - 1]), greatest = least, two
    cdef Py_ssize_t i
    for i in range(0, n - 1, 2):
        two = pair_of(x[i], x[i + 1])
        least = pair_lesser(two, least)
        greatest = pair_greater(two, greatest)
    low[0] = lesser(pair_first(least), pair_second(least))
    high[0] = greater(pair_first(greatest), pair_second(greatest))


cdef inline bint label_fits(double low, double high) noexcept nogil:
    """Whether the ranks of scores in [low, high], relative to the least one, leave a bit for a label."""
    return rank_of(high) - rank_of(low) < <uint64_t>1 << 63


cdef inline int bits_for(Py_ssize_t n) noexcept nogil:
    """The number of bits of a row number below n."""
    cdef int width = 1
    while n - 1 >> width:
        width += 1
    return width


cdef inline void make_keys(
    const floating *x, Py_ssize_t n, floating low, floating high, uint64_t *keys
) noexcept nogil:
    """Make the keys of n scores in [low, high]."""
    cdef uint64_t first = rank_of(low), width = rank_of(high) - first
    cdef int row_bits = bits_for(n), shift = 0
    cdef Py_ssize_t i
    while width >> shift >> (64 - row_bits):
        shift += 1
    for i in range(n):
        keys[i] = (rank_of(x[i]) - first) >> shift << row_bits | <uint64_t>i


cdef inline void make_label_keys(
    const double *x, const uint8_t *labels, Py_ssize_t n, double low, uint64_t *keys
) noexcept nogil:
    """Make the keys of n labels, if `label_fits`; the least score is `low`."""
    cdef uint64_t first = rank_of(low)
    cdef Py_ssize_t i
    for i in range(n):
        keys[i] = (rank_of(x[i]) - first) << 1 | labels[i]


cdef inline bint insert_columns(
    const uint64_t *keys, const floating *scores, const bits *targets, const double *weights, Py_ssize_t n,
    floating *x, bits *y, double *w
) noexcept nogil:
    """Sort rows by insertion, in the order of their sorted keys (NULL: in their own); weights and w may be NULL.

    Return whether that took at most about n moves; otherwise stop.
    """
    cdef uint64_t mask = (<uint64_t>1 << bits_for(n)) - 1
    cdef Py_ssize_t i, j, row, moves = 0
    cdef floating score
    for i in range(n):
        row = i if keys == NULL else <Py_ssize_t>(keys[i] & mask)
        score = scores[row]
        j = i
        while j > 0 and x[j - 1] > score:
            x[j] = x[j - 1]
            y[j] = y[j - 1]
            if weights != NULL:
                w[j] = w[j - 1]
            j -= 1
        moves += i - j
        if moves > n:
            return False
        x[j] = score
        y[j] = targets[row]
        if weights != NULL:
            w[j] = weights[row]
    return True
