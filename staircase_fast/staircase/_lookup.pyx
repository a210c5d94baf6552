"""Evaluate staircases (_follow.pxd).

Preconditions: at least one step, steps in ascending order of score, no NaN in their ends and values.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t

from staircase_fast.arithmetic._branchless cimport prefetch
from staircase_fast.arithmetic._column_scan cimport first_nan, has_nan
from staircase_fast.arithmetic._types cimport BATCH, floating
from staircase_fast.inputs._buffers cimport Array, close_array, copy_as_doubles, in_place, open_array
from staircase_fast.staircase._cells cimport find_buckets, map_of
from staircase_fast.staircase._count_edges cimport count_edges, has_four_lanes
from staircase_fast.staircase._follow cimport FEW_STEPS, Line, follow, line_after
from staircase_fast.staircase._index cimport (
    Entry, Index, Stairs, fill_index, find_entries, index_of, no_index, step_by, step_of,
)

import numpy

from staircase_fast.staircase import cells

cdef object empty = numpy.empty, float64 = numpy.float64
cdef type ndarray = numpy.ndarray

cdef enum:
    FEW_QUERIES = 2000        # an index does not pay for fewer
    MOST_STEPS = 1 << 29      # buckets are counted in int32


def locate(
    const floating[::1] scores not None, const double[:, ::1] bucket_map not None, int32_t[::1] out not None
):
    """out[i] = the bucket of scores[i]."""
    with nogil:
        if scores.shape[0]:
            find_buckets(map_of(bucket_map), &scores[0], scores.shape[0], &out[0])


def has_vectors():
    """Whether edges are counted by AVX2."""
    return bool(has_four_lanes())


def count_below(
    const floating[::1] queries not None,         # IN
    double low,
    double high,
    const double[::1] edges not None,             # IN  at least one
    const double[::1] values not None,            # IN
    double[::1] out not None,                     # OUT
    bint vectors,
):
    """`count_edges` of `_count_edges.pxd`, for tests."""
    return count_edges(
        &queries[0], queries.shape[0], low, high, &edges[0], values.shape[0] - 1, &values[0], &out[0],
        vectors and has_four_lanes()
    )


def draw_lines(
    const double[::1] left not None,              # IN
    const double[::1] right not None,             # IN
    const double[::1] values not None,            # IN
    double[:, ::1] lines not None,                # OUT Line, one per step
):
    """Compute the line after each step."""
    cdef Stairs stairs = Stairs(left.shape[0], &left[0], &right[0], &values[0])
    cdef Py_ssize_t step
    with nogil:
        for step in range(stairs.n):
            (<Line *>&lines[step, 0])[0] = line_after(&stairs, step)


cdef class StepIndex:
    """The index of a staircase (`_index.pxd`)."""

    cdef Index index
    cdef object bucket_map, entries           # its memory

    def __init__(self, const double[::1] left not None):
        cdef double[:, ::1] bucket_map, entries
        self.bucket_map = bucket_map = cells.index_map(numpy.asarray(left))
        self.entries = entries = empty((cells.n_buckets(self.bucket_map) + 1, 2))
        fill_index(&left[0], left.shape[0], map_of(bucket_map), <Entry *>&entries[0, 0], entries.shape[0])
        self.index = index_of(<const Entry *>&entries[0, 0], entries.shape[0], map_of(bucket_map))


cdef object open_error(object array):
    """The error if `open_array` fails: there is no memory for the buffer, or the array is not an ordinary one."""
    if type(array) is ndarray and array.ndim == 1 and array.dtype.kind in "fiub" and array.dtype.isnative:
        return MemoryError()
    return TypeError("scores and steps must be ordinary arrays")


cdef class Lookup:
    """The steps of a staircase, ready to be evaluated.

    An index is made when it first pays, considering the queries of all calls.

    Parameters
    ----------
    left, right, values : ndarray of float64 of shape (n_steps,)
    index : StepIndex, optional

    Notes
    -----
    Thread-safety: any number of threads can use a lookup at the same time.
    """

    cdef tuple columns                        # left, right, values
    cdef Array arrays[3]
    cdef Stairs stairs
    cdef readonly StepIndex index             # or None; set once
    cdef object lines                         # a Line per step, or None; set once
    cdef Py_ssize_t n_queries                 # of all calls so far

    def __cinit__(self, left, right, values, StepIndex index=None):
        cdef Py_ssize_t i
        self.columns = left, right, values
        for i in range(3):
            if not open_array(self.columns[i], ndarray, &self.arrays[i]):
                raise open_error(self.columns[i])
            if in_place(&self.arrays[i]) == NULL:
                raise TypeError("the steps must be contiguous arrays of float64")
        self.stairs = Stairs(
            self.arrays[0].n, in_place(&self.arrays[0]), in_place(&self.arrays[1]), in_place(&self.arrays[2])
        )
        self.index = index

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(3):
            close_array(&self.arrays[i])

    def at(self, scores, interpolation, out_of_bounds, missing, Py_ssize_t limit):
        """The staircase at a float or at fewer than `limit` scores in an ordinary array, in one cheap call.

        Return None for all other scores and options, and for scores that are invalid.
        """
        cdef Array given, found
        cdef Index none = no_index()
        cdef double query, value
        cdef bint linear, nan_outside, keep_nan
        if type(interpolation) is not str or type(out_of_bounds) is not str or type(missing) is not str:
            return None
        linear, nan_outside, keep_nan = interpolation == "linear", out_of_bounds == "nan", missing == "nan"
        if not (linear or interpolation == "step") or not (nan_outside or out_of_bounds == "clip"):
            return None
        if not (keep_nan or missing == "raise"):
            return None
        if type(scores) is float:
            query = scores
            if follow(&self.stairs, &none, NULL, &query, 1, linear, nan_outside, keep_nan, &value) >= 0:
                return None
            return float64(value)
        if not open_array(scores, ndarray, &given):
            return None
        found.kind = 0
        try:
            if given.n >= limit:
                return None
            result = empty(given.n)
            if not open_array(result, ndarray, &found):
                raise open_error(result)
            invalid = self.evaluate_array(&given, linear, nan_outside, keep_nan, <double *>found.view.buf) >= 0
            return None if invalid else result
        finally:
            close_array(&given)
            close_array(&found)

    def evaluate(self, queries, bint linear, bint nan_outside, double[::1] out not None, bint keep_nan=False):
        """out[i] = the staircase at queries[i]; return the index of the first NaN query, or -1.

        `nan_outside`: queries outside the fitted range get NaN, not the nearest value.
        `keep_nan`: NaN queries get NaN, and -1 is returned.
        """
        cdef Array given
        if not open_array(queries, ndarray, &given):
            raise open_error(queries)
        try:
            if given.n != out.shape[0]:
                raise ValueError("queries must be as long as `out`")
            return self.evaluate_array(&given, linear, nan_outside, keep_nan, &out[0] if given.n else NULL)
        finally:
            close_array(&given)

    cdef Py_ssize_t evaluate_array(
        self, const Array *queries, bint linear, bint nan_outside, bint keep_nan, double *out
    ) except? -2:
        """The same.  Returns 0 as well if an integer is not exact in float64."""
        cdef StepIndex kept = self.index_for(queries.n, linear)       # references to the memory in use
        cdef const double[:, ::1] lines = self.lines_for(kept) if linear else None
        cdef Index index = no_index() if kept is None else kept.index
        cdef const Line *drawn = NULL
        cdef Stairs stairs = self.stairs
        cdef const void *entries = queries.view.buf
        cdef double *copy = NULL
        cdef Py_ssize_t n = queries.n, nan = -1
        cdef bint contiguous = queries.view.strides[0] == queries.view.itemsize, exact = True
        if n == 0:
            return -1
        if lines is not None:
            drawn = <const Line *>&lines[0, 0]
        if not contiguous or queries.kind not in b"df":
            copy = <double *>PyMem_Malloc(n * sizeof(double))
            if copy == NULL:
                raise MemoryError
            exact = copy_as_doubles(queries, copy)
            entries = copy
        if exact:
            with nogil:
                if copy == NULL and queries.kind == b"f":
                    nan = follow(
                        &stairs, &index, drawn, <const float *>entries, n, linear, nan_outside, keep_nan, out
                    )
                else:
                    nan = follow(
                        &stairs, &index, drawn, <const double *>entries, n, linear, nan_outside, keep_nan, out
                    )
        PyMem_Free(copy)
        return nan if exact else 0

    cpdef StepIndex index_for(self, Py_ssize_t n_queries, bint even_few_steps):
        """The index if it exists or pays for the queries so far and n more; otherwise None."""
        cdef Py_ssize_t n = self.stairs.n
        self.n_queries += n_queries
        if self.index is None and self.n_queries >= max(FEW_QUERIES, n // 2) and n < MOST_STEPS:
            if n > FEW_STEPS or even_few_steps:
                made = StepIndex(self.columns[0])
                with cython.critical_section(self):           # another thread may have made it as well
                    self.index = made if self.index is None else self.index
        return self.index

    cdef object lines_for(self, StepIndex index):
        """The line after each step, if there is an index; otherwise None: they are computed when needed."""
        if self.lines is None and index is not None:
            lines = empty((self.stairs.n, 4))
            draw_lines(self.columns[0], self.columns[1], self.columns[2], lines)
            with cython.critical_section(self):
                self.lines = lines if self.lines is None else self.lines
        return self.lines


def evaluate_pairs(
    const floating[::1] queries not None,         # IN
    const double[::1] left not None,              # IN
    const double[:, ::1] values not None,         # IN  two for each step
    StepIndex index,                              # IN  or None
    double[::1] first not None,                   # OUT one per query
    double[::1] second not None,                  # OUT
):
    """Find both values of the step of each query; return the index of the first NaN query, or -1."""
    cdef Index steps = no_index() if index is None else index.index
    cdef int32_t buckets[BATCH]
    cdef int64_t found[BATCH]
    cdef Py_ssize_t i, start = 0, size = 0, n = queries.shape[0]
    cdef bint missing = False
    with nogil:
        while start < n and not missing:
            size = min(BATCH, n - start)
            if steps.entries == NULL:
                for i in range(size):
                    found[i] = step_of(&left[0], left.shape[0], queries[start + i])
            else:
                find_entries(&steps, &queries[start], size, buckets)
                for i in range(size):
                    found[i] = step_by(steps.entries + buckets[i], &left[0], queries[start + i])
                    if steps.many:
                        prefetch(&values[found[i], 0])
            for i in range(size):
                first[start + i] = values[found[i], 0]
                second[start + i] = values[found[i], 1]
            missing = has_nan(&queries[start], size)
            start += size
        if missing:
            start += first_nan(&queries[start - size], size) - size
    return start if missing else -1
