"""What solvers do with long vectors: each operation in one go over some slices, without the interpreter's lock.

Vectors are in single or double precision, in any mixture, but for rows of pairs, which are all in one: products with
those are taken in theirs, and added up in double precision every few hundred values. Every operation takes slices first
to last of `bounds` [S + 1] and writes sums over each of them to its row of `sums`. So threads can share an operation,
and adding up the rows in their order gives the same bytes for any number of them.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport free, malloc

cdef extern from "_long_vectors.h" nogil:
    ctypedef struct kcrf_values:
        void* values
        bint single

    ctypedef struct kcrf_slices:
        const long long* bounds
        Py_ssize_t first, last

    void kcrf_stepped(
        kcrf_slices some, kcrf_values start, double step, kcrf_values direction, kcrf_values out,
    )
    void kcrf_copied(kcrf_slices some, kcrf_values vector, kcrf_values out)
    void kcrf_combined(kcrf_slices some, kcrf_values a, kcrf_values b, bint divide, kcrf_values out)
    void kcrf_dots(kcrf_slices some, kcrf_values a, kcrf_values b, double* sums)
    void kcrf_products(
        kcrf_slices some, const kcrf_values* rows, Py_ssize_t count, kcrf_values vector, double* sums,
    )
    void kcrf_add_curvature(kcrf_slices some, kcrf_values target, kcrf_values vector, const double* precisions)
    void kcrf_add_prior(
        kcrf_slices some, kcrf_values gradient, kcrf_values theta, const double* precisions, double* sums,
    )
    void kcrf_linearised(
        kcrf_slices some, kcrf_values theta, kcrf_values gradient, const double* precisions, const kcrf_values* others,
        Py_ssize_t count, kcrf_values out, double* sums,
    )
    void kcrf_put_pair(
        kcrf_slices some, const kcrf_values* steps, Py_ssize_t count, Py_ssize_t slot, kcrf_values change,
        kcrf_values before, kcrf_values after, kcrf_values gradient, kcrf_values new_gradient, double* sums,
    )
    void kcrf_reduced(
        kcrf_slices some, const kcrf_values* changes, Py_ssize_t count, const double* shares, kcrf_values gradient,
        kcrf_values scale, Py_ssize_t newest, kcrf_values out, double* sums,
    )
    void kcrf_finished(
        kcrf_slices some, const kcrf_values* steps, Py_ssize_t count, const double* weights, double length,
        kcrf_values target, kcrf_values gradient, double* sums,
    )

ctypedef long long int64


cdef class Values:
    """The values of one vector, an array that is contiguous in memory; it is held for as long as this is."""

    cdef Py_buffer _view
    cdef kcrf_values _values
    cdef bint _held

    def __cinit__(self, array, Py_ssize_t size, bint written=False):
        cdef int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (PyBUF_WRITABLE if written else 0)
        PyObject_GetBuffer(array, &self._view, flags)
        self._held = True
        form = self._view.format
        if form not in (b"f", b"d") or self._view.len != size * self._view.itemsize:
            raise ValueError(f"a vector of {size} floating-point numbers is needed")
        self._values.values, self._values.single = self._view.buf, form == b"f"

    def __dealloc__(self):
        if self._held:
            PyBuffer_Release(&self._view)


cdef class Rows:
    """Vectors that an operation goes through side by side."""

    cdef kcrf_values* _rows
    cdef list _held
    cdef readonly Py_ssize_t count

    def __cinit__(self, list rows):
        cdef Py_ssize_t i
        self._held, self.count = rows, len(rows)
        self._rows = <kcrf_values*>malloc(max(self.count, 1) * sizeof(kcrf_values))
        if self._rows == NULL:
            raise MemoryError
        for i in range(self.count):
            self._rows[i] = (<Values?>rows[i])._values

    def __dealloc__(self):
        free(self._rows)


cdef kcrf_slices slices(const int64[::1] bounds, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef kcrf_slices some
    some.bounds, some.first, some.last = <const long long*>&bounds[0], first, last
    return some


def stepped(
    Values start not None,
    double step,
    Values direction not None,
    Values out not None,
    const int64[::1] bounds,
    Py_ssize_t first,
    Py_ssize_t last,
):
    """out = start + step direction."""
    with nogil:
        kcrf_stepped(slices(bounds, first, last), start._values, step, direction._values, out._values)


def copied(Values vector not None, Values out not None, const int64[::1] bounds, Py_ssize_t first, Py_ssize_t last):
    """out = vector."""
    with nogil:
        kcrf_copied(slices(bounds, first, last), vector._values, out._values)


def combined(
    Values a not None,
    Values b not None,
    bint divide,
    Values out not None,
    const int64[::1] bounds,
    Py_ssize_t first,
    Py_ssize_t last,
):
    """out = a b, or a / b."""
    with nogil:
        kcrf_combined(slices(bounds, first, last), a._values, b._values, divide, out._values)


def dots(
    Values a not None,
    Values b not None,
    double[:, ::1] sums,               # [S, 1]
    const int64[::1] bounds,
    Py_ssize_t first,
    Py_ssize_t last,
):
    """Sums of a b."""
    if first >= last:
        return
    with nogil:
        kcrf_dots(slices(bounds, first, last), a._values, b._values, &sums[0, 0])


def products(
    Rows rows not None,
    Py_ssize_t count,
    Values vector not None,
    double[:, ::1] sums,               # [S, count]
    const int64[::1] bounds,
    Py_ssize_t first,
    Py_ssize_t last,
):
    """Inner products of the first rows, which are pairs', with a vector."""
    if count == 0 or first >= last:
        return
    with nogil:
        kcrf_products(slices(bounds, first, last), rows._rows, count, vector._values, &sums[0, 0])


def add_curvature(
    Values target not None,
    Values vector not None,
    const double[::1] precisions,      # [S]
    const int64[::1] bounds,
    Py_ssize_t first,
    Py_ssize_t last,
):
    """target += precision vector."""
    if first >= last:
        return
    with nogil:
        kcrf_add_curvature(slices(bounds, first, last), target._values, vector._values, &precisions[0])


def add_prior(
    Values gradient not None,
    Values theta not None,
    const double[::1] precisions,      # [S]
    double[:, ::1] sums,               # [S, 2]
    const int64[::1] bounds,
    Py_ssize_t first,
    Py_ssize_t last,
):
    """gradient += precision theta; sums of theta^2, and of the new gradient^2."""
    if first >= last:
        return
    with nogil:
        kcrf_add_prior(
            slices(bounds, first, last), gradient._values, theta._values, &precisions[0], &sums[0, 0],
        )


def linearised(
    Values theta not None,
    Values gradient not None,
    const double[::1] precisions,      # [S]
    Rows others not None,
    Values out not None,
    double[:, ::1] sums,               # [S, others + 2]
    const int64[::1] bounds,
    Py_ssize_t first,
    Py_ssize_t last,
):
    """out = g / sqrt(precision) for g = gradient - precision theta; sums of g theta, of out times others and itself."""
    if first >= last:
        return
    with nogil:
        kcrf_linearised(
            slices(bounds, first, last), theta._values, gradient._values, &precisions[0], others._rows, others.count,
            out._values, &sums[0, 0],
        )


def put_pair(
    Rows steps not None,
    Rows changes not None,
    Py_ssize_t count,
    Py_ssize_t slot,
    Values before not None,
    Values after not None,
    Values gradient not None,
    Values new_gradient not None,
    double[:, :, ::1] sums,            # [S, count, 2]
    const int64[::1] bounds,
    Py_ssize_t first,
    Py_ssize_t last,
):
    """Write a step and a change of the gradient; sums of the first steps times that change and the new gradient."""
    if first >= last:
        return
    with nogil:
        kcrf_put_pair(
            slices(bounds, first, last), steps._rows, count, slot, changes._rows[slot], before._values, after._values,
            gradient._values, new_gradient._values, &sums[0, 0, 0],
        )


def reduced(
    Rows changes not None,
    const double[::1] shares,          # [count]
    Values gradient not None,
    Values scale,                      # None for ones
    Py_ssize_t newest,
    Values out not None,
    double[:, ::1] sums,               # [S, count + 1], or None
    const int64[::1] bounds,
    Py_ssize_t first,
    Py_ssize_t last,
):
    """out = -(gradient + shares times changes) scale; sums of changes times out, and of the newest change^2 scale."""
    cdef Py_ssize_t count = shares.shape[0]
    cdef const double* parts = &shares[0] if count else NULL
    cdef double* found = NULL
    cdef kcrf_values factor
    if first >= last:
        return
    if sums is not None:
        found = &sums[0, 0]
    factor.values, factor.single = NULL, False
    if scale is not None:
        factor = scale._values
    with nogil:
        kcrf_reduced(
            slices(bounds, first, last), changes._rows, count, parts, gradient._values, factor, newest, out._values,
            found,
        )


def finished(
    Rows steps not None,
    const double[::1] weights,         # [count]
    double length,
    Values target not None,
    Values gradient not None,
    double[:, ::1] sums,               # [S, 1]
    const int64[::1] bounds,
    Py_ssize_t first,
    Py_ssize_t last,
):
    """target = length target + weights times steps; sums of target times the gradient."""
    cdef Py_ssize_t count = weights.shape[0]
    cdef const double* parts = &weights[0] if count else NULL
    if first >= last:
        return
    with nogil:
        kcrf_finished(
            slices(bounds, first, last), steps._rows, count, parts, length, target._values, gradient._values,
            &sums[0, 0],
        )
