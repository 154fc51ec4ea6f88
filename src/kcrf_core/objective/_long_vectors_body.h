/* The loops of `_long_vectors.h` for one width of vectors; included there for each.

   A sum over a tile has parts, 16 or 32 values apart, that are added up in a fixed order at the end of the tile.
   Vectors that are kept in single precision are multiplied, and summed up over a tile, in single precision. */

#define PARTS_BYTES 128 /* of the parts of a sum: 16 doubles or 32 floats, at every width */

#if LANES > 1
typedef double NAME(doubles) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef float NAME(floats) __attribute__((vector_size(8 * LANES), aligned(4), may_alias));
#define LOAD(real, address) (*(const NAME(real##s) *)(address))
#define STORE(real, address, value) (*(NAME(real##s) *)(address) = (value))
#else
typedef double NAME(doubles);
typedef float NAME(floats);
#define LOAD(real, address) (*(address))
#define STORE(real, address, value) (*(address) = (value))
#endif

/* Ask for as many values as are worked on, so many bytes ahead. Between two tiles of a row come those of all others, so
   that the machine cannot guess what it will be asked for. */
#define FETCH(values, count, ahead)                                                                        \
    for (int byte = 0; byte < (int)sizeof(*(values)) * (count); byte += 64)                                \
    PREFETCH((const char *)(values) + (ahead) + byte)

#define FOR_EACH_TILE(some)                                                                                \
    for (ptrdiff_t k = (some).first; k < (some).last; k++)                                                 \
        for (ptrdiff_t at = (ptrdiff_t)(some).bounds[k], end = (ptrdiff_t)(some).bounds[k + 1], n; at < end; at += n) \
            if ((n = end - at < TILE ? end - at : TILE))

typedef union {
    uint32_t bits;
    float value;
} NAME(bits);

/* Upper halves of numbers to these, asking for those that are `ahead`, and numbers to their upper halves, rounded. */
static FORCE_INLINE TARGET void NAME(widen)(
    const uint16_t *restrict halves, ptrdiff_t n, ptrdiff_t ahead, float *restrict out)
{
    ptrdiff_t i = 0;
    for (; i + 32 <= n; i += 32) {
        FETCH(halves + i, 32, ahead);
        for (ptrdiff_t j = i; j < i + 32; j++)
            out[j] = ((NAME(bits)){.bits = (uint32_t)halves[j] << 16}).value;
    }
    for (; i < n; i++)
        out[i] = ((NAME(bits)){.bits = (uint32_t)halves[i] << 16}).value;
}

static FORCE_INLINE TARGET void NAME(halve)(const double *restrict values, ptrdiff_t n, uint16_t *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint32_t bits = ((NAME(bits)){.value = (float)values[i]}).bits;
        out[i] = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    }
}

/* A tile in single precision: where it is, or in `room` [TILE]. Of halves the next ones are `ahead`. */
static FORCE_INLINE TARGET const float *NAME(narrow_tile)(
    kcrf_values of, ptrdiff_t at, ptrdiff_t n, ptrdiff_t ahead, float *restrict room)
{
    if (of.bytes == 4)
        return (const float *)of.values + at;
    if (of.bytes == 2) {
        NAME(widen)((const uint16_t *)of.values + at, n, ahead, room);
        return room;
    }
    const double *restrict values = (const double *)of.values + at;
    for (ptrdiff_t i = 0; i < n; i++)
        room[i] = (float)values[i];
    return room;
}

/* A tile in double precision: where it is, or in `room` [TILE]. */
static FORCE_INLINE TARGET const double *NAME(tile)(kcrf_values of, ptrdiff_t at, ptrdiff_t n, double *restrict room)
{
    float whole[TILE];
    if (of.bytes == 8)
        return (const double *)of.values + at;
    const float *restrict values = NAME(narrow_tile)(of, at, n, 0, whole);
    ptrdiff_t i = 0;
    for (; i + 16 <= n; i += 16) {
        FETCH(values + i, 16, TILE * sizeof(float));
        for (ptrdiff_t j = i; j < i + 16; j++)
            room[j] = values[j];
    }
    for (; i < n; i++)
        room[i] = values[i];
    return room;
}

/* Write a tile that is held elsewhere. */
static FORCE_INLINE TARGET void NAME(keep)(kcrf_values in, ptrdiff_t at, ptrdiff_t n, const double *restrict tile)
{
    if (in.bytes == 2)
        NAME(halve)(tile, n, (uint16_t *)in.values + at);
    else if (in.bytes == 4) {
        float *restrict values = (float *)in.values + at;
        for (ptrdiff_t i = 0; i < n; i++)
            values[i] = (float)tile[i];
    } else {
        double *values = (double *)in.values + at;
        for (ptrdiff_t i = 0; i < n; i++)
            values[i] = tile[i];
    }
}

/* Add the inner products of a row's tile with one or two others. */
#define PRODUCTS(real)                                                                                     \
    static FORCE_INLINE TARGET double NAME(sum_##real)(const NAME(real##s) * held)                         \
    {                                                                                                      \
        enum { WIDTH = sizeof(NAME(real##s)) / sizeof(real), VECTORS = PARTS_BYTES / sizeof(NAME(real##s)) }; \
        real lanes[WIDTH * VECTORS];                                                                       \
        double sum = 0.0;                                                                                  \
        for (int v = 0; v < VECTORS; v++)                                                                  \
            STORE(real, lanes + v * WIDTH, held[v]);                                                       \
        for (int i = 0; i < WIDTH * VECTORS; i++)                                                          \
            sum += lanes[i];                                                                               \
        return sum;                                                                                        \
    }                                                                                                      \
    static FORCE_INLINE TARGET void NAME(add_products_##real)(                                             \
        const real *row, const real *const *others, const int many, ptrdiff_t n, ptrdiff_t ahead, double *sums)\
    {                                                                                                      \
        enum { WIDTH = sizeof(NAME(real##s)) / sizeof(real), STEP = PARTS_BYTES / sizeof(real) };          \
        enum { VECTORS = STEP / WIDTH };                                                                   \
        NAME(real##s) held[2][VECTORS] = {{0}};                                                            \
        double rest[2] = {0.0, 0.0};                                                                       \
        ptrdiff_t i = 0;                                                                                   \
        for (; i + STEP <= n; i += STEP) {                                                                 \
            FETCH(row + i, STEP, ahead);                                                                   \
            for (int v = 0; v < VECTORS; v++) {                                                            \
                const NAME(real##s) values = LOAD(real, row + i + v * WIDTH);                              \
                for (int o = 0; o < many; o++)                                                             \
                    held[o][v] += values * LOAD(real, others[o] + i + v * WIDTH);                          \
            }                                                                                              \
        }                                                                                                  \
        for (; i < n; i++)                                                                                 \
            for (int o = 0; o < many; o++)                                                                 \
                rest[o] += row[i] * others[o][i];                                                          \
        for (int o = 0; o < many; o++)                                                                     \
            sums[o] += NAME(sum_##real)(held[o]) + rest[o];                                                \
    }

PRODUCTS(float)
PRODUCTS(double)

/* How many bytes after a row's tile the next one to be worked on begins: that of the row `by` rows on, or the next of
   the first rows. Pairs are equally far from each other. */
static FORCE_INLINE TARGET ptrdiff_t NAME(ahead)(const kcrf_values *rows, ptrdiff_t count, ptrdiff_t row, ptrdiff_t by)
{
    const ptrdiff_t tile = TILE * rows[row].bytes;
    if (row + by < count)
        return (const char *)rows[row + by].values - (const char *)rows[row].values;
    return (const char *)rows[row % by].values - (const char *)rows[row].values + tile;
}

/* The same in double precision, whatever the row is in. */
static FORCE_INLINE TARGET void NAME(add_product)(
    kcrf_values row, ptrdiff_t at, ptrdiff_t n, const double *x, double *sum)
{
    double room[TILE];
    NAME(add_products_double)(NAME(tile)(row, at, n, room), &x, 1, n, TILE * sizeof(double), sum);
}

/* Products of rows, which have one type, with one or two vectors, sums [count, many]. */
static FORCE_INLINE TARGET void NAME(add_row_products)(
    const kcrf_values *rows, ptrdiff_t count, const kcrf_values *vectors, const int many, ptrdiff_t at, ptrdiff_t n,
    double *sums)
{
    if (count && rows[0].bytes < 8) {
        float room[2][TILE], own[TILE];
        const float *x[2];
        for (int o = 0; o < many; o++)
            x[o] = NAME(narrow_tile)(vectors[o], at, n, 0, room[o]);
        for (ptrdiff_t row = 0; row < count; row++, sums += many) {
            const ptrdiff_t ahead = NAME(ahead)(rows, count, row, 1);
            const float *values = NAME(narrow_tile)(rows[row], at, n, ahead, own);
            NAME(add_products_float)(values, x, many, n, values == own ? 0 : ahead, sums);
        }
    } else {
        double room[2][TILE];
        const double *x[2];
        for (int o = 0; o < many; o++)
            x[o] = NAME(tile)(vectors[o], at, n, room[o]);
        for (ptrdiff_t row = 0; row < count; row++, sums += many)
            NAME(add_products_double)(
                (const double *)rows[row].values + at, x, many, n, NAME(ahead)(rows, count, row, 1), sums);
    }
}

static FORCE_INLINE TARGET void NAME(clear)(double *sums, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++)
        sums[i] = 0.0;
}

/* out += sum of weights times rows, four rows at a time. */
#define ADD_ROWS(real)                                                                                     \
    static TARGET NEVER_INLINE void NAME(add_four_rows_##real)(                                            \
        const kcrf_values *rows, ptrdiff_t at, ptrdiff_t n, ptrdiff_t ahead, const double *weights,         \
        double *restrict out)                                                                              \
    {                                                                                                      \
        enum { STEP = 16 };                                                                                \
        const real *restrict a = (const real *)rows[0].values + at, *restrict b = (const real *)rows[1].values + at; \
        const real *restrict c = (const real *)rows[2].values + at, *restrict d = (const real *)rows[3].values + at; \
        const real of_a = (real)weights[0], of_b = (real)weights[1];                                       \
        const real of_c = (real)weights[2], of_d = (real)weights[3];                                       \
        ptrdiff_t i = 0;                                                                                   \
        for (; i + STEP <= n; i += STEP) {                                                                 \
            FETCH(a + i, STEP, ahead);                                                                     \
            FETCH(b + i, STEP, ahead);                                                                     \
            FETCH(c + i, STEP, ahead);                                                                     \
            FETCH(d + i, STEP, ahead);                                                                     \
            for (ptrdiff_t j = i; j < i + STEP; j++)                                                       \
                out[j] += (of_a * a[j] + of_b * b[j]) + (of_c * c[j] + of_d * d[j]);                       \
        }                                                                                                  \
        for (; i < n; i++)                                                                                 \
            out[i] += (of_a * a[i] + of_b * b[i]) + (of_c * c[i] + of_d * d[i]);                           \
    }                                                                                                      \
    static TARGET NEVER_INLINE void NAME(add_row_##real)(                                                  \
        kcrf_values row, ptrdiff_t at, ptrdiff_t n, const double weight, double *restrict out)             \
    {                                                                                                      \
        const real *restrict values = (const real *)row.values + at;                                       \
        for (ptrdiff_t i = 0; i < n; i++)                                                                  \
            out[i] += weight * values[i];                                                                  \
    }

ADD_ROWS(float)
ADD_ROWS(double)

/* The same for any number of rows, which have one type. */
static FORCE_INLINE TARGET void NAME(add_rows)(
    const kcrf_values *rows, ptrdiff_t count, ptrdiff_t at, ptrdiff_t n, const double *weights, double *out)
{
    float room[4][TILE];
    kcrf_values four[4];
    ptrdiff_t row = 0;
    for (; row + 4 <= count; row += 4) {
        const ptrdiff_t ahead = NAME(ahead)(rows, count, row, 4);
        if (rows[row].bytes == 8) {
            NAME(add_four_rows_double)(rows + row, at, n, ahead, weights + row, out);
            continue;
        }
        for (int r = 0; r < 4; r++)
            four[r] = (kcrf_values){(void *)NAME(narrow_tile)(rows[row + r], at, n, ahead, room[r]), 4};
        NAME(add_four_rows_float)(four, 0, n, rows[row].bytes == 4 ? ahead : 0, weights + row, out);
    }
    for (; row < count; row++)
        if (rows[row].bytes == 8)
            NAME(add_row_double)(rows[row], at, n, weights[row], out);
        else {
            four[0] = (kcrf_values){(void *)NAME(narrow_tile)(rows[row], at, n, 0, room[0]), 4};
            NAME(add_row_float)(four[0], 0, n, weights[row], out);
        }
}

/* out = start + step direction. */
static TARGET void NAME(stepped)(const kcrf_operation *self, kcrf_slices some)
{
    const kcrf_values start = self->a, direction = self->b, out = self->c;
    const double step = self->factor;
    double room_start[TILE], room_direction[TILE], found[TILE];
    FOR_EACH_TILE(some)
    {
        const double *from = NAME(tile)(start, at, n, room_start);
        const double *restrict along = NAME(tile)(direction, at, n, room_direction);
        for (ptrdiff_t i = 0; i < n; i++)
            found[i] = from[i] + step * along[i];
        NAME(keep)(out, at, n, found);
    }
}

/* out = vector. */
static TARGET void NAME(copied)(const kcrf_operation *self, kcrf_slices some)
{
    const kcrf_values vector = self->a, out = self->b;
    double room[TILE];
    FOR_EACH_TILE(some)
    NAME(keep)(out, at, n, NAME(tile)(vector, at, n, room));
}

/* out = a b. */
static TARGET void NAME(multiplied)(const kcrf_operation *self, kcrf_slices some)
{
    double room_a[TILE], room_b[TILE], found[TILE];
    FOR_EACH_TILE(some)
    {
        const double *restrict left = NAME(tile)(self->a, at, n, room_a);
        const double *restrict right = NAME(tile)(self->b, at, n, room_b);
        for (ptrdiff_t i = 0; i < n; i++)
            found[i] = left[i] * right[i];
        NAME(keep)(self->c, at, n, found);
    }
}

/* Sums [slices] of a b. */
static TARGET void NAME(dots)(const kcrf_operation *self, kcrf_slices some)
{
    double room[TILE];
    NAME(clear)(self->sums + some.first, some.last - some.first);
    FOR_EACH_TILE(some)
    NAME(add_product)(self->a, at, n, NAME(tile)(self->b, at, n, room), self->sums + k);
}

/* Inner products of rows of one type with a vector, sums [slices, count]. */
static TARGET void NAME(products)(const kcrf_operation *self, kcrf_slices some)
{
    const ptrdiff_t count = self->count;
    double *sums = self->sums;
    NAME(clear)(sums + some.first * count, (some.last - some.first) * count);
    FOR_EACH_TILE(some)
    NAME(add_row_products)(self->rows, count, &self->a, 1, at, n, sums + k * count);
}

/* gradient += precisions[slice] theta; sums [slices, 2] of theta^2 and of the new gradient^2. */
static TARGET void NAME(add_prior)(const kcrf_operation *self, kcrf_slices some)
{
    const kcrf_values gradient = self->a, theta = self->b;
    const double *precisions = self->factors;
    double *sums = self->sums;
    double room_gradient[TILE], room_theta[TILE], slope[TILE];
    kcrf_values own = {slope, 8};
    NAME(clear)(sums + some.first * 2, (some.last - some.first) * 2);
    FOR_EACH_TILE(some)
    {
        const double *before = NAME(tile)(gradient, at, n, room_gradient);
        const double *restrict point = NAME(tile)(theta, at, n, room_theta);
        for (ptrdiff_t i = 0; i < n; i++)
            slope[i] = before[i] + precisions[k] * point[i];
        NAME(keep)(gradient, at, n, slope);
        NAME(add_product)(theta, at, n, point, sums + 2 * k);
        NAME(add_product)(own, 0, n, slope, sums + 2 * k + 1);
    }
}

/* gradient += precisions[slice] theta; sums [slices, 2] of theta^2 and of thresholds |theta|. */
static TARGET void NAME(add_sparse_prior)(const kcrf_operation *self, kcrf_slices some)
{
    const kcrf_values gradient = self->a, theta = self->b, thresholds = self->c;
    const double *precisions = self->factors;
    double *sums = self->sums;
    double room_gradient[TILE], room_theta[TILE], room_thresholds[TILE], slope[TILE], size[TILE];
    kcrf_values sizes = {size, 8};
    NAME(clear)(sums + some.first * 2, (some.last - some.first) * 2);
    FOR_EACH_TILE(some)
    {
        const double *before = NAME(tile)(gradient, at, n, room_gradient);
        const double *restrict point = NAME(tile)(theta, at, n, room_theta);
        for (ptrdiff_t i = 0; i < n; i++) {
            slope[i] = before[i] + precisions[k] * point[i];
            size[i] = point[i] < 0 ? -point[i] : point[i];
        }
        NAME(add_product)(theta, at, n, point, sums + 2 * k);
        NAME(add_product)(sizes, 0, n, NAME(tile)(thresholds, at, n, room_thresholds), sums + 2 * k + 1);
        NAME(keep)(gradient, at, n, slope);
    }
}

/* Sums [slices] of how many values are beyond thresholds, and in `places` where, from the beginning of each slice. */
static TARGET void NAME(beyond)(const kcrf_operation *self, kcrf_slices some)
{
    uint16_t *places = self->c.values;
    double room[TILE], room_thresholds[TILE];
    NAME(clear)(self->sums + some.first, some.last - some.first);
    FOR_EACH_TILE(some)
    {
        const double *restrict values = NAME(tile)(self->a, at, n, room);
        const double *restrict limits = NAME(tile)(self->b, at, n, room_thresholds);
        const ptrdiff_t first = (ptrdiff_t)self->bounds[k];
        ptrdiff_t count = (ptrdiff_t)self->sums[k];
        for (ptrdiff_t i = 0; i < n; i++) {
            places[first + count] = (uint16_t)(at + i - first);
            count += fabs(values[i]) > limits[i];
        }
        self->sums[k] = (double)count;
    }
}

/* out = g / sqrt(precision) for g = gradient - precision theta; sums [slices, count + 2] of g theta, and of out times
   each of `count` others and itself. */
static TARGET void NAME(linearised)(const kcrf_operation *self, kcrf_slices some)
{
    const kcrf_values theta = self->a, gradient = self->b, out = self->c, *others = self->rows;
    const ptrdiff_t count = self->count;
    const double *precisions = self->factors;
    double *sums = self->sums;
    double room_gradient[TILE], room_theta[TILE], room_out[TILE], loss[TILE];
    kcrf_values own = {loss, 8};
    NAME(clear)(sums + some.first * (count + 2), (some.last - some.first) * (count + 2));
    FOR_EACH_TILE(some)
    {
        const double sigma = 1.0 / sqrt(precisions[k]);
        const double *restrict slope = NAME(tile)(gradient, at, n, room_gradient);
        const double *restrict point = NAME(tile)(theta, at, n, room_theta);
        double *found = sums + k * (count + 2);
        for (ptrdiff_t i = 0; i < n; i++)
            loss[i] = slope[i] - precisions[k] * point[i];
        NAME(add_product)(own, 0, n, point, found);
        for (ptrdiff_t i = 0; i < n; i++)
            loss[i] *= sigma;
        NAME(keep)(out, at, n, loss);
        const double *kept = NAME(tile)(out, at, n, room_out); /* as it was rounded */
        for (ptrdiff_t row = 0; row < count; row++)
            if (out.bytes == 4 && others[row].bytes == 4)
                NAME(add_row_products)(others + row, 1, &out, 1, at, n, found + 1 + row);
            else
                NAME(add_product)(others[row], at, n, kept, found + 1 + row);
        NAME(add_products_double)(kept, &kept, 1, n, 0, found + 1 + count);
    }
}

static FORCE_INLINE TARGET void NAME(difference)(
    kcrf_values after, kcrf_values before, ptrdiff_t at, ptrdiff_t n, kcrf_values out)
{
    double room_after[TILE], room_before[TILE], found[TILE];
    const double *restrict new = NAME(tile)(after, at, n, room_after);
    const double *restrict old = NAME(tile)(before, at, n, room_before);
    for (ptrdiff_t i = 0; i < n; i++)
        found[i] = new[i] - old[i];
    NAME(keep)(out, at, n, found);
}

/* steps[slot] = after - before, change = new_gradient - gradient; sums [slices, count, 2] of each step times that
   change and times the new gradient. */
static TARGET void NAME(put_pair)(const kcrf_operation *self, kcrf_slices some)
{
    const kcrf_values both[] = {self->a, self->e}, *steps = self->rows; /* the change, and the new gradient */
    const ptrdiff_t count = self->count;
    double *sums = self->sums;
    NAME(clear)(sums + some.first * 2 * count, (some.last - some.first) * 2 * count);
    FOR_EACH_TILE(some)
    {
        double *found = sums + 2 * k * count;
        NAME(difference)(self->c, self->b, at, n, steps[self->number]);
        NAME(difference)(self->e, self->d, at, n, self->a);
        NAME(add_row_products)(steps, count, both, 2, at, n, found);
    }
}

/* out = -(gradient + sum_i shares[i] changes[i]) scale, no scale where its values are NULL. Where `sums` is not NULL,
   sums [slices, count + 1] of each change times out, and of changes[newest]^2 scale, zero where newest is negative. */
static TARGET void NAME(reduced)(const kcrf_operation *self, kcrf_slices some)
{
    const kcrf_values gradient = self->a, scale = self->b, out = self->c, *changes = self->rows;
    const ptrdiff_t count = self->count, newest = self->number;
    double *sums = self->sums;
    double room[TILE], room_scale[TILE], total[TILE];
    if (sums)
        NAME(clear)(sums + some.first * (count + 1), (some.last - some.first) * (count + 1));
    FOR_EACH_TILE(some)
    {
        const double *restrict slope = NAME(tile)(gradient, at, n, room);
        for (ptrdiff_t i = 0; i < n; i++)
            total[i] = slope[i];
        NAME(add_rows)(changes, count, at, n, self->factors, total);
        const double *restrict factor = scale.values ? NAME(tile)(scale, at, n, room_scale) : 0;
        if (factor)
            for (ptrdiff_t i = 0; i < n; i++)
                total[i] = -total[i] * factor[i];
        else
            for (ptrdiff_t i = 0; i < n; i++)
                total[i] = -total[i];
        NAME(keep)(out, at, n, total);
        if (!sums)
            continue;
        double *found = sums + k * (count + 1);
        NAME(add_row_products)(changes, count, &out, 1, at, n, found);
        if (newest < 0 || !factor)
            continue;
        const double *restrict change = NAME(tile)(changes[newest], at, n, room);
        for (ptrdiff_t i = 0; i < n; i++)
            total[i] = change[i] * factor[i];
        NAME(add_product)(changes[newest], at, n, total, found + count);
    }
}

/* target = length target + sum_i weights[i] steps[i]; sums [slices] of target times the gradient. */
static TARGET void NAME(finished)(const kcrf_operation *self, kcrf_slices some)
{
    const kcrf_values target = self->a, gradient = self->b;
    double *sums = self->sums;
    double room[TILE], total[TILE];
    NAME(clear)(sums + some.first, some.last - some.first);
    FOR_EACH_TILE(some)
    {
        const double *before = NAME(tile)(target, at, n, room);
        for (ptrdiff_t i = 0; i < n; i++)
            total[i] = self->factor * before[i];
        NAME(add_rows)(self->rows, self->count, at, n, self->factors, total);
        NAME(keep)(target, at, n, total);
        NAME(add_product)(target, at, n, NAME(tile)(gradient, at, n, room), sums + k);
    }
}

#undef PARTS_BYTES
#undef LOAD
#undef STORE
#undef FETCH
#undef FOR_EACH_TILE
#undef PRODUCTS
#undef ADD_ROWS
