"""Replicates of a staircase of means: rows drawn with replacement, or labels drawn from forecasts.

Rows are in score order and stay there: a replicate only draws how often each counts.  Rows that are alike, of one label
between two places where a step may end, are one cell, and are counted together.  Cells between such places are a
segment: whatever is drawn, no step ends within it, for no target in it is below one that follows.

How often cells count is multinomial: counts of Poisson distributions that make fewer than all draws, and the draws that
are missing, one by one.  Given their sum, such counts are multinomial, so that nothing is approximate.

Kernels here assume clean input: at least one row, targets and weights of a size of at most 1 whose products do not
underflow, and work space for a block of each segment.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from staircase_fast.calibration._random cimport Random, below, fraction, next_word

cdef enum:
    FEW = 16                  # tables 0 to 14 are for means of 1 to 15 rows, the next for 16, 32, ..
    FEW_BITS = 4
    LAST = 21                 # .. up to 1024
    LAST_BITS = 10
    GUIDE_BITS = 10

TABLES = LAST + 1
GUIDES = 1 << GUIDE_BITS

# Blocks whose means strictly increase.
ctypedef struct Pile:
    Py_ssize_t n
    int64_t *starts           # the first segment of each block that has rows
    double *s
    double *w
    double *means

# Distributions of counts: in each table, the first count that a word can stand for, and the chances of at most so many.
ctypedef struct Tables:
    const uint16_t *guide
    const double *chances
    Py_ssize_t width


def draw(
    const uint64_t[::1] state not None,        # IN  four words
    int64_t n_rows,
    const int64_t[::1] ends not None,          # IN  rows up to the end of each cell; or empty: each cell is a row
    const uint16_t[:, ::1] guide not None,     # IN  TABLES of GUIDES
    const double[:, ::1] chances not None,     # IN  TABLES; or empty: all draws are made one by one
    uint32_t[::1] counts not None,             # OUT one per cell
):
    """Draw as many rows as there are, with replacement; count those of each cell."""
    cdef Random random = Random(state[0], state[1], state[2], state[3])
    cdef const int64_t *cell_ends = &ends[0] if ends.shape[0] else NULL
    cdef Py_ssize_t n_cells = counts.shape[0]
    cdef Tables tables
    cdef int64_t total = 0, _draw
    with nogil:
        if chances.shape[0]:
            tables = Tables(&guide[0, 0], &chances[0, 0], chances.shape[1])
            total = draw_most(&random, tables, cell_ends, n_cells, &counts[0])
            while total > n_rows:              # once in thousands: by the sum alone, so what is left is multinomial too
                total = draw_most(&random, tables, cell_ends, n_cells, &counts[0])
        else:
            memset(&counts[0], 0, n_cells * sizeof(uint32_t))
        for _draw in range(total, n_rows):
            counts[cell_of(cell_ends, n_cells, below(&random, n_rows))] += 1


cdef inline int64_t draw_most(
    Random *random, Tables tables, const int64_t *ends, Py_ssize_t n_cells, uint32_t *counts
) noexcept nogil:
    """Counts of independent Poisson distributions; return their sum."""
    cdef int64_t total = 0, start = 0, size, _draw
    cdef int k
    cdef Py_ssize_t i
    cdef uint32_t count
    for i in range(n_cells):
        if ends == NULL:
            count = poisson(random, tables, 0)
        else:
            size = ends[i] - start
            start = ends[i]
            count = 0
            if size % FEW:
                count = poisson(random, tables, size % FEW - 1)
            if size >= FEW:
                for _draw in range(size >> LAST_BITS):
                    count += poisson(random, tables, LAST)
                for k in range(FEW_BITS, LAST_BITS):
                    if (size >> k) & 1:
                        count += poisson(random, tables, FEW - 1 + k - FEW_BITS)
        counts[i] = count
        total += count
    return total


cdef inline uint32_t poisson(Random *random, Tables tables, Py_ssize_t table) noexcept nogil:
    """The first count whose chance, with those of all below it, is above a random fraction."""
    cdef uint64_t word = next_word(random)
    cdef const double *chances = tables.chances + table * tables.width
    cdef uint32_t count = tables.guide[(table << GUIDE_BITS) + <Py_ssize_t>(word >> (64 - GUIDE_BITS))]
    while chances[count] <= fraction(word):
        count += 1
    return count


cdef inline Py_ssize_t cell_of(const int64_t *ends, Py_ssize_t n_cells, int64_t row) noexcept nogil:
    """The cell that ends above the row first."""
    cdef const int64_t *base = ends
    cdef Py_ssize_t half
    if ends == NULL:
        return row
    while n_cells > 1:
        half = n_cells >> 1
        base += half if base[half - 1] <= row else 0
        n_cells -= half
    return base - ends


def fit_drawn(
    const uint32_t[::1] counts not None,       # IN  how often a row of each cell was drawn
    const double[::1] s not None,              # IN  weight times target, of a row of each cell
    const double[::1] w not None,              # IN  its weight
    const int64_t[::1] segments not None,      # IN  where each ends, in cells
    const int64_t[::1] places not None,        # IN  segments at whose ends values are asked for, in order
    int64_t[::1] starts not None,              # work
    double[:, ::1] work not None,              # work: 3 columns of one entry per segment
    double[::1] values not None,               # OUT one per place
):
    """Fit the rows that were drawn; a place before all of them has the value of the first."""
    cdef Pile pile = Pile(0, &starts[0], &work[0, 0], &work[1, 0], &work[2, 0])
    cdef Py_ssize_t i = 0, segment
    cdef double sum_s, sum_w
    with nogil:
        for segment in range(segments.shape[0]):
            sum_s = 0.0
            sum_w = 0.0
            for i in range(i, segments[segment]):
                sum_s += counts[i] * s[i]
                sum_w += counts[i] * w[i]
            i = segments[segment]
            if sum_w > 0.0:
                push(&pile, segment, sum_s, sum_w)
        look_up(&pile, &places[0], places.shape[0], &values[0])


def fit_simulated(
    const uint64_t[::1] state not None,        # IN  four words
    const double[::1] chances not None,        # IN  forecasts of observations, in order
    const int64_t[::1] ends not None,          # IN  rows up to the end of each observation; or empty: each is a row
    const double[::1] w not None,              # IN  weights of rows; or empty: all are 1
    const int64_t[::1] places not None,        # IN  observations whose values are asked for, in order
    int64_t[::1] starts not None,              # work
    double[:, ::1] work not None,              # work: 3 columns of one entry per observation
    double[::1] values not None,               # OUT one per place
):
    """Fit labels that are 1 by the chance that was forecast."""
    cdef Pile pile = Pile(0, &starts[0], &work[0, 0], &work[1, 0], &work[2, 0])
    cdef Random random = Random(state[0], state[1], state[2], state[3])
    cdef Py_ssize_t k, first = 0, i = 0, end
    cdef double sum_s, sum_w, weight, waiting_s = 0.0, waiting_w = 0.0
    cdef bint label, full = True
    with nogil:
        for k in range(chances.shape[0]):
            end = ends[k] if ends.shape[0] else k + 1
            sum_s = 0.0
            sum_w = 0.0
            for i in range(i, end):
                label = fraction(next_word(&random)) < chances[k]
                weight = w[i] if w.shape[0] else 1.0
                sum_s += weight if label else 0.0
                sum_w += weight
            i = end
            # what is all 0, or follows what is all 1, is on the step of what is before it
            if not (full or sum_s == 0.0):
                push(&pile, first, waiting_s, waiting_w)
                first = k
                waiting_s = 0.0
                waiting_w = 0.0
            waiting_s += sum_s
            waiting_w += sum_w
            full = sum_s == sum_w
        push(&pile, first, waiting_s, waiting_w)
        look_up(&pile, &places[0], places.shape[0], &values[0])


cdef inline void push(Pile *pile, Py_ssize_t start, double s, double w) noexcept nogil:
    """Put a block on top, joined with every block that reaches it."""
    cdef double mean = s / w
    cdef Py_ssize_t top = pile.n - 1
    while top >= 0 and pile.means[top] >= mean:
        start = pile.starts[top]
        s += pile.s[top]
        w += pile.w[top]
        mean = s / w
        top -= 1
    top += 1
    pile.starts[top] = start
    pile.s[top] = s
    pile.w[top] = w
    pile.means[top] = mean
    pile.n = top + 1


cdef inline void look_up(const Pile *pile, const int64_t *places, Py_ssize_t n, double *values) noexcept nogil:
    cdef Py_ssize_t block = 0, i
    for i in range(n):
        while block + 1 < pile.n and pile.starts[block + 1] <= places[i]:
            block += 1
        values[i] = pile.means[block]
