# Two doubles at a time: SSE2, which every x86-64 processor has, or plain C.
#
# Compilers do not vectorise these loops: they may not reorder sums, and `a < b ? a : b` is a minimum only without NaN.
# `has_avx2` selects functions that process four doubles at a time.

cdef extern from *:
    """
    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    typedef __m128d staircase_pair;
    static inline staircase_pair pair_of(double a, double b) { return _mm_set_pd(b, a); }
    static inline double pair_first(staircase_pair p) { return _mm_cvtsd_f64(p); }
    static inline double pair_second(staircase_pair p) { return _mm_cvtsd_f64(_mm_unpackhi_pd(p, p)); }
    static inline staircase_pair pair_plus(staircase_pair p, staircase_pair q) { return _mm_add_pd(p, q); }
    static inline staircase_pair pair_minus(staircase_pair p, staircase_pair q) { return _mm_sub_pd(p, q); }
    static inline staircase_pair pair_times(staircase_pair p, staircase_pair q) { return _mm_mul_pd(p, q); }
    static inline staircase_pair pair_lesser(staircase_pair p, staircase_pair q) { return _mm_min_pd(p, q); }
    static inline staircase_pair pair_greater(staircase_pair p, staircase_pair q) { return _mm_max_pd(p, q); }
    static inline staircase_pair pair_size(staircase_pair p) { return _mm_andnot_pd(_mm_set1_pd(-0.0), p); }
    static inline staircase_pair pair_positive_or(staircase_pair p, staircase_pair q) {
        return _mm_or_pd(p, _mm_and_pd(_mm_cmpeq_pd(p, _mm_setzero_pd()), q));
    }
    #else
    #include <math.h>
    typedef struct { double a, b; } staircase_pair;
    static inline staircase_pair pair_of(double a, double b) { staircase_pair p; p.a = a; p.b = b; return p; }
    static inline double pair_first(staircase_pair p) { return p.a; }
    static inline double pair_second(staircase_pair p) { return p.b; }
    #define PAIRWISE(name, expression) \\
        static inline double name##_one(double a, double b) { return expression; } \\
        static inline staircase_pair name(staircase_pair p, staircase_pair q) { \\
            return pair_of(name##_one(p.a, q.a), name##_one(p.b, q.b)); }
    PAIRWISE(pair_plus, a + b)
    PAIRWISE(pair_minus, a - b)
    PAIRWISE(pair_times, a * b)
    PAIRWISE(pair_lesser, a < b ? a : b)
    PAIRWISE(pair_greater, a > b ? a : b)
    PAIRWISE(pair_positive_or, a == 0 ? b : a)
    static inline staircase_pair pair_size(staircase_pair p) { return pair_of(fabs(p.a), fabs(p.b)); }
    #endif

    #if defined(__GNUC__) && defined(__x86_64__)
    static inline int has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
    #else
    static inline int has_avx2(void) { return 0; }
    #endif
    """
    bint has_avx2() noexcept nogil                                # whether the processor has AVX2 and FMA
    ctypedef struct Pair "staircase_pair":
        pass
    Pair pair_of(double a, double b) noexcept nogil
    double pair_first(Pair p) noexcept nogil
    double pair_second(Pair p) noexcept nogil
    Pair pair_plus(Pair p, Pair q) noexcept nogil
    Pair pair_minus(Pair p, Pair q) noexcept nogil
    Pair pair_times(Pair p, Pair q) noexcept nogil
    Pair pair_lesser(Pair p, Pair q) noexcept nogil               # p < q ? p : q: q where p is NaN
    Pair pair_greater(Pair p, Pair q) noexcept nogil
    Pair pair_size(Pair p) noexcept nogil                         # |p|
    Pair pair_positive_or(Pair p, Pair q) noexcept nogil          # q where p, which is not negative, is zero
