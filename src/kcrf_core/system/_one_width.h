/* Include BODY for one width of vectors; see `_each_width.h`. */

#if TYPED
#define REAL float
#define NAME(x) KCRF_JOIN(kcrf_##x##_float_, SUFFIX)
#include BODY
#undef REAL
#undef NAME

#define REAL double
#define NAME(x) KCRF_JOIN(kcrf_##x##_double_, SUFFIX)
#include BODY
#undef REAL
#undef NAME
#else
#define NAME(x) KCRF_JOIN(kcrf_##x##_, SUFFIX)
#include BODY
#undef NAME
#endif

#undef LANES
#undef REGISTERS
#undef TARGET
#undef SUFFIX
#undef SPREAD_float
#undef SPREAD_double
#undef FUSED_float
#undef FUSED_double
#undef MULADD_float
#undef MULADD_double
