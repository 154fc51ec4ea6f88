/* The loops of `_thin_products.h` for one width of vectors and one type of values, REAL; included there for each.

   Columns go in vectors that begin at 0, V, 2 V, ... and, for the last, at C - V: where it overlaps the one before, both
   hold the same numbers, and both are held at the same time where they are added to. With fewer columns than a vector
   has lanes, loops go column by column. */

#define REAL_LANES (LANES * (int)(sizeof(double) / sizeof(REAL)))

#if LANES > 1
typedef REAL NAME(reals) __attribute__((vector_size(8 * LANES), aligned(4), may_alias));
typedef double NAME(doubles) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef REAL NAME(halves) __attribute__((vector_size(LANES * sizeof(REAL)), aligned(4), may_alias));
#endif

#define AHEAD 12 /* entries: rows are fetched that long before they are wanted */

static FORCE_INLINE TARGET void NAME(fetch)(const REAL *rows, const int *indices, long long k, long long end, ptrdiff_t C)
{
    if (k + AHEAD < end) {
        const REAL *row = rows + (ptrdiff_t)indices[k + AHEAD] * C;
        PREFETCH(row);
        PREFETCH(row + C - 1);
    }
}

#if LANES > 1
static FORCE_INLINE TARGET void NAME(multiply_block)(
    const int *indices, const REAL *values, long long begin, long long end, long long last, const REAL *W, ptrdiff_t C,
    const ptrdiff_t *at, REAL *out, const int count)
{
    NAME(reals) held[4];
    for (int v = 0; v < count; v++)
        held[v] = *(const NAME(reals) *)(out + at[v]);
    for (long long k = begin; k < end; k++) {
        const REAL *row = W + (ptrdiff_t)indices[k] * C;
        NAME(fetch)(W, indices, k, last, C);
        if (values)
            for (int v = 0; v < count; v++)
                held[v] += values[k] * *(const NAME(reals) *)(row + at[v]);
        else
            for (int v = 0; v < count; v++)
                held[v] += *(const NAME(reals) *)(row + at[v]);
    }
    for (int v = 0; v < count; v++)
        *(NAME(reals) *)(out + at[v]) = held[v];
}

static FORCE_INLINE TARGET void NAME(gather_block)(
    const int *indices, const REAL *values, long long begin, long long end, long long last, const REAL *R, ptrdiff_t C,
    const ptrdiff_t *at, double *out, const int count)
{
    NAME(doubles) held[4];
    for (int v = 0; v < count; v++)
        held[v] = (NAME(doubles)){0};
    for (long long k = begin; k < end; k++) {
        const REAL *row = R + (ptrdiff_t)indices[k] * C;
        NAME(fetch)(R, indices, k, last, C);
        for (int v = 0; v < count; v++) {
            NAME(doubles) wide = __builtin_convertvector(*(const NAME(halves) *)(row + at[v]), NAME(doubles));
            if (values)
                held[v] += (double)values[k] * wide;
            else
                held[v] += wide;
        }
    }
    for (int v = 0; v < count; v++)
        *(NAME(doubles) *)(out + at[v]) = held[v];
}

/* Where the vectors from number `first` on begin, up to four of them; how many. */
static FORCE_INLINE TARGET int NAME(places)(ptrdiff_t first, ptrdiff_t C, ptrdiff_t width, ptrdiff_t *at)
{
    int count = 0;
    for (; count < 4 && (first + count) * width < C; count++) {
        at[count] = (first + count) * width;
        if (at[count] + width > C)
            at[count] = C - width;
    }
    return count;
}

#define BY_COUNT(block, count, ...)                                                                        \
    switch (count) {                                                                                       \
    case 4: NAME(block)(__VA_ARGS__, 4); break;                                                            \
    case 3: NAME(block)(__VA_ARGS__, 3); break;                                                            \
    case 2: NAME(block)(__VA_ARGS__, 2); break;                                                            \
    default: NAME(block)(__VA_ARGS__, 1);                                                                  \
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
                int count = NAME(places)(vector, C, REAL_LANES, at);
                if (vector > 0 && at[0] < vector * REAL_LANES) { /* what it overlaps has been added to already */
                    for (long long k = begin; k < end; k++)
                        for (ptrdiff_t c = vector * REAL_LANES; c < C; c++)
                            out[c] += (values ? values[k] : (REAL)1) * W[(ptrdiff_t)indices[k] * C + c];
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
            NAME(fetch)(W, indices, k, indptr[last], C);
            for (ptrdiff_t c = 0; c < C; c++)
                out[c] += value * row[c];
        }
    }
}

static TARGET void NAME(gather)(
    const long long *indptr, const int *indices, const REAL *values, const REAL *R, ptrdiff_t C, ptrdiff_t first,
    ptrdiff_t last, double *out)
{
    for (ptrdiff_t f = first; f < last; f++, out += C) {
        long long begin = indptr[f], end = indptr[f + 1];
#if LANES > 1
        if (C >= LANES) {
            ptrdiff_t at[4];
            for (ptrdiff_t vector = 0; vector * LANES < C; vector += 4) {
                int count = NAME(places)(vector, C, LANES, at);
                BY_COUNT(gather_block, count, indices, values, begin, end, indptr[last], R, C, at, out)
            }
            continue;
        }
#endif
        for (ptrdiff_t c = 0; c < C; c++)
            out[c] = 0.0;
        for (long long k = begin; k < end; k++) {
            const REAL *row = R + (ptrdiff_t)indices[k] * C;
            double value = values ? values[k] : 1.0;
            NAME(fetch)(R, indices, k, indptr[last], C);
            for (ptrdiff_t c = 0; c < C; c++)
                out[c] += value * row[c];
        }
    }
}

#undef REAL_LANES
#undef AHEAD
#undef BY_COUNT
#undef LANES
#undef TARGET
#undef NAME
#undef REAL
