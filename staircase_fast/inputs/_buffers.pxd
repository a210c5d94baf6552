# Read one-dimensional NumPy arrays through the buffer protocol.  Typed memoryviews, with their dispatch, cost more than
# the fit of a few rows.
#
# Only ordinary arrays are accepted: exactly numpy.ndarray, native numbers of up to 64 bits, any stride.  Everything
# else is left to inputs/columns.py, which converts it or words the error.

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused entry:
    double
    float
    uint8_t
    int8_t
    uint16_t
    int16_t
    uint32_t
    int32_t
    uint64_t
    int64_t

# An array that is open for reading.
ctypedef struct Array:
    Py_buffer view
    Py_ssize_t n
    char kind                 # format character of the buffer protocol; 0 if the array is not open


cdef inline bint open_array(object array, type ndarray, Array *opened) noexcept:
    """Open an array for reading; return False if it is not an ordinary one."""
    opened.kind = 0
    if type(array) is not ndarray:
        return False
    try:
        PyObject_GetBuffer(array, &opened.view, PyBUF_FORMAT | PyBUF_STRIDES)
    except Exception:                         # such as dates, which have no buffer
        return False
    opened.kind = opened.view.format[0]
    if opened.view.ndim != 1 or opened.view.format[1] or opened.kind not in b"dfBb?HhIiLlQq":
        close_array(opened)
        return False
    opened.n = opened.view.shape[0]
    return True


cdef inline void close_array(Array *opened) noexcept:
    """Close an array; without effect if it is not open."""
    if opened.kind:
        opened.kind = 0
        PyBuffer_Release(&opened.view)


cdef inline const double *in_place(const Array *array) noexcept nogil:
    """The entries, if they are contiguous doubles; otherwise NULL."""
    cdef bint fits = array.kind == b"d" and array.view.strides[0] == sizeof(double)
    return <const double *>array.view.buf if fits else NULL


cdef inline bint copy_as_doubles(const Array *array, double *out) noexcept nogil:
    """Copy all entries; return False if an integer may have been rounded."""
    cdef char kind = array.kind
    cdef Py_ssize_t size = array.view.itemsize, i
    if kind == b"d":
        copy_entries(array, out, <double>0)
    elif kind == b"f":
        copy_entries(array, out, <float>0)
    elif kind == b"B" or kind == b"?":
        copy_entries(array, out, <uint8_t>0)
    elif kind == b"b":
        copy_entries(array, out, <int8_t>0)
    elif kind == b"H":
        copy_entries(array, out, <uint16_t>0)
    elif kind == b"h":
        copy_entries(array, out, <int16_t>0)
    elif size == 4:
        if kind == b"I" or kind == b"L":
            copy_entries(array, out, <uint32_t>0)
        else:
            copy_entries(array, out, <int32_t>0)
    else:
        if kind == b"Q" or kind == b"L":
            copy_entries(array, out, <uint64_t>0)
        else:
            copy_entries(array, out, <int64_t>0)
        for i in range(array.n):
            if not -9007199254740992.0 < out[i] < 9007199254740992.0:       # 2**53
                return False
    return True


cdef inline bint read_column(const Array *array, double **column) noexcept nogil:
    """Set `column` to the entries if they are contiguous doubles, or copy them there; see `copy_as_doubles`."""
    cdef const double *entries = in_place(array)
    if entries == NULL:
        return copy_as_doubles(array, column[0])
    column[0] = <double *>entries             # they are only read
    return True


cdef inline void copy_entries(const Array *array, double *out, entry kind) noexcept nogil:
    cdef const char *at = <const char *>array.view.buf
    cdef Py_ssize_t i, stride = array.view.strides[0]
    if stride == sizeof(entry):
        for i in range(array.n):
            out[i] = <double>(<const entry *>at)[i]
    else:
        for i in range(array.n):
            out[i] = <double>(<const entry *>(at + i * stride))[0]
