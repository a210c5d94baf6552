# The lesser and the greater of two numbers without a branch: one instruction each, where an if could be mispredicted
# for every other row.

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    static inline double staircase_lesser(double a, double b) { return a < b ? a : b; }
    static inline double staircase_greater(double a, double b) { return a > b ? a : b; }
    static inline uint64_t staircase_lesser_word(uint64_t a, uint64_t b) { return a < b ? a : b; }
    """
    double lesser "staircase_lesser" (double a, double b) noexcept nogil
    double greater "staircase_greater" (double a, double b) noexcept nogil
    uint64_t lesser_word "staircase_lesser_word" (uint64_t a, uint64_t b) noexcept nogil
