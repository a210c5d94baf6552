/* The C-level API of staircase_fast for C and C++.  ../cython_api.pxd describes the functions.
 * staircase_fast.get_include() returns the folder of this file.
 *
 * Once in each file that calls functions, with the GIL held:
 *
 *     #include "staircase_fast.h"
 *
 *     if (staircase_fast_import() < 0) return NULL;       // a Python error is set
 *
 * After that, from any thread, with or without the GIL:
 *
 *     sf_staircase *stairs;
 *     int status = staircase_fast.fit_squared(scores, targets, NULL, n, 0, &stairs, NULL);
 *
 * The function sf_xyz of cython_api.pxd is called staircase_fast.xyz here.
 */
#ifndef STAIRCASE_FAST_H
#define STAIRCASE_FAST_H

#include <Python.h>
#include <string.h>

#ifndef STAIRCASE_FAST_TYPES
#define STAIRCASE_FAST_TYPES
typedef struct sf_staircase sf_staircase;
typedef struct sf_online sf_online;
#endif

#define SF_API_VERSION 1

enum {
    SF_OK = 0,
    SF_NULL_POINTER = 1,
    SF_UNKNOWN_OPTION = 2,
    SF_NEGATIVE_COUNT = 3,
    SF_NO_ROWS = 4,
    SF_SCORE_IS_NAN = 5,
    SF_TARGET_NOT_FINITE = 6,
    SF_WEIGHT_NOT_FINITE = 7,
    SF_WEIGHT_NEGATIVE = 8,
    SF_ALL_WEIGHTS_ZERO = 9,
    SF_WEIGHTS_OVERFLOW = 10,
    SF_SCORE_FALLS = 11,
    SF_TOO_MANY_ROWS = 12,
    SF_NO_MEMORY = 13
};

enum { SF_DECREASING = 1, SF_LINEAR = 2, SF_OUTSIDE_NAN = 4 };

/* Result, name, arguments, and all of that as the capsule's name: what is imported must be what was compiled against. */
#define SF_FUNCTIONS(F) \
    F(int, api_version, (void), "int (void)") \
    F(const char *, status_message, (int status), "char const *(int)") \
    F(int, fit_squared, \
      (const double *scores, const double *targets, const double *weights, Py_ssize_t n, int options, \
       sf_staircase **out, Py_ssize_t *bad_row), \
      "int (double const *, double const *, double const *, Py_ssize_t, int, sf_staircase **, Py_ssize_t *)") \
    F(int, evaluate, \
      (const sf_staircase *stairs, const double *queries, Py_ssize_t n, int options, double *out, \
       Py_ssize_t *bad_row), \
      "int (sf_staircase const *, double const *, Py_ssize_t, int, double *, Py_ssize_t *)") \
    F(Py_ssize_t, staircase_n_steps, (const sf_staircase *stairs), "Py_ssize_t (sf_staircase const *)") \
    F(const double *, staircase_left, (const sf_staircase *stairs), "double const *(sf_staircase const *)") \
    F(const double *, staircase_right, (const sf_staircase *stairs), "double const *(sf_staircase const *)") \
    F(const double *, staircase_values, (const sf_staircase *stairs), "double const *(sf_staircase const *)") \
    F(const double *, staircase_weights, (const sf_staircase *stairs), "double const *(sf_staircase const *)") \
    F(const Py_ssize_t *, staircase_counts, (const sf_staircase *stairs), \
      "Py_ssize_t const *(sf_staircase const *)") \
    F(void, staircase_free, (sf_staircase *stairs), "void (sf_staircase *)") \
    F(int, online_new, (int options, sf_online **out), "int (int, sf_online **)") \
    F(int, online_push, (sf_online *online, double score, double target, double weight), \
      "int (sf_online *, double, double, double)") \
    F(int, online_extend, \
      (sf_online *online, const double *scores, const double *targets, const double *weights, Py_ssize_t n, \
       Py_ssize_t *bad_row), \
      "int (sf_online *, double const *, double const *, double const *, Py_ssize_t, Py_ssize_t *)") \
    F(Py_ssize_t, online_n_samples, (const sf_online *online), "Py_ssize_t (sf_online const *)") \
    F(int, online_staircase, (sf_online *online, sf_staircase **out), "int (sf_online *, sf_staircase **)") \
    F(void, online_free, (sf_online *online), "void (sf_online *)")

#define SF_FIELD(result, name, arguments, signature) result (*name) arguments;
static struct {
    SF_FUNCTIONS(SF_FIELD)
} staircase_fast;
#undef SF_FIELD

/* One function out of the capsules of the module, or -1 and a Python error. */
static inline int staircase_fast_find(PyObject *capsules, const char *name, const char *signature, void *function)
{
    PyObject *capsule = PyDict_GetItemString(capsules, name);
    void *found;
    if (capsule == NULL) {
        PyErr_Format(PyExc_ImportError, "staircase_fast has no C function %s; is it older than what was compiled?", name);
        return -1;
    }
    found = PyCapsule_GetPointer(capsule, signature);
    if (found == NULL) return -1;
    memcpy(function, &found, sizeof(found));
    return 0;
}

/* Needs the GIL; returns 0, or -1 and a Python error. */
static inline int staircase_fast_import(void)
{
    PyObject *capsules, *module = PyImport_ImportModule("staircase_fast.cython_api");
    int failed = 0;
    if (module == NULL) return -1;
    capsules = PyObject_GetAttrString(module, "__pyx_capi__");
    Py_DECREF(module);
    if (capsules == NULL) return -1;
#define SF_FIND(result, name, arguments, signature) \
    failed = failed || staircase_fast_find(capsules, "sf_" #name, signature, (void *)&staircase_fast.name) < 0;
    SF_FUNCTIONS(SF_FIND)
#undef SF_FIND
    Py_DECREF(capsules);
    return failed ? -1 : 0;
}

#endif
