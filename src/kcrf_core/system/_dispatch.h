/* Loops compiled for several widths of vectors; the widest that the processor has is called.

   The environment variable KCRF_VECTORS (baseline, avx2, avx512) is an upper limit. It is read when a module is loaded.
   `_each_width.h` includes a body of loops once per width. The compiler may not contract a * b + c by itself
   (-ffp-contract=off in setup.py); products that are fused are written as such, so that the bits of a sum depend neither
   on the compiler nor on which loop, vector body or remainder, an element falls into. */

#ifndef KCRF_DISPATCH_H
#define KCRF_DISPATCH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define FORCE_INLINE inline __attribute__((always_inline))
#define NEVER_INLINE __attribute__((noinline))
#define PREFETCH(address) __builtin_prefetch(address)
#define BASELINE_LANES 2
#else
#define FORCE_INLINE __forceinline
#define NEVER_INLINE __declspec(noinline)
#define PREFETCH(address) ((void)(address))
#define BASELINE_LANES 1
#endif

#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 8")
#else
#define UNROLL
#endif

/* Round a double to single precision. GCC up to 12.2 for x86 drops the conversion of two doubles to float and back where
   it vectorises: `out[i] = a[i] + (double)(float)b[i]` adds b itself. The empty assembly hides the value from it. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && __GNUC__ * 100 + __GNUC_MINOR__ < 1203
#define HIDE_VALUE(x) __asm__("" : "+x"(x))
#else
#define HIDE_VALUE(x) ((void)(x))
#endif

static FORCE_INLINE double kcrf_rounded_float(double x)
{
    float rounded = (float)x;
    HIDE_VALUE(rounded);
    return rounded;
}

static FORCE_INLINE double kcrf_rounded_double(double x) { return x; }

enum { KCRF_BASELINE, KCRF_AVX2, KCRF_AVX512 };

#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>

#define KCRF_WIDE 1
#define BASELINE_REGISTERS 16

static int kcrf_vectors = KCRF_BASELINE;

__attribute__((constructor)) static void kcrf_find_vectors(void)
{
    const char *limit = getenv("KCRF_VECTORS");
    __builtin_cpu_init();
    if (limit && strcmp(limit, "baseline") == 0)
        return;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        kcrf_vectors = KCRF_AVX2;
    if (kcrf_vectors == KCRF_AVX2 && __builtin_cpu_supports("avx512f") && !(limit && strcmp(limit, "avx2") == 0))
        kcrf_vectors = KCRF_AVX512;
}

#define KCRF_WIDEST(function)                                                                              \
    (kcrf_vectors == KCRF_AVX512 ? function##_avx512                                                       \
     : kcrf_vectors == KCRF_AVX2 ? function##_avx2                                                         \
                                 : function##_baseline)
#define KCRF_DISPATCH(function, ...)                                                                       \
    (kcrf_vectors == KCRF_AVX512 ? function##_avx512(__VA_ARGS__)                                          \
     : kcrf_vectors == KCRF_AVX2 ? function##_avx2(__VA_ARGS__)                                            \
                                 : function##_baseline(__VA_ARGS__))
#else
#define KCRF_WIDEST(function) function##_baseline
#define KCRF_WIDE 0
#define BASELINE_REGISTERS 32
#define KCRF_DISPATCH(function, ...) function##_baseline(__VA_ARGS__)

static const int kcrf_vectors = KCRF_BASELINE;
#endif

/* The same for a function that is there for float and for double. */
#define KCRF_DISPATCH_TYPED(function, single, ...)                                                         \
    ((single) ? KCRF_DISPATCH(function##_float, __VA_ARGS__) : KCRF_DISPATCH(function##_double, __VA_ARGS__))

#if defined(__clang__) && defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__aarch64__)
#define MAY_FUSE _Pragma("GCC push_options") _Pragma("GCC optimize(\"fp-contract=fast\")")
#define END_MAY_FUSE _Pragma("GCC pop_options")
#else
#define MAY_FUSE
#define END_MAY_FUSE
#endif

#define KCRF_PASTE(a, b) a##b
#define KCRF_JOIN(a, b) KCRF_PASTE(a, b)

#endif
