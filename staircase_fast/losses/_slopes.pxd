# Slopes and values of a loss for many samples.
#
# `fill` is compiled for each loss, so that the formulas of `_functionals.pxd` are inlined into its loops.  A user's
# compiled function is one more loop.  CONTRIBUTING.md lists what a new loss needs here.

from libc.math cimport INFINITY, fabs

from staircase_fast.arithmetic._branchless cimport greater
from staircase_fast.losses._functionals cimport *

ctypedef double (*plain_function)(double z, double y) noexcept nogil
ctypedef double (*data_function)(double z, double y, void *user_data) noexcept nogil

# Built-in losses in the order of `__all__` in builtin.py, then the kinds of compiled.py.
cdef enum Kind:
    SQUARED_ERROR
    LOG_LOSS
    POISSON_DEVIANCE
    GAMMA_DEVIANCE
    TWEEDIE_DEVIANCE
    LOGISTIC
    LINEX
    EXPECTILE
    QUANTILE
    HUBER
    PSEUDO_HUBER
    LOG_COSH
    POWER
    PLAIN_FUNCTION        # a user's derivative(z, y)
    DATA_FUNCTION         # a user's derivative(z, y, user_data)

ctypedef fused functional:
    SquaredError
    LogLoss
    PoissonDeviance
    GammaDeviance
    TweedieDeviance
    Logistic
    Linex
    Expectile
    Quantile
    Huber
    PseudoHuber
    LogCosh
    Power

ctypedef struct Model:
    int kind
    const double *p           # the parameter of each sample ..
    Py_ssize_t p_step         # .. or 0: all samples share one
    void *function            # a user's
    void *user_data
    bint by_unit              # slopes may be in units of a parameter that all samples share

ctypedef struct Slopes:       # arrays, an entry per sample
    double *big
    double *tail              # NULL: write values of the loss to `big` instead
    double *curvature


cdef inline Model model_of(description, const double[::1] parameters, bint by_unit):
    """The model of an object with the attributes kind, address and user_data."""
    return Model(
        description.kind, &parameters[0], parameters.shape[0] > 1, <void *><size_t>description.address,
        <void *><size_t>description.user_data, by_unit
    )


cdef inline bint levels_off(const Model *model) noexcept nogil:
    """Whether slopes have big parts."""
    return model.kind in (LOGISTIC, QUANTILE, HUBER, PSEUDO_HUBER, LOG_COSH)


cdef inline bint is_ill_conditioned(const Model *model) noexcept nogil:
    """Whether rounding z - y, or z + offset, can change a slope by more than a few of its ulps."""
    if model.kind == POWER:
        return model.p_step != 0 or model.p[0] > 4.0
    return model.kind in (LOGISTIC, LINEX, LOG_COSH)


cdef inline double unit_of(functional f) noexcept nogil:
    if functional is Huber or functional is PseudoHuber or functional is LogCosh:
        return f.p
    else:
        return 1.0


cdef inline Slope evaluate(functional f, bint value, double z, double y) noexcept nogil:
    """The slope; or the value of the loss, as `big`.  `value` is constant in each loop, so it costs nothing."""
    if functional is SquaredError:
        return Slope(squared_error(z, y), 0.0, 0.0) if value else squared_error_slope(z, y)
    elif functional is LogLoss:
        return Slope(log_loss(z, y), 0.0, 0.0) if value else log_loss_slope(z, y)
    elif functional is PoissonDeviance:
        return Slope(poisson_deviance(f.p, z, y), 0.0, 0.0) if value else poisson_deviance_slope(f.p, z, y)
    elif functional is GammaDeviance:
        return Slope(gamma_deviance(z, y), 0.0, 0.0) if value else gamma_deviance_slope(z, y)
    elif functional is TweedieDeviance:
        return Slope(tweedie_deviance(f.p, z, y), 0.0, 0.0) if value else tweedie_deviance_slope(f.p, z, y)
    elif functional is Logistic:
        return Slope(logistic(f.p, z, y), 0.0, 0.0) if value else logistic_slope(f.p, z, y)
    elif functional is Linex:
        return Slope(linex(f.p, z, y), 0.0, 0.0) if value else linex_slope(f.p, z, y)
    elif functional is Expectile:
        return Slope(expectile(f.p, z, y), 0.0, 0.0) if value else expectile_slope(f.p, z, y)
    elif functional is Quantile:
        return Slope(quantile(f.p, z, y), 0.0, 0.0) if value else quantile_slope(f.p, z, y)
    elif functional is Huber:
        return Slope(huber(f.p, z, y), 0.0, 0.0) if value else huber_slope(f.p, z, y)
    elif functional is PseudoHuber:
        return Slope(pseudo_huber(f.p, z, y), 0.0, 0.0) if value else pseudo_huber_slope(f.p, z, y)
    elif functional is LogCosh:
        return Slope(log_cosh(f.p, z, y), 0.0, 0.0) if value else log_cosh_slope(f.p, z, y)
    else:
        return Slope(power(f.p, z, y), 0.0, 0.0) if value else power_slope(f.p, z, y)


cdef inline Py_ssize_t fill_slopes(
    const Model *model, const double *y, Py_ssize_t first, Py_ssize_t n, const double *z, Py_ssize_t z_step, Slopes out
) noexcept nogil:
    """Slopes at z[0], z[z_step], .. of the samples first, first + 1, ..

    Return the first sample where a user's derivative is NaN or decreases, or -1.
    """
    if model.kind == SQUARED_ERROR:
        fill(SquaredError(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == LOG_LOSS:
        fill(LogLoss(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == POISSON_DEVIANCE:
        fill(PoissonDeviance(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == GAMMA_DEVIANCE:
        fill(GammaDeviance(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == TWEEDIE_DEVIANCE:
        fill(TweedieDeviance(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == LOGISTIC:
        fill(Logistic(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == LINEX:
        fill(Linex(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == EXPECTILE:
        fill(Expectile(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == QUANTILE:
        fill(Quantile(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == HUBER:
        fill(Huber(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == PSEUDO_HUBER:
        fill(PseudoHuber(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == LOG_COSH:
        fill(LogCosh(0.0), model, y, first, n, z, z_step, out)
    elif model.kind == POWER:
        fill(Power(0.0), model, y, first, n, z, z_step, out)
    else:
        return fill_by_function(model, y, first, n, z, z_step, out)
    return -1


cdef inline void fill_values(
    const Model *model, const double *y, Py_ssize_t n, const double *z, double *out
) noexcept nogil:
    """Values of the loss."""
    fill_slopes(model, y, 0, n, z, 1, Slopes(out, NULL, NULL))


cdef inline void fill(
    functional f, const Model *model, const double *y, Py_ssize_t first, Py_ssize_t n, const double *z,
    Py_ssize_t z_step, Slopes out
) noexcept nogil:
    cdef Slope slope
    cdef double unit, at
    cdef Py_ssize_t i
    f.p = model.p[0]
    if out.tail == NULL:
        for i in range(n):
            if model.p_step:
                f.p = model.p[first + i]
            out.big[i] = evaluate(f, True, z[i * z_step], y[first + i]).big
        return
    if z_step == 0 and model.p_step == 0:     # the usual case, which compilers vectorise
        unit = 1.0 if model.by_unit else unit_of(f)
        at = z[0]
        for i in range(n):
            slope = evaluate(f, False, at, y[first + i])
            out.big[i] = slope.big
            out.tail[i] = slope.tail
            out.curvature[i] = slope.curvature
        if unit != 1.0:
            for i in range(n):
                out.big[i] *= unit
                out.tail[i] *= unit
                out.curvature[i] *= unit
        return
    for i in range(n):
        f.p = model.p[(first + i) * model.p_step]
        unit = 1.0 if model.by_unit and not model.p_step else unit_of(f)
        slope = evaluate(f, False, z[i * z_step], y[first + i])
        out.big[i] = slope.big * unit
        out.tail[i] = slope.tail * unit
        out.curvature[i] = slope.curvature * unit


cdef inline Py_ssize_t fill_by_function(
    const Model *model, const double *y, Py_ssize_t first, Py_ssize_t n, const double *z, Py_ssize_t z_step, Slopes out
) noexcept nogil:
    """A user's derivative.  A second call nearby estimates the curvature."""
    cdef Py_ssize_t i, bad = -1
    cdef double here, slope, beyond, quotient
    for i in range(n):
        out.big[i] = z[i * z_step] - (1e-7 * fabs(z[i * z_step]) + 1e-30)
    if model.kind == PLAIN_FUNCTION:
        for i in range(n):
            out.tail[i] = (<plain_function>model.function)(z[i * z_step], y[first + i])
            out.curvature[i] = (<plain_function>model.function)(out.big[i], y[first + i])
    else:
        for i in range(n):
            out.tail[i] = (<data_function>model.function)(z[i * z_step], y[first + i], model.user_data)
            out.curvature[i] = (<data_function>model.function)(out.big[i], y[first + i], model.user_data)
    for i in range(n):                        # apart from the calls, which overlap better without it
        here, slope, beyond = z[i * z_step], out.tail[i], out.curvature[i]
        quotient = (slope - beyond) / (here - out.big[i])
        if bad < 0 and (slope != slope or slope - beyond < -1e-9 * (fabs(slope) + fabs(beyond))):
            bad = first + i
        out.curvature[i] = quotient if 0.0 <= quotient < INFINITY else 0.0
        out.big[i] = 0.0
    return bad


cdef inline double call_function(const Model *model, double z, double y) noexcept nogil:
    if model.kind == PLAIN_FUNCTION:
        return (<plain_function>model.function)(z, y)
    return (<data_function>model.function)(z, y, model.user_data)


cdef inline double point_below(double z, double distance, double lowest) noexcept nogil:
    """The second point at which a user's derivative is evaluated."""
    return greater(z - greater(distance, 1e-7 * fabs(z)), lowest)


cdef inline bint decreases(double z, double slope, double other_z, double other) noexcept nogil:
    """Whether the slope clearly decreases from one point to the other (never if an argument is NaN)."""
    return (z - other_z) * (slope - other) < 0.0 and fabs(slope - other) > 1e-9 * (fabs(slope) + fabs(other))


cdef inline void fill_errors(
    const Model *model, const double *y, Py_ssize_t first, Py_ssize_t n, double z, Slopes slopes, double *errors
) noexcept nogil:
    """Errors of tails in units of 8 roundings: a few roundings of the tail, and two of z - y, or of z + offset.

    A loop of its own: inside `fill` it would prevent vectorisation.
    """
    cdef const double *tail = slopes.tail
    cdef const double *curvature = slopes.curvature
    cdef double half = 0.5 * z                # half the distance cannot overflow
    cdef Py_ssize_t i
    if model.kind == LOGISTIC:
        for i in range(n):
            errors[i] = fabs(tail[i]) + 0.25 * curvature[i] * fabs(z + model.p[(first + i) * model.p_step])
    else:
        for i in range(n):
            errors[i] = fabs(tail[i]) + 0.5 * curvature[i] * fabs(half - 0.5 * y[first + i])
