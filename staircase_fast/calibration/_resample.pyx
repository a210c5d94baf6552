"""Resampled fits of means: rows drawn with replacement, or labels drawn from forecasts.

Rows are in score order.  A resample draws how often each row counts.  A *segment* is a range of rows in which no target
is below one that follows, so no step ends inside it, whatever is drawn.  A *cell* is a set of rows of one segment with
equal labels; its rows are counted together.  Other targets have one row per cell.

The counts of cells are multinomial.  They are drawn as independent Poisson counts with a total that is almost always
too small; the missing rows are drawn one by one.  Poisson counts with a given sum are multinomial, so this is exact.

Random numbers: xoshiro256++ (Blackman and Vigna, 2019).  Each resample has its own state, which numpy's SeedSequence
derives from the seed and the number of the resample.  Results do not depend on the number of threads.

Preconditions: at least one row, targets and weights of magnitude at most 1 whose products do not underflow, work space
for one block per segment.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from staircase_fast.arithmetic._exact cimport multiply_words

cdef enum:
    FEW = 16                  # tables 0 to 14 are for cells of 1 to 15 rows, ...
    FEW_BITS = 4
    LAST = 21                 # ... tables 15 to 21 for 16, 32, .., 1024 rows
    LAST_BITS = 10
    GUIDE_BITS = 10

TABLES = LAST + 1
GUIDES = 1 << GUIDE_BITS

ctypedef struct Random:
    uint64_t a
    uint64_t b
    uint64_t c
    uint64_t d

# Blocks with strictly increasing means.
ctypedef struct Stack:
    Py_ssize_t n
    int64_t *starts           # the first segment with rows of each block
    double *s
    double *w
    double *means


cdef inline uint64_t rotated(uint64_t x, int k) noexcept nogil:
    return (x << k) | (x >> (64 - k))


cdef inline uint64_t next_word(Random *random) noexcept nogil:
    cdef uint64_t result = rotated(random.a + random.d, 23) + random.a, t = random.b << 17
    random.c ^= random.a
    random.d ^= random.b
    random.b ^= random.c
    random.a ^= random.d
    random.c ^= t
    random.d = rotated(random.d, 45)
    return result


cdef inline double fraction(uint64_t word) noexcept nogil:
    """A number in [0, 1) from the upper 53 bits."""
    return <double>(word >> 11) * 1.1102230246251565e-16     # 2**-53


cdef inline int64_t below(Random *random, int64_t n) noexcept nogil:
    """An integer in [0, n); probabilities are off by at most 2**-64."""
    cdef uint64_t high
    multiply_words(next_word(random), <uint64_t>n, &high)
    return <int64_t>high


def draw(
    const uint64_t[::1] state not None,        # IN  four words
    int64_t n_rows,
    const int64_t[::1] ends not None,          # IN  number of rows up to the end of each cell; empty: one each
    const uint16_t[:, ::1] guide not None,     # IN  TABLES of GUIDES: the least count for the first random bits
    const double[:, ::1] chances not None,     # IN  TABLES of cumulative probabilities; or empty: draw one by one
    uint32_t[::1] counts not None,             # OUT one per cell
):
    """Draw n_rows rows with replacement and count them by cell."""
    cdef Random random = Random(state[0], state[1], state[2], state[3])
    cdef const int64_t *cell_ends = &ends[0] if ends.shape[0] else NULL
    cdef Py_ssize_t n_cells = counts.shape[0]
    cdef int64_t total = n_rows + 1, _draw
    with nogil:
        if chances.shape[0] == 0:
            counts[:] = 0
            total = 0
        while total > n_rows:                  # rarely again; it depends on the sum alone, so counts stay multinomial
            total = draw_poisson(&random, guide, chances, cell_ends, counts)
        for _draw in range(total, n_rows):
            counts[cell_of(cell_ends, n_cells, below(&random, n_rows))] += 1


cdef inline int64_t draw_poisson(
    Random *random, const uint16_t[:, ::1] guide, const double[:, ::1] chances, const int64_t *ends,
    uint32_t[::1] counts
) noexcept nogil:
    """Draw independent Poisson counts; return their sum."""
    cdef int64_t total = 0, start = 0, size, _draw
    cdef int k
    cdef Py_ssize_t i
    cdef uint32_t count
    for i in range(counts.shape[0]):
        if ends == NULL:
            count = poisson(random, guide, chances, 0)
        else:
            size = ends[i] - start
            start = ends[i]
            count = 0
            if size % FEW:
                count = poisson(random, guide, chances, size % FEW - 1)
            if size >= FEW:
                for _draw in range(size >> LAST_BITS):
                    count += poisson(random, guide, chances, LAST)
                for k in range(FEW_BITS, LAST_BITS):
                    if (size >> k) & 1:
                        count += poisson(random, guide, chances, FEW - 1 + k - FEW_BITS)
        counts[i] = count
        total += count
    return total


cdef inline uint32_t poisson(
    Random *random, const uint16_t[:, ::1] guide, const double[:, ::1] chances, Py_ssize_t table
) noexcept nogil:
    """The first count whose cumulative probability is above a random fraction."""
    cdef uint64_t word = next_word(random)
    cdef uint32_t count = guide[table, <Py_ssize_t>(word >> (64 - GUIDE_BITS))]
    while chances[table, count] <= fraction(word):
        count += 1
    return count


cdef inline Py_ssize_t cell_of(const int64_t *ends, Py_ssize_t n_cells, int64_t row) noexcept nogil:
    """The cell of a row, by bisection."""
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
    const uint32_t[::1] counts not None,       # IN  number of rows drawn from each cell
    const double[::1] s not None,              # IN  weight times target of a row of each cell
    const double[::1] w not None,              # IN  weight of a row of each cell
    const int64_t[::1] segments not None,      # IN  the end of each segment, in cells
    const int64_t[::1] places not None,        # IN  segments whose values are returned, in ascending order
    int64_t[::1] starts not None,              # work
    double[:, ::1] work not None,              # work: 3 columns of one entry per segment
    double[::1] values not None,               # OUT one per place
):
    """Fit the rows that were drawn.  A place before all of them has the value of the first step."""
    cdef Stack stack = Stack(0, &starts[0], &work[0, 0], &work[1, 0], &work[2, 0])
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
                push(&stack, segment, sum_s, sum_w)
        look_up(&stack, &places[0], places.shape[0], &values[0])


def fit_simulated(
    const uint64_t[::1] state not None,        # IN  four words
    const double[::1] chances not None,        # IN  forecasts of observations, in order
    const int64_t[::1] ends not None,          # IN  number of rows up to the end of each observation; empty: one each
    const double[::1] w not None,              # IN  weights of rows; or empty: all are 1
    const int64_t[::1] places not None,        # IN  observations whose values are returned, in ascending order
    int64_t[::1] starts not None,              # work
    double[:, ::1] work not None,              # work: 3 columns of one entry per observation
    double[::1] values not None,               # OUT one per place
):
    """Draw labels with the forecast probabilities and fit them."""
    cdef Stack stack = Stack(0, &starts[0], &work[0, 0], &work[1, 0], &work[2, 0])
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
            # an observation that is all 0, or that follows one that is all 1, shares the step of the one before
            if not (full or sum_s == 0.0):
                push(&stack, first, waiting_s, waiting_w)
                first = k
                waiting_s = 0.0
                waiting_w = 0.0
            waiting_s += sum_s
            waiting_w += sum_w
            full = sum_s == sum_w
        push(&stack, first, waiting_s, waiting_w)
        look_up(&stack, &places[0], places.shape[0], &values[0])


cdef inline void push(Stack *stack, Py_ssize_t start, double s, double w) noexcept nogil:
    """Push a block, merged with all blocks on top whose means are not below its mean."""
    cdef double mean = s / w
    cdef Py_ssize_t top = stack.n - 1
    while top >= 0 and stack.means[top] >= mean:
        start = stack.starts[top]
        s += stack.s[top]
        w += stack.w[top]
        mean = s / w
        top -= 1
    top += 1
    stack.starts[top] = start
    stack.s[top] = s
    stack.w[top] = w
    stack.means[top] = mean
    stack.n = top + 1


cdef inline void look_up(const Stack *stack, const int64_t *places, Py_ssize_t n, double *values) noexcept nogil:
    cdef Py_ssize_t block = 0, i
    for i in range(n):
        while block + 1 < stack.n and stack.starts[block + 1] <= places[i]:
            block += 1
        values[i] = stack.means[block]
