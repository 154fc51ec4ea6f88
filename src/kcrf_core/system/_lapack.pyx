"""LAPACK in place, without the interpreter's lock, which SciPy's own wrappers hold: threads can share it.

Matrices are given by rows, which may be parts of longer ones. LAPACK takes them by columns: what is the lower triangle
here is the upper one there.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer

from .types cimport real

ctypedef void (*of_positive)(char*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*of_triangle)(char*, char*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*solver)(char*, char*, char*, char*, int*, int*, void*, void*, int*, void*, int*) noexcept nogil

cdef of_positive spotrf = NULL
cdef of_positive dpotrf = NULL
cdef of_positive dpotri = NULL
cdef of_triangle dtrtri = NULL
cdef solver strsm = NULL
cdef solver dtrsm = NULL


def load(dict lapack, dict blas):
    """Take the functions from SciPy's tables of them."""
    global spotrf, dpotrf, dpotri, dtrtri, strsm, dtrsm
    strsm, dtrsm = <solver>pointer(blas["strsm"]), <solver>pointer(blas["dtrsm"])
    dpotri, dtrtri = <of_positive>pointer(lapack["dpotri"]), <of_triangle>pointer(lapack["dtrtri"])
    spotrf, dpotrf = <of_positive>pointer(lapack["spotrf"]), <of_positive>pointer(lapack["dpotrf"])


cdef void* pointer(capsule) except NULL:
    cdef const char* name = PyCapsule_GetName(capsule)
    if b"int *" not in name:  # a SciPy with wider sizes would take them for others
        raise ImportError("SciPy's LAPACK has sizes that are no ints")
    return PyCapsule_GetPointer(capsule, name)


cdef int stride_of(real[:, :] matrix) except -1:
    cdef Py_ssize_t row = matrix.shape[1] * <Py_ssize_t>sizeof(real)
    if matrix.shape[1] > 1 and matrix.strides[1] != sizeof(real):
        raise ValueError("values of a row must lie closely in memory")
    if matrix.shape[0] > 1 and matrix.strides[0] < row:
        raise ValueError("rows must lie one after the other in memory")
    return max(matrix.strides[0] // <Py_ssize_t>sizeof(real), matrix.shape[1], 1)


cdef int in_place(of_positive function, real[:, :] matrix) except? -1:
    """Return the status of LAPACK for a lower triangle: 0 unless something was wrong."""
    cdef int m = matrix.shape[0], stride = stride_of(matrix), info = 0
    cdef char upper = b"U"
    if m:
        with nogil:
            function(&upper, &m, &matrix[0, 0], &stride, &info)
    return info


def factorise(real[:, :] matrix):
    """Put L in the lower triangle of [m, m] = L L^T; return 0, or the number of the first row that is not positive."""
    return in_place(dpotrf if real is double else spotrf, matrix)


def invert_factorised(double[:, :] triangle):
    """Put the lower triangle of (L L^T)^-1 in the place of L; return 0 unless that is singular."""
    return in_place(dpotri, triangle)


def invert_triangle(double[:, :] triangle):
    """Put L^-1 in the place of L, whose upper triangle is not touched; return 0 unless it is singular."""
    cdef int m = triangle.shape[0], stride = stride_of(triangle), info = 0
    cdef char upper = b"U", general = b"N"
    if m:
        with nogil:
            dtrtri(&upper, &general, &m, &triangle[0, 0], &stride, &info)
    return info


def substitute(real[:, :] triangle, real[:, :] right):
    """Put L^-1 R in the place of R [m, c]."""
    solve(triangle, right, right.shape[0], c"R", c"N")


def substitute_rows(real[:, :] triangle, real[:, :] rows, bint turned=False):
    """Put L^-1 x, or L^-T x, in the place of each row x [m] of [n, m]."""
    solve(triangle, rows, rows.shape[1], c"L", c"N" if turned else c"T")


cdef void solve(real[:, :] triangle, real[:, :] values, Py_ssize_t fits, char side, char turned) except *:
    cdef int m = triangle.shape[0], height = values.shape[1], width = values.shape[0]
    cdef int stride = stride_of(triangle), value_stride = stride_of(values)
    cdef char upper = b"U", general = b"N"
    cdef real one = 1
    if fits != m:
        raise ValueError("a triangle does not fit the values")
    if height == 0 or width == 0:
        return
    with nogil:
        (dtrsm if real is double else strsm)(
            &side, &upper, &turned, &general, &height, &width, &one, &triangle[0, 0], &stride, &values[0, 0],
            &value_stride,
        )
