"""Losses for users: values and derivatives, many at once.

Kernels here assume clean input: arrays of one length, targets, values and parameters in their domains.
"""

from staircase_fast.losses._slopes cimport Model, Slopes, fill_slopes, fill_values


def values(
    int kind,
    const double[::1] parameters not None,    # IN  one, or one per entry
    const double[::1] z not None,             # IN
    const double[::1] y not None,             # IN
    double[::1] out not None,                 # OUT
):
    """out[i] = l(z[i], y[i])."""
    cdef Model model = Model(kind, &parameters[0], parameters.shape[0] > 1, NULL, NULL, False)
    with nogil:
        if z.shape[0]:
            fill_values(&model, &y[0], z.shape[0], &z[0], &out[0])


def slopes(
    int kind,
    const double[::1] parameters not None,    # IN  one, or one per entry
    size_t function,                          # IN  address of a user's derivative, or 0
    size_t user_data,
    const double[::1] z not None,             # IN
    const double[::1] y not None,             # IN
    double[::1] big not None,                 # OUT l'(z[i], y[i]) in two parts, see _functionals.pxd
    double[::1] tail not None,                # OUT
    double[::1] curve not None,               # OUT
):
    """Return the first entry where a user's derivative is NaN or decreases, or -1."""
    cdef Model model = Model(
        kind, &parameters[0], parameters.shape[0] > 1, <void *>function, <void *>user_data, False
    )
    cdef Py_ssize_t bad = -1
    with nogil:
        if z.shape[0]:
            bad = fill_slopes(&model, &y[0], 0, z.shape[0], &z[0], 1, Slopes(&big[0], &tail[0], &curve[0]))
    return bad
