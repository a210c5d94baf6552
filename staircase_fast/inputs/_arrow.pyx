"""Columns of other libraries through Arrow's C data interface: their formats, and where they lie in memory.

Nothing is copied; `columns_arrow.py` decides what can be read.  Arrow's specification freezes the structures.  Missing
parts and impossible lengths raise an OSError.  The length of the memory itself cannot be checked.
"""

from collections import namedtuple

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


Kind = namedtuple("Kind", "format has_dictionary children")    # Arrow's format string, and the kinds of children


cdef object kind_of(const ArrowSchema *schema):
    cdef int64_t place
    check(schema is not NULL and schema.format is not NULL, "its schema has no format")
    check(schema.n_children == 0 or schema.children is not NULL, "its schema has no children")
    children = []                             # by a loop: see `steps` in streams/_online.pyx
    for place in range(schema.n_children):
        children.append(kind_of(schema.children[place]))
    return Kind(schema.format.decode("utf-8", "replace"), schema.dictionary is not NULL, children)


@cython.final
cdef class Chunk:
    """Rows in one piece of memory, which stays valid as long as this object or a buffer of it."""

    cdef readonly int64_t length
    cdef readonly int64_t offset  # number of entries of each buffer before the first row
    cdef readonly int64_t null_count  # number of rows that are null; -1 if unknown
    cdef const ArrowArray *array
    cdef object owner  # frees the memory: a capsule or another chunk
    cdef ArrowArray own  # the array, if this chunk frees it

    def __dealloc__(self):
        if self.own.release is not NULL:
            self.own.release(&self.own)

    def child(self, int64_t place):
        check(0 <= place < self.array.n_children and self.array.children is not NULL, "it has too few children")
        return set_rows(Chunk.__new__(Chunk), self, self.array.children[place])

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

    def entries(self, Py_ssize_t size):
        """The first bytes of the buffer of entries."""
        memory = self.buffer(1, size)
        check(memory is not None, "it has no memory for its entries")
        return memory


cdef Chunk set_rows(Chunk chunk, object owner, const ArrowArray *array):
    check(array is not NULL, "a part of it is missing")
    # below 2**55, so that no number of bytes overflows
    check(array.offset >> 55 == 0 and array.length >> 55 == 0, "its length or its offset is impossible")
    chunk.owner, chunk.array = owner, array
    chunk.length, chunk.offset, chunk.null_count = array.length, array.offset, array.null_count
    return chunk


cdef int check(bint valid, str reason) except -1:
    if not valid:
        raise OSError(EINVAL, reason)
    return 0


@cython.final
cdef class _Memory:
    """Read-only bytes with Python's buffer protocol."""

    cdef Chunk owner
    cdef const void *start
    cdef Py_ssize_t size

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, <void *> self.start, self.size, 1, flags)


cdef int check_present(bint present) except -1:
    """A consumer that moves the data out of a capsule clears `release`; no other field is valid then."""
    return check(present, "it was taken out of its capsule before")


def array_kind(object capsules not None):
    """The kind of rows that `__arrow_c_array__` returned."""
    schema, _ = capsules
    cdef const ArrowSchema *kind = <const ArrowSchema *> PyCapsule_GetPointer(schema, "arrow_schema")
    check_present(kind.release is not NULL)
    return kind_of(kind)


def array_chunks(object capsules not None):
    """The rows that `__arrow_c_array__` returned, as a list of one chunk."""
    _, array = capsules
    cdef const ArrowArray *rows = <const ArrowArray *> PyCapsule_GetPointer(array, "arrow_array")
    check_present(rows.release is not NULL)
    return [set_rows(Chunk.__new__(Chunk), array, rows)]


cdef ArrowArrayStream *stream_in(object capsule) except NULL:
    cdef ArrowArrayStream *stream = <ArrowArrayStream *> PyCapsule_GetPointer(capsule, "arrow_array_stream")
    check_present(stream.release is not NULL)
    return stream


cdef int check_status(ArrowArrayStream *stream, int status) except -1:
    cdef const char *message
    if status:
        message = stream.get_last_error(stream)
        raise OSError(status, "" if message is NULL else message.decode("utf-8", "replace"))
    return 0


def stream_kind(object capsule not None):
    """The kind of rows that `__arrow_c_stream__` returned."""
    cdef ArrowArrayStream *stream = stream_in(capsule)
    cdef ArrowSchema schema
    cdef int status
    schema.release = NULL
    with nogil:
        status = stream.get_schema(stream, &schema)
    check_status(stream, status)
    check(schema.release is not NULL, "its schema was released before")
    try:
        return kind_of(&schema)
    finally:
        schema.release(&schema)


def stream_chunks(object capsule not None):
    """All chunks of the stream that `__arrow_c_stream__` returned, which is then empty."""
    cdef ArrowArrayStream *stream = stream_in(capsule)
    cdef Chunk chunk
    cdef int status
    chunks = []
    while True:
        chunk = Chunk.__new__(Chunk)
        with nogil:  # the stream may compute the rows now
            status = stream.get_next(stream, &chunk.own)
        check_status(stream, status)
        PyErr_CheckSignals()
        if chunk.own.release is NULL:
            return chunks
        chunks.append(set_rows(chunk, None, &chunk.own))
