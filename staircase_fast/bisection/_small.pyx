"""Fits of few rows under losses whose minimiser is not the mean, in one call (`_small_fit.pxd`).

Unsupported arrays, invalid rows and extraordinary numbers are left to the general path, which converts them or raises
the error.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from staircase_fast.bisection._score_order cimport Columns
from staircase_fast.bisection._small_fit cimport Options, Work, fit_rows, free_work, make_work
from staircase_fast.inputs._buffers cimport Array, close_array, copy_as_doubles, open_array
from staircase_fast.losses._slopes cimport PLAIN_FUNCTION
from staircase_fast.stack._small_fit cimport Steps
from staircase_fast.stack._small_rows cimport FINE, GENERAL, NO_MEMORY, Status

import numpy

cdef object empty = numpy.empty
cdef type ndarray = numpy.ndarray
cdef dict SIDES = {"either": (0, False), "lower": (-1, False), "upper": (1, False), "middle": (-1, True)}

cdef enum:
    ROWS = 50000              # a fit of more rows takes more than some milliseconds, so signals are checked meanwhile

MOST_ROWS = ROWS


cdef Options options_of(loss, bint decreasing, double lo, double hi) except *:
    cdef const double[::1] parameters = loss.parameters
    cdef Options options
    options.kind = loss.kind
    options.p = parameters[0]
    options.is_location = loss.is_location
    options.side, options.both_sides = SIDES[loss.side]
    options.least_target, options.greatest_target = loss.target_range
    options.decreasing = decreasing
    options.lo, options.hi = lo, hi
    return options


def supports(loss):
    """Whether the loss is searched for by rounds, and is not a user's function."""
    return loss.solver in ("rounds", "exponentials") and 0 <= loss.kind < PLAIN_FUNCTION


def fit(
    scores, targets, weights,                  # IN  numpy arrays; weights may be None: all are 1
    loss,                                      # IN  a loss that is supported
    bint decreasing,
    double lo, double hi,                      # IN  bounds on values
):
    """Return an array of shape (7, n_steps): left, right, value, weight, row count (stored as int64 bits), bounds.

    Return None if the general path must convert or reject the rows, or if there are more than MOST_ROWS rows.
    """
    cdef Options options = options_of(loss, decreasing, lo, hi)
    cdef const double[::1] parameters = loss.parameters
    cdef Array arrays[3]
    cdef Work work
    cdef Columns given
    cdef Status status = GENERAL
    cdef Py_ssize_t n = 0, column
    cdef Steps found
    cdef double *memory = NULL
    cdef double[:, ::1] steps
    arrays[0].kind = arrays[1].kind = arrays[2].kind = 0
    work.room.memory = NULL
    try:
        if not (open_array(scores, ndarray, &arrays[0]) and open_array(targets, ndarray, &arrays[1])):
            return None
        n = arrays[0].n
        if not 0 < n <= ROWS or arrays[1].n != n or parameters.shape[0] not in (1, n):
            return None
        if weights is not None and (not open_array(weights, ndarray, &arrays[2]) or arrays[2].n != n):
            return None
        memory = <double *>PyMem_RawMalloc(10 * n * sizeof(double))
        if memory == NULL or not make_work(&work, n, weights is not None, parameters.shape[0] > 1):
            raise MemoryError
        given = Columns(memory, memory + n, NULL, NULL)
        found = steps_at(memory + 3 * n, n)
        if weights is not None:
            given.w = memory + 2 * n
        if parameters.shape[0] > 1:
            given.p = <double *>&parameters[0]
        with nogil:
            if (
                copy_as_doubles(&arrays[0], given.x) and copy_as_doubles(&arrays[1], given.y)
                and (given.w == NULL or copy_as_doubles(&arrays[2], given.w))
            ):
                status = fit_rows(&work, &options, &given, n, &found, memory + 8 * n, memory + 9 * n)
        if status == NO_MEMORY:
            raise MemoryError
        if status == GENERAL:
            return None
        table = empty((7, found.n))
        steps = table
        for column in range(7):
            memcpy(&steps[column, 0], memory + (3 + column) * n, found.n * sizeof(double))
        return table
    finally:
        for column in range(3):
            close_array(&arrays[column])
        if work.room.memory != NULL:
            free_work(&work)
        PyMem_RawFree(memory)


cdef Steps steps_at(double *memory, Py_ssize_t room) noexcept nogil:
    """Five columns, each with room for so many steps."""
    return Steps(memory, memory + room, memory + 2 * room, memory + 3 * room, <int64_t *>(memory + 4 * room), 0)


def fit_groups(
    const double[::1] scores not None,         # IN  the rows of each group are adjacent
    const double[::1] targets not None,        # IN
    const double[::1] weights not None,        # IN  or empty: all are 1
    loss,                                      # IN  a loss that is supported
    bint decreasing,
    double lo, double hi,                      # IN  bounds on values
    const int64_t[::1] borders not None,       # IN  first row of each group, then the number of rows
    Py_ssize_t first, Py_ssize_t last,         # IN  fit the groups [first, last)
    int64_t[::1] n_steps not None,             # OUT of each group; 0 if it has no rows; -1: left to the general path
):
    """Return an array of shape (7, number of steps), as `fit` does, with the steps of all groups."""
    cdef Options options = options_of(loss, decreasing, lo, hi)
    cdef const double[::1] parameters = loss.parameters
    cdef bint weighted = weights.shape[0] > 0, own_parameters = parameters.shape[0] > 1
    cdef Py_ssize_t room = borders[last] - borders[first], most = 0, at = 0, group, start, n
    cdef Work work
    cdef Columns given = Columns(NULL, NULL, NULL, NULL)
    cdef Status status = FINE
    cdef Steps found
    table = empty((7, room))
    cdef double[:, ::1] steps = table
    for group in range(first, last):
        most = max(most, borders[group + 1] - borders[group])
    if not make_work(&work, min(most, ROWS), weighted, own_parameters):
        raise MemoryError
    with nogil:
        for group in range(first, last):
            start = borders[group]
            n = borders[group + 1] - start
            n_steps[group] = 0 if n == 0 else -1
            if not 0 < n <= ROWS:
                continue
            given.x, given.y = <double *>&scores[start], <double *>&targets[start]
            if weighted:
                given.w = <double *>&weights[start]
            if own_parameters:
                given.p = <double *>&parameters[start]
            found = steps_at(&steps[0, at], room)
            status = fit_rows(&work, &options, &given, n, &found, &steps[5, at], &steps[6, at])
            if status == NO_MEMORY:
                break
            if status == FINE:
                n_steps[group] = found.n
                at += found.n
    free_work(&work)
    if status == NO_MEMORY:
        raise MemoryError
    return table[:, :at]
