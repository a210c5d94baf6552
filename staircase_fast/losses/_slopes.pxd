# Slopes of a loss, for many samples at once.
#
# A loop is compiled for each loss; which one is chosen here, so that callers need not be.  A user's compiled function
# is one more loop.

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, fabs

from staircase_fast.arithmetic._branchless cimport lesser
from staircase_fast.losses._functionals cimport (
    Expectile, GammaDeviance, Huber, Linex, LogCosh, LogLoss, Logistic, PoissonDeviance, Power, PseudoHuber,
    Quantile, Slope, SquaredError, TweedieDeviance, functional, slope_of, unit_of, value_of,
)

ctypedef double (*plain_function)(double z, double y) noexcept nogil
ctypedef double (*data_function)(double z, double y, void *user_data) noexcept nogil

# One number per loss; losses.py has the same.
cpdef enum Kind:
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

ctypedef struct Model:
    int kind
    const double *p           # the parameter of each sample ..
    Py_ssize_t p_step         # .. or 0: one of all
    void *function            # a user's
    void *user_data
    bint by_unit              # whether slopes may be given in units of a parameter that is one of all

ctypedef struct Slopes:       # arrays, an entry per sample
    double *big
    double *tail
    double *curve


cdef inline bint levels_off(const Model *model) noexcept nogil:
    """Whether slopes have big parts."""
    return (
        model.kind == LOGISTIC or model.kind == QUANTILE or model.kind == HUBER or model.kind == PSEUDO_HUBER
        or model.kind == LOG_COSH
    )


cdef inline bint is_ill_conditioned(const Model *model) noexcept nogil:
    """Whether rounding z - y, or z + offset, can change a slope by more than a few ulps of it."""
    return (
        model.kind == LOGISTIC or model.kind == LINEX or model.kind == LOG_COSH
        or (model.kind == POWER and (model.p_step != 0 or model.p[0] > 4.0))
    )


cdef inline void fill_noise(
    const Model *model, const double *y, Py_ssize_t first, Py_ssize_t n, double z, Slopes slopes, double *noise
) noexcept nogil:
    """The errors of tails, in units of 8 roundings: a few roundings of each, and two of z - y, or of z + offset.

    A loop of its own: within that of `fill`, compilers do not vectorise.
    """
    cdef const double *tail = slopes.tail
    cdef const double *curve = slopes.curve
    cdef Py_ssize_t i
    if model.kind == LOGISTIC:
        for i in range(n):
            noise[i] = fabs(tail[i]) + 0.25 * curve[i] * fabs(z + model.p[(first + i) * model.p_step])
    else:
        for i in range(n):
            noise[i] = fabs(tail[i]) + 0.25 * curve[i] * lesser(fabs(z - y[first + i]), DBL_MAX)


cdef inline Py_ssize_t fill_slopes(
    const Model *model, const double *y, Py_ssize_t first, Py_ssize_t n, const double *z, Py_ssize_t z_step, Slopes out
) noexcept nogil:
    """Slopes at z[0], z[z_step], .. of the samples first, first + 1, ..

    Return the first of these where a user's derivative is NaN or decreases, or -1.
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
        return call(model, y, first, n, z, z_step, out)
    return -1


cdef inline void fill(
    functional f, const Model *model, const double *y, Py_ssize_t first, Py_ssize_t n, const double *z,
    Py_ssize_t z_step, Slopes out
) noexcept nogil:
    cdef Slope slope
    cdef double unit, at
    cdef Py_ssize_t i
    f.p = model.p[0]
    if z_step == 0 and model.p_step == 0:     # the usual case: compilers do several rows at once
        unit = 1.0 if model.by_unit else unit_of(f)
        at = z[0]
        for i in range(n):
            slope = slope_of(f, at, y[first + i])
            out.big[i] = slope.big * unit
            out.tail[i] = slope.tail * unit
            out.curve[i] = slope.curve * unit
        return
    for i in range(n):
        if model.p_step:
            f.p = model.p[first + i]
        unit = 1.0 if model.by_unit and not model.p_step else unit_of(f)
        slope = slope_of(f, z[i * z_step], y[first + i])
        out.big[i] = slope.big * unit
        out.tail[i] = slope.tail * unit
        out.curve[i] = slope.curve * unit


cdef inline Py_ssize_t call(
    const Model *model, const double *y, Py_ssize_t first, Py_ssize_t n, const double *z, Py_ssize_t z_step, Slopes out
) noexcept nogil:
    """A user's derivative: one part.  How it curves, a second call nearby tells: well enough to find a root quickly."""
    cdef Py_ssize_t i, bad = -1
    cdef double here, slope, beyond, near
    for i in range(n):
        here = z[i * z_step]
        near = here - (1e-7 * fabs(here) + 1e-30)
        slope = called(model, here, y[first + i])
        beyond = called(model, near, y[first + i])
        out.tail[i] = slope
        out.big[i] = 0.0
        out.curve[i] = (slope - beyond) / (here - near)
        if bad < 0 and (slope != slope or slope - beyond < -1e-9 * (fabs(slope) + fabs(beyond))):
            bad = first + i
        if not 0.0 <= out.curve[i] < INFINITY:
            out.curve[i] = 0.0
    return bad


cdef inline double called(const Model *model, double z, double y) noexcept nogil:
    if model.kind == PLAIN_FUNCTION:
        return (<plain_function>model.function)(z, y)
    return (<data_function>model.function)(z, y, model.user_data)


cdef inline void fill_values(
    const Model *model, const double *y, Py_ssize_t n, const double *z, double *out
) noexcept nogil:
    """Values of the loss."""
    if model.kind == SQUARED_ERROR:
        values(SquaredError(0.0), model, y, n, z, out)
    elif model.kind == LOG_LOSS:
        values(LogLoss(0.0), model, y, n, z, out)
    elif model.kind == POISSON_DEVIANCE:
        values(PoissonDeviance(0.0), model, y, n, z, out)
    elif model.kind == GAMMA_DEVIANCE:
        values(GammaDeviance(0.0), model, y, n, z, out)
    elif model.kind == TWEEDIE_DEVIANCE:
        values(TweedieDeviance(0.0), model, y, n, z, out)
    elif model.kind == LOGISTIC:
        values(Logistic(0.0), model, y, n, z, out)
    elif model.kind == LINEX:
        values(Linex(0.0), model, y, n, z, out)
    elif model.kind == EXPECTILE:
        values(Expectile(0.0), model, y, n, z, out)
    elif model.kind == QUANTILE:
        values(Quantile(0.0), model, y, n, z, out)
    elif model.kind == HUBER:
        values(Huber(0.0), model, y, n, z, out)
    elif model.kind == PSEUDO_HUBER:
        values(PseudoHuber(0.0), model, y, n, z, out)
    elif model.kind == LOG_COSH:
        values(LogCosh(0.0), model, y, n, z, out)
    else:
        values(Power(0.0), model, y, n, z, out)


cdef inline void values(
    functional f, const Model *model, const double *y, Py_ssize_t n, const double *z, double *out
) noexcept nogil:
    cdef Py_ssize_t i
    f.p = model.p[0]
    for i in range(n):
        if model.p_step:
            f.p = model.p[i]
        out[i] = value_of(f, z[i], y[i])
