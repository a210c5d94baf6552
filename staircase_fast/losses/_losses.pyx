"""Values and derivatives of losses for `Loss.value`, `Loss.derivative` and comparisons of fits.

Preconditions: arrays of equal length; targets, values and parameters in their domains.
"""

from staircase_fast.losses._slopes cimport (
    Model, Slopes, call_function, decreases, fill_slopes, fill_values, model_of, point_below,
)


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


def evaluate(
    loss,                                     # IN  with a compiled derivative
    const double[::1] targets not None,       # IN
    double z,                                 # IN
    double distance,                          # IN  between z and a second point below it, at least
    double lowest,                            # IN  least valid value
    double last_z,                            # IN  the last point, or NaN
    double[::1] slope not None,               # IN, OUT the slopes at the last point; at z
):
    """Compute the slopes of all rows; return False if some are NaN or decrease.  `Custom.slopes` then finds the row."""
    cdef const double[::1] parameters = loss.parameters
    cdef Model model = model_of(loss, parameters, False)
    cdef Py_ssize_t i
    cdef double here, beyond, near = point_below(z, distance, lowest)
    cdef double[3] parts
    cdef Slopes out = Slopes(&parts[0], &parts[1], &parts[2])
    cdef bint valid = True
    with nogil:
        for i in range(targets.shape[0]):
            if i < 64 or i & 15 == 0:         # some rows as thoroughly as in a round
                if fill_slopes(&model, &targets[0], i, 1, &z, 0, out) >= 0:
                    valid = False
                if fill_slopes(&model, &targets[0], i, 1, &near, 0, out) >= 0:
                    valid = False
            here = call_function(&model, z, targets[i])
            beyond = call_function(&model, near, targets[i])
            if here != here or beyond != beyond or decreases(z, here, near, beyond):
                valid = False
            if decreases(z, here, last_z, slope[i]):
                valid = False
            slope[i] = here
    return bool(valid)
