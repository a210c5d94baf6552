/* Makes allocations fail on request of fuzz_memory.py.  Preloaded; glibc only. */

#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

enum { MOST_FRAMES = 48, NEAR = 8, MOST_RANGES = 256 };

static atomic_int armed;
static atomic_long seen;              /* allocations since armed */
static atomic_long failed;
static long first_to_fail, last_to_fail;
static void *frames[MOST_FRAMES];     /* callers of the first failed allocation */
static int n_frames;
static __thread int inside;           /* a backtrace may allocate */
static int report = -1;
static int n_ranges;                  /* count only allocations by this code; 0: by any code */
static char *starts[MOST_RANGES], *ends[MOST_RANGES];

/* Whether one of the innermost functions lies in the ranges. */
static int counts(void) {
    void *near[NEAR];
    if (n_ranges == 0) {
        return 1;
    }
    inside = 1;
    int n = backtrace(near, NEAR);
    inside = 0;
    for (int i = 0; i < n; i++) {
        for (int r = 0; r < n_ranges; r++) {
            if (starts[r] <= (char *)near[i] && (char *)near[i] < ends[r]) {
                return 1;
            }
        }
    }
    return 0;
}

static int fails(void) {
    if (!atomic_load_explicit(&armed, memory_order_relaxed) || inside || !counts()) {
        return 0;
    }
    long k = ++seen;
    if (k < first_to_fail || k > last_to_fail) {
        return 0;
    }
    if (++failed == 1) {
        inside = 1;
        n_frames = backtrace(frames, MOST_FRAMES);
        inside = 0;
    }
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }
void *aligned_alloc(size_t alignment, size_t size) { return fails() ? NULL : __libc_memalign(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) {
    if (fails()) {
        return ENOMEM;
    }
    *out = __libc_memalign(alignment, size);
    return *out == NULL ? ENOMEM : 0;
}

/* Make the allocations first to last fail, counted from now on. */
void fail_from_now_on(long first, long last) {
    void *unused[2];
    backtrace(unused, 2);             /* the first call loads a library */
    first_to_fail = first;
    last_to_fail = last;
    seen = failed = 0;
    n_frames = 0;
    armed = 1;
}

/* Stop failing; return the number of allocations since the start. */
long fail_no_more(void) {
    armed = 0;
    return seen;
}

/* From now on, count only allocations by code in these ranges. */
void count_only(int n, char **given_starts, char **given_ends) {
    n_ranges = n < MOST_RANGES ? n : MOST_RANGES;
    memcpy(starts, given_starts, n_ranges * sizeof(char *));
    memcpy(ends, given_ends, n_ranges * sizeof(char *));
}

int where_it_failed(void **out) {
    memcpy(out, frames, n_frames * sizeof(void *));
    return n_frames;
}

static void write_frames(int number) {
    void *here[MOST_FRAMES];
    armed = 0;
    inside = 1;
    backtrace_symbols_fd(here, backtrace(here, MOST_FRAMES), report);
    write(report, "failed allocation:\n", 19);
    backtrace_symbols_fd(frames, n_frames, report);
    signal(number, SIG_DFL);
    raise(number);
}

/* If the process crashes, write the location to a file descriptor. */
void report_crashes(int fd) {
    report = fd;
    signal(SIGSEGV, write_frames);
    signal(SIGABRT, write_frames);
    signal(SIGBUS, write_frames);
    signal(SIGFPE, write_frames);
}
