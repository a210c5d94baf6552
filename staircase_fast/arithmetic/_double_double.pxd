# Sums in twice the precision of a double.

ctypedef struct Twofold:
    double hi
    double lo             # what was rounded off hi


cdef inline void add(Twofold *sum, double x) noexcept nogil:
    """sum += x; what the addition rounds off is added to lo."""
    cdef double total = sum.hi + x, back = total - sum.hi
    sum.lo += (sum.hi - (total - back)) + (x - back)
    sum.hi = total


cdef inline double rounded_off(double a, double b, double product) noexcept nogil:
    """a*b - product, where product is a*b rounded and |a|, |b| < 2**900: halves of digits are multiplied exactly."""
    cdef double a_hi = a * 134217729.0, b_hi = b * 134217729.0, a_lo, b_lo       # 2**27 + 1
    a_hi = a_hi - (a_hi - a)
    b_hi = b_hi - (b_hi - b)
    a_lo = a - a_hi
    b_lo = b - b_hi
    return ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo
