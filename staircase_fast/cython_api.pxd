# The C-level API: fits, evaluates and updates online fits, without Python objects and without the GIL.
#
#     from staircase_fast cimport cython_api as sf        # Cython
#     #include "staircase_fast.h"                         // C and C++: the folder is staircase_fast.get_include()
#
# This file is frozen: names, signatures, numbers and meanings do not change.  Functions may be added; sf_api_version()
# grows then.  All other .pxd files of the package may change with any release.
#
# Status.  Functions that can fail return SF_OK, which is 0, or another status; sf_status_message describes it.  A call
# that fails changes nothing, except that `*out` becomes NULL.  `bad_row` becomes the index of the first invalid row, or
# -1 if the status is not about one row.  `bad_row` may be NULL.
#
# Results are equal to those of `staircase_fast.fit`, `Staircase.predict` and `Online`, bit for bit.  A fit sorts all
# rows on one thread; for millions of unsorted rows `staircase_fast.fit` is faster, because it sorts only some of them.
#
# Thread-safety: all functions may be called from any thread, with or without the GIL.  Arrays are only read, unless
# they are named `out`.  Any number of threads may use one staircase.  An sf_online is for one thread at a time.
#
# Memory.  The caller owns the objects that functions return in `**out`, and frees them.  All arrays are contiguous.

cdef extern from *:
    """
    #ifndef STAIRCASE_FAST_TYPES
    #define STAIRCASE_FAST_TYPES
    typedef struct sf_staircase sf_staircase;
    typedef struct sf_online sf_online;
    #endif
    """
    ctypedef struct sf_staircase:
        pass
    ctypedef struct sf_online:
        pass

cdef enum:
    SF_API_VERSION = 1

# Status.
cdef enum:
    SF_OK = 0
    SF_NULL_POINTER = 1          # a required array, object or `out` is NULL
    SF_UNKNOWN_OPTION = 2        # a bit of `options` is not one of this function
    SF_NEGATIVE_COUNT = 3        # the number of rows is below 0
    SF_NO_ROWS = 4               # there are no rows to fit
    SF_SCORE_IS_NAN = 5
    SF_TARGET_NOT_FINITE = 6
    SF_WEIGHT_NOT_FINITE = 7
    SF_WEIGHT_NEGATIVE = 8
    SF_ALL_WEIGHTS_ZERO = 9
    SF_WEIGHTS_OVERFLOW = 10     # their sum is not finite
    SF_SCORE_FALLS = 11          # online: a score is below the one before it
    SF_TOO_MANY_ROWS = 12        # 2**32 or more unsorted rows, or 2**48 in order
    SF_NO_MEMORY = 13

# Options: 0, or a sum of these.
cdef enum:
    SF_DECREASING = 1            # fits: values decrease with the score
    SF_LINEAR = 2                # sf_evaluate: linear between steps, as interpolation="linear"
    SF_OUTSIDE_NAN = 4           # sf_evaluate: NaN outside the fitted scores, as out_of_bounds="nan"


# SF_API_VERSION of the installed package, which may be greater than the one your program was compiled with.
cdef int sf_api_version() noexcept nogil

# A sentence, never NULL; do not free it.
cdef const char *sf_status_message(int status) noexcept nogil

# The staircase of least squared error.  `weights` may be NULL: all are 1.  Rows of weight 0 are ignored.
cdef int sf_fit_squared(
    const double *scores, const double *targets, const double *weights, Py_ssize_t n, int options, sf_staircase **out,
    Py_ssize_t *bad_row
) noexcept nogil

# out[i] = the staircase at queries[i], for n >= 0 queries.  `out` must not overlap `queries`.
cdef int sf_evaluate(
    const sf_staircase *stairs, const double *queries, Py_ssize_t n, int options, double *out, Py_ssize_t *bad_row
) noexcept nogil

# The steps in ascending order of score: arrays with an entry per step, valid until the staircase is freed.
cdef Py_ssize_t sf_staircase_n_steps(const sf_staircase *stairs) noexcept nogil
cdef const double *sf_staircase_left(const sf_staircase *stairs) noexcept nogil
cdef const double *sf_staircase_right(const sf_staircase *stairs) noexcept nogil
cdef const double *sf_staircase_values(const sf_staircase *stairs) noexcept nogil
cdef const double *sf_staircase_weights(const sf_staircase *stairs) noexcept nogil
cdef const Py_ssize_t *sf_staircase_counts(const sf_staircase *stairs) noexcept nogil

# `stairs` may be NULL.
cdef void sf_staircase_free(sf_staircase *stairs) noexcept nogil

# An online fit of rows that arrive in score order; memory grows with the number of steps, not of rows.
cdef int sf_online_new(int options, sf_online **out) noexcept nogil

# Add one row; its score must not be below the newest one.  Constant time on average.
cdef int sf_online_push(sf_online *online, double score, double target, double weight) noexcept nogil

# Add n >= 0 rows; if one is invalid, none is added.  `weights` may be NULL: all are 1.
cdef int sf_online_extend(
    sf_online *online, const double *scores, const double *targets, const double *weights, Py_ssize_t n,
    Py_ssize_t *bad_row
) noexcept nogil

# The number of rows of weight > 0.
cdef Py_ssize_t sf_online_n_samples(const sf_online *online) noexcept nogil

# The staircase of all rows so far; more rows may follow.
cdef int sf_online_staircase(sf_online *online, sf_staircase **out) noexcept nogil

cdef void sf_online_free(sf_online *online) noexcept nogil
