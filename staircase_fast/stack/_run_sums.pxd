# Exact sums of rows that belong to many *runs* (`_collect.pyx`), in any order.
#
# Each row is split into parts, and these are added to the pending sums of its run (`_row_sums.pxd`).  Where the
# processor has AVX2 and FMA, the products of SPLIT_ROWS rows are split first, four at a time.  The parts are the same.
#
# Preconditions: those of _exact.pxd.

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._exact cimport Scale, add_sample
from staircase_fast.arithmetic._row_sums cimport CUT_ROWS, Pending, flush, next_cut, pend, pend_weighted
from staircase_fast.arithmetic._types cimport number

cdef enum:
    SPLIT_ROWS = 64       # their parts fit the nearest cache

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__x86_64__)
    /* parts[k][i]: for k < 4, part k of w[i]*y[i]; then both parts of w[i] */
    __attribute__((target("avx2,fma"))) static void staircase_split_rows(
        const double *restrict y, const double *restrict w, Py_ssize_t n, const double *cuts,
        double (*restrict parts)[64]
    ) {
        double first = cuts[0], second = cuts[1], third = cuts[2], of_weight = cuts[3];
        Py_ssize_t i;
        for (i = 0; i < n; i++) {
            double a = y[i], b = w[i], product = a * b, error = __builtin_fma(a, b, -product), upper, lower;
            upper = (product + first) - first;
            product -= upper;
            parts[0][i] = upper;
            upper = (product + second) - second;
            lower = (error + second) - second;
            product -= upper;
            error -= lower;
            parts[1][i] = upper + lower;
            upper = (product + third) - third;
            lower = (error + third) - third;
            parts[2][i] = upper + lower;
            parts[3][i] = (product - upper) + (error - lower);
            upper = (b + of_weight) - of_weight;
            parts[4][i] = upper;
            parts[5][i] = b - upper;
        }
    }
    #else
    #define staircase_split_rows(y, w, n, cuts, parts) ((void)0)
    #endif
    """
    void split_rows "staircase_split_rows" (
        const double *y, const double *w, Py_ssize_t n, const double *cuts, double (*parts)[SPLIT_ROWS]
    ) noexcept nogil

ctypedef struct RunSums:
    Scale scale
    Py_ssize_t n              # number of runs; pending[n] takes the rows that are collected and is never used
    int64_t *rows
    uint64_t *words
    Pending *pending
    bint vectors              # use AVX2


cdef inline void add_batch(
    RunSums *sums, const number *y, const double *w, Py_ssize_t n, const int32_t *runs
) noexcept nogil:
    """Add each row to the sums of its run."""
    cdef Py_ssize_t i
    if sums.scale.cut == 0:
        for i in range(n):
            if runs[i] < sums.n:
                sums.rows[runs[i]] += 1
                add_sample(sums.scale, words_at(sums, runs[i]), y[i], 1.0 if w == NULL else w[i])
    elif w == NULL:
        for i in range(n):
            pend(sums.scale, sums.pending + runs[i], <double>y[i])
            flush_if_full(sums, runs[i], False)
    elif sums.vectors:
        i = 0
        while i < n:
            add_in_parts(sums, y + i, w + i, min(n - i, <Py_ssize_t>SPLIT_ROWS), runs + i)
            i += SPLIT_ROWS
    else:
        for i in range(n):
            pend_weighted(sums.scale, sums.pending + runs[i], <double>y[i], w[i])
            flush_if_full(sums, runs[i], True)


cdef inline void add_in_parts(
    RunSums *sums, const number *y, const double *w, Py_ssize_t n, const int32_t *runs
) noexcept nogil:
    """The same as `pend_weighted` for each of up to SPLIT_ROWS rows."""
    cdef double[6][SPLIT_ROWS] parts
    cdef double targets[SPLIT_ROWS]
    cdef double cuts[4]
    cdef Pending *pending
    cdef Py_ssize_t i
    cuts[0] = sums.scale.cut
    cuts[1] = next_cut(cuts[0])
    cuts[2] = next_cut(cuts[1])
    cuts[3] = sums.scale.cut_weight
    for i in range(n):
        targets[i] = <double>y[i]
    split_rows(targets, w, n, cuts, parts)
    for i in range(n):
        pending = sums.pending + runs[i]
        pending.product[0] += parts[0][i]
        pending.product[1] += parts[1][i]
        pending.product[2] += parts[2][i]
        pending.product[3] += parts[3][i]
        pending.weight[0] += parts[4][i]
        pending.weight[1] += parts[5][i]
        pending.rows += 1
        flush_if_full(sums, runs[i], True)


cdef inline uint64_t *words_at(RunSums *sums, Py_ssize_t q) noexcept nogil:
    return sums.words + q * (sums.scale.s_words + sums.scale.w_words)


cdef inline void flush_if_full(RunSums *sums, Py_ssize_t q, bint weighted) noexcept nogil:
    if sums.pending[q].rows == CUT_ROWS:
        flush_run(sums, q, weighted)


cdef inline void flush_run(RunSums *sums, Py_ssize_t q, bint weighted) noexcept nogil:
    if q == sums.n:
        memset(sums.pending + q, 0, sizeof(Pending))
        return
    sums.rows[q] += sums.pending[q].rows
    flush(sums.scale, sums.pending + q, words_at(sums, q), weighted)


cdef inline void flush_all(RunSums *sums, bint weighted) noexcept nogil:
    cdef Py_ssize_t q
    for q in range(sums.n + 1):
        if sums.pending[q].rows:
            flush_run(sums, q, weighted)
