/* Include BODY once for each width of vectors; once for float and once for double as REAL where TYPED is 1.

   A body finds, beside MAY_FUSE of `_dispatch.h`,
     LANES, REGISTERS      doubles of one vector, and vectors that the processor holds
     TARGET                the attribute of its functions, which lets the compiler use that width
     NAME(x)               x with the suffix of the type and the width
     FUSED_float(a, b, c)  a b + c, rounded once where the width has such an instruction; the same for double
     SPREAD_float(x)       a vector of equal values; the same for double
     MULADD_float(a, b, c) FUSED for single numbers
     DOUBLES               the type of a vector of doubles as functions take and return it: GCC 16 for ARM fails at
                           parameters of vector types that are aligned like their numbers, as those of memory are

   GCC for ARM makes two more moves for each vfmaq_f64 than for the same product that it fuses by itself, which costs a
   linear pass 19 %. So it may, between MAY_FUSE and END_MAY_FUSE: products of whole vectors are added there. */

#define LANES BASELINE_LANES
#define REGISTERS BASELINE_REGISTERS
#define TARGET
#define SUFFIX baseline
#if BASELINE_LANES == 1
#define SPREAD_float(x) (x)
#define SPREAD_double(x) (x)
#define DOUBLES double
#else
#define SPREAD_float(x) ((__typeof__(float __attribute__((vector_size(16))))){(x), (x), (x), (x)})
#define SPREAD_double(x) ((__typeof__(double __attribute__((vector_size(16))))){(x), (x)})
#define DOUBLES __typeof__(double __attribute__((vector_size(8 * LANES))))
#endif
#if defined(__clang__) && defined(__aarch64__)
#define FUSED_float(a, b, c) vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b))
#define FUSED_double(a, b, c) vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b))
#else
#define FUSED_float(a, b, c) ((a) * (b) + (c))
#define FUSED_double(a, b, c) ((a) * (b) + (c))
#endif
#if defined(__GNUC__) && defined(__aarch64__)
#define MULADD_float(a, b, c) __builtin_fmaf(a, b, c)
#define MULADD_double(a, b, c) __builtin_fma(a, b, c)
#else
#define MULADD_float(a, b, c) ((a) * (b) + (c))
#define MULADD_double(a, b, c) ((a) * (b) + (c))
#endif
#include "_one_width.h"

#if KCRF_WIDE
#define LANES 4
#define REGISTERS 16
#define TARGET __attribute__((target("avx2,fma")))
#define SUFFIX avx2
#define MULADD_float(a, b, c) __builtin_fmaf(a, b, c)
#define MULADD_double(a, b, c) __builtin_fma(a, b, c)
#define SPREAD_float(x) _mm256_set1_ps(x)
#define SPREAD_double(x) _mm256_set1_pd(x)
#define FUSED_float(a, b, c) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#define FUSED_double(a, b, c) _mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#include "_one_width.h"

#define LANES 8
#define REGISTERS 32
#define TARGET __attribute__((target("avx512f,fma")))
#define SUFFIX avx512
#define MULADD_float(a, b, c) __builtin_fmaf(a, b, c)
#define MULADD_double(a, b, c) __builtin_fma(a, b, c)
#define SPREAD_float(x) _mm512_set1_ps(x)
#define SPREAD_double(x) _mm512_set1_pd(x)
#define FUSED_float(a, b, c) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#define FUSED_double(a, b, c) _mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))
#include "_one_width.h"
#endif

#undef BODY
#undef DOUBLES
#undef TYPED
