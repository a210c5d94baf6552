# Minimum and maximum without a branch, which could be mispredicted for every other row, and prefetch.

from libc.stdint cimport int32_t, uint64_t

cdef extern from *:
    """
    static inline double staircase_lesser(double a, double b) { return a < b ? a : b; }
    static inline double staircase_greater(double a, double b) { return a > b ? a : b; }
    static inline uint64_t staircase_lesser_word(uint64_t a, uint64_t b) { return a < b ? a : b; }
    static inline uint64_t staircase_greater_word(uint64_t a, uint64_t b) { return a > b ? a : b; }
    static inline int32_t staircase_lesser_key(int32_t a, int32_t b) { return a < b ? a : b; }
    static inline int32_t staircase_greater_key(int32_t a, int32_t b) { return a > b ? a : b; }
    #if defined(__GNUC__)
    #define staircase_prefetch(address) __builtin_prefetch(address, 1)
    #define staircase_prefetch_read(address) __builtin_prefetch(address, 0)
    #else
    #define staircase_prefetch(address) ((void)(address))
    #define staircase_prefetch_read(address) ((void)(address))
    #endif
    """
    double lesser "staircase_lesser" (double a, double b) noexcept nogil
    double greater "staircase_greater" (double a, double b) noexcept nogil
    uint64_t lesser_word "staircase_lesser_word" (uint64_t a, uint64_t b) noexcept nogil
    uint64_t greater_word "staircase_greater_word" (uint64_t a, uint64_t b) noexcept nogil
    int32_t lesser_key "staircase_lesser_key" (int32_t a, int32_t b) noexcept nogil
    int32_t greater_key "staircase_greater_key" (int32_t a, int32_t b) noexcept nogil
    void prefetch "staircase_prefetch" (const void *address) noexcept nogil
    void prefetch_read "staircase_prefetch_read" (const void *address) noexcept nogil

cdef enum:
    LINE_BYTES = 64
    BYTES_AHEAD = 8192


cdef inline void prefetch_column(const void *at, Py_ssize_t n_bytes) noexcept nogil:
    """Prefetch so many bytes of a column that is scanned in batches, some batches ahead of `at`.

    Processors recognise such scans, but stop at each page of 4096 bytes.
    """
    cdef const char *address = <const char *>at + BYTES_AHEAD
    cdef Py_ssize_t i
    for i in range(n_bytes // LINE_BYTES):
        prefetch_read(address + i * LINE_BYTES)
