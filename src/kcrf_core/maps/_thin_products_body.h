/* The loops of `_thin_products.h` for one width of vectors and one type of values, REAL; included there for each.

   Columns go in vectors that begin at 0, V, 2 V, ... and, for the last, at C - V: where it overlaps the one before, both
   hold the same numbers, and both are held at the same time where they are added to. With fewer columns than a vector
   has lanes, loops go column by column. */

MAY_FUSE

#define REAL_LANES (LANES * (int)(sizeof(double) / sizeof(REAL)))

#if LANES > 1
#define FUSED(a, b, c) ((NAME(reals))KCRF_JOIN(FUSED_, REAL)(a, b, c))
#define SPREAD(x) ((NAME(reals))KCRF_JOIN(SPREAD_, REAL)(x))
typedef REAL NAME(reals) __attribute__((vector_size(8 * LANES), aligned(4), may_alias));
typedef double NAME(doubles) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef REAL NAME(halves) __attribute__((vector_size(LANES * sizeof(REAL)), aligned(4), may_alias));
#endif

#define BY_COUNT(block, count, ...)                                                                        \
    switch (count) {                                                                                       \
    case 4: NAME(block)(__VA_ARGS__, 4); break;                                                            \
    case 3: NAME(block)(__VA_ARGS__, 3); break;                                                            \
    case 2: NAME(block)(__VA_ARGS__, 2); break;                                                            \
    default: NAME(block)(__VA_ARGS__, 1);                                                                  \
    }

#define GATHER(n)                                                                                          \
    case n: NAME(gather_block)(indices, values, begin, end, indptr[last], R, C, at, out, n); break;
#define MULADD(a, b, c) KCRF_JOIN(MULADD_, REAL)(a, b, c)
#define ROUNDED(x) KCRF_JOIN(kcrf_rounded_, REAL)(x)
#define FEW_COLUMNS 4 /* a row that is wanted in at least one of so many columns is summed up in all of them */
#define AHEAD 12 /* entries: rows are fetched that long before they are wanted */

static FORCE_INLINE TARGET void NAME(fetch_row)(
    const REAL *rows, const int *indices, long long k, long long end, ptrdiff_t C)
{
    if (k + AHEAD < end) {
        const REAL *row = rows + (ptrdiff_t)ROW_OF(indices[k + AHEAD]) * C;
        PREFETCH(row);
        PREFETCH(row + C - 1);
    }
}

#if LANES > 1
/* A sum in the precision in which it leaves a partition. */
static FORCE_INLINE TARGET DOUBLES NAME(sent)(DOUBLES sum)
{
    NAME(halves) rounded = __builtin_convertvector(sum, NAME(halves));
    HIDE_VALUE(rounded);
    return __builtin_convertvector(rounded, NAME(doubles));
}

static FORCE_INLINE TARGET void NAME(multiply_block)(
    const int *indices, const REAL *values, long long begin, long long end, long long last, const REAL *W, ptrdiff_t C,
    const ptrdiff_t *at, REAL *out, const int count)
{
    NAME(reals) held[4];
    for (int v = 0; v < count; v++)
        held[v] = *(const NAME(reals) *)(out + at[v]);
    for (long long k = begin; k < end; k++) {
        const REAL *row = W + (ptrdiff_t)indices[k] * C;
        NAME(fetch_row)(W, indices, k, last, C);
        if (values)
            for (int v = 0; v < count; v++)
                held[v] = FUSED(SPREAD(values[k]), *(const NAME(reals) *)(row + at[v]), held[v]);
        else
            for (int v = 0; v < count; v++)
                held[v] += *(const NAME(reals) *)(row + at[v]);
    }
    for (int v = 0; v < count; v++)
        *(NAME(reals) *)(out + at[v]) = held[v];
}

/* Sum all vectors of a row at once, where registers suffice: indices are read, and found to begin another partition,
   once. Sums of finished partitions are in memory, and nowhere as long as there are none. */
static FORCE_INLINE TARGET void NAME(gather_block)(
    const int *indices, const REAL *values, long long begin, long long end, long long last, const REAL *R, ptrdiff_t C,
    const ptrdiff_t *at, double *out, const int count)
{
    NAME(doubles) held[MOST_GATHERED], group[MOST_GATHERED], total[MOST_GATHERED];
    int left = 0;
    for (int v = 0; v < count; v++)
        held[v] = (NAME(doubles)){0};
    for (long long k = begin; k < end; k++) {
        const REAL *row = R + (ptrdiff_t)ROW_OF(indices[k]) * C;
        NAME(fetch_row)(R, indices, k, last, C);
        if (__builtin_expect(indices[k] < 0, 0)) {
            if (!left)
                for (int v = 0; v < count; v++)
                    group[v] = total[v] = (NAME(doubles)){0};
            left = 1;
            for (int v = 0; v < count; v++) {
                group[v] += NAME(sent)(held[v]);
                held[v] = (NAME(doubles)){0};
            }
            if ((unsigned)indices[k] & NEXT_GROUP)
                for (int v = 0; v < count; v++) {
                    total[v] += group[v];
                    group[v] = (NAME(doubles)){0};
                }
        }
        for (int v = 0; v < count; v++) {
            NAME(doubles) wide = __builtin_convertvector(*(const NAME(halves) *)(row + at[v]), NAME(doubles));
            if (values)
                held[v] = (NAME(doubles))FUSED_double(SPREAD_double((double)values[k]), wide, held[v]);
            else
                held[v] += wide;
        }
    }
    for (int v = 0; v < count; v++) {
        NAME(doubles) sum = NAME(sent)(held[v]);
        *(NAME(doubles) *)(out + at[v]) = left ? total[v] + (group[v] + sum) : sum + (NAME(doubles)){0};
    }
}

/* Where the vectors from number `first` on begin, up to `most` of them; how many. */
static FORCE_INLINE TARGET int NAME(places)(ptrdiff_t first, ptrdiff_t C, ptrdiff_t width, int most, ptrdiff_t *at)
{
    int count = 0;
    for (; count < most && (first + count) * width < C; count++) {
        at[count] = (first + count) * width;
        if (at[count] + width > C)
            at[count] = C - width;
    }
    return count;
}
#endif

static TARGET void NAME(multiply)(
    const long long *indptr, const int *indices, const REAL *values, const REAL *W, ptrdiff_t C, ptrdiff_t first,
    ptrdiff_t last, REAL *out)
{
    for (ptrdiff_t t = first; t < last; t++, out += C) {
        long long begin = indptr[t], end = indptr[t + 1];
#if LANES > 1
        if (C >= REAL_LANES) {
            ptrdiff_t at[4];
            for (ptrdiff_t vector = 0; vector * REAL_LANES < C; vector += 4) {
                int count = NAME(places)(vector, C, REAL_LANES, 4, at);
                if (vector > 0 && at[0] < vector * REAL_LANES) { /* what it overlaps has been added to already */
                    for (long long k = begin; k < end; k++)
                        for (ptrdiff_t c = vector * REAL_LANES; c < C; c++)
                            out[c] = MULADD(values ? values[k] : (REAL)1, W[(ptrdiff_t)indices[k] * C + c], out[c]);
                    break;
                }
                BY_COUNT(multiply_block, count, indices, values, begin, end, indptr[last], W, C, at, out)
            }
            continue;
        }
#endif
        for (long long k = begin; k < end; k++) {
            const REAL *row = W + (ptrdiff_t)indices[k] * C;
            REAL value = values ? values[k] : (REAL)1;
            NAME(fetch_row)(W, indices, k, indptr[last], C);
            for (ptrdiff_t c = 0; c < C; c++)
                out[c] = MULADD(value, row[c], out[c]);
        }
    }
}

static FORCE_INLINE TARGET void NAME(gather_few)(
    const int *indices, const REAL *values, long long begin, long long end, long long last, const REAL *R, ptrdiff_t C,
    const long long *columns, double *out, const int count)
{
    double held[4] = {0.0, 0.0, 0.0, 0.0}, group[4] = {0.0, 0.0, 0.0, 0.0}, total[4] = {0.0, 0.0, 0.0, 0.0};
    for (long long k = begin; k < end; k++) {
        const REAL *row = R + (ptrdiff_t)ROW_OF(indices[k]) * C;
        NAME(fetch_row)(R, indices, k, last, C);
        if (__builtin_expect(indices[k] < 0, 0))
            for (int v = 0; v < count; v++) {
                group[v] += ROUNDED(held[v]);
                held[v] = 0.0;
                if ((unsigned)indices[k] & NEXT_GROUP) {
                    total[v] += group[v];
                    group[v] = 0.0;
                }
            }
        for (int v = 0; v < count; v++)
            held[v] = values ? MULADD_double((double)values[k], row[columns[v]], held[v]) : held[v] + row[columns[v]];
    }
    for (int v = 0; v < count; v++)
        out[v] = total[v] + (group[v] + ROUNDED(held[v]));
}

static TARGET void NAME(gather)(
    const long long *indptr, const int *indices, const REAL *values, const REAL *R, ptrdiff_t C, ptrdiff_t first,
    ptrdiff_t last, double *out)
{
    for (ptrdiff_t f = first; f < last; f++, out += C) {
        long long begin = indptr[f], end = indptr[f + 1];
#if LANES > 1
        if (C >= LANES) {
            ptrdiff_t at[MOST_GATHERED];
            for (ptrdiff_t vector = 0; vector * LANES < C; vector += MOST_GATHERED) {
                int count = NAME(places)(vector, C, LANES, MOST_GATHERED, at);
                switch (count) {
                    GATHER(1) GATHER(2) GATHER(3) GATHER(4) GATHER(5) GATHER(6) GATHER(7) GATHER(8)
#if MOST_GATHERED > 8
                    GATHER(9) GATHER(10) GATHER(11) GATHER(12)
#endif
                }
            }
            continue;
        }
#endif
        for (ptrdiff_t c = 0; c < C; c += 4) {
            const long long columns[4] = {c, c + 1, c + 2, c + 3};
            int few = C - c < 4 ? (int)(C - c) : 4;
            BY_COUNT(gather_few, few, indices, values, begin, end, indptr[last], R, C, columns, out + c)
        }
    }
}

/* Products with a W of which only some places are held: those of row f are in W[starts[f]] up to W[starts[f + 1]]. Where
   these are C numbers, they are the whole row; else each weight is followed by its column, an int in the place of a
   number, so that one line of memory has both. Up to KEPT_AT_ONCE columns, whole rows are summed up by themselves, in
   registers where these suffice. */

static FORCE_INLINE TARGET void NAME(add_kept)(const REAL *own, const REAL *end, REAL value, REAL *out)
{
    for (; own < end; own += 2) {
        int column;
        memcpy(&column, own + 1, sizeof column);
        out[column] = MULADD(value, *own, out[column]);
    }
}

#if LANES > 1
static FORCE_INLINE TARGET void NAME(kept_block)(
    const int *indices, const REAL *values, long long begin, long long end, long long last, const long long *starts,
    const REAL *W, ptrdiff_t C, const ptrdiff_t *at, REAL *out, const int count)
{
    NAME(reals) held[8];
    for (int v = 0; v < count; v++)
        held[v] = (NAME(reals)){0};
    for (long long k = begin; k < end; k++) {
        const long long *row = starts + indices[k];
        const REAL *own = W + row[0];
        if (k + AHEAD < last) {
            const long long *next = starts + indices[k + AHEAD];
            PREFETCH(W + next[0]);
            PREFETCH(W + next[1] - 1);
        }
        if (row[1] - row[0] != C)
            NAME(add_kept)(own, W + row[1], values ? values[k] : (REAL)1, out);
        else if (values)
            for (int v = 0; v < count; v++)
                held[v] = FUSED(SPREAD(values[k]), *(const NAME(reals) *)(own + at[v]), held[v]);
        else
            for (int v = 0; v < count; v++)
                held[v] += *(const NAME(reals) *)(own + at[v]);
    }
    for (int v = 0; v < count; v++)
        held[v] += *(const NAME(reals) *)(out + at[v]);
    for (int v = 0; v < count; v++)
        *(NAME(reals) *)(out + at[v]) = held[v];
}

#define KEPT_BLOCK(n)                                                                                      \
    case n: NAME(kept_block)(indices, values, indptr[t], indptr[t + 1], indptr[last], starts, W, C, at, out, n); break;
#endif

static TARGET void NAME(multiply_kept)(
    const long long *indptr, const int *indices, const REAL *values, const long long *starts, const REAL *W, ptrdiff_t C,
    ptrdiff_t first, ptrdiff_t last, REAL *out)
{
#if LANES > 1
    if (C >= REAL_LANES && C <= 8 * REAL_LANES && C <= KEPT_AT_ONCE) {
        ptrdiff_t at[8];
        int count = NAME(places)(0, C, REAL_LANES, 4, at);
        if (count == 4)
            count += NAME(places)(4, C, REAL_LANES, 4, at + 4);
        for (ptrdiff_t t = first; t < last; t++, out += C)
            switch (count) {
                KEPT_BLOCK(1) KEPT_BLOCK(2) KEPT_BLOCK(3) KEPT_BLOCK(4)
                KEPT_BLOCK(5) KEPT_BLOCK(6) KEPT_BLOCK(7) KEPT_BLOCK(8)
            }
        return;
    }
#endif
    REAL room[KEPT_AT_ONCE];
    for (ptrdiff_t t = first; t < last; t++, out += C) {
        REAL *whole = C <= KEPT_AT_ONCE ? room : out;
        if (whole == room)
            memset(room, 0, (size_t)C * sizeof(REAL));
        for (long long k = indptr[t]; k < indptr[t + 1]; k++) {
            const long long *row = starts + indices[k];
            const REAL *own = W + row[0];
            REAL value = values ? values[k] : (REAL)1;
            if (row[1] - row[0] != C)
                NAME(add_kept)(own, W + row[1], value, out);
            else
                for (ptrdiff_t c = 0; c < C; c++)
                    whole[c] = MULADD(value, own[c], whole[c]);
        }
        if (whole == room)
            for (ptrdiff_t c = 0; c < C; c++)
                out[c] = room[c] + out[c];
    }
}

/* Sums at places kept[ends[f]] up to kept[ends[f + 1]] of W alone, each times the scale of its row. `room` is for C. */
static TARGET void NAME(gather_kept)(
    const long long *indptr, const int *indices, const REAL *values, const REAL *R, ptrdiff_t C, const long long *kept,
    const long long *ends, const double *scale, ptrdiff_t first, ptrdiff_t last, double *room, double *out)
{
    for (ptrdiff_t f = first; f < last; f++) {
        double *sums = out + ends[f];
        const long long *own = kept + ends[f];
        ptrdiff_t count = ends[f + 1] - ends[f];
        if (FEW_COLUMNS * count >= C) {
            NAME(gather)(indptr, indices, values, R, C, f, f + 1, room);
            for (ptrdiff_t p = 0; p < count; p++)
                sums[p] = room[own[p] - f * C];
        } else
            for (ptrdiff_t p = 0; p < count; p += 4) {
                long long columns[4];
                int few = count - p < 4 ? (int)(count - p) : 4;
                for (int v = 0; v < few; v++)
                    columns[v] = own[p + v] - f * C;
                BY_COUNT(
                    gather_few, few, indices, values, indptr[f], indptr[f + 1], indptr[last], R, C, columns,
                    sums + p)
            }
        if (scale)
            for (ptrdiff_t p = 0; p < count; p++)
                sums[p] *= scale[f];
    }
}

END_MAY_FUSE

#undef REAL_LANES
#undef AHEAD
#undef GATHER
#undef BY_COUNT
#undef KEPT_BLOCK
#undef FEW_COLUMNS
#undef ROUNDED
#undef MULADD
#undef FUSED
#undef SPREAD
