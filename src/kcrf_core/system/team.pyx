"""Threads that share work without the interpreter's lock.

A Python function of less than a millisecond on sixteen threads mostly waits for the lock. A `Team` calls C functions
instead: `share(work, state, count)` calls work(state, item, member) once for each item, on any member that has time,
and returns when all are done. `member` is below `threads`, so that each can have scratch of its own. Results must not
depend on which member does which item.
"""

import threading


cdef class Team:
    """A number of threads, the one that brings the work among them."""

    def __cinit__(self, int threads, bint spinning=True):
        self.threads, self._members = max(threads, 1), []
        self._team = kcrf_assemble(self.threads - 1, spinning)
        if self._team == NULL:
            raise MemoryError

    def __init__(self, int threads, bint spinning=True):
        for member in range(self.threads - 1):
            thread = threading.Thread(target=self._serve, args=(member,), daemon=True)
            try:
                thread.start()
            except RuntimeError:  # there may be a limit: those that were started do all the work
                break
            self._members.append(thread)

    def _serve(self, int member):
        with nogil:
            kcrf_serve(self._team, member)

    cdef void share(self, kcrf_work work, void* state, Py_ssize_t count) noexcept nogil:
        kcrf_share(self._team, work, state, count)

    def close(self):
        """End all members. Later work is done by the thread that brings it."""
        if self._members:
            kcrf_close(self._team)
        for thread in self._members:
            thread.join()
        self._members = []

    def __dealloc__(self):
        kcrf_disband(self._team)  # members refer to this while they serve
