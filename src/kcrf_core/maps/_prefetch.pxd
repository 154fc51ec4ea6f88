# Asking for memory before it is needed, where the compiler has a word for it.

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define kcrf_prefetch(place) __builtin_prefetch(place)
    #else
    #define kcrf_prefetch(place) ((void)0)
    #endif
    """
    void kcrf_prefetch(const void* place) nogil

cdef enum:
    CACHE_LINE = 64  # bytes


cdef inline void prefetch(const void* first, Py_ssize_t size) noexcept nogil:
    """Ask for `size` bytes."""
    cdef Py_ssize_t at = 0
    while at < size:
        kcrf_prefetch(<const char*>first + at)
        at += CACHE_LINE
