/* The loops of `_dense_products.h` for one width of vectors and one type of values, REAL; included there for each. */

MAY_FUSE

#if LANES > 1
enum { NAME(width) = LANES * (int)(sizeof(double) / sizeof(REAL)) };
typedef REAL NAME(reals) __attribute__((vector_size(8 * LANES), aligned(sizeof(REAL)), may_alias));
#else
enum { NAME(width) = 1 };
typedef REAL NAME(reals);
#endif
#define SPREAD(x) KCRF_JOIN(SPREAD_, REAL)(x)
#define FUSED(a, b, c) KCRF_JOIN(FUSED_, REAL)(a, b, c)
#define WIDTH NAME(width)
#define AT(address) (*(NAME(reals) *)(address))
#define GIVEN(address) (*(const NAME(reals) *)(address))

static TARGET ptrdiff_t NAME(padded)(ptrdiff_t C)
{
    return (C + WIDTH - 1) / WIDTH * WIDTH;
}

/* Rows, or columns, at a time: five registers of eight are for sums, the others for what is multiplied. */
static FORCE_INLINE int NAME(at_once)(int vectors)
{
    int most = REGISTERS * 5 / 8 / vectors;
    return most < MOST_ROWS ? most : MOST_ROWS;
}

/* Some rows of out, `vectors` vectors of each, += rows of A, `count` values of each, times B. */
static FORCE_INLINE TARGET void NAME(row_tile)(
    const REAL *const *rows, ptrdiff_t count, const REAL *B, ptrdiff_t P, REAL *out, ptrdiff_t stride, int fresh,
    const int at_once, const int vectors)
{
    NAME(reals) held[MOST_ROWS][VECTORS];
    UNROLL for (int r = 0; r < at_once; r++)
        UNROLL for (int v = 0; v < vectors; v++)
            held[r][v] = fresh ? (NAME(reals)){0} : AT(out + r * stride + v * WIDTH);
    for (ptrdiff_t k = 0; k < count; k++) {
        NAME(reals) values[VECTORS];
        UNROLL for (int v = 0; v < vectors; v++)
            values[v] = GIVEN(B + k * P + v * WIDTH);
        UNROLL for (int r = 0; r < at_once; r++) {
            const NAME(reals) factor = (NAME(reals))SPREAD(rows[r][k]);
            UNROLL for (int v = 0; v < vectors; v++)
                held[r][v] = (NAME(reals))FUSED(factor, values[v], held[r][v]);
        }
    }
    UNROLL for (int r = 0; r < at_once; r++)
        UNROLL for (int v = 0; v < vectors; v++)
            AT(out + r * stride + v * WIDTH) = held[r][v];
}

/* sums of some columns of A, which is packed, `vectors` vectors of each, += their products with n rows of B, columns `skip` to `until`. */
static FORCE_INLINE TARGET void NAME(column_tile)(
    const REAL *A, ptrdiff_t n, const REAL *B, ptrdiff_t P, double *sums, int skip, int until, const int at_once,
    const int vectors)
{
    NAME(reals) held[MOST_ROWS][VECTORS];
    UNROLL for (int r = 0; r < at_once; r++)
        UNROLL for (int v = 0; v < vectors; v++)
            held[r][v] = (NAME(reals)){0};
    for (ptrdiff_t t = 0; t < n; t++, A += PACKED_COLUMNS, B += P) {
        NAME(reals) values[VECTORS];
        UNROLL for (int v = 0; v < vectors; v++)
            values[v] = GIVEN(B + v * WIDTH);
        UNROLL for (int r = 0; r < at_once; r++) {
            const NAME(reals) factor = (NAME(reals))SPREAD(A[r]);
            UNROLL for (int v = 0; v < vectors; v++)
                held[r][v] = (NAME(reals))FUSED(factor, values[v], held[r][v]);
        }
    }
    for (int r = skip; r < until; r++) {
        REAL found[VECTORS * WIDTH];
        UNROLL for (int v = 0; v < vectors; v++)
            AT(found + v * WIDTH) = held[r][v];
        for (int c = 0; c < vectors * WIDTH; c++)
            sums[r * P + c] += found[c];
    }
}

#define TILES(vectors)                                                                                     \
    static TARGET NEVER_INLINE void NAME(row_tile_##vectors)(                                              \
        const REAL *const *rows, ptrdiff_t count, const REAL *B, ptrdiff_t P, REAL *out, ptrdiff_t stride, \
        int fresh)                                                                                         \
    {                                                                                                      \
        NAME(row_tile)(rows, count, B, P, out, stride, fresh, NAME(at_once)(vectors), vectors);            \
    }                                                                                                      \
    static TARGET NEVER_INLINE void NAME(column_tile_##vectors)(                                           \
        const REAL *A, ptrdiff_t n, const REAL *B, ptrdiff_t P, double *sums, int skip, int until)         \
    {                                                                                                      \
        NAME(column_tile)(A, n, B, P, sums, skip, until, NAME(at_once)(vectors), vectors);                 \
    }

TILES(1)
TILES(2)
TILES(3)
TILES(4)
END_MAY_FUSE

#undef TILES

#define BY_VECTORS(tile, vectors, ...)                                                                     \
    switch (vectors) {                                                                                     \
    case 4: NAME(tile##_4)(__VA_ARGS__); break;                                                            \
    case 3: NAME(tile##_3)(__VA_ARGS__); break;                                                            \
    case 2: NAME(tile##_2)(__VA_ARGS__); break;                                                            \
    default: NAME(tile##_1)(__VA_ARGS__);                                                                  \
    }

/* Vectors of a panel that begins at column c: as equal as can be, for the fewer there are the more is loaded. */
static FORCE_INLINE int NAME(panel)(ptrdiff_t c, ptrdiff_t P)
{
    const ptrdiff_t left = (P - c) / WIDTH, panels = (left + VECTORS - 1) / VECTORS;
    return (int)((left + panels - 1) / panels);
}

static TARGET void NAME(dense_rows)(
    const REAL *A, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t M, const REAL *B, ptrdiff_t P, REAL *out, ptrdiff_t C)
{
    ptrdiff_t block = PANEL_BYTES / (ptrdiff_t)(sizeof(REAL) * WIDTH * VECTORS);
    if (P < WIDTH * VECTORS)
        block = PANEL_BYTES / (ptrdiff_t)(sizeof(REAL)) / P;
    if (M == 0)
        memset(out, 0, (size_t)(n * C) * sizeof(REAL));
    for (ptrdiff_t first = 0; first < M; first += block) {
        const ptrdiff_t count = M - first < block ? M - first : block;
        for (ptrdiff_t c = 0; c < P;) {
            const int vectors = NAME(panel)(c, P), at_once = NAME(at_once)(vectors);
            const ptrdiff_t width = C - c < vectors * WIDTH ? C - c : vectors * WIDTH;
            for (ptrdiff_t t = 0; t < n; t += at_once) {
                const ptrdiff_t height = n - t < at_once ? n - t : at_once;
                const REAL *rows[MOST_ROWS];
                for (int r = 0; r < at_once; r++) /* past the last row, that one again */
                    rows[r] = A + (r < height ? t + r : n - 1) * stride + first;
                REAL *place = out + t * C + c;
                if (height == at_once && width == vectors * WIDTH) {
                    BY_VECTORS(row_tile, vectors, rows, count, B + first * P + c, P, place, C, first == 0)
                    continue;
                }
                REAL tile[MOST_ROWS * VECTORS * WIDTH]; /* more than there is room for */
                if (first)
                    for (ptrdiff_t r = 0; r < height; r++)
                        memcpy(tile + r * vectors * WIDTH, place + r * C, (size_t)width * sizeof(REAL));
                BY_VECTORS(row_tile, vectors, rows, count, B + first * P + c, P, tile, vectors * WIDTH, first == 0)
                for (ptrdiff_t r = 0; r < height; r++)
                    memcpy(place + r * C, tile + r * vectors * WIDTH, (size_t)width * sizeof(REAL));
            }
            c += vectors * WIDTH;
        }
    }
}

/* sums of `columns` packed columns += their products with rows of B. */
static FORCE_INLINE TARGET void NAME(packed_columns)(
    const REAL *packed, ptrdiff_t columns, ptrdiff_t n, const REAL *B, ptrdiff_t P, double *sums)
{
    for (ptrdiff_t c = 0; c < P;) {
        const int vectors = NAME(panel)(c, P), at_once = NAME(at_once)(vectors);
        for (ptrdiff_t m = 0; m < columns; m += at_once) {
            /* The last ones come with some that are done already, or with what is none. */
            const ptrdiff_t from = m + at_once <= columns || columns < at_once ? m : columns - at_once;
            const int until = columns < at_once ? (int)columns : at_once;
            BY_VECTORS(column_tile, vectors, packed + from, n, B + c, P, sums + from * P + c, (int)(m - from), until)
        }
        c += vectors * WIDTH;
    }
}

static TARGET void NAME(dense_columns)(
    const REAL *A, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t M, const REAL *B, ptrdiff_t P, double *sums)
{
    REAL packed[ROWS_PER_SUM * PACKED_COLUMNS];
    for (ptrdiff_t first = 0; first < n; first += ROWS_PER_SUM) {
        const ptrdiff_t count = n - first < ROWS_PER_SUM ? n - first : ROWS_PER_SUM;
        for (ptrdiff_t m = 0; m < M; m += PACKED_COLUMNS) {
            const ptrdiff_t columns = M - m < PACKED_COLUMNS ? M - m : PACKED_COLUMNS;
            const REAL *row = A + first * stride + m;
            if (columns == PACKED_COLUMNS) /* a size that is known is copied without a call */
                for (ptrdiff_t t = 0; t < count; t++, row += stride) {
                    PREFETCH(row + 8 * stride);
                    PREFETCH(row + 8 * stride + PACKED_COLUMNS - 1);
                    memcpy(packed + t * PACKED_COLUMNS, row, PACKED_COLUMNS * sizeof(REAL));
                }
            else
                for (ptrdiff_t t = 0; t < count; t++, row += stride) {
                    memset(packed + t * PACKED_COLUMNS, 0, MOST_ROWS * sizeof(REAL));
                    memcpy(packed + t * PACKED_COLUMNS, row, (size_t)columns * sizeof(REAL));
                }
            NAME(packed_columns)(packed, columns, count, B + first * P, P, sums + m * P);
        }
    }
}

#undef BY_VECTORS
#undef SPREAD
#undef FUSED
#undef WIDTH
#undef AT
#undef GIVEN
