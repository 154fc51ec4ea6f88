# Products with maps as C functions and their state, for passes that run without the interpreter's lock.

cdef extern from "_dense_products.h" nogil:
    Py_ssize_t kcrf_padded(Py_ssize_t C, bint single)

cdef struct map_products:
    # out [last-first, C] += Phi[first:last] W, or is put there where `fresh`; scratch has room for as much.
    void (*scores)(
        const map_products* self, Py_ssize_t first, Py_ssize_t last, void* out, bint fresh, void* scratch
    ) noexcept nogil
    # sums [M, P] += Phi[first:last]^T R, for errors R [last-first, P]; NULL where they are not summed up by rows.
    void (*adjoint)(
        const map_products* self, Py_ssize_t first, Py_ssize_t last, const void* R, double* sums
    ) noexcept nogil
    Py_ssize_t C            # columns of weights
    Py_ssize_t P            # the same, padded
    Py_ssize_t M            # rows of sums
    bint single
    const void* matrix      # dense [N, M], or rows to be dealt out [U, C]
    const long long* indptr
    const int* indices      # of compressed rows, or the row that each position is dealt
    const void* values      # NULL for ones
    const void* weights     # sparse: [D, C]; dense: [M, P]; kept: [H], where `starts` say
    const long long* starts


cdef class Products:
    cdef map_products parts
    cdef tuple _held
