"""Products with maps as C functions and their state, for passes that run without the interpreter's lock.

`Products` of a map at some weights are made for one pass: compressed rows times W (`sparse`), or rows of values times W
and sums of their transpose with errors (`dense`). The arrays that they point to stay as they are meanwhile.
"""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from ..system.team cimport Team
from ..system.types cimport int64, real

cdef extern from "_thin_products.h" nogil:
    enum:
        PARTITIONS_TOGETHER
    void kcrf_multiply(
        bint single, const long long* indptr, const int* indices, const void* values, const void* W, Py_ssize_t C,
        Py_ssize_t first, Py_ssize_t last, void* out,
    )
    void kcrf_gather(
        bint single, const long long* indptr, const int* indices, const void* values, const void* R, Py_ssize_t C,
        Py_ssize_t first, Py_ssize_t last, double* out,
    )
    void kcrf_multiply_kept(
        bint single, const long long* indptr, const int* indices, const void* values, const long long* starts,
        const void* W, Py_ssize_t C, Py_ssize_t first, Py_ssize_t last, void* out,
    )
    void kcrf_gather_kept(
        bint single, const long long* indptr, const int* indices, const void* values, const void* R, Py_ssize_t C,
        const long long* kept, const long long* ends, const double* scale, Py_ssize_t first, Py_ssize_t last,
        double* room, double* out,
    )

cdef extern from "_dense_products.h" nogil:
    void kcrf_dense_rows(
        const void* A, Py_ssize_t stride, Py_ssize_t n, Py_ssize_t M, const void* B, Py_ssize_t P, void* out,
        Py_ssize_t C, bint single,
    )
    void kcrf_dense_columns(
        const void* A, Py_ssize_t stride, Py_ssize_t n, Py_ssize_t M, const void* B, Py_ssize_t P, double* sums,
        bint single,
    )

cdef enum:
    ROWS_PER_TASK = 256   # of all rows of a map
    MOST_PARTS = 64       # of a sum over all rows
    LINES_PER_TASK = 64   # of a product's result
    WEIGHT_ROWS_PER_TASK = 4096


TOGETHER = PARTITIONS_TOGETHER  # partitions whose sums are added before those of others

ALONE = Team(1)  # for callers that are on a thread of their own


cdef class Products:
    """Products with a map at some weights."""

    @property
    def sums(self):
        """Number of rows of the sums that these are added to, 0 for none."""
        return self.parts.M if self.parts.adjoint != NULL else 0


def new_sums(Py_ssize_t size, Py_ssize_t C, dtype):
    """Return zeros for sums over rows."""
    return np.zeros((size, kcrf_padded(C, dtype == np.float32)))


def sparse(
    const int64[::1] indptr,
    const int[::1] indices,
    const real[::1] values,            # no values means ones
    const real[::1] W,                 # [D * C], or [H] from `laid_out`
    Py_ssize_t C,
    const int64[::1] starts=None,      # [D+1] where what is held of each row of W begins and ends; None: all of it
):
    """Return the products of compressed rows."""
    cdef Products made = Products.__new__(Products)
    made.parts.scores, made.parts.C, made.parts.single = sparse_scores, C, real is float
    made.parts.P = kcrf_padded(C, real is float)
    made.parts.indptr = <const long long*>&indptr[0]
    made.parts.indices = &indices[0] if indices.shape[0] else NULL
    made.parts.values = &values[0] if values.shape[0] else NULL
    made.parts.weights = &W[0] if W.shape[0] and C else NULL
    made.parts.starts = <const long long*>&starts[0] if starts is not None else NULL
    made._held = (indptr, indices, values, W, starts)
    return made


cdef void sparse_scores(
    const map_products* self, Py_ssize_t first, Py_ssize_t last, void* out, bint fresh, void* scratch
) noexcept nogil:
    cdef Py_ssize_t size = sizeof(float) if self.single else sizeof(double)
    if fresh:
        memset(out, 0, (last - first) * self.C * size)
    if self.weights == NULL or self.indptr[first] == self.indptr[last]:
        return
    if self.starts == NULL:
        kcrf_multiply(self.single, self.indptr, self.indices, self.values, self.weights, self.C, first, last, out)
    else:
        kcrf_multiply_kept(
            self.single, self.indptr, self.indices, self.values, self.starts, self.weights, self.C, first, last, out,
        )


def dense(const real[:, ::1] matrix, Py_ssize_t C, const real[:, ::1] W=None):
    """Return the products of rows of values, for C columns of `padded` weights; without weights, sums alone."""
    cdef Products made = Products.__new__(Products)
    made.parts.scores, made.parts.adjoint = dense_scores, dense_adjoint
    made.parts.C, made.parts.P, made.parts.M = C, kcrf_padded(C, real is float), matrix.shape[1]
    made.parts.single, made.parts.matrix = real is float, &matrix[0, 0] if matrix.shape[0] and matrix.shape[1] else NULL
    if W is not None:
        if matrix.shape[1] != W.shape[0] or W.shape[1] != made.parts.P:
            shape = f"[{W.shape[0]}, {W.shape[1]}]"
            raise ValueError(f"weights {shape} do not fit {matrix.shape[1]} values and {C} columns")
        made.parts.weights = &W[0, 0] if W.shape[0] and W.shape[1] else NULL
    made._held = (matrix, W)
    return made


def padded(values, dtype):
    """Return rows [n, C] with zeros at their ends, as `dense` products take their weights."""
    n, C = values.shape
    out = np.zeros((n, kcrf_padded(C, dtype == np.float32)), dtype=dtype)
    out[:, :C] = values
    return out


cdef void dense_scores(
    const map_products* self, Py_ssize_t first, Py_ssize_t last, void* out, bint fresh, void* scratch
) noexcept nogil:
    cdef Py_ssize_t size = sizeof(float) if self.single else sizeof(double), count = (last - first) * self.C
    kcrf_dense_rows(
        <const char*>self.matrix + first * self.M * size, self.M, last - first, self.M, self.weights, self.P,
        out if fresh else scratch, self.C, self.single,
    )
    if fresh:
        return
    if self.single:
        add(<const float*>scratch, count, <float*>out)
    else:
        add(<const double*>scratch, count, <double*>out)


cdef void add(const real* source, Py_ssize_t count, real* out) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        out[i] += source[i]


cdef void dense_adjoint(
    const map_products* self, Py_ssize_t first, Py_ssize_t last, const void* R, double* sums
) noexcept nogil:
    cdef Py_ssize_t size = sizeof(float) if self.single else sizeof(double)
    kcrf_dense_columns(
        <const char*>self.matrix + first * self.M * size, self.M, last - first, self.M, R, self.P, sums, self.single,
    )


cdef inline Py_ssize_t runs(Py_ssize_t total, Py_ssize_t size) noexcept nogil:
    """Return the number of runs of up to `size` that make the total."""
    return (total + size - 1) // size


# Operations on all rows of a map. The state of an operation is a struct, which its tasks read.

cdef struct whole_map:
    const map_products* parts
    Py_ssize_t rows, columns, size, scratch_size
    Py_ssize_t per_part     # rows of each part of a sum
    bint fresh              # whether scores are put, else added
    char* scratch           # [members, scratch_size]
    char* out
    const char* errors
    double* sums


def all_scores(Team team not None, Products own not None, Py_ssize_t rows, real[:, ::1] out, bint fresh):
    """Add the scores of all rows to out [rows, C], or put them there where `fresh`."""
    cdef whole_map state
    cdef bint single = real is float
    if out.shape[0] != rows or out.shape[1] != own.parts.C or own.parts.single != single:
        raise ValueError("scores do not fit the products")
    if rows == 0 or own.parts.C == 0:
        return
    prepare_whole(&state, own, rows, team.threads)
    state.out, state.fresh = <char*>&out[0, 0], fresh
    with nogil:
        team.share(scores_task, &state, runs(rows, ROWS_PER_TASK))
        free(state.scratch)


cdef int prepare_whole(whole_map* state, Products own, Py_ssize_t rows, Py_ssize_t members) except -1:
    state.parts, state.rows, state.columns = &own.parts, rows, own.parts.C
    state.size = sizeof(float) if own.parts.single else sizeof(double)
    state.scratch_size = ROWS_PER_TASK * own.parts.P * state.size
    state.scratch = <char*>malloc(members * state.scratch_size)
    if state.scratch == NULL:
        raise MemoryError
    return 0


cdef void scores_task(void* given, Py_ssize_t item, Py_ssize_t member) noexcept nogil:
    cdef whole_map* state = <whole_map*>given
    cdef Py_ssize_t first = item * ROWS_PER_TASK, last = min(first + ROWS_PER_TASK, state.rows)
    state.parts.scores(
        state.parts, first, last, state.out + first * state.columns * state.size, state.fresh,
        state.scratch + member * state.scratch_size,
    )


def rows_per_part(Py_ssize_t rows):
    """Return the number of rows in each part of a sum over all of them, which depends on their number alone."""
    return max(runs(rows, MOST_PARTS * ROWS_PER_TASK), 1) * ROWS_PER_TASK


def all_sums(Team team not None, Products own not None, const real[:, ::1] R):
    """Return sums [M, P] of all rows with errors R [rows, C], by parts that are added in their order."""
    cdef whole_map state
    cdef Py_ssize_t rows = R.shape[0], parts
    cdef bint single = real is float
    if R.shape[1] != own.parts.C or own.parts.single != single or own.parts.adjoint == NULL:
        raise ValueError("errors do not fit the products")
    found = np.zeros((own.parts.M, own.parts.P))
    if rows == 0 or own.parts.C == 0 or own.parts.M == 0:
        return found
    parts = runs(rows, rows_per_part(rows))
    room = np.empty((parts, own.parts.M, own.parts.P))
    cdef double[:, :, ::1] sums = room
    prepare_whole(&state, own, rows, team.threads)
    state.per_part = rows_per_part(rows)
    state.errors, state.sums = <const char*>&R[0, 0], &sums[0, 0, 0]
    with nogil:
        team.share(sums_task, &state, parts)
        free(state.scratch)
    ordered_sums(team, room, found)
    return found


def add_sums(const real[:, ::1] matrix, const real[:, ::1] R, double[:, ::1] sums):
    """Add sums of rows [n, M] with errors R [n, C] to sums [M, P]."""
    cdef Products own = dense(matrix, R.shape[1])
    cdef void* scratch
    if R.shape[0] != matrix.shape[0] or sums.shape[0] != own.parts.M or sums.shape[1] != own.parts.P:
        raise ValueError("errors or sums do not fit the rows")
    if R.shape[0] == 0 or own.parts.M == 0 or own.parts.C == 0:
        return
    scratch = malloc(ROWS_PER_TASK * own.parts.P * sizeof(real))
    if scratch == NULL:
        raise MemoryError
    with nogil:
        add_adjoint(&own.parts, 0, R.shape[0], <const char*>&R[0, 0], scratch, &sums[0, 0])
        free(scratch)


cdef void sums_task(void* given, Py_ssize_t item, Py_ssize_t member) noexcept nogil:
    cdef whole_map* state = <whole_map*>given
    cdef Py_ssize_t first = item * state.per_part, size = state.parts.M * state.parts.P
    memset(state.sums + item * size, 0, size * sizeof(double))
    add_adjoint(
        state.parts, first, min(first + state.per_part, state.rows), state.errors,
        state.scratch + member * state.scratch_size, state.sums + item * size,
    )


cdef void add_adjoint(
    const map_products* parts, Py_ssize_t first, Py_ssize_t end, const char* errors, void* scratch, double* sums
) noexcept nogil:
    """Add sums of rows first:end with their errors to sums [M, P]; errors [rows, C] are those of all rows."""
    cdef Py_ssize_t last, t, C = parts.C, P = parts.P, size = sizeof(float) if parts.single else sizeof(double)
    while first < end:
        last = min(first + ROWS_PER_TASK, end)
        for t in range(last - first):  # to rows [P] with zeros at their ends
            memcpy(<char*>scratch + t * P * size, errors + (first + t) * C * size, C * size)
            memset(<char*>scratch + (t * P + C) * size, 0, (P - C) * size)
        parts.adjoint(parts, first, last, scratch, sums)
        first = last


cdef struct parts_to_add:
    const double* parts     # [count, M, P]
    Py_ssize_t count, M, P
    double* out             # [M, P]


def ordered_sums(Team team not None, const double[:, :, ::1] parts, double[:, ::1] out):
    """Put sums over the first axis of parts [count, M, P], in its order, into out [M, P]."""
    cdef parts_to_add state
    state.count, state.M, state.P = parts.shape[0], parts.shape[1], parts.shape[2]
    if out.shape[0] != state.M or out.shape[1] != state.P:
        raise ValueError("parts do not fit their sum")
    if state.M == 0 or state.P == 0 or state.count == 0:
        out[:, :] = 0.0
        return
    state.parts, state.out = &parts[0, 0, 0], &out[0, 0]
    with nogil:
        team.share(add_task, &state, runs(state.M, LINES_PER_TASK))


cdef void add_task(void* given, Py_ssize_t item, Py_ssize_t member) noexcept nogil:
    cdef parts_to_add* state = <parts_to_add*>given
    cdef Py_ssize_t first = item * LINES_PER_TASK * state.P
    cdef Py_ssize_t i, _part, count = min(LINES_PER_TASK * state.P, state.M * state.P - first)
    cdef double* out = state.out + first
    cdef const double* source = state.parts + first
    memcpy(out, source, count * sizeof(double))
    for _part in range(1, state.count):
        source += state.M * state.P
        for i in range(count):
            out[i] += source[i]


cdef struct gathered_features:
    const long long* indptr
    const int* indices
    const void* values
    const double* scale
    const void* R
    Py_ssize_t C
    const long long* bounds
    const long long* kept
    const long long* ends
    double* rooms           # [members, C]
    double* out
    bint single


def gathered(
    Team team not None,
    const int64[::1] indptr,           # [D+1]
    const int[::1] indices,            # [nnz] with partitions marked, see `_sparse.mark_partitions`
    const real[::1] values,            # [nnz], or [0] for all ones
    const double[::1] scale,           # [D] a factor of each row of the result, or [0] for ones
    const real[:, ::1] R,              # [N, C]
    const int64[:, ::1] tasks,         # [tasks, 2] features of each
    double[:, ::1] out,                # [D, C]; with `kept` [1, K or more]
    const int64[::1] kept=None,        # [K] places in W that have parameters; None: all
    const int64[::1] ends=None,        # [D+1] where those of each row begin and end
):
    """Put compressed rows, which are those of a map's transpose, times R into out; in double precision."""
    cdef gathered_features state
    if R.shape[1] == 0 or tasks.shape[0] == 0 or out.shape[0] == 0 or (kept is not None and kept.shape[0] == 0):
        return
    state.indptr, state.C, state.single = <const long long*>&indptr[0], R.shape[1], real is float
    state.indices = &indices[0] if indices.shape[0] else NULL
    state.values = &values[0] if values.shape[0] else NULL
    state.scale = &scale[0] if scale.shape[0] else NULL
    state.R = &R[0, 0] if R.shape[0] else NULL
    state.bounds, state.out = <const long long*>&tasks[0, 0], &out[0, 0]
    state.kept = <const long long*>&kept[0] if kept is not None else NULL
    state.ends = <const long long*>&ends[0] if ends is not None else NULL
    state.rooms = <double*>malloc(team.threads * state.C * sizeof(double))
    if state.rooms == NULL:
        raise MemoryError
    with nogil:
        team.share(gather_task, &state, tasks.shape[0])
        free(state.rooms)


cdef void gather_task(void* given, Py_ssize_t item, Py_ssize_t member) noexcept nogil:
    cdef gathered_features* state = <gathered_features*>given
    cdef Py_ssize_t first = state.bounds[2 * item], last = state.bounds[2 * item + 1], f, c, C = state.C
    cdef Py_ssize_t begin = first * C, end = last * C
    if state.kept != NULL:
        begin, end = state.ends[first], state.ends[last]
    if begin < end and state.indptr[first] == state.indptr[last]:
        memset(state.out + begin, 0, (end - begin) * sizeof(double))
    elif begin < end and state.kept != NULL:
        kcrf_gather_kept(
            state.single, state.indptr, state.indices, state.values, state.R, C, state.kept, state.ends, state.scale,
            first, last, state.rooms + member * C, state.out,
        )
    elif begin < end:
        kcrf_gather(
            state.single, state.indptr, state.indices, state.values, state.R, C, first, last, state.out + begin,
        )
        if state.scale != NULL:
            for f in range(first, last):
                for c in range(C):
                    state.out[f * C + c] *= state.scale[f]


cdef struct weights_to_scale:
    const double* W
    const double* scale
    const long long* kept
    const long long* ends
    const long long* starts
    void* out
    bint single
    Py_ssize_t rows, C


def laid_out(
    Team team not None,
    const double[::1] block,           # [K] weights at places that have parameters
    const double[::1] scale,           # [D], or [0] for ones
    const int64[::1] kept,             # [K] these places; None: all
    const int64[::1] ends,             # [D+1] where those of each row begin and end
    const int64[::1] starts,           # [D+1] the same for what is held
    Py_ssize_t C,
    Py_ssize_t rows,                   # that are laid out
    real[::1] out,                     # [H]
):
    """Put weights into out as `sparse` takes them with `starts`: whole rows, or each weight and its column."""
    cdef weights_to_scale state
    if kept is None and not block.shape[0] == out.shape[0] == scale.shape[0] * C == rows * C:
        raise ValueError("factors do not fit the weights")
    if block.shape[0] == 0 or rows == 0:
        return
    state.W, state.scale, state.kept = &block[0], &scale[0] if scale.shape[0] else NULL, NULL
    if kept is not None:
        state.kept, state.ends, state.starts = &kept[0], &ends[0], &starts[0]
    state.out, state.single, state.rows, state.C = &out[0], real is float, rows, C
    with nogil:
        team.share(scale_task, &state, runs(rows, WEIGHT_ROWS_PER_TASK))


cdef void scale_task(void* given, Py_ssize_t item, Py_ssize_t member) noexcept nogil:
    cdef weights_to_scale* state = <weights_to_scale*>given
    cdef Py_ssize_t first = item * WEIGHT_ROWS_PER_TASK, last = min(first + WEIGHT_ROWS_PER_TASK, state.rows)
    if state.single:
        scale_rows(state, first, last, <float*>state.out)
    else:
        scale_rows(state, first, last, <double*>state.out)


cdef void scale_rows(const weights_to_scale* state, Py_ssize_t first, Py_ssize_t last, real* out) noexcept nogil:
    cdef Py_ssize_t f, C = state.C
    cdef int64 k, place
    cdef int column
    cdef double factor
    for f in range(first, last):
        factor = 1.0 if state.scale == NULL else state.scale[f]
        if state.kept == NULL:
            for k in range(f * C, (f + 1) * C):
                out[k] = <real>(state.W[k] * factor)
            continue
        place = state.starts[f]
        if state.starts[f + 1] - place == C:
            for k in range(place, place + C):
                out[k] = 0
            for k in range(state.ends[f], state.ends[f + 1]):
                out[place + state.kept[k] - f * C] = <real>(state.W[k] * factor)
        else:
            for k in range(state.ends[f], state.ends[f + 1]):
                column = <int>(state.kept[k] - f * C)
                out[place] = <real>(state.W[k] * factor)
                memcpy(&out[place + 1], &column, sizeof(int))
                place += 2


cdef struct thin_product:
    const double* matrix
    Py_ssize_t stride       # between lines that lie closely in memory
    bint by_rows            # those are rows of the matrix, else its columns
    Py_ssize_t rows, columns, C, P, scratch_size
    int filled              # LOWER or UPPER triangle, or 0
    const double* X         # [columns, P]
    const double* less      # [rows, C], or NULL
    double* out             # [rows, C]
    double* scratch         # [members, scratch_size]

LOWER, UPPER = 1, 2


def product(
    Team team not None,
    const double[:, :] matrix,         # [rows, columns], its rows or its columns closely in memory
    const double[:, ::1] X,            # [columns, C]
    double[:, ::1] out,                # [rows, C]
    int filled=0,                      # LOWER or UPPER where the rest of a square matrix is zero
    const double[:, ::1] less=None,    # [rows, C]
):
    """Put matrix X, or less - matrix X, into out."""
    cdef thin_product state
    state.rows, state.columns, state.C = matrix.shape[0], matrix.shape[1], X.shape[1]
    if X.shape[0] != state.columns or out.shape[0] != state.rows or out.shape[1] != state.C:
        raise ValueError("shapes of a product do not fit")
    if less is not None and (less.shape[0] != state.rows or less.shape[1] != state.C):
        raise ValueError("shapes of a difference do not fit")
    if state.rows == 0 or state.C == 0:
        return
    state.P, state.filled = kcrf_padded(state.C, False), filled
    padded = np.zeros((state.columns, state.P))
    padded[:, :state.C] = X
    cdef const double[:, ::1] thin = padded
    state.by_rows = matrix.strides[1] == sizeof(double) or state.columns <= 1
    if not state.by_rows and matrix.strides[0] != sizeof(double) and state.rows > 1:
        raise ValueError("neither rows nor columns of a matrix lie closely in memory")
    state.stride = matrix.strides[0 if state.by_rows else 1] // <Py_ssize_t>sizeof(double)
    state.matrix = &matrix[0, 0] if state.columns else NULL
    state.X = &thin[0, 0] if state.columns else NULL
    state.out, state.less = &out[0, 0], &less[0, 0] if less is not None else NULL
    state.scratch_size = LINES_PER_TASK * state.P
    state.scratch = <double*>malloc(team.threads * state.scratch_size * sizeof(double))
    if state.scratch == NULL:
        raise MemoryError
    with nogil:
        team.share(product_task, &state, runs(state.rows, LINES_PER_TASK))
        free(state.scratch)


cdef void product_task(void* given, Py_ssize_t item, Py_ssize_t member) noexcept nogil:
    cdef thin_product* state = <thin_product*>given
    cdef Py_ssize_t first, last, r, c, begin = 0, end = state.columns, C = state.C, P = state.P
    cdef double* found = state.scratch + member * state.scratch_size
    # The longest lines first.
    if state.filled == 1:
        item = runs(state.rows, LINES_PER_TASK) - 1 - item
    first = item * LINES_PER_TASK
    last = min(first + LINES_PER_TASK, state.rows)
    if state.filled == 1:
        end = last
    elif state.filled == 2:
        begin = first
    if state.by_rows:
        P = C
        kcrf_dense_rows(
            state.matrix + first * state.stride + begin, state.stride, last - first, end - begin,
            state.X + begin * state.P, state.P, found, C, False,
        )
    else:
        memset(found, 0, (last - first) * P * sizeof(double))
        kcrf_dense_columns(
            state.matrix + begin * state.stride + first, state.stride, end - begin, last - first,
            state.X + begin * P, P, found, False,
        )
    for r in range(last - first):
        for c in range(C):
            state.out[(first + r) * C + c] = (
                found[r * P + c] if state.less == NULL else state.less[(first + r) * C + c] - found[r * P + c]
            )
