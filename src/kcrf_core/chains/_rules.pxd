# Rules on runs of labels and transitions, for others without the interpreter's lock.

ctypedef unsigned long long uint64

cdef struct Fields:
    Py_ssize_t Y, G, words
    const int* group             # [Y] counter of each label, or -1
    const unsigned char* ends    # [Y, Y] a run of the first label ends before the second one
    const int* word              # [G] place of each counter
    const int* shift             # [G]
    const uint64* field          # [G]
    const int* cap               # [G] the largest count
    const unsigned char* bounded    # [G] more than that is forbidden, else not distinguished
    const unsigned char* required   # [G] counters that must not be zero
    bint demanding               # any is required
    unsigned char* active        # [G] counters that are heeded
    const unsigned char* pairs   # [Y, Y] allowed transitions
    const unsigned char* first   # [Y]
    const unsigned char* last    # [Y]


cdef class Counters:
    cdef Fields fields
    cdef tuple _held
    cdef unsigned char[::1] _all

    cdef int obeyed(self, const int* path, Py_ssize_t T) except -1
