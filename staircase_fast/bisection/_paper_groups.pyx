"""The paper's groups: Steps 2 and 3 of section VI as they are written.

The split of a run (`_prefix_minimum.pxd`) needs no groups.  `Anytime` reports how many there are, and whether each is
alone between its bounds, in which case the regions of the staircase are final.

Preconditions: as in `_rounds.pyx`.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t

from staircase_fast.bisection._prefix_minimum cimport CHUNK
from staircase_fast.losses._slopes cimport Model, Slopes, fill_slopes, levels_off, model_of


ctypedef struct Group:
    int64_t first             # its first row
    double d                  # D, the sum of -l' at the cut
    double curvature          # the sum of l'' there


ctypedef struct State:
    int64_t run               # the run to continue with,
    int64_t row               # its next row,
    int64_t n                 # and its number of groups so far
    Group current             # the group that rows are added to


cdef Group one_group
cdef State one_state
GROUP = np.asarray(<Group[:1]>&one_group).dtype
STATE = np.asarray(<State[:1]>&one_state).dtype


def join_groups(
    problem,                                  # IN  rounds.Problem
    const double[::1] slopes not None,        # IN  of each row at the cut of its run, or empty: compute them
    const int64_t[::1] starts not None,       # IN  first row of each run
    const int64_t[::1] stops not None,        # IN  the row after its last one
    const double[::1] cuts not None,          # IN  its cut
    Py_ssize_t max_rows,                      # IN  return after about this many rows
    State[::1] state not None,                # IN, OUT zeros before the first run
    Group[::1] stack not None,                # work: room for all rows
    uint8_t[::1] joined not None,             # IN, OUT whether a row and the next one are in one group
):
    """Join groups of each run while one with D >= 0 is followed by one with D <= 0; return whether all are done."""
    cdef const double[::1] parameters = problem.parameters, targets = problem.targets, weights = problem.weights
    cdef Model model = model_of(problem, parameters, True)
    cdef State *now = &state[0]
    cdef Group *groups = &stack[0]
    cdef double[CHUNK] big
    cdef double[CHUNK] tail
    cdef double[CHUNK] curvature
    cdef Slopes out = Slopes(&big[0], &tail[0], &curvature[0])
    cdef Py_ssize_t i, n, row
    cdef double d
    cdef bint may_be_flat = slopes.shape[0] == 0 and levels_off(&model)
    with nogil:
        while now.run < starts.shape[0] and max_rows > 0:
            if now.row < starts[now.run]:
                now.row = starts[now.run]
                now.n = 0
                now.current = Group(now.row, 0.0, 0.0)
            n = min(CHUNK, stops[now.run] - now.row)
            if slopes.shape[0] == 0:
                fill_slopes(&model, &targets[0], now.row, n, &cuts[now.run], 0, out)
            for i in range(n):
                row = now.row + i
                d = -(slopes[row] if slopes.shape[0] else big[i] + tail[i])
                now.current.d += d * weights[row] if weights.shape[0] else d
                now.current.curvature += curvature[i] if may_be_flat else 1.0
                if row + 1 == stops[now.run] or not joined[row]:
                    push(now, groups, &joined[0])
                    now.current = Group(row + 1, 0.0, 0.0)
            now.row += n
            max_rows -= n
            if now.row == stops[now.run]:
                now.run += 1
                now.row = 0 if now.run == starts.shape[0] else min(now.row, starts[now.run] - 1)
    return now.run == starts.shape[0]


cdef inline void push(State *now, Group *groups, uint8_t *joined) noexcept nogil:
    """Join the current group with those before it (Step 3), then push it on the stack."""
    cdef Group *last
    while now.n > 0 and groups[now.n - 1].d >= 0.0 >= now.current.d:
        last = groups + now.n - 1
        if is_flat(last) or is_flat(&now.current):
            break
        now.n -= 1
        joined[now.current.first - 1] = True
        now.current = Group(last.first, last.d + now.current.d, last.curvature + now.current.curvature)
    groups[now.n] = now.current
    now.n += 1


cdef inline bint is_flat(const Group *group) noexcept nogil:
    """D is 0 around the cut, not only at it: the cut does not determine the value of the group, and joins nothing."""
    return group.d == 0.0 and group.curvature == 0.0
