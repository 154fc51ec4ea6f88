/* The step of Viterbi, for vectors of the machine's width. */

#ifndef KCRF_MAX_PLUS_H
#define KCRF_MAX_PLUS_H

#include "_dispatch.h"

/* now[j] = max over i < n of before[i] + E[i, j], for j < width; minus infinity where n is 0. Which i it was is left to
   those who walk back: they want it for one j of a step only. */
#define KCRF_MAX_PLUS(suffix, TARGET)                                                                      \
    TARGET static void kcrf_max_plus_##suffix(                                                             \
        const double *restrict before, const double *restrict E, ptrdiff_t n, ptrdiff_t width, double *restrict now) \
    {                                                                                                      \
        for (ptrdiff_t j = 0; j < width; j++)                                                              \
            now[j] = -INFINITY;                                                                            \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                \
            const double value = before[i];                                                                \
            const double *restrict row = E + i * width;                                                    \
            for (ptrdiff_t j = 0; j < width; j++) {                                                        \
                const double next = value + row[j];                                                        \
                now[j] = next > now[j] ? next : now[j];                                                    \
            }                                                                                              \
        }                                                                                                  \
    }

KCRF_MAX_PLUS(narrow, NARROW_TARGET)
#if KCRF_WIDE
KCRF_MAX_PLUS(avx2, AVX2_TARGET)
KCRF_MAX_PLUS(avx512, AVX512_TARGET)
#endif

static inline void kcrf_max_plus(const double *before, const double *E, ptrdiff_t n, ptrdiff_t width, double *now)
{
    KCRF_DISPATCH(kcrf_max_plus, before, E, n, width, now);
}

#endif
