"""The paper's groups: Steps 2 and 3 of section VI as they are written.

Cuts (_cut.pxd) need no groups.  They are kept where somebody asks how many there are, and whether each is alone between
its bounds: then the regions of the staircase are final.

Kernels here assume what those of _bisect.pyx do.
"""

from libc.stdint cimport int64_t, uint8_t

from staircase_fast.bisection._prefix_minimum cimport CHUNK
from staircase_fast.losses._slopes cimport Model, Slopes, fill_slopes, levels_off


ctypedef struct Group:
    int64_t first             # its first row
    double d                  # D, the sum of -l' at the cut
    double curve              # the sum of l'' there


# groups.STATE is the same
ctypedef struct State:
    int64_t run               # the run to go on with,
    int64_t row               # the row of it,
    int64_t n                 # and the groups of it so far
    Group current             # the one that rows are added to


def join_groups(
    int kind,
    const double[::1] parameters not None,    # IN  one, or one per row
    size_t function,
    size_t user_data,
    const double[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    const double[::1] slopes not None,        # IN  of each row at the cut of its run, or empty: find them
    const int64_t[::1] starts not None,       # IN  first row of each run
    const int64_t[::1] stops not None,        # IN  the row after its last one
    const double[::1] cuts not None,          # IN  where it is cut
    Py_ssize_t budget,                        # IN  rows to look at before coming back
    uint8_t[::1] state not None,              # IN, OUT State: zeros before the first run
    uint8_t[::1] stack not None,              # work: Group, room for all rows
    uint8_t[::1] joined not None,             # IN, OUT whether a row and the next one are in one group
):
    """Join groups of each run while one with D >= 0 is followed by one with D <= 0; return whether all are done."""
    cdef Model model = Model(
        kind, &parameters[0], parameters.shape[0] > 1, <void *>function, <void *>user_data, True
    )
    cdef State *now = <State *>&state[0]
    cdef Group *groups = <Group *>&stack[0]
    cdef double[CHUNK] big
    cdef double[CHUNK] tail
    cdef double[CHUNK] curve
    cdef Slopes out = Slopes(&big[0], &tail[0], &curve[0])
    cdef Py_ssize_t i, n, row
    cdef double d
    cdef bint may_be_flat = slopes.shape[0] == 0 and levels_off(&model)
    with nogil:
        while now.run < starts.shape[0] and budget > 0:
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
                now.current.curve += curve[i] if may_be_flat else 1.0
                if row + 1 == stops[now.run] or not joined[row]:
                    push(now, groups, &joined[0])
                    now.current = Group(row + 1, 0.0, 0.0)
            now.row += n
            budget -= n
            if now.row == stops[now.run]:
                now.run += 1
                now.row = 0 if now.run == starts.shape[0] else min(now.row, starts[now.run] - 1)
    return now.run == starts.shape[0]


cdef inline void push(State *now, Group *groups, uint8_t *joined) noexcept nogil:
    """Join the current group with those before it while the rule of Step 3 says so, and put it on the stack."""
    cdef Group *last
    while now.n > 0 and groups[now.n - 1].d >= 0.0 >= now.current.d:
        last = groups + now.n - 1
        if is_flat(last) or is_flat(&now.current):
            break
        now.n -= 1
        joined[now.current.first - 1] = True
        now.current = Group(last.first, last.d + now.current.d, last.curve + now.current.curve)
    groups[now.n] = now.current
    now.n += 1


cdef inline bint is_flat(const Group *group) noexcept nogil:
    """Whether D is 0 around the cut: then the cut does not tell which value the group has, and joins nothing."""
    return group.d == 0.0 and group.curve == 0.0


def state_size():
    """Bytes of a State."""
    return sizeof(State)


def group_size():
    """Bytes of a Group."""
    return sizeof(Group)
