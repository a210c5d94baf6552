"""Values and derivatives of losses for `Loss.value`, `Loss.derivative` and comparisons of fits.

Preconditions: arrays of equal length; targets, values and parameters in their domains.
"""

from staircase_fast.losses._slopes cimport Model, Slopes, fill_slopes, fill_values, model_of


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
    description,                              # IN  attributes kind, address, user_data
    const double[::1] parameters not None,    # IN  one, or one per entry
    const double[::1] z not None,             # IN
    const double[::1] y not None,             # IN
    double[:, ::1] out not None,              # OUT rows: the two parts of l'(z[i], y[i]), the second derivative
):
    """Return the first entry where a user's derivative is NaN or decreases, or -1."""
    cdef Model model = model_of(description, parameters, False)
    cdef Py_ssize_t bad = -1
    with nogil:
        if z.shape[0]:
            bad = fill_slopes(&model, &y[0], 0, z.shape[0], &z[0], 1, Slopes(&out[0, 0], &out[1, 0], &out[2, 0]))
    return bad
