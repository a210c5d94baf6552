# Evaluate a few consecutive steps: count the edges between them that lie at or below each query.
#
# Without a search there is nothing to mispredict, and several queries are compared at a time: two by SSE2 or NEON, four
# by AVX2, which is checked at run time.  Results are the same.  The compiler's vector types serve all of them.
#
# Preconditions: edges ascend; `values` has one entry more than `edges`.

from libc.stdint cimport int64_t

from staircase_fast.arithmetic._types cimport floating

cdef extern from *:
    """
    #include <math.h>
    #include <string.h>

    #if defined(__GNUC__)
    #define STAIRCASE_COUNT_EDGES(name, attribute, query, lanes) \\
    attribute static int64_t name( \\
        const query *queries, Py_ssize_t n, double low, double high, const double *edges, Py_ssize_t n_edges, \\
        const double *values, double *out \\
    ) { \\
        enum { BLOCK = 8, PARTS = BLOCK / lanes }; \\
        typedef double numbers __attribute__((vector_size(8 * lanes))); \\
        typedef int64_t words __attribute__((vector_size(8 * lanes))); \\
        typedef query given __attribute__((vector_size(sizeof(query) * lanes))); \\
        query last[BLOCK]; \\
        double last_out[BLOCK]; \\
        double edge = n_edges ? edges[0] : NAN, pair[2] = {values[0], values[n_edges ? 1 : 0]}; \\
        int64_t bits[2], any = 0; \\
        words odd = {0}, first, second; \\
        Py_ssize_t i, j, p; \\
        memcpy(bits, pair, sizeof(pair)); \\
        for (p = 0; p < lanes; p++) first[p] = bits[0], second[p] = bits[1]; \\
        for (i = 0; i < n; i += BLOCK) { \\
            const query *in = queries + i; \\
            double *to = out + i; \\
            numbers x[PARTS]; \\
            words count[PARTS]; \\
            if (n - i < BLOCK) {                  /* pad an incomplete block */ \\
                for (p = 0; p < BLOCK; p++) last[p] = in[p < n - i ? p : 0]; \\
                in = last; \\
                to = last_out; \\
            } \\
            for (p = 0; p < PARTS; p++) { \\
                given part; \\
                memcpy(&part, in + p * lanes, sizeof(part)); \\
                x[p] = __builtin_convertvector(part, numbers); \\
                odd |= ~(low <= x[p]) | (high <= x[p]); \\
                count[p] = (words){0}; \\
            } \\
            if (n_edges <= 1) { \\
                for (p = 0; p < PARTS; p++) { \\
                    words above = edge <= x[p]; \\
                    words part = (above & second) | (~above & first); \\
                    memcpy(to + p * lanes, &part, sizeof(part)); \\
                } \\
            } else { \\
                for (j = 0; j < n_edges; j++) \\
                    for (p = 0; p < PARTS; p++) count[p] -= edges[j] <= x[p]; \\
                for (p = 0; p < BLOCK; p++) to[p] = values[count[p / lanes][p % lanes]]; \\
            } \\
            if (to == last_out) memcpy(out + i, to, (n - i) * sizeof(double)); \\
        } \\
        for (p = 0; p < lanes; p++) any |= odd[p]; \\
        return any; \\
    }
    #else
    #define STAIRCASE_COUNT_EDGES(name, attribute, query, lanes) \\
    static int64_t name( \\
        const query *queries, Py_ssize_t n, double low, double high, const double *edges, Py_ssize_t n_edges, \\
        const double *values, double *out \\
    ) { \\
        int64_t odd = 0; \\
        Py_ssize_t i, j, count; \\
        for (i = 0; i < n; i++) { \\
            odd |= !(low <= queries[i]) | (high <= queries[i]); \\
            for (count = 0, j = 0; j < n_edges; j++) count += edges[j] <= queries[i]; \\
            out[i] = values[count]; \\
        } \\
        return odd; \\
    }
    #endif

    STAIRCASE_COUNT_EDGES(staircase_count_double, , double, 2)
    STAIRCASE_COUNT_EDGES(staircase_count_float, , float, 2)
    #if defined(__GNUC__) && defined(__x86_64__)
    STAIRCASE_COUNT_EDGES(staircase_count_double_avx2, __attribute__((target("avx2"))), double, 4)
    STAIRCASE_COUNT_EDGES(staircase_count_float_avx2, __attribute__((target("avx2"))), float, 4)
    #define staircase_has_four_lanes() __builtin_cpu_supports("avx2")
    #else
    #define staircase_count_double_avx2 staircase_count_double
    #define staircase_count_float_avx2 staircase_count_float
    #define staircase_has_four_lanes() 0
    #endif
    """
    int64_t count_double "staircase_count_double" (
        const double *queries, Py_ssize_t n, double low, double high, const double *edges, Py_ssize_t n_edges,
        const double *values, double *out
    ) noexcept nogil
    int64_t count_double_avx2 "staircase_count_double_avx2" (
        const double *queries, Py_ssize_t n, double low, double high, const double *edges, Py_ssize_t n_edges,
        const double *values, double *out
    ) noexcept nogil
    int64_t count_float "staircase_count_float" (
        const float *queries, Py_ssize_t n, double low, double high, const double *edges, Py_ssize_t n_edges,
        const double *values, double *out
    ) noexcept nogil
    int64_t count_float_avx2 "staircase_count_float_avx2" (
        const float *queries, Py_ssize_t n, double low, double high, const double *edges, Py_ssize_t n_edges,
        const double *values, double *out
    ) noexcept nogil
    bint has_four_lanes "staircase_has_four_lanes" () noexcept nogil


cdef inline bint count_edges(
    const floating *queries, Py_ssize_t n, double low, double high, const double *edges, Py_ssize_t n_edges,
    const double *values, double *out, bint vectors
) noexcept nogil:
    """out[i] = values[number of edges <= queries[i]]; return whether low <= queries[i] and not queries[i] >= high.

    So a NaN is found as well.  If `low` is -inf and `high` is NaN, nothing else is.  `vectors`: use AVX2.
    """
    if floating is double:
        if vectors:
            return count_double_avx2(queries, n, low, high, edges, n_edges, values, out) == 0
        return count_double(queries, n, low, high, edges, n_edges, values, out) == 0
    else:
        if vectors:
            return count_float_avx2(queries, n, low, high, edges, n_edges, values, out) == 0
        return count_float(queries, n, low, high, edges, n_edges, values, out) == 0
