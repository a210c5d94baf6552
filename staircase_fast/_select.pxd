# The lesser and the greater of two numbers without a branch: one instruction each, where an if could be mispredicted
# for every other row.  Compilers turn a ? b : c back into a branch where they think it pays, so that SSE2 is asked for
# by name where there is any; it treats NaN and zeros as the ? does.

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #if defined(__SSE2__)
    #include <emmintrin.h>
    static inline double staircase_lesser(double a, double b) {
        return _mm_cvtsd_f64(_mm_min_sd(_mm_set_sd(a), _mm_set_sd(b)));
    }
    static inline double staircase_greater(double a, double b) {
        return _mm_cvtsd_f64(_mm_max_sd(_mm_set_sd(a), _mm_set_sd(b)));
    }
    #else
    static inline double staircase_lesser(double a, double b) { return a < b ? a : b; }
    static inline double staircase_greater(double a, double b) { return a > b ? a : b; }
    #endif
    static inline uint64_t staircase_lesser_word(uint64_t a, uint64_t b) { return a < b ? a : b; }
    static inline uint64_t staircase_greater_word(uint64_t a, uint64_t b) { return a > b ? a : b; }
    """
    double lesser "staircase_lesser" (double a, double b) noexcept nogil
    double greater "staircase_greater" (double a, double b) noexcept nogil
    uint64_t lesser_word "staircase_lesser_word" (uint64_t a, uint64_t b) noexcept nogil
    uint64_t greater_word "staircase_greater_word" (uint64_t a, uint64_t b) noexcept nogil
