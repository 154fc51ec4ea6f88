/* Loops compiled for several widths of vectors, of which the widest that the machine has is called.

   A body is included once for each width, with TARGET (what the compiler may use), NAME(x) (x with the width's suffix) and
   LANES (doubles of one vector). -DKCRF_NARROW leaves those that any machine of its kind has. */

#ifndef KCRF_DISPATCH_H
#define KCRF_DISPATCH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FORCE_INLINE inline __attribute__((always_inline))
#define NEVER_INLINE __attribute__((noinline))
#define PREFETCH(address) __builtin_prefetch(address)
#define NARROW_LANES 2
#else
#define FORCE_INLINE __forceinline
#define NEVER_INLINE __declspec(noinline)
#define PREFETCH(address) ((void)(address))
#define NARROW_LANES 1
#endif

#define NARROW_TARGET
#define AVX2_TARGET __attribute__((target("avx2,fma")))
#define AVX512_TARGET __attribute__((target("avx512f,fma")))

#if defined(__GNUC__) && defined(__x86_64__) && !defined(KCRF_NARROW)
#define KCRF_WIDE 1
#define KCRF_DISPATCH(function, ...)                                                                       \
    (__builtin_cpu_supports("avx512f") ? function##_avx512(__VA_ARGS__)                                    \
     : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? function##_avx2(__VA_ARGS__)      \
                                                                       : function##_narrow(__VA_ARGS__))
#else
#define KCRF_WIDE 0
#define KCRF_DISPATCH(function, ...) function##_narrow(__VA_ARGS__)
#endif

#endif
