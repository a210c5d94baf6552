# Error-free transformations: the rounding error of a sum or a product of two doubles is itself a double.
#
# Sums that keep it have twice the precision of a double (`Twofold`).

ctypedef struct Twofold:
    double hi
    double lo             # the sum of the rounding errors of hi


cdef inline double two_sum(double a, double b, double *error) noexcept nogil:
    """Return a + b rounded; set `error` to the rounding error, exactly (Knuth)."""
    cdef double total = a + b, b_part = total - a
    error[0] = (a - (total - b_part)) + (b - b_part)
    return total


cdef inline void add(Twofold *sum, double x) noexcept nogil:
    """sum += x."""
    cdef double error
    sum.hi = two_sum(sum.hi, x, &error)
    sum.lo += error


cdef inline double rounded_off(double a, double b, double product) noexcept nogil:
    """a*b - product, exactly, where product is a*b rounded and |a|, |b| < 2**900 (Dekker).

    Each factor is split into halves of at most 26 bits, whose products are exact.
    """
    cdef double a_hi = a * 134217729.0, b_hi = b * 134217729.0, a_lo, b_lo       # 2**27 + 1
    a_hi = a_hi - (a_hi - a)
    b_hi = b_hi - (b_hi - b)
    a_lo = a - a_hi
    b_lo = b - b_hi
    return ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo


cdef inline double two_product(double a, double b, double *error) noexcept nogil:
    """Return a * b rounded; set `error` to the rounding error, exactly, if |a|, |b| < 2**900."""
    cdef double product = a * b
    error[0] = rounded_off(a, b, product)
    return product
