/* The loop of `_sparse_steps.h` for one width of vectors and one type of values, REAL; included there for each.

   A product with a row has as many sums side by side at every width, which are added up in a fixed order. */

#if LANES > 1
enum { NAME(width) = 64 / (int)sizeof(REAL) };
typedef REAL NAME(reals) __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));
#else
enum { NAME(width) = 1 };
typedef REAL NAME(reals);
#endif
#define WIDTH NAME(width)

static TARGET void NAME(minimum)(const kcrf_sparse_model *model)
{
    const ptrdiff_t m = model->m, whole = m - m % WIDTH;
    const REAL *row = model->rows, *shares = model->shares;
    REAL *products = model->products;
    double along = 0, square = 0, penalty = 0;
    for (ptrdiff_t i = 0; i < model->n; i++, row += model->stride) {
        NAME(reals) held = {0};
        REAL parts[WIDTH];
        for (ptrdiff_t j = 0; j < whole; j += WIDTH)
            held += *(const NAME(reals) *)(row + j) * *(const NAME(reals) *)(shares + j);
        memcpy(parts, &held, sizeof parts);
        for (int half = WIDTH / 2; half; half /= 2)
            for (int u = 0; u < half; u++)
                parts[u] += parts[u + half];
        REAL total = parts[0];
        for (ptrdiff_t j = whole; j < m; j++)
            total += row[j] * shares[j];

        const double start = model->start[i], slope = model->slope[i], threshold = model->thresholds[i];
        const double aim = start - (slope - total) / model->length;
        const double size = fabs(aim) - threshold / model->length;
        const double point = size > 0 ? copysign(size, aim) : 0.0, step = point - start;
        model->point[i] = point;
        if (step == 0)
            continue;
        along += slope * step;
        square += step * step;
        penalty += threshold * (fabs(point) - fabs(start));
        const REAL factor = (REAL)step;
        for (ptrdiff_t j = 0; j < whole; j += WIDTH)
            *(NAME(reals) *)(products + j) += factor * *(const NAME(reals) *)(row + j);
        for (ptrdiff_t j = whole; j < m; j++)
            products[j] += factor * row[j];
    }
    model->sums[0] = along;
    model->sums[1] = square;
    model->sums[2] = penalty;
}

#undef WIDTH
