"""Operations of solvers on long vectors, without the interpreter's lock.

Vectors are in single or double precision, in any mixture, but for rows of pairs, which are all in one, or as upper
halves of single numbers (16-bit integers): products with those are taken in their precision, or in single precision,
and added up in double precision every few hundred values. Every operation goes through
slices and writes sums over each of them to a row of its own. So threads can share an operation, and adding up the rows
in their order gives the same bytes for any number of threads.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport free, malloc

from ..system.team cimport Team
from ..system.types cimport int64

cdef extern from "_long_vectors.h" nogil:
    ctypedef struct kcrf_values:
        void* values
        int bytes

    ctypedef struct kcrf_slices:
        const long long* bounds
        Py_ssize_t first, last

    ctypedef struct kcrf_operation

    ctypedef void (*kcrf_work_on)(const kcrf_operation* self, kcrf_slices some) noexcept nogil

    ctypedef struct kcrf_operation:
        kcrf_work_on work
        const long long* bounds            # [S+1]
        const long long* runs              # [runs+1] slices
        kcrf_values a, b, c, d, e
        const kcrf_values* rows
        Py_ssize_t count, number
        double factor
        const double* factors
        double* sums

    # Operations for the widest vectors that the machine has; `_long_vectors_body.h` says what they do.
    kcrf_work_on do_stepped "KCRF_WIDEST(kcrf_stepped)"
    kcrf_work_on do_copied "KCRF_WIDEST(kcrf_copied)"
    kcrf_work_on do_multiplied "KCRF_WIDEST(kcrf_multiplied)"
    kcrf_work_on do_dots "KCRF_WIDEST(kcrf_dots)"
    kcrf_work_on do_products "KCRF_WIDEST(kcrf_products)"
    kcrf_work_on do_add_prior "KCRF_WIDEST(kcrf_add_prior)"
    kcrf_work_on do_add_sparse_prior "KCRF_WIDEST(kcrf_add_sparse_prior)"
    kcrf_work_on do_beyond "KCRF_WIDEST(kcrf_beyond)"
    kcrf_work_on do_linearised "KCRF_WIDEST(kcrf_linearised)"
    kcrf_work_on do_put_pair "KCRF_WIDEST(kcrf_put_pair)"
    kcrf_work_on do_reduced "KCRF_WIDEST(kcrf_reduced)"
    kcrf_work_on do_finished "KCRF_WIDEST(kcrf_finished)"


cdef class Operation:
    """A loop of `_long_vectors_body.h`, which describes what it reads, writes and sums up."""

    cdef kcrf_work_on _work


cdef Operation operation(kcrf_work_on work):
    cdef Operation found = Operation.__new__(Operation)
    found._work = work
    return found


stepped, copied, multiplied = operation(do_stepped), operation(do_copied), operation(do_multiplied)
dots, products, add_prior = operation(do_dots), operation(do_products), operation(do_add_prior)
add_sparse_prior, beyond = operation(do_add_sparse_prior), operation(do_beyond)
linearised, put_pair = operation(do_linearised), operation(do_put_pair)
reduced, finished = operation(do_reduced), operation(do_finished)


cdef class Values:
    """Values of one vector, an array that is contiguous in memory; it is held for as long as this is."""

    cdef Py_buffer _view
    cdef kcrf_values _values
    cdef bint _held

    def __cinit__(self, array, Py_ssize_t size, bint written=False):
        cdef int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (PyBUF_WRITABLE if written else 0)
        PyObject_GetBuffer(array, &self._view, flags)
        self._held = True
        form = self._view.format
        if form not in (b"f", b"d", b"H") or self._view.len != size * self._view.itemsize:
            raise ValueError(f"a vector of {size} floating-point numbers is needed")
        self._values.values, self._values.bytes = self._view.buf, <int>self._view.itemsize

    def __dealloc__(self):
        if self._held:
            PyBuffer_Release(&self._view)


cdef kcrf_values values_of(Values vector):
    cdef kcrf_values none
    none.values, none.bytes = NULL, 8
    return none if vector is None else vector._values


cdef void do_run(void* given, Py_ssize_t item, Py_ssize_t member) noexcept nogil:
    cdef const kcrf_operation* self = <const kcrf_operation*>given
    cdef kcrf_slices some
    some.bounds, some.first, some.last = self.bounds, self.runs[item], self.runs[item + 1]
    self.work(self, some)


def go(
    Team team not None,
    const int64[::1] bounds not None,  # [S+1] where slices begin and end
    const int64[::1] runs not None,    # [runs+1] slices: each run is a task
    Operation operation not None,
    double[::1] sums not None,         # [S * sums of a slice]; empty: none are wanted
    Values a=None,
    Values b=None,
    Values c=None,
    Values d=None,
    Values e=None,
    list rows=None,                    # Values
    Py_ssize_t number=-1,
    double factor=0.0,
    const double[::1] factors=None,
):
    """Have an operation done by a team, with those of the vectors and numbers that it needs."""
    cdef kcrf_operation what
    cdef Py_ssize_t i, count = 0 if rows is None else len(rows)
    if runs.shape[0] < 2:
        return
    what.work, what.bounds, what.runs = operation._work, <const long long*>&bounds[0], <const long long*>&runs[0]
    what.a, what.b, what.c, what.d, what.e = values_of(a), values_of(b), values_of(c), values_of(d), values_of(e)
    what.count, what.number, what.factor = count, number, factor
    what.factors = &factors[0] if factors is not None and factors.shape[0] else NULL
    what.sums = &sums[0] if sums.shape[0] else NULL
    cdef kcrf_values* each = <kcrf_values*>malloc(max(count, 1) * sizeof(kcrf_values))
    if each == NULL:
        raise MemoryError
    try:
        for i in range(count):
            each[i] = (<Values?>rows[i])._values
        what.rows = each
        with nogil:
            team.share(do_run, &what, runs.shape[0] - 1)
    finally:
        free(each)
