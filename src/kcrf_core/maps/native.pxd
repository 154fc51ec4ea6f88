# Products with maps as C functions and their state, for passes that run without the interpreter's lock.

cdef extern from "_dense_products.h" nogil:
    Py_ssize_t kcrf_padded(Py_ssize_t C, bint single)

cdef struct map_products:
    # Add Phi[first:last] W to out [last-first, C], or put it there where `fresh`; scratch has room for as much.
    void (*scores)(
        const map_products* self, Py_ssize_t first, Py_ssize_t last, void* out, bint fresh, void* scratch
    ) noexcept nogil
    # Add Phi[first:last]^T R to sums [M, P], for errors R [last-first, P]; NULL where sums are not taken by rows.
    void (*adjoint)(
        const map_products* self, Py_ssize_t first, Py_ssize_t last, const void* R, double* sums
    ) noexcept nogil
    Py_ssize_t C            # columns of weights
    Py_ssize_t P            # the same, padded
    Py_ssize_t M            # rows of sums
    bint single
    const void* matrix      # dense [N, M]
    const long long* indptr
    const int* indices      # of compressed rows
    const void* values      # NULL for ones
    const void* weights     # sparse: [D, C], or [H] where `starts` say; dense: [M, P]
    const long long* starts


cdef class Products:
    cdef map_products parts
    cdef tuple _held
