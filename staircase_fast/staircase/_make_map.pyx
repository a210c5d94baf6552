"""Make bucket maps (`_cells.pxd`): cells divide until the scores of a sample are spread evenly over their parts.

A cell with evenly spread scores, or with few of them, is divided into buckets, in proportion to its scores.  It covers
only the range in which they lie, if that is known.  Any other cell is divided into cells.

Preconditions: the sample is sorted and finite.
"""

from libc.math cimport INFINITY, rint
from libc.stdint cimport int64_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.staircase._cells cimport Cell, Header, part_of, rank_of_bits

import numpy

cdef object empty = numpy.empty

cdef enum:
    MOST_CELLS = 512          # that a cell is divided into
    MOST_LEVELS = 12
    DEEP = 3                  # from so many levels on, the ranks of bits may need fewer
    FEW = 8                   # with fewer sample scores, the range of a cell is unknown

cdef double LARGEST = 1.7976931348623157e308

# The scores of a cell, and where the cell comes from.
ctypedef struct Origin:
    Py_ssize_t first
    Py_ssize_t end
    Py_ssize_t parent         # or -1
    Py_ssize_t part           # of the parent
    Py_ssize_t even           # whether the cell needs no further division

ctypedef struct Tree:
    const double *scores      # distinct and ascending
    const Py_ssize_t *rows    # number of sample rows before each score, and in total
    Py_ssize_t n              # scores
    double wanted             # buckets per sample row
    bint steps                # the scores are all edges of a staircase, not a sample
    Cell *cells
    Origin *origins
    Py_ssize_t n_cells
    int depth
    bint even                 # nearly all scores are in even cells


def make(const double[::1] sample not None, double wanted, bint steps):
    """A map to about `wanted` buckets that the sorted sample fills evenly.

    `steps`: all scores are given, and few buckets should contain more than one of them.
    """
    cdef Tree tree, by_bits
    bucket_map = make_tree(&tree, sample, wanted, steps, False)
    if tree.depth >= DEEP or not tree.even:
        other = make_tree(&by_bits, sample, wanted, steps, True)
        # a double does not hold every rank: scores that are very close may have become equal
        if by_bits.n == tree.n and by_bits.even and (by_bits.depth < tree.depth or not tree.even):
            return other
    return bucket_map


cdef object make_tree(Tree *tree, const double[::1] sample, double wanted, bint steps, bint ranks):
    """A map, and the tree it was made from, without its memory."""
    cdef Py_ssize_t i, room, n_buckets
    cdef double score
    cdef double[::1] scores = empty(sample.shape[0] + 1)
    cdef Py_ssize_t[::1] rows = empty(sample.shape[0] + 1, dtype=numpy.intp), origins
    cdef double[:, ::1] cells
    tree.n = 0
    for i in range(sample.shape[0]):
        score = rank_of_bits(sample[i]) if ranks else sample[i]
        if i == 0 or score != scores[tree.n - 1]:
            scores[tree.n] = score
            rows[tree.n] = i
            tree.n += 1
    rows[tree.n] = sample.shape[0]
    room = 2 + MOST_LEVELS * (tree.n // 2 + 1)          # memory that is never touched is never allocated
    cells = empty((room, sizeof(Cell) // sizeof(double)))
    origins = empty(room * (sizeof(Origin) // sizeof(Py_ssize_t)), dtype=numpy.intp)
    tree.scores, tree.rows, tree.wanted, tree.steps = &scores[0], &rows[0], wanted / max(1, sample.shape[0]), steps
    tree.cells, tree.origins = <Cell *>&cells[1, 0], <Origin *>&origins[0]
    with nogil:
        tree.even = grow(tree)
        n_buckets = number_buckets(tree, 0, 0)
    (<Header *>&cells[0, 0])[0] = Header(n_buckets, tree.depth, ranks, 0.0)
    return numpy.array(cells[:tree.n_cells + 1])


cdef inline bint grow(Tree *tree) noexcept nogil:
    """Make all cells, level by level, until nearly all scores are in even ones; return whether they are."""
    cdef Py_ssize_t first = 0, end, i, uneven
    tree.origins[0] = Origin(0, tree.n, -1, 0, False)
    tree.n_cells = 1
    tree.depth = 0
    while tree.n_cells > first:
        end = tree.n_cells
        tree.depth += 1
        uneven = 0
        for i in range(first, end):
            tree.cells[i] = bucket_cell(tree, tree.origins[i])
            tree.origins[i].even = is_even(tree, tree.cells + i, tree.origins[i])
            uneven += 0 if tree.origins[i].even else tree.origins[i].end - tree.origins[i].first
        if uneven <= tree.n // (20 if tree.steps else 100):
            return True
        if tree.depth == MOST_LEVELS:
            return False
        for i in range(first, end):
            if not tree.origins[i].even:
                divide(tree, i)
        first = end
    return False


cdef inline void divide(Tree *tree, Py_ssize_t number) noexcept nogil:
    """Divide a cell into cells, if it is wide enough."""
    cdef Origin origin = tree.origins[number]
    cdef Py_ssize_t n = origin.end - origin.first, trimmed = n // 1000, i = origin.first, start, part
    # ignore the outermost thousandths: outliers would make all cells wide
    cdef Cell cell = cell_between(
        tree.scores[i + trimmed], tree.scores[origin.end - 1 - trimmed],
        <double>max(2, min(MOST_CELLS, n // (2 if tree.steps else FEW)))
    )
    if part_of(&cell, tree.scores[i]) == part_of(&cell, tree.scores[origin.end - 1]):
        return
    for part in range(<Py_ssize_t>cell.top + 1):
        start = i
        while i < origin.end and part_of(&cell, tree.scores[i]) == part:
            i += 1
        tree.origins[tree.n_cells + part] = Origin(start, i, number, part, False)
    cell.base = tree.n_cells
    tree.cells[number] = cell
    tree.n_cells += <Py_ssize_t>cell.top + 1


cdef inline Cell cell_between(double low, double high, double parts) noexcept nogil:
    """A cell that divides a range into parts."""
    cdef double scale = parts / (high - low)
    if high - low == INFINITY:
        scale = parts * 0.5 / (high * 0.5 - low * 0.5)
    scale = lesser(scale, LARGEST)
    return Cell(scale, -low * scale, parts - 1.0, 0)


cdef inline Cell bucket_cell(Tree *tree, Origin origin) noexcept nogil:
    """A cell that is divided into buckets."""
    cdef Py_ssize_t n = origin.end - origin.first
    cdef Py_ssize_t rows = tree.rows[origin.end] - tree.rows[origin.first]
    cdef double parts, low, high, pad
    cdef Cell parent
    rows += origin.parent >= 0 and not tree.steps        # others may be there that are not in the sample
    parts = greater(1.0, rint(tree.wanted * <double>rows))
    if n < 2 and (tree.steps or origin.parent < 0):
        return Cell(1.0, 0.0, 0.0, 0)                    # one bucket
    low, high = tree.scores[origin.first], tree.scores[origin.end - 1]
    if tree.steps:
        return cell_between(low, high, parts)
    if n >= FEW or origin.parent < 0:
        # rows that are not in the sample exceed its range
        pad = (high / n - low / n) * 4
        return cell_between(greater(low - pad, -LARGEST), lesser(high + pad, LARGEST), parts)
    # the range is unknown: divide the part of the parent
    parent = tree.cells[origin.parent]
    parts = parts if parent.scale < LARGEST / parts else 1.0
    return Cell(parent.scale * parts, (parent.shift - origin.part) * parts, parts - 1.0, 0)


cdef inline bint is_even(Tree *tree, const Cell *cell, Origin origin) noexcept nogil:
    """Whether few scores share a bucket, or, of a sample, a fine or a coarse part, with many others."""
    cdef double n = <double>(origin.end - origin.first), parts = cell.top + 1.0
    if tree.steps:
        # more steps share a bucket by chance if there are fewer buckets per step
        return n < 3 or crowded(tree, cell, origin, 1.0, <Py_ssize_t>(2 + 3 / tree.wanted)) <= n / 20
    return n < FEW or (
        crowded(tree, cell, origin, lesser(1.0, 4 * n / parts), 4) <= n / 50
        and crowded(tree, cell, origin, lesser(1.0, n / 16 / parts), 36) <= n / 50
    )


cdef inline Py_ssize_t crowded(
    Tree *tree, const Cell *cell, Origin origin, double coarser, Py_ssize_t limit
) noexcept nogil:
    """The number of scores in parts with more than `limit`; parts are wider than the cell's by 1 / `coarser`."""
    cdef Py_ssize_t i, count = 0, found = 0
    cdef int64_t part, before = -1
    for i in range(origin.first, origin.end):
        part = <int64_t>(coarser * part_of(cell, tree.scores[i]))
        count = count + 1 if part == before else 1
        before = part
        if count > limit:
            found += limit + 1 if count == limit + 1 else 1
    return found


cdef inline Py_ssize_t number_buckets(Tree *tree, Py_ssize_t number, Py_ssize_t n_buckets) noexcept nogil:
    """Number the buckets of a cell, in order of score; return the number of buckets so far."""
    cdef Cell *cell = tree.cells + number
    cdef Py_ssize_t parts = <Py_ssize_t>cell.top + 1, child
    if cell.base == 0:
        cell.base = n_buckets
        return n_buckets + parts
    for child in range(cell.base, cell.base + parts):
        n_buckets = number_buckets(tree, child, n_buckets)
    cell.base -= tree.n_cells
    return n_buckets
