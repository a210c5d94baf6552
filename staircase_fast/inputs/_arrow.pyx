"""Columns of other libraries by Arrow's C data interface: what they are, and where they lie in memory.

Nothing is copied.  `_columns_arrow.py` says what can be read.  The structures are those of Arrow's specification and
are never to change.  Parts that are missing and lengths that are impossible are refused here by an OSError; that memory
is as long as it is said to be cannot be checked.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_CheckSignals
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.errno cimport EINVAL
from libc.stdint cimport int64_t


cdef struct ArrowSchema:
    const char *format
    const char *name
    const char *metadata
    int64_t flags
    int64_t n_children
    ArrowSchema **children
    ArrowSchema *dictionary
    void (*release)(ArrowSchema *) noexcept nogil
    void *private_data


cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void **buffers
    ArrowArray **children
    ArrowArray *dictionary
    void (*release)(ArrowArray *) noexcept nogil
    void *private_data


cdef struct ArrowArrayStream:
    int (*get_schema)(ArrowArrayStream *, ArrowSchema *) noexcept nogil
    int (*get_next)(ArrowArrayStream *, ArrowArray *) noexcept nogil
    const char *(*get_last_error)(ArrowArrayStream *) noexcept nogil
    void (*release)(ArrowArrayStream *) noexcept nogil
    void *private_data


@cython.final
cdef class Kind:
    """What entries are: Arrow's format string, and the same of a dictionary and of children."""

    cdef readonly str format
    cdef readonly Kind dictionary
    cdef readonly tuple children


cdef Kind kind_of(const ArrowSchema *schema):
    cdef Kind kind = Kind.__new__(Kind)
    cdef int64_t place
    check(schema is not NULL and schema.format is not NULL, "its schema has no format")
    check(schema.n_children == 0 or schema.children is not NULL, "its schema has no children")
    kind.format = schema.format.decode("utf-8", "replace")
    kind.dictionary = None if schema.dictionary is NULL else kind_of(schema.dictionary)
    kind.children = tuple([kind_of(schema.children[place]) for place in range(schema.n_children)])
    return kind


@cython.final
cdef class Chunk:
    """Rows that lie together.  What they lie in is kept as long as this is, or a buffer of it."""

    cdef const ArrowArray *array
    cdef object owner  # who frees it: a capsule, or another chunk
    cdef ArrowArray own  # where that is this one

    def __dealloc__(self):
        if self.own.release is not NULL:
            self.own.release(&self.own)

    @property
    def length(self):
        return self.array.length

    @property
    def offset(self):
        """How many entries of each buffer come before the first row."""
        return self.array.offset

    @property
    def null_count(self):
        """How many rows are null; -1 if nobody has counted."""
        return self.array.null_count

    @property
    def dictionary(self):
        return part_of(self, self.array.dictionary)

    def child(self, int64_t place):
        check(0 <= place < self.array.n_children and self.array.children is not NULL, "it has too few children")
        return part_of(self, self.array.children[place])

    def buffer(self, int64_t place, Py_ssize_t size):
        """The first bytes of a buffer; None if there is none."""
        check(0 <= place < self.array.n_buffers and self.array.buffers is not NULL, "it has too few buffers")
        if self.array.buffers[place] is NULL:
            return None
        cdef _Memory memory = _Memory.__new__(_Memory)
        memory.owner = self
        memory.start = self.array.buffers[place]
        memory.size = size
        return memoryview(memory)


cdef Chunk part_of(object owner, const ArrowArray *array):
    cdef Chunk chunk = Chunk.__new__(Chunk)
    check_extent(array)
    chunk.owner = owner
    chunk.array = array
    return chunk


cdef int check_extent(const ArrowArray *array) except -1:
    check(array is not NULL, "a part of it is missing")
    # below 2**55, so that no number of bytes overflows
    return check(array.offset >> 55 == 0 and array.length >> 55 == 0, "its length or its offset is impossible")


@cython.final
cdef class _Memory:
    """Bytes that may be read, as Python's buffer protocol has them."""

    cdef Chunk owner
    cdef const void *start
    cdef Py_ssize_t size

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, <void *> self.start, self.size, 1, flags)


def from_array(object capsules not None):
    """What `__arrow_c_array__` gave: the kind of its rows, and these."""
    schema, array = capsules
    cdef const ArrowSchema *kind = <const ArrowSchema *> PyCapsule_GetPointer(schema, "arrow_schema")
    cdef const ArrowArray *rows = <const ArrowArray *> PyCapsule_GetPointer(array, "arrow_array")
    check_there(kind.release is not NULL and rows.release is not NULL)
    return kind_of(kind), part_of(array, rows)


cdef int check(bint right, str why) except -1:
    if not right:
        raise OSError(EINVAL, why)
    return 0


cdef int check_there(bint there) except -1:
    """Who takes what a capsule holds out of it leaves it without a `release`: nothing else of it may be read then."""
    return check(there, "it was taken out of its capsule before")


@cython.final
cdef class Stream:
    """What `__arrow_c_stream__` gave: the kind of its rows, and chunks of them, one after the other.

    Thread-safety: for one thread at a time.
    """

    cdef object capsule
    cdef ArrowArrayStream *stream
    cdef readonly Kind kind

    def __init__(self, object capsule not None):
        self.capsule = capsule
        self.stream = <ArrowArrayStream *> PyCapsule_GetPointer(capsule, "arrow_array_stream")
        check_there(self.stream.release is not NULL)
        cdef ArrowSchema schema
        cdef int status
        schema.release = NULL
        with nogil:
            status = self.stream.get_schema(self.stream, &schema)
        self.check_status(status)
        check(schema.release is not NULL, "its schema was released before")
        try:
            self.kind = kind_of(&schema)
        finally:
            schema.release(&schema)

    def __iter__(self):
        return self

    def __next__(self):
        cdef Chunk chunk = Chunk.__new__(Chunk)
        cdef int status
        with nogil:  # whoever makes the rows only now may take long
            status = self.stream.get_next(self.stream, &chunk.own)
        self.check_status(status)
        PyErr_CheckSignals()  # there may be many chunks
        if chunk.own.release is NULL:
            raise StopIteration
        check_extent(&chunk.own)
        chunk.array = &chunk.own
        return chunk

    cdef int check_status(self, int status) except -1:
        cdef const char *said
        if status:
            said = self.stream.get_last_error(self.stream)
            raise OSError(status, "" if said is NULL else said.decode("utf-8", "replace"))
        return 0
