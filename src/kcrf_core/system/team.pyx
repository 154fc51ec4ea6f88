"""Threads that share work without the interpreter's lock.

A Python function on sixteen threads waits for the lock more than it works where it takes less than a millisecond. A
`Team` calls C functions instead: `share(work, state, count)` has work(state, item, member) called once for each item,
by whichever member has time, and returns when all are done. `member` is below `threads` and tells them apart, so that
each can have scratch of its own. Work must not depend on who does which item.
"""

import threading


cdef class Team:
    """So many threads, the one that brings the work among them."""

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
            except RuntimeError:  # there may be a limit: those that are there do all the work
                break
            self._members.append(thread)

    def _serve(self, int member):
        with nogil:
            kcrf_serve(self._team, member)

    cdef void share(self, kcrf_work work, void* state, Py_ssize_t count) noexcept nogil:
        kcrf_share(self._team, work, state, count)

    def close(self):
        """Send all members home. Work that is brought afterwards is done by whoever brings it."""
        if self._members:
            kcrf_close(self._team)
        for thread in self._members:
            thread.join()
        self._members = []

    def __dealloc__(self):
        kcrf_disband(self._team)  # members refer to this while they serve
