# Two merges side by side: of scores below some score, and of those from there on.
#
# A step of a merge has to wait for the step before it, so that a processor does two at once in the time of one.
#
# Assumed of the caller: ascending scores, no two equal within a column, at least one in each.

# Where a merge of two columns has got to.
ctypedef struct Lane:
    Py_ssize_t i              # in the one
    Py_ssize_t i_end
    Py_ssize_t j              # in the other
    Py_ssize_t j_end
    Py_ssize_t k              # in what they become


cdef inline bint runs(const Lane *lane) noexcept nogil:
    """Whether there are scores of both left."""
    return lane.i < lane.i_end and lane.j < lane.j_end


cdef inline void split(const double *a, Py_ssize_t n_a, const double *b, Py_ssize_t n_b, Lane *lanes) noexcept nogil:
    """Two lanes that together merge all; the second one writes from where the first one would end without ties."""
    cdef Py_ssize_t i = n_a // 2, j = 0, above = n_b, middle
    while j < above:
        middle = (j + above) // 2
        if b[middle] < a[i]:
            j = middle + 1
        else:
            above = middle
    lanes[0] = Lane(0, i, 0, j, 0)
    lanes[1] = Lane(i, n_a, j, n_b, i + j)
