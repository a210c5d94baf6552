"""The C API: see cython_api.pxd.

Unlike other kernels, these functions check their input and allocate memory.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free

from staircase_fast.arithmetic._column_scan cimport first_nan
from staircase_fast.c_api._fit cimport drop_absent, fit
from staircase_fast.c_api._rows cimport Ranges, Rows, at_row, check_row, check_rows
from staircase_fast.c_api._staircase cimport evaluate
from staircase_fast.streams._online_memory cimport (
    ADDED, NO_MEMORY, OnlineFit, Outcome, count_rows, extend, free_online, new_online, push_row, staircase_so_far,
)
from staircase_fast.streams._online_stack cimport OwnedStairs


cdef const char *MESSAGES[14]
MESSAGES[:] = [               # in the order of the statuses
    "no error",
    "an array, an object or `out` must not be NULL",
    "`options` must be 0 or a sum of options of this function",
    "the number of rows must be >= 0",
    "there must be at least one row",
    "scores must not be NaN",
    "targets must be finite",
    "weights must be finite",
    "weights must be >= 0",
    "at least one weight must be > 0",
    "weights must have a finite sum",
    "scores must not be below the one before them",
    "there must be fewer than 2**32 rows in any order, or fewer than 2**48 in score order",
    "not enough memory",
]


cdef int sf_api_version() noexcept nogil:
    return SF_API_VERSION


cdef const char *sf_status_message(int status) noexcept nogil:
    if 0 <= status <= SF_NO_MEMORY:
        return MESSAGES[status]
    return "unknown status"


cdef int sf_fit_squared(
    const double *scores, const double *targets, const double *weights, Py_ssize_t n, int options, sf_staircase **out,
    Py_ssize_t *bad_row
) noexcept nogil:
    cdef Rows rows = Rows(scores, targets, weights, n)
    cdef Ranges found
    cdef int status
    at_row(-1, SF_OK, bad_row)
    if out == NULL:
        return SF_NULL_POINTER
    out[0] = NULL
    if options & ~SF_DECREASING:
        return SF_UNKNOWN_OPTION
    status = check_rows(rows, &found, bad_row)
    return status if status != SF_OK else fit(rows, &found, options & SF_DECREASING, <OwnedStairs **>out)


cdef int sf_evaluate(
    const sf_staircase *stairs, const double *queries, Py_ssize_t n, int options, double *out, Py_ssize_t *bad_row
) noexcept nogil:
    cdef Py_ssize_t bad
    at_row(-1, SF_OK, bad_row)
    if stairs == NULL or (n > 0 and (queries == NULL or out == NULL)):
        return SF_NULL_POINTER
    if options & ~(SF_LINEAR | SF_OUTSIDE_NAN):
        return SF_UNKNOWN_OPTION
    if n < 0:
        return SF_NEGATIVE_COUNT
    bad = first_nan(queries, n)                # before anything is written
    if bad >= 0:
        return at_row(bad, SF_SCORE_IS_NAN, bad_row)
    evaluate(<const OwnedStairs *>stairs, queries, n, options & SF_LINEAR, options & SF_OUTSIDE_NAN, out)
    return SF_OK


cdef Py_ssize_t sf_staircase_n_steps(const sf_staircase *stairs) noexcept nogil:
    return (<const OwnedStairs *>stairs).n_steps if stairs != NULL else 0


cdef const double *sf_staircase_left(const sf_staircase *stairs) noexcept nogil:
    return (<const OwnedStairs *>stairs).left if stairs != NULL else NULL


cdef const double *sf_staircase_right(const sf_staircase *stairs) noexcept nogil:
    return (<const OwnedStairs *>stairs).right if stairs != NULL else NULL


cdef const double *sf_staircase_values(const sf_staircase *stairs) noexcept nogil:
    return (<const OwnedStairs *>stairs).values if stairs != NULL else NULL


cdef const double *sf_staircase_weights(const sf_staircase *stairs) noexcept nogil:
    return (<const OwnedStairs *>stairs).weights if stairs != NULL else NULL


cdef const Py_ssize_t *sf_staircase_counts(const sf_staircase *stairs) noexcept nogil:
    return (<const OwnedStairs *>stairs).counts if stairs != NULL else NULL


cdef void sf_staircase_free(sf_staircase *stairs) noexcept nogil:
    free(stairs)


cdef int sf_online_new(int options, sf_online **out) noexcept nogil:
    if out == NULL:
        return SF_NULL_POINTER
    out[0] = NULL
    if options & ~SF_DECREASING:
        return SF_UNKNOWN_OPTION
    out[0] = <sf_online *>new_online(options & SF_DECREASING, 0.0)
    return SF_OK if out[0] != NULL else SF_NO_MEMORY


cdef int sf_online_push(sf_online *online, double score, double target, double weight) noexcept nogil:
    cdef OnlineFit *own = <OnlineFit *>online
    cdef int status
    if own == NULL:
        return SF_NULL_POINTER
    status = check_row(score, target, weight)
    if status != SF_OK or weight == 0:
        return status
    if score < own.newest:
        return SF_SCORE_FALLS
    return status_of(push_row(own, score, target, weight))


cdef int sf_online_extend(
    sf_online *online, const double *scores, const double *targets, const double *weights, Py_ssize_t n,
    Py_ssize_t *bad_row
) noexcept nogil:
    cdef OnlineFit *own = <OnlineFit *>online
    cdef Rows rows = Rows(scores, targets, weights, n)
    cdef double *present = NULL
    cdef Py_ssize_t bad
    cdef Ranges found
    cdef int status
    at_row(-1, SF_OK, bad_row)
    if own == NULL:
        return SF_NULL_POINTER
    status = check_rows(rows, &found, bad_row)
    if status != SF_OK:
        return SF_OK if status == SF_NO_ROWS or status == SF_ALL_WEIGHTS_ZERO else status
    bad = first_fall(rows, own.newest)
    if bad >= 0:
        return at_row(bad, SF_SCORE_FALLS, bad_row)
    if weights != NULL and found.weights.lowest == 0:
        status = drop_absent(&rows, &present)
    if status == SF_OK:
        status = status_of(extend(own, rows.x, rows.y, rows.w, rows.n, found.targets, found.weights))
    free(present)
    return status


cdef int status_of(Outcome outcome) noexcept nogil:
    return SF_OK if outcome == ADDED else SF_NO_MEMORY if outcome == NO_MEMORY else SF_WEIGHTS_OVERFLOW


cdef Py_ssize_t first_fall(Rows rows, double newest) noexcept nogil:
    """The first row of weight > 0 whose score is below the one before it, or -1."""
    cdef Py_ssize_t i
    for i in range(rows.n):
        if rows.w == NULL or rows.w[i] > 0:
            if rows.x[i] < newest:
                return i
            newest = rows.x[i]
    return -1


cdef Py_ssize_t sf_online_n_samples(const sf_online *online) noexcept nogil:
    return count_rows(<const OnlineFit *>online) if online != NULL else 0


cdef int sf_online_staircase(sf_online *online, sf_staircase **out) noexcept nogil:
    if out == NULL:
        return SF_NULL_POINTER
    out[0] = NULL
    if online == NULL:
        return SF_NULL_POINTER
    if sf_online_n_samples(online) == 0:
        return SF_NO_ROWS
    out[0] = <sf_staircase *>staircase_so_far(<OnlineFit *>online, -INFINITY, INFINITY)
    return SF_OK if out[0] != NULL else SF_NO_MEMORY


cdef void sf_online_free(sf_online *online) noexcept nogil:
    free_online(<OnlineFit *>online)
