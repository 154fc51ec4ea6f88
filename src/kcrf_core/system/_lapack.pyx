"""LAPACK in place, without the interpreter's lock, which SciPy's own wrappers hold: threads can share it.

Matrices are given by rows, which may be parts of longer ones. LAPACK takes them by columns: what is the lower triangle
here is the upper one there.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer

ctypedef void (*of_positive)(char*, int*, double*, int*, int*) noexcept nogil
ctypedef void (*of_triangle)(char*, char*, int*, double*, int*, int*) noexcept nogil
ctypedef void (*solver)(char*, char*, char*, char*, int*, int*, double*, double*, int*, double*, int*) noexcept nogil

cdef of_positive potrf = NULL
cdef of_positive potri = NULL
cdef of_triangle trtri = NULL
cdef solver trsm = NULL


def load(dict lapack, dict blas):
    """Take the functions from SciPy's tables of them."""
    global potrf, potri, trtri, trsm
    potri = <of_positive>pointer(lapack["dpotri"])
    trtri = <of_triangle>pointer(lapack["dtrtri"])
    trsm = <solver>pointer(blas["dtrsm"])
    potrf = <of_positive>pointer(lapack["dpotrf"])


cdef void* pointer(capsule) except NULL:
    cdef const char* name = PyCapsule_GetName(capsule)
    if b"int *" not in name:  # a SciPy with wider sizes would take them for others
        raise ImportError("SciPy's LAPACK has sizes that are no ints")
    return PyCapsule_GetPointer(capsule, name)


cdef int stride_of(double[:, :] matrix) except -1:
    cdef Py_ssize_t row = matrix.shape[1] * <Py_ssize_t>sizeof(double)
    if matrix.shape[1] > 1 and matrix.strides[1] != sizeof(double):
        raise ValueError("values of a row must lie closely in memory")
    if matrix.shape[0] > 1 and matrix.strides[0] < row:
        raise ValueError("rows must lie one after the other in memory")
    return max(matrix.strides[0] // <Py_ssize_t>sizeof(double), matrix.shape[1], 1)


cdef int in_place(of_positive function, double[:, :] matrix) except? -1:
    """Return the status of LAPACK for a lower triangle: 0 unless something was wrong."""
    cdef int m = matrix.shape[0], stride = stride_of(matrix), info = 0
    cdef char upper = b"U"
    if m:
        with nogil:
            function(&upper, &m, &matrix[0, 0], &stride, &info)
    return info


def factorise(double[:, :] matrix):
    """Put L in the lower triangle of [m, m] = L L^T; return 0, or the number of the first row that is not positive."""
    return in_place(potrf, matrix)


def invert_factorised(double[:, :] triangle):
    """Put the lower triangle of (L L^T)^-1 in the place of L; return 0 unless that is singular."""
    return in_place(potri, triangle)


def invert_triangle(double[:, :] triangle):
    """Put L^-1 in the place of L, whose upper triangle is not touched; return 0 unless it is singular."""
    cdef int m = triangle.shape[0], stride = stride_of(triangle), info = 0
    cdef char upper = b"U", general = b"N"
    if m:
        with nogil:
            trtri(&upper, &general, &m, &triangle[0, 0], &stride, &info)
    return info


def substitute(double[:, :] triangle, double[:, :] right):
    """Put L^-1 R in the place of R [m, c]."""
    solve(triangle, right, right.shape[0], b"R", b"N")


def substitute_rows(double[:, :] triangle, double[:, :] rows):
    """Put L^-1 x in the place of each row x [m] of [n, m]."""
    solve(triangle, rows, rows.shape[1], b"L", b"T")


cdef void solve(double[:, :] triangle, double[:, :] values, Py_ssize_t fits, char side, char turned) except *:
    cdef int m = triangle.shape[0], height = values.shape[1], width = values.shape[0]
    cdef int stride = stride_of(triangle), value_stride = stride_of(values)
    cdef char upper = b"U", general = b"N"
    cdef double one = 1.0
    if fits != m:
        raise ValueError("a triangle does not fit the values")
    if height == 0 or width == 0:
        return
    with nogil:
        trsm(
            &side, &upper, &turned, &general, &height, &width, &one, &triangle[0, 0], &stride, &values[0, 0],
            &value_stride,
        )
