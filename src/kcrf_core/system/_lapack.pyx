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


def loaded():
    return potrf != NULL


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
    """What LAPACK says of a lower triangle that it worked on: 0 unless something was wrong."""
    cdef int m = matrix.shape[0], stride = stride_of(matrix), info = 0
    cdef char upper = b"U"
    if m:
        with nogil:
            function(&upper, &m, &matrix[0, 0], &stride, &info)
    return info


def factorise(double[:, :] matrix):
    """L in the lower triangle of a matrix [m, m] = L L^T; 0, or the number of the first row that is not positive."""
    return in_place(potrf, matrix)


def invert_factorised(double[:, :] triangle):
    """The lower triangle of (L L^T)^-1 in the place of L; 0 unless that is singular."""
    return in_place(potri, triangle)


def invert_triangle(double[:, :] triangle):
    """L^-1 in the place of L, whose upper triangle is not touched; 0 unless it is singular."""
    cdef int m = triangle.shape[0], stride = stride_of(triangle), info = 0
    cdef char upper = b"U", general = b"N"
    if m == 0:
        return 0
    with nogil:
        trtri(&upper, &general, &m, &triangle[0, 0], &stride, &info)
    return info


def substitute(double[:, :] triangle, double[:, :] right):
    """L^-1 R in the place of R [m, c]."""
    cdef int m = triangle.shape[0], c = right.shape[1], stride = stride_of(triangle), right_stride = stride_of(right)
    cdef char side = b"R", upper = b"U", general = b"N"
    cdef double one = 1.0
    if right.shape[0] != m:
        raise ValueError("a triangle does not fit what is on the right")
    if m == 0 or c == 0:
        return
    with nogil:
        trsm(
            &side, &upper, &general, &general, &c, &m, &one, &triangle[0, 0], &stride, &right[0, 0], &right_stride,
        )


def substitute_rows(double[:, :] triangle, double[:, :] rows):
    """L^-1 x in the place of each row x [m] of [n, m]."""
    cdef int m = triangle.shape[0], n = rows.shape[0], stride = stride_of(triangle), row_stride = stride_of(rows)
    cdef char side = b"L", upper = b"U", transposed = b"T", general = b"N"
    cdef double one = 1.0
    if rows.shape[1] != m:
        raise ValueError("a triangle does not fit the rows")
    if m == 0 or n == 0:
        return
    with nogil:
        trsm(
            &side, &upper, &transposed, &general, &m, &n, &one, &triangle[0, 0], &stride, &rows[0, 0], &row_stride,
        )
