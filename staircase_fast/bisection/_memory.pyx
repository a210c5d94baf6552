"""What a Python function is asked about rows, and what it said: rounds.Memory, one pass over rows for each.

Kernels here assume clean input: runs that share no rows, cuts that are numbers, arrays with room for all rows of runs.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t

from staircase_fast.arithmetic._branchless cimport greater


def questions(
    const int64_t[::1] starts not None,       # IN  of runs
    const int64_t[::1] ends not None,
    const double[::1] cuts not None,
    const double[::1] targets not None,       # IN  of all rows
    double nearby,                            # IN  how far below a cut to ask once more, at least
    double lowest,                            # IN  values to ask about
    double[:, ::1] z not None,                # OUT the cut of each row of runs; a value nearby
    double[:, ::1] y not None,                # OUT its target, twice
):
    cdef Py_ssize_t run, row, k = 0
    cdef double cut, near
    with nogil:
        for run in range(starts.shape[0]):
            cut = cuts[run]
            near = greater(cut - greater(nearby, 1e-7 * fabs(cut)), lowest)
            for row in range(starts[run], ends[run]):
                z[0, k] = cut
                z[1, k] = near
                y[0, k] = targets[row]
                y[1, k] = targets[row]
                k += 1


def answers(
    const int64_t[::1] starts not None,       # IN  of runs
    const int64_t[::1] ends not None,
    const double[:, ::1] z not None,          # IN  what was asked
    const double[:, ::1] slopes not None,     # IN  what was said
    double[::1] last_z not None,              # IN/OUT of all rows: where they were last asked, or NaN
    double[::1] slope not None,               # IN/OUT the slope there
    double[::1] curve not None,               # OUT how it rises
):
    """Take in slopes; return a row where they are seen to fall, or -1."""
    cdef Py_ssize_t run, row, k = 0, bad = -1
    cdef double rise
    with nogil:
        for run in range(starts.shape[0]):
            for row in range(starts[run], ends[run]):
                if falls(z[0, k], slopes[0, k], z[1, k], slopes[1, k]) or falls(
                    z[0, k], slopes[0, k], last_z[row], slope[row]
                ):
                    bad = row if bad < 0 else bad
                rise = (slopes[0, k] - slopes[1, k]) / (z[0, k] - z[1, k])
                curve[row] = rise if 0.0 <= rise < INFINITY else 0.0
                last_z[row] = z[0, k]
                slope[row] = slopes[0, k]
                k += 1
    return bad


cdef inline bint falls(double z, double slope, double other_z, double other) noexcept nogil:
    """Whether one slope is clearly less than the other on the wrong side (never, if something is NaN)."""
    return (z - other_z) * (slope - other) < 0.0 and fabs(slope - other) > 1e-9 * (fabs(slope) + fabs(other))
