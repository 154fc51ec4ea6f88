/* The loops of `_max_plus.h` for one width of vectors.

   now[j] = max over i < n of before[i] + E[i, j], for j < width; minus infinity where n is 0. Which i it was is left to
   those who walk back: they want it for one j of a step only. */

static TARGET void NAME(max_plus)(
    const double *restrict before, const double *restrict E, ptrdiff_t n, ptrdiff_t width, double *restrict now)
{
    for (ptrdiff_t j = 0; j < width; j++)
        now[j] = -INFINITY;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double value = before[i];
        const double *restrict row = E + i * width;
        for (ptrdiff_t j = 0; j < width; j++) {
            const double next = value + row[j];
            now[j] = next > now[j] ? next : now[j];
        }
    }
}
