# cython: freethreading_compatible=True
"""The C-level API from Cython: all that is computed is computed without the GIL."""

from libc.string cimport memcpy

from staircase_fast cimport cython_api as sf

import numpy as np

VERSION = sf.sf_api_version()
STATUS = dict(
    SF_OK=sf.SF_OK, SF_NULL_POINTER=sf.SF_NULL_POINTER, SF_UNKNOWN_OPTION=sf.SF_UNKNOWN_OPTION,
    SF_NEGATIVE_COUNT=sf.SF_NEGATIVE_COUNT, SF_NO_ROWS=sf.SF_NO_ROWS, SF_SCORE_IS_NAN=sf.SF_SCORE_IS_NAN,
    SF_TARGET_NOT_FINITE=sf.SF_TARGET_NOT_FINITE, SF_WEIGHT_NOT_FINITE=sf.SF_WEIGHT_NOT_FINITE,
    SF_WEIGHT_NEGATIVE=sf.SF_WEIGHT_NEGATIVE, SF_ALL_WEIGHTS_ZERO=sf.SF_ALL_WEIGHTS_ZERO,
    SF_WEIGHTS_OVERFLOW=sf.SF_WEIGHTS_OVERFLOW, SF_SCORE_FALLS=sf.SF_SCORE_FALLS,
    SF_TOO_MANY_ROWS=sf.SF_TOO_MANY_ROWS, SF_NO_MEMORY=sf.SF_NO_MEMORY,
)
OPTIONS = dict(SF_DECREASING=sf.SF_DECREASING, SF_LINEAR=sf.SF_LINEAR, SF_OUTSIDE_NAN=sf.SF_OUTSIDE_NAN)


def message(int status):
    return sf.sf_status_message(status).decode()


cdef class Staircase:
    """Owns what the API made."""

    cdef sf.sf_staircase *stairs

    def __dealloc__(self):
        sf.sf_staircase_free(self.stairs)

    @property
    def is_null(self):
        return self.stairs == NULL

    def columns(self):
        """Left, right, values, weights and counts; no arrays where there is no staircase."""
        if self.stairs == NULL:
            assert sf.sf_staircase_n_steps(NULL) == 0
            assert sf.sf_staircase_left(NULL) == NULL
            assert sf.sf_staircase_right(NULL) == NULL
            assert sf.sf_staircase_values(NULL) == NULL
            assert sf.sf_staircase_weights(NULL) == NULL
            assert sf.sf_staircase_counts(NULL) == NULL
            return ()
        cdef Py_ssize_t n = sf.sf_staircase_n_steps(self.stairs)
        return (
            copied(sf.sf_staircase_left(self.stairs), n), copied(sf.sf_staircase_right(self.stairs), n),
            copied(sf.sf_staircase_values(self.stairs), n), copied(sf.sf_staircase_weights(self.stairs), n),
            copied(sf.sf_staircase_counts(self.stairs), n).view(np.int64),
        )

    def evaluate(self, const double[::1] queries, int options=0, n=None):
        """(status, index of the row at fault, values)."""
        cdef double[::1] out = np.full(queries.shape[0], 7.0)
        cdef Py_ssize_t bad_row = 77, size = queries.shape[0] if n is None else n
        cdef const double *q = &queries[0] if queries.shape[0] else NULL
        cdef double *to = &out[0] if queries.shape[0] else NULL
        cdef int status
        with nogil:
            status = sf.sf_evaluate(self.stairs, q, size, options, to, &bad_row)
        return status, bad_row, np.asarray(out)


cdef copied(const void *column, Py_ssize_t n):
    cdef double[::1] out = np.empty(n)
    memcpy(&out[0], column, n * sizeof(double))
    return np.asarray(out)


def fit(const double[::1] scores, const double[::1] targets, const double[::1] weights=None, int options=0, n=None):
    """(status, index of the row at fault, Staircase); what is empty is given as NULL."""
    cdef const double *x = &scores[0] if scores.shape[0] else NULL
    cdef const double *y = &targets[0] if targets.shape[0] else NULL
    cdef const double *w = &weights[0] if weights is not None else NULL
    cdef Py_ssize_t bad_row = 77, size = scores.shape[0] if n is None else n
    cdef Staircase stairs = Staircase()
    cdef int status
    with nogil:
        status = sf.sf_fit_squared(x, y, w, size, options, &stairs.stairs, &bad_row)
    return status, bad_row, stairs


def fit_without_asking_where(const double[::1] scores, const double[::1] targets):
    """The status alone: neither the row at fault nor a staircase is asked for."""
    cdef sf.sf_staircase *stairs
    cdef int status = sf.sf_fit_squared(&scores[0], &targets[0], NULL, scores.shape[0], 0, &stairs, NULL)
    sf.sf_staircase_free(stairs)
    sf.sf_staircase_free(NULL)
    return status, sf.sf_fit_squared(&scores[0], &targets[0], NULL, scores.shape[0], 0, NULL, NULL)


def total_of_many(const double[::1] scores, const double[::1] targets, Py_ssize_t size):
    """The sum of the fitted values of all rows, where each `size` rows are fitted by themselves: no GIL between."""
    cdef double[::1] out = np.empty(size)
    cdef sf.sf_staircase *stairs
    cdef Py_ssize_t start = 0, i, n
    cdef double total = 0.0
    cdef int status = sf.SF_OK
    with nogil:
        while start < scores.shape[0]:
            n = min(size, scores.shape[0] - start)
            status = sf.sf_fit_squared(&scores[start], &targets[start], NULL, n, 0, &stairs, NULL)
            if status == sf.SF_OK:
                status = sf.sf_evaluate(stairs, &scores[start], n, 0, &out[0], NULL)
                sf.sf_staircase_free(stairs)
            if status != sf.SF_OK:
                break
            for i in range(n):
                total += out[i]
            start += n
    if status != sf.SF_OK:
        raise ValueError(message(status))
    return total


cdef class Online:
    cdef sf.sf_online *online

    def __init__(self, int options=0):
        cdef int status = sf.sf_online_new(options, &self.online)
        if status != sf.SF_OK:
            raise ValueError(message(status))

    def __dealloc__(self):
        sf.sf_online_free(self.online)

    def __len__(self):
        return sf.sf_online_n_samples(self.online)

    def push(self, double score, double target, double weight=1.0):
        return sf.sf_online_push(self.online, score, target, weight)

    def push_each(self, const double[::1] scores, const double[::1] targets, const double[::1] weights):
        """The first status that is not SF_OK, and its row; SF_OK after all rows."""
        cdef int status = sf.SF_OK
        cdef Py_ssize_t i = 0
        with nogil:
            while i < scores.shape[0] and status == sf.SF_OK:
                status = sf.sf_online_push(self.online, scores[i], targets[i], weights[i])
                i += 1
        return status, i - 1

    def extend(self, const double[::1] scores, const double[::1] targets, const double[::1] weights=None, n=None):
        cdef const double *x = &scores[0] if scores.shape[0] else NULL
        cdef const double *y = &targets[0] if targets.shape[0] else NULL
        cdef const double *w = &weights[0] if weights is not None else NULL
        cdef Py_ssize_t bad_row = 77, size = scores.shape[0] if n is None else n
        cdef int status
        with nogil:
            status = sf.sf_online_extend(self.online, x, y, w, size, &bad_row)
        return status, bad_row

    def staircase(self):
        cdef Staircase stairs = Staircase()
        cdef int status
        with nogil:
            status = sf.sf_online_staircase(self.online, &stairs.stairs)
        return status, stairs


def statuses_of_null():
    """What functions say of no object and no place for one."""
    cdef sf.sf_staircase *stairs
    cdef sf.sf_online *online
    cdef Online known = Online()
    return [
        sf.sf_online_new(0, NULL), sf.sf_online_push(NULL, 1.0, 1.0, 1.0),
        sf.sf_online_extend(NULL, NULL, NULL, NULL, 0, NULL), sf.sf_online_staircase(NULL, &stairs),
        sf.sf_online_staircase(known.online, NULL), sf.sf_evaluate(NULL, NULL, 0, 0, NULL, NULL),
    ], sf.sf_online_n_samples(NULL), sf.sf_online_new(sf.SF_LINEAR, &online)
