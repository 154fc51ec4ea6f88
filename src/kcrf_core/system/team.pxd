# Threads that share work without the interpreter's lock: other Cython modules hand them functions and their state.

cdef extern from "team.h" nogil:
    ctypedef struct kcrf_team:
        pass

    ctypedef void (*kcrf_work)(void* state, Py_ssize_t item, Py_ssize_t member) noexcept nogil

    kcrf_team* kcrf_assemble(int size, bint spinning)
    void kcrf_disband(kcrf_team* team)
    void kcrf_serve(kcrf_team* team, int member)
    void kcrf_share(kcrf_team* team, kcrf_work work, void* state, Py_ssize_t count)
    void kcrf_close(kcrf_team* team)


cdef class Team:
    cdef kcrf_team* _team
    cdef readonly int threads
    cdef list _members

    cdef void share(self, kcrf_work work, void* state, Py_ssize_t count) noexcept nogil
