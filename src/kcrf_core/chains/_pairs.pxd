# Allowed pairs of labels and the triples between them, shared by _second_order.pyx and _second_order_tangent.pyx.
#
# Pairs are numbered by their first label, then by their second. Triples stand in blocks, one for each middle label: a
# matrix from the pairs that end in it to the pairs that begin with it, so that every inner loop is a product with a
# dense matrix, whatever is forbidden.

from libc.string cimport memset

from ._scaling cimport add_rows, add_scaled, int64


cdef struct Layout:
    Py_ssize_t Y, P
    const int* first             # [P] first label of each pair
    const int* second            # [P] second label
    const int* begin             # [Y+1] pairs begin[j]:begin[j+1] have the first label j
    const int* into              # [P] pairs ordered by their second label
    const int* into_begin        # [Y+1] into[into_begin[j]:into_begin[j+1]] have the second label j
    const int64* block           # [Y+1] where the triples with middle label j begin


cdef inline Layout layout_of(
    const int[::1] first, const int[::1] second, const int[::1] begin, const int[::1] into, const int[::1] into_begin,
    const int64[::1] block,
) noexcept:
    cdef Layout L
    L.Y = begin.shape[0] - 1
    L.P = first.shape[0]
    L.first = &first[0]
    L.second = &second[0]
    L.begin = &begin[0]
    L.into = &into[0]
    L.into_begin = &into_begin[0]
    L.block = &block[0]
    return L


cdef inline void through(
    Layout* L, const double* triples, const double* before, double* factors, double* after
) noexcept nogil:
    """after[(j, k)] += sum_i before[(i, j)] triples[i, j, k]."""
    cdef Py_ssize_t j, a, count
    cdef const int* into
    for j in range(L.Y):
        into = L.into + L.into_begin[j]
        count = L.into_begin[j + 1] - L.into_begin[j]
        for a in range(count):
            factors[a] = before[into[a]]
        add_rows(after + L.begin[j], triples + L.block[j], factors, count, L.begin[j + 1] - L.begin[j])


cdef inline void back_through(
    Layout* L, const double* transposed, const double* after, double* sums, double* before
) noexcept nogil:
    """before[(i, j)] += sum_k triples[i, j, k] after[(j, k)], for blocks that stand transposed."""
    cdef Py_ssize_t j, a, count
    cdef const int* into
    for j in range(L.Y):
        into = L.into + L.into_begin[j]
        count = L.into_begin[j + 1] - L.into_begin[j]
        memset(sums, 0, count * sizeof(double))
        add_rows(sums, transposed + L.block[j], after + L.begin[j], L.begin[j + 1] - L.begin[j], count)
        for a in range(count):
            before[into[a]] += sums[a]


cdef inline void add_outer(
    Layout* L, const double* before, const double* after, double factor, double* out
) noexcept nogil:
    """out[i, j, k] += factor before[(i, j)] after[(j, k)]."""
    cdef Py_ssize_t j, a, width
    cdef const int* into
    for j in range(L.Y):
        into = L.into + L.into_begin[j]
        width = L.begin[j + 1] - L.begin[j]
        for a in range(L.into_begin[j + 1] - L.into_begin[j]):
            add_scaled(out + L.block[j] + a * width, after + L.begin[j], factor * before[into[a]], width)


cdef inline double total_of(const double* values, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t p
    cdef double total = 0.0
    for p in range(count):
        total += values[p]
    return total


cdef inline double dot(const double* a, const double* b, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t p
    cdef double total = 0.0
    for p in range(count):
        total += a[p] * b[p]
    return total


cdef inline void scale_by(double* values, double factor, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t p
    for p in range(count):
        values[p] *= factor
