"""Wide summaries (_summary.pxd): sums of the tables that scans of parts of the rows have filled (_survey.pyx).

A table of the survey counts fewer than 2**32 rows per bucket, and loses precision with every row.  Wide summaries have
neither limit, and take both kinds of tables.

Preconditions: tables of the same number of buckets; summaries of d = target - centre, with the same centre.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint64_t

from staircase_fast.stack._plan cimport SURVEY_CHORD_BUCKETS, plan
from staircase_fast.stack._summary cimport (
    Summary, WideSummary, key_of, lost_weight, ones_of, ones_t, rows_of, value_of,
)

cdef float UPWARDS = 1.000001         # times this, a float32 sum is an upper bound


def clear(double[:, ::1] wide not None):
    """Make all buckets empty."""
    cdef Py_ssize_t b
    with nogil:
        for b in range(wide.shape[0]):
            (<WideSummary *>&wide[b, 0])[0] = WideSummary(0.0, 0.0, 0.0, INFINITY, -INFINITY, 0.0)


def add_table(
    double[:, ::1] wide not None,             # IN/OUT WideSummary
    const ones_t[:, ::1] table not None,      # IN  words of labels, or Summary
    double centre,
):
    """Add the rows of a table."""
    cdef Py_ssize_t b
    with nogil:
        for b in range(wide.shape[0]):
            if table.shape[1] == 1:
                add(<WideSummary *>&wide[b, 0], of_labels(table[b, 0], centre))
            else:
                add(<WideSummary *>&wide[b, 0], of_summary(<const Summary *>&table[b, 0]))


def add_wide(double[:, ::1] wide not None, const double[:, ::1] other not None):
    """wide += other."""
    cdef Py_ssize_t b
    with nogil:
        for b in range(wide.shape[0]):
            add(<WideSummary *>&wide[b, 0], (<const WideSummary *>&other[b, 0])[0])


cdef inline void add(WideSummary *a, WideSummary b) noexcept nogil:
    a.s += b.s
    a.w += b.w
    a.error = (a.error + b.error) * UPWARDS if b.error > 0.0 else a.error
    a.lo = min(a.lo, b.lo)
    a.hi = max(a.hi, b.hi)
    a.rows += b.rows


cdef inline WideSummary of_labels(ones_t word, double centre) noexcept nogil:
    cdef uint64_t rows = rows_of(word), ones = ones_of(word)
    cdef double lo = 0.0 if ones < rows else 1.0, hi = 1.0 if ones else 0.0
    if rows == 0:
        return WideSummary(0.0, 0.0, 0.0, INFINITY, -INFINITY, 0.0)
    if centre == 0.0:                         # extremes are exact, so the plan can see that all labels are equal
        return WideSummary(<double>ones, <double>rows, 0.0, <float>lo, <float>hi, <float>rows)
    return WideSummary(
        <double>ones - centre * <double>rows, <double>rows, 0.0, value_of(key_of(<float>(lo - centre))),
        value_of(key_of(<float>(hi - centre)) + 1), <float>rows
    )


cdef inline WideSummary of_summary(const Summary *summary) noexcept nogil:
    if summary.rows == 0:
        return WideSummary(0.0, 0.0, 0.0, INFINITY, -INFINITY, 0.0)
    return WideSummary(
        summary.s, summary.w, <float>lost_weight(summary) * UPWARDS, value_of(summary.lo), value_of(summary.hi + 1),
        <float>summary.rows
    )


def plan_buckets(
    const double[:, ::1] wide not None,       # IN  WideSummary
    bint decreasing,
    Py_ssize_t roundings,                     # IN  largest number of roundings in a sum
    double greatest,                          # IN  largest magnitude of a target
    double[:, ::1] work not None,             # work: three rows, an entry per bucket
    uint8_t[::1] live not None,               # OUT
):
    """Mark the live buckets."""
    with nogil:
        plan(
            <const WideSummary *>&wide[0, 0], wide.shape[0], <const double *>NULL, NULL, NULL, 0, decreasing, roundings,
            greatest, <Py_ssize_t *>&work[0, 0], &work[1, 0], &work[2, 0], &live[0],
            SURVEY_CHORD_BUCKETS
        )
