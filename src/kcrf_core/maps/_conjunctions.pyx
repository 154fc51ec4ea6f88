"""Conjunctions of the features of a row, numbered by an open-addressing hash table.

A row of binary features a < b < c < ... has the conjunctions {}, {a}, {a, b}, {a, b, c}, ... up to `degree` features.
The key of a conjunction is its features plus one as digits in base `base`, which exceeds every one of them: 0 for the
empty one, and exact as long as base^degree fits 63 bits.

A table is two arrays: `keys` [capacity], in the order in which they were first seen, and `slots` [power of two],
numbers of keys or -1. Functions allocate nothing; where a table is full they return, for the caller to make it larger.
"""

from ..system.types cimport int64, real, uint64
from ._prefetch cimport prefetch


cdef inline uint64 mixed(uint64 value) noexcept nogil:
    """Return the finalizer of SplitMix64: every bit of the value changes every bit of the result."""
    value ^= value >> 30
    value *= 0xbf58476d1ce4e5b9ULL
    value ^= value >> 27
    value *= 0x94d049bb133111ebULL
    value ^= value >> 31
    return value


cdef inline int64 find(int64 key, const int64* keys, const int* slots, uint64 mask, uint64* at) noexcept nogil:
    """Return the number of a key, or -1; `at` is its slot, or the empty one where it would go."""
    cdef uint64 place = mixed(<uint64>key + 0x9e3779b97f4a7c15ULL) & mask
    while slots[place] >= 0:
        if keys[slots[place]] == key:
            at[0] = place
            return slots[place]
        place = (place + 1) & mask
    at[0] = place
    return -1


cdef inline int number_of(int64 key, int64* keys, int* slots, uint64 mask, int64* count) noexcept nogil:
    """Return the number of a key, which is put into the table if it is new; -1 for that where there is no count."""
    cdef uint64 at
    cdef int64 known = find(key, keys, slots, mask, &at)
    if known >= 0 or count == NULL:
        return <int>known
    keys[count[0]] = key
    slots[at] = <int>count[0]
    count[0] += 1
    return <int>(count[0] - 1)


cdef inline void number_row(
    const int* features, Py_ssize_t n, int degree, int64 base, int64* keys, int* slots, uint64 mask, int64* count,
    int* out,
) noexcept nogil:
    """Put the numbers of the conjunctions of n features."""
    cdef Py_ssize_t i, j, k
    cdef int64 one, two
    out[0] = number_of(0, keys, slots, mask, count)
    out += 1
    for i in range(n):
        one = features[i] + 1
        out[0] = number_of(one, keys, slots, mask, count)
        out += 1
        for j in range(i + 1, n if degree > 1 else 0):
            two = one * base + features[j] + 1
            out[0] = number_of(two, keys, slots, mask, count)
            out += 1
            for k in range(j + 1, n if degree > 2 else 0):
                out[0] = number_of(two * base + features[k] + 1, keys, slots, mask, count)
                out += 1


def number_rows(
    const int64[::1] indptr,           # [N+1]
    const int[::1] indices,            # [nnz] features of each row, ascending
    int degree,
    int64 base,
    Py_ssize_t row,                    # where to begin
    const int64[::1] keys,
    const int[::1] slots,
    int64 count,                       # keys in the table; negative where no new ones go there
    const int64[::1] ends,             # [N+1] where the conjunctions of each row go
    int[::1] out,                      # [E] out: their numbers, -1 for those not in the table
):
    """Number the conjunctions of rows from `row` on; return the row reached and the keys in the table."""
    cdef Py_ssize_t N = indptr.shape[0] - 1
    cdef uint64 mask = slots.shape[0] - 1
    cdef const int* features = &indices[0] if indices.shape[0] else NULL
    cdef int64* known = <int64*>&keys[0] if keys.shape[0] else NULL  # of an empty table all slots are free
    cdef int64* more = &count if count >= 0 else NULL
    with nogil:
        while row < N and (more == NULL or count + ends[row + 1] - ends[row] <= keys.shape[0]):
            number_row(
                features + indptr[row], indptr[row + 1] - indptr[row], degree, base, known, <int*>&slots[0], mask, more,
                &out[ends[row]],
            )
            row += 1
    return row, count


def number_keys(
    const int64[::1] given,            # [n]
    int64[::1] keys,                   # [count + n at least]
    int[::1] slots,
    int64 count,                       # keys in the table
    int[::1] out,                      # [n] out: their numbers
):
    """Number keys, new ones behind the others; return the number of keys in the table."""
    cdef Py_ssize_t n
    cdef uint64 mask = slots.shape[0] - 1
    with nogil:
        for n in range(given.shape[0]):
            out[n] = number_of(given[n], &keys[0], &slots[0], mask, &count)
    return count


def fill_slots(const int64[::1] keys, int64 count, int[::1] slots):
    """Put the first `count` keys into empty slots; return the number of the first key that is there twice, or -1."""
    cdef int64 n
    cdef uint64 at, mask = slots.shape[0] - 1
    for n in range(count):
        if find(keys[n], &keys[0], &slots[0], mask, &at) >= 0:
            return n
        slots[at] = <int>n
    return -1


def number_pairs(
    const int[::1] first,              # [n]
    const int[::1] second,             # [n], below `base`
    int64 base,
    const int64[::1] keys,
    const int[::1] slots,
    int64 count,                       # keys in the table; negative where no new ones go there
    int[::1] out,                      # [n] out: numbers of the pairs, -1 where one of the two is negative or not there
):
    """Number pairs, whose key is first * base + second; return the number of keys in the table."""
    cdef Py_ssize_t t
    cdef uint64 mask = slots.shape[0] - 1
    cdef int64* more = &count if count >= 0 else NULL
    with nogil:
        for t in range(first.shape[0]):
            if first[t] < 0 or second[t] < 0:
                out[t] = -1
            else:
                out[t] = number_of(first[t] * base + second[t], <int64*>&keys[0], <int*>&slots[0], mask, more)
    return count


def add_supports(
    const int64[::1] ends,             # [N+1]
    const int[::1] numbers,            # [E] conjunctions of each row
    uint64[:, ::1] hashes,             # [Q, 2] added to: hashes of the sets of rows
    int64[::1] counts,                 # [Q] added to: rows of each conjunction
    Py_ssize_t before=0,               # rows that were there before these
):
    cdef Py_ssize_t t, e, q
    cdef uint64 one, two
    with nogil:
        for t in range(ends.shape[0] - 1):
            one = mixed(2 * <uint64>(before + t) + 1)
            two = mixed(one ^ 0x9e3779b97f4a7c15ULL)
            for e in range(ends[t], ends[t + 1]):
                q = numbers[e]
                hashes[q, 0] += one
                hashes[q, 1] += two
                counts[q] += 1


def first_alike(
    const uint64[:, ::1] hashes,       # [Q, 2]
    int[::1] slots,                    # [power of two] of -1
    int[::1] first,                    # [Q] out: the first conjunction with the same rows
):
    cdef Py_ssize_t q, other
    cdef uint64 place, mask = slots.shape[0] - 1
    with nogil:
        for q in range(hashes.shape[0]):
            place = mixed(hashes[q, 0]) & mask
            first[q] = <int>q
            while slots[place] >= 0:
                other = slots[place]
                if hashes[other, 0] == hashes[q, 0] and hashes[other, 1] == hashes[q, 1]:
                    first[q] = <int>other
                    break
                place = (place + 1) & mask
            if first[q] == q:
                slots[place] = <int>q


cdef enum:
    BATCH = 64


cdef struct Batch:
    # Conjunctions that wait to be looked up together. Each look-up goes to four places in memory that hold more than
    # any cache, one depending on the other: taken one by one they would be waited for one by one.
    int count
    int64 wanted[BATCH]
    int sizes[BATCH]     # features of each
    const int64* keys    # the table
    const int* slots
    uint64 mask
    const int* columns   # the row of W of each key


cdef inline void wait(
    Batch* batch, int64 key, int size, const real* squares, const real* W, Py_ssize_t C, real* target
) noexcept nogil:
    """Put a conjunction into a batch, after a full batch was added and emptied."""
    if batch.count == BATCH:
        add_batch(batch, squares, W, C, target)
    batch.wanted[batch.count], batch.sizes[batch.count] = key, size
    batch.count += 1


cdef void add_batch(Batch* batch, const real* squares, const real* W, Py_ssize_t C, real* target) noexcept nogil:
    """Add squares[size] W[column] of the conjunctions of a batch that are in the table, and empty the batch."""
    cdef uint64 places[BATCH]
    cdef int64 numbers[BATCH]
    cdef uint64 at
    cdef int b, count = batch.count
    cdef const int64* keys = batch.keys
    cdef const int* slots = batch.slots
    cdef const int* columns = batch.columns
    cdef uint64 mask = batch.mask
    cdef Py_ssize_t c
    cdef const real* row
    cdef real square
    for b in range(count):
        places[b] = mixed(<uint64>batch.wanted[b] + 0x9e3779b97f4a7c15ULL) & mask
        prefetch(slots + places[b], sizeof(int))
    for b in range(count):
        if slots[places[b]] >= 0:
            prefetch(keys + slots[places[b]], sizeof(int64))
            prefetch(columns + slots[places[b]], sizeof(int))
    for b in range(count):
        numbers[b] = find(batch.wanted[b], keys, slots, mask, &at)
        if numbers[b] >= 0:
            row = W + columns[numbers[b]] * C
            prefetch(row, C * sizeof(real))
    for b in range(count):
        if numbers[b] >= 0:
            row = W + columns[numbers[b]] * C
            square = squares[batch.sizes[b]]
            for c in range(C):
                target[c] += square * row[c]
    batch.count = 0


def add_scores(
    const int64[::1] indptr,           # [n+1]
    const int[::1] indices,            # [nnz] features of each row, ascending
    int degree,
    int64 base,
    const int64[::1] keys,             # [Q]
    const int[::1] slots,
    const int[::1] columns,            # [Q] the row of W of each conjunction
    const real[::1] squares,           # [degree+1] squared weight of a conjunction of 0, 1, ... features
    const real[:, ::1] W,              # [D, C]
    real[:, ::1] out,                  # [n, C] added to
):
    """Add the sum of squares[size] W[column] over the conjunctions of row t that are in the table to out[t]."""
    cdef Py_ssize_t t, i, j, k, last, C = W.shape[1]
    cdef int64 one, two
    cdef Batch batch
    if C == 0 or out.shape[0] == 0 or keys.shape[0] == 0:
        return
    batch.count, batch.keys, batch.slots, batch.mask = 0, &keys[0], &slots[0], slots.shape[0] - 1
    batch.columns = &columns[0]
    with nogil:
        for t in range(out.shape[0]):
            last = indptr[t + 1]
            wait(&batch, 0, 0, &squares[0], &W[0, 0], C, &out[t, 0])
            for i in range(indptr[t], last):
                one = indices[i] + 1
                wait(&batch, one, 1, &squares[0], &W[0, 0], C, &out[t, 0])
                for j in range(i + 1, last if degree > 1 else 0):
                    two = one * base + indices[j] + 1
                    wait(&batch, two, 2, &squares[0], &W[0, 0], C, &out[t, 0])
                    for k in range(j + 1, last if degree > 2 else 0):
                        wait(&batch, two * base + indices[k] + 1, 3, &squares[0], &W[0, 0], C, &out[t, 0])
            add_batch(&batch, &squares[0], &W[0, 0], C, &out[t, 0])
