"""The C-level API: see cython_api.pxd.

Unlike other kernels these are given what has not been judged, and memory is theirs to find.
"""

from libc.stdlib cimport free

from staircase_fast.arithmetic._column_scan cimport first_nan
from staircase_fast.c_api._fit cimport drop_absent, fit
from staircase_fast.c_api._online cimport Stream, extend, free_stream, new_stream, settle, staircase_of, wait
from staircase_fast.c_api._rows cimport (
    Found, Rows, Total, is_finite, judge_entries, judge_form, judge_row, total_of, with_weight,
)
from staircase_fast.c_api._staircase cimport Owned, evaluate


cdef int sf_api_version() noexcept nogil:
    return SF_API_VERSION


cdef const char *sf_status_message(int status) noexcept nogil:
    if status == SF_OK:
        return "all is well"
    if status == SF_NULL_POINTER:
        return "an array, an object or `out` must not be NULL"
    if status == SF_UNKNOWN_OPTION:
        return "`options` must be 0 or a sum of options that the function knows"
    if status == SF_NEGATIVE_COUNT:
        return "the number of rows must be >= 0"
    if status == SF_NO_ROWS:
        return "there must be at least one row"
    if status == SF_SCORE_IS_NAN:
        return "scores must not be NaN"
    if status == SF_TARGET_NOT_FINITE:
        return "targets must be finite"
    if status == SF_WEIGHT_NOT_FINITE:
        return "weights must be finite"
    if status == SF_WEIGHT_NEGATIVE:
        return "weights must be >= 0"
    if status == SF_ALL_WEIGHTS_ZERO:
        return "a weight must be > 0; all are 0"
    if status == SF_WEIGHTS_OVERFLOW:
        return "weights must have a finite sum"
    if status == SF_SCORE_FALLS:
        return "scores must not be below the one before them"
    if status == SF_TOO_MANY_ROWS:
        return "there must be fewer than 2**32 rows in any order, or fewer than 2**48 in score order"
    if status == SF_NO_MEMORY:
        return "there is not enough memory"
    return "unknown status"


cdef int sf_fit_squared(
    const double *scores, const double *targets, const double *weights, Py_ssize_t n, int options, sf_staircase **out,
    Py_ssize_t *bad_row
) noexcept nogil:
    cdef Rows rows = Rows(scores, targets, weights, n)
    cdef Py_ssize_t own = -1
    cdef Found found
    cdef int status
    if bad_row == NULL:
        bad_row = &own
    bad_row[0] = -1
    if out == NULL:
        return SF_NULL_POINTER
    out[0] = NULL
    if options & ~SF_DECREASING:
        return SF_UNKNOWN_OPTION
    status = judge_form(rows)
    if status != SF_OK:
        return status
    if n == 0:
        return SF_NO_ROWS
    status = judge_entries(rows, &found, bad_row)
    return status if status != SF_OK else fit(rows, &found, options & SF_DECREASING, <Owned **>out)


cdef int sf_evaluate(
    const sf_staircase *stairs, const double *queries, Py_ssize_t n, int options, double *out, Py_ssize_t *bad_row
) noexcept nogil:
    cdef Py_ssize_t own = -1
    if bad_row == NULL:
        bad_row = &own
    bad_row[0] = -1
    if stairs == NULL or (n > 0 and (queries == NULL or out == NULL)):
        return SF_NULL_POINTER
    if options & ~(SF_LINEAR | SF_OUTSIDE_NAN):
        return SF_UNKNOWN_OPTION
    if n < 0:
        return SF_NEGATIVE_COUNT
    bad_row[0] = first_nan(queries, n)         # before anything is written
    if bad_row[0] >= 0:
        return SF_SCORE_IS_NAN
    evaluate(<const Owned *>stairs, queries, n, options & SF_LINEAR, options & SF_OUTSIDE_NAN, out)
    return SF_OK


cdef Py_ssize_t sf_staircase_n_steps(const sf_staircase *stairs) noexcept nogil:
    return (<const Owned *>stairs).n_steps if stairs != NULL else 0


cdef const double *sf_staircase_left(const sf_staircase *stairs) noexcept nogil:
    return (<const Owned *>stairs).left if stairs != NULL else NULL


cdef const double *sf_staircase_right(const sf_staircase *stairs) noexcept nogil:
    return (<const Owned *>stairs).right if stairs != NULL else NULL


cdef const double *sf_staircase_values(const sf_staircase *stairs) noexcept nogil:
    return (<const Owned *>stairs).values if stairs != NULL else NULL


cdef const double *sf_staircase_weights(const sf_staircase *stairs) noexcept nogil:
    return (<const Owned *>stairs).weights if stairs != NULL else NULL


cdef const Py_ssize_t *sf_staircase_counts(const sf_staircase *stairs) noexcept nogil:
    return (<const Owned *>stairs).counts if stairs != NULL else NULL


cdef void sf_staircase_free(sf_staircase *stairs) noexcept nogil:
    free(stairs)


cdef int sf_online_new(int options, sf_online **out) noexcept nogil:
    if out == NULL:
        return SF_NULL_POINTER
    out[0] = NULL
    if options & ~SF_DECREASING:
        return SF_UNKNOWN_OPTION
    out[0] = <sf_online *>new_stream(options & SF_DECREASING)
    return SF_OK if out[0] != NULL else SF_NO_MEMORY


cdef int sf_online_push(sf_online *online, double score, double target, double weight) noexcept nogil:
    cdef Stream *stream = <Stream *>online
    cdef Total total
    cdef int status
    if stream == NULL:
        return SF_NULL_POINTER
    status = judge_row(score, target, weight)
    if status != SF_OK or weight == 0:
        return status
    if score < stream.newest:
        return SF_SCORE_FALLS
    total = with_weight(stream.total, weight)
    if not is_finite(total):
        return SF_WEIGHTS_OVERFLOW
    status = wait(stream, score, target, weight)
    if status == SF_OK:
        stream.newest = score
        stream.total = total
    return status


cdef int sf_online_extend(
    sf_online *online, const double *scores, const double *targets, const double *weights, Py_ssize_t n,
    Py_ssize_t *bad_row
) noexcept nogil:
    cdef Stream *stream = <Stream *>online
    cdef Rows rows = Rows(scores, targets, weights, n)
    cdef double *present = NULL
    cdef Py_ssize_t own = -1
    cdef Found found
    cdef Total total
    cdef int status
    if bad_row == NULL:
        bad_row = &own
    bad_row[0] = -1
    if stream == NULL:
        return SF_NULL_POINTER
    status = judge_form(rows)
    if status != SF_OK or n == 0:
        return status
    status = judge_entries(rows, &found, bad_row)
    if status == SF_ALL_WEIGHTS_ZERO:
        return SF_OK
    if status != SF_OK:
        return status
    bad_row[0] = first_fall(rows, stream.newest)
    if bad_row[0] >= 0:
        return SF_SCORE_FALLS
    total = total_of(stream.total, rows)
    if not is_finite(total):
        return SF_WEIGHTS_OVERFLOW
    if weights != NULL and found.weights.lowest == 0:
        status = drop_absent(&rows, &present)
    if status == SF_OK:
        status = settle(stream)
    if status == SF_OK:
        status = extend(stream, rows)
    if status == SF_OK:
        stream.newest = rows.x[rows.n - 1]
        stream.total = total
    free(present)
    return status


cdef Py_ssize_t first_fall(Rows rows, double newest) noexcept nogil:
    """The first row that is present and whose score is below the one before it, or -1."""
    cdef Py_ssize_t i
    for i in range(rows.n):
        if rows.w == NULL or rows.w[i] > 0:
            if rows.x[i] < newest:
                return i
            newest = rows.x[i]
    return -1


cdef Py_ssize_t sf_online_n_samples(const sf_online *online) noexcept nogil:
    cdef const Stream *stream = <const Stream *>online
    return stream.n_rows + stream.n_waiting if stream != NULL else 0


cdef int sf_online_staircase(sf_online *online, sf_staircase **out) noexcept nogil:
    cdef Stream *stream = <Stream *>online
    cdef int status
    if out == NULL:
        return SF_NULL_POINTER
    out[0] = NULL
    if stream == NULL:
        return SF_NULL_POINTER
    status = settle(stream)
    if status != SF_OK:
        return status
    return staircase_of(stream, <Owned **>out) if stream.n_rows else SF_NO_ROWS


cdef void sf_online_free(sf_online *online) noexcept nogil:
    free_stream(<Stream *>online)
