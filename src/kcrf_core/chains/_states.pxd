# States of chains, and products of messages with potentials that the recursions over them share.
#
# A state is a label, or in chains of second order an allowed pair of labels. Pairs are numbered by their first label,
# then by their second; the state at t is (y_{t-1}, y_t). Transitions are in blocks, one for each label in the middle: a
# matrix from the pairs that end in it to those that begin with it, so that every inner loop is a product with a dense
# matrix, whatever is forbidden. A chain of first order has a single block, from all labels to all labels.

from libc.math cimport exp, INFINITY, isfinite
from libc.string cimport memset

from ..system.types cimport int64

cdef extern from "_recursions.h" nogil:
    struct kcrf_shared:
        Py_ssize_t stride
        const double* forward
        const double* backward
        const double* start
        const double* end
        double edge_shift
        double start_shift
        double end_shift
        double edge_depth
        double start_depth
        double log_labels
        bint forbidden
        double* sums

    bint kcrf_sequence(
        const void* scores, bint single, Py_ssize_t T, Py_ssize_t Y, double weight, const kcrf_shared* shared,
        double* rows, void* node, double* log_z,
    )
    bint kcrf_outweighs(double log_z, Py_ssize_t T, double log_labels)
    double kcrf_depth(const void* values, bint single, Py_ssize_t count)
    bint kcrf_lossless(
        const void* scores, bint single, Py_ssize_t T, Py_ssize_t Y, const double* messages, Py_ssize_t states,
        Py_ssize_t stride, double start_depth, const double* E, Py_ssize_t entries, bint apart, double edge_depth,
        double deeper,
    )
    double kcrf_exponentials(const void* values, bint single, Py_ssize_t Y, double* out)
    void kcrf_max_plus(const double* before, const double* E, Py_ssize_t n, Py_ssize_t width, double* now)
    Py_ssize_t kcrf_stride(Py_ssize_t Y)
    Py_ssize_t kcrf_rows(Py_ssize_t T, Py_ssize_t Y)


cdef struct States:
    Py_ssize_t Y, P, Q           # labels, states, transitions
    # Of pairs; NULL where states are labels.
    const int* first             # [P] first label of each pair
    const int* second            # [P] second label
    const int* begin             # [Y+1] pairs begin[j]:begin[j+1] have the first label j
    const int* into              # [P] pairs ordered by their second label
    const int* into_begin        # [Y+1] into[into_begin[j]:into_begin[j+1]] have the second label j
    const int64* block           # [Y+1] where the transitions through label j begin


cdef struct Chain:
    # Potentials of a sequence of T positions.
    States states
    const double* start          # [Y]
    const double* end            # [Y]
    const double* pairs          # [1, P] or [T, P] of allowed pairs in chains of second order, else NULL
    const double* table          # [1, Q] or [T, Q] of transitions between states
    bint pairs_apart             # a row of `pairs` for each position
    bint table_apart


cdef struct Block:
    # Transitions through one label, table[at:at + height * width].
    const int* into              # [height] states that lead here, NULL: all in their order
    Py_ssize_t height, after, width, at


cdef inline Chain chain_of_labels(const double* start, const double* end, Py_ssize_t Y) noexcept nogil:
    """Return a chain of first order without transitions."""
    cdef Chain C
    memset(&C, 0, sizeof(Chain))
    C.states.Y = C.states.P = Y
    C.start, C.end = start, end
    return C


cdef inline Py_ssize_t blocks(const States* L) noexcept nogil:
    return 1 if L.first == NULL else L.Y


cdef inline Block block_of(const States* L, Py_ssize_t j) noexcept nogil:
    cdef Block B
    if L.first == NULL:
        B.into, B.height, B.after, B.width, B.at = NULL, L.P, 0, L.P, 0
    else:
        B.into, B.height = L.into + L.into_begin[j], L.into_begin[j + 1] - L.into_begin[j]
        B.after, B.width, B.at = L.begin[j], L.begin[j + 1] - L.begin[j], L.block[j]
    return B


cdef inline Py_ssize_t source(const Block* B, Py_ssize_t a) noexcept nogil:
    """Return the state of a block's row."""
    return a if B.into == NULL else B.into[a]


cdef inline Py_ssize_t label_of(const States* L, Py_ssize_t p) noexcept nogil:
    return p if L.second == NULL else L.second[p]


cdef inline Py_ssize_t first_of(const States* L, Py_ssize_t p) noexcept nogil:
    """Return the first label of the state that a sequence begins with."""
    return p if L.first == NULL else L.first[p]


cdef inline void through(
    const States* L, const double* table, const double* before, double* factors, double* after
) noexcept nogil:
    """Add sum_i before[(i, j)] table[i, j, k] to after[(j, k)]."""
    cdef Py_ssize_t j, a
    cdef Block B
    for j in range(blocks(L)):
        B = block_of(L, j)
        for a in range(0 if B.into == NULL else B.height):
            factors[a] = before[B.into[a]]
        add_rows(after + B.after, table + B.at, before if B.into == NULL else factors, B.height, B.width)


cdef inline void back_through(
    const States* L, const double* transposed, const double* after, double* sums, double* before
) noexcept nogil:
    """Add sum_k table[i, j, k] after[(j, k)] to before[(i, j)], for transposed blocks."""
    cdef Py_ssize_t j, a
    cdef Block B
    for j in range(blocks(L)):
        B = block_of(L, j)
        if B.into == NULL:
            add_rows(before, transposed, after, B.width, B.height)
            continue
        memset(sums, 0, B.height * sizeof(double))
        add_rows(sums, transposed + B.at, after + B.after, B.width, B.height)
        for a in range(B.height):
            before[B.into[a]] += sums[a]


cdef inline void add_outer(
    const States* L, const double* before, const double* after, double factor, double* out
) noexcept nogil:
    """Add factor before[(i, j)] after[(j, k)] to out[i, j, k]."""
    cdef Py_ssize_t j, a
    cdef Block B
    for j in range(blocks(L)):
        B = block_of(L, j)
        for a in range(B.height):
            add_scaled(out + B.at + a * B.width, after + B.after, factor * before[source(&B, a)], B.width)


cdef inline bint trusted(double scale) noexcept nogil:
    """Return True if underflows beside this scale cannot matter: lost terms are below 1e-307. NaN is not trusted.

    For losses of messages of both directions, see `_recursions.h`.
    """
    return scale >= 1e-100


cdef inline double exponentials_of_table(const double* values, Py_ssize_t count, double* out) noexcept nogil:
    """Put exp(values - shift) and return the shift, zero where no value is finite."""
    cdef Py_ssize_t i
    cdef double shift = kcrf_exponentials(values, False, count, out)
    if isfinite(shift):
        return shift
    for i in range(count):
        out[i] = exp(values[i])
    return 0.0


cdef inline double largest(const double* values, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t j
    cdef double top = -INFINITY
    for j in range(count):
        if values[j] > top:
            top = values[j]
    return top


cdef inline double lower(double* values, Py_ssize_t count) noexcept nogil:
    """Bring the largest logarithm to 0, where rounding is finest, and return it; 0 if none is finite."""
    cdef Py_ssize_t j
    cdef double top = largest(values, count)
    if not isfinite(top):
        return 0.0
    for j in range(count):
        values[j] -= top
    return top


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


cdef inline double dots(
    const double* a, const double* b, const double* c, const double* d, Py_ssize_t count
) noexcept nogil:
    """Return a b + c d."""
    cdef Py_ssize_t p
    cdef double total = 0.0
    for p in range(count):
        total += a[p] * b[p] + c[p] * d[p]
    return total


cdef inline void add_scaled(double* target, const double* values, double factor, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(count):
        target[j] += factor * values[j]


cdef inline void add_rows(
    double* target, const double* rows, const double* factors, Py_ssize_t count, Py_ssize_t width
) noexcept nogil:
    """Add factors @ rows [count, width] to target; four rows at a time, so that it is loaded a quarter as often."""
    cdef Py_ssize_t i = 0, j
    cdef const double* row
    while i + 4 <= count:
        row = rows + i * width
        for j in range(width):
            target[j] += (
                factors[i] * row[j] + factors[i + 1] * row[width + j]
                + factors[i + 2] * row[2 * width + j] + factors[i + 3] * row[3 * width + j]
            )
        i += 4
    while i < count:
        add_scaled(target, rows + i * width, factors[i], width)
        i += 1
