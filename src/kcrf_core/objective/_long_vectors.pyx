"""What solvers do with long vectors: each operation in one go over some slices, without the interpreter's lock.

Vectors are in single or double precision, in any mixture, but for rows of pairs, which are all in one: products with
those are taken in theirs, and added up in double precision every few hundred values. Every operation goes through the
slices of `Slices` and writes sums over each of them to its row of `sums`. So threads can share an operation, and adding
up the rows in their order gives the same bytes for any number of them.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport free, malloc

from ..system.team cimport Team

cdef extern from "_long_vectors.h" nogil:
    ctypedef struct kcrf_values:
        void* values
        bint single

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
    kcrf_work_on do_combined "KCRF_WIDEST(kcrf_combined)"
    kcrf_work_on do_dots "KCRF_WIDEST(kcrf_dots)"
    kcrf_work_on do_products "KCRF_WIDEST(kcrf_products)"
    kcrf_work_on do_add_curvature "KCRF_WIDEST(kcrf_add_curvature)"
    kcrf_work_on do_add_prior "KCRF_WIDEST(kcrf_add_prior)"
    kcrf_work_on do_linearised "KCRF_WIDEST(kcrf_linearised)"
    kcrf_work_on do_put_pair "KCRF_WIDEST(kcrf_put_pair)"
    kcrf_work_on do_reduced "KCRF_WIDEST(kcrf_reduced)"
    kcrf_work_on do_finished "KCRF_WIDEST(kcrf_finished)"

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


cdef void do_run(void* given, Py_ssize_t item, Py_ssize_t member) noexcept nogil:
    cdef const kcrf_operation* self = <const kcrf_operation*>given
    cdef kcrf_slices some
    some.bounds, some.first, some.last = self.bounds, self.runs[item], self.runs[item + 1]
    self.work(self, some)


cdef class Slices:
    """Slices [S] that vectors are gone through in, and the threads that share them."""

    cdef Team _team
    cdef const int64[::1] _bounds

    def __init__(self, Team team not None, const int64[::1] bounds not None):
        self._team, self._bounds = team, bounds

    cdef int go(self, kcrf_operation* what, const int64[::1] runs) except -1:
        """Have an operation done, by runs of slices [runs + 1]."""
        if runs.shape[0] < 2:
            return 0
        what.bounds, what.runs = <const long long*>&self._bounds[0], <const long long*>&runs[0]
        with nogil:
            self._team.share(do_run, what, runs.shape[0] - 1)
        return 0


def stepped(
    Slices slices not None,
    const int64[::1] runs,
    Values start not None,
    double step,
    Values direction not None,
    Values out not None,
):
    """out = start + step direction."""
    cdef kcrf_operation what
    what.work, what.a, what.factor, what.b, what.c = (
        do_stepped, start._values, step, direction._values, out._values,
    )
    slices.go(&what, runs)


def copied(Slices slices not None, const int64[::1] runs, Values vector not None, Values out not None):
    """out = vector."""
    cdef kcrf_operation what
    what.work, what.a, what.b = do_copied, vector._values, out._values
    slices.go(&what, runs)


def combined(
    Slices slices not None,
    const int64[::1] runs,
    Values a not None,
    Values b not None,
    bint divide,
    Values out not None,
):
    """out = a b, or a / b."""
    cdef kcrf_operation what
    what.work, what.a, what.b, what.number, what.c = do_combined, a._values, b._values, divide, out._values
    slices.go(&what, runs)


def dots(
    Slices slices not None,
    const int64[::1] runs,
    Values a not None,
    Values b not None,
    double[:, ::1] sums,               # [S, 1]
):
    """Sums of a b."""
    cdef kcrf_operation what
    if sums.shape[0] == 0:
        return
    what.work, what.a, what.b, what.sums = do_dots, a._values, b._values, &sums[0, 0]
    slices.go(&what, runs)


def products(
    Slices slices not None,
    const int64[::1] runs,
    Rows rows not None,
    Py_ssize_t count,
    Values vector not None,
    double[:, ::1] sums,               # [S, count]
):
    """Inner products of the first rows, which are pairs', with a vector."""
    cdef kcrf_operation what
    if count == 0 or sums.shape[0] == 0:
        return
    what.work, what.rows, what.count, what.a, what.sums = (
        do_products, rows._rows, count, vector._values, &sums[0, 0],
    )
    slices.go(&what, runs)


def add_curvature(
    Slices slices not None,
    const int64[::1] runs,
    Values target not None,
    Values vector not None,
    const double[::1] precisions,      # [S]
):
    """target += precision vector."""
    cdef kcrf_operation what
    if precisions.shape[0] == 0:
        return
    what.work, what.a, what.b, what.factors = do_add_curvature, target._values, vector._values, &precisions[0]
    slices.go(&what, runs)


def add_prior(
    Slices slices not None,
    const int64[::1] runs,
    Values gradient not None,
    Values theta not None,
    const double[::1] precisions,      # [S]
    double[:, ::1] sums,               # [S, 2]
):
    """gradient += precision theta; sums of theta^2, and of the new gradient^2."""
    cdef kcrf_operation what
    if sums.shape[0] == 0:
        return
    what.work, what.a, what.b, what.factors, what.sums = (
        do_add_prior, gradient._values, theta._values, &precisions[0], &sums[0, 0],
    )
    slices.go(&what, runs)


def linearised(
    Slices slices not None,
    const int64[::1] runs,
    Values theta not None,
    Values gradient not None,
    const double[::1] precisions,      # [S]
    Rows others not None,
    Values out not None,
    double[:, ::1] sums,               # [S, others + 2]
):
    """out = g / sqrt(precision) for g = gradient - precision theta; sums of g theta, of out times others and itself."""
    cdef kcrf_operation what
    if sums.shape[0] == 0:
        return
    what.work, what.a, what.b, what.factors = do_linearised, theta._values, gradient._values, &precisions[0]
    what.rows, what.count, what.c, what.sums = others._rows, others.count, out._values, &sums[0, 0]
    slices.go(&what, runs)


def put_pair(
    Slices slices not None,
    const int64[::1] runs,
    Rows steps not None,
    Rows changes not None,
    Py_ssize_t count,
    Py_ssize_t slot,
    Values before not None,
    Values after not None,
    Values gradient not None,
    Values new_gradient not None,
    double[:, :, ::1] sums,            # [S, count, 2]
):
    """Write a step and a change of the gradient; sums of the first steps times that change and the new gradient."""
    cdef kcrf_operation what
    if sums.shape[0] == 0:
        return
    what.work, what.rows, what.count, what.number = do_put_pair, steps._rows, count, slot
    what.a, what.b, what.c = changes._rows[slot], before._values, after._values
    what.d, what.e, what.sums = gradient._values, new_gradient._values, &sums[0, 0, 0]
    slices.go(&what, runs)


def reduced(
    Slices slices not None,
    const int64[::1] runs,
    Rows changes not None,
    const double[::1] shares,          # [count]
    Values gradient not None,
    Values scale,                      # None for ones
    Py_ssize_t newest,
    Values out not None,
    double[:, ::1] sums,               # [S, count + 1], or None
):
    """out = -(gradient + shares times changes) scale; sums of changes times out, and of the newest change^2 scale."""
    cdef kcrf_operation what
    what.work, what.rows, what.count, what.number = do_reduced, changes._rows, shares.shape[0], newest
    what.factors = &shares[0] if shares.shape[0] else NULL
    what.a, what.c, what.sums = gradient._values, out._values, NULL
    what.b.values, what.b.single = NULL, False
    if scale is not None:
        what.b = scale._values
    if sums is not None and sums.shape[0]:
        what.sums = &sums[0, 0]
    slices.go(&what, runs)


def finished(
    Slices slices not None,
    const int64[::1] runs,
    Rows steps not None,
    const double[::1] weights,         # [count]
    double length,
    Values target not None,
    Values gradient not None,
    double[:, ::1] sums,               # [S, 1]
):
    """target = length target + weights times steps; sums of target times the gradient."""
    cdef kcrf_operation what
    if sums.shape[0] == 0:
        return
    what.work, what.rows, what.count, what.factor = do_finished, steps._rows, weights.shape[0], length
    what.factors = &weights[0] if weights.shape[0] else NULL
    what.a, what.b, what.sums = target._values, gradient._values, &sums[0, 0]
    slices.go(&what, runs)
