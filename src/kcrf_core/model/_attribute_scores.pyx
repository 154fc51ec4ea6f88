"""Attributes of one sequence, from the objects of a program straight to scores and labels.

Programs that label one short sequence at a time spend their time in turning dictionaries into attributes. Here an item
is walked through once: the bytes of each name are put together in one buffer, looked up in a hash table, and the
weights found are added to the scores of the item. Nothing is allocated for an attribute.

An item is what python-crfsuite takes for one:

    {"bias": 1.0}                  attribute bias, value 1; a truth value is 1 or 0
    {"word": "cat"}                attribute word:cat, value 1; bytes are taken as they are
    {"next": {"word": "sat"}}      attribute next:word:sat; lists and sets of names likewise
    ["bias", "word=cat"]           attributes of value 1, of anything that can be iterated over
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memset

from ..chains._best cimport best_labels
from ..chains._rules cimport Counters

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef enum:
    DEEPEST = 50  # dictionaries inside of dictionaries
    COLON = 58


cdef inline uint32_t rotated(uint32_t word, int bits) noexcept nogil:
    return (word << bits) | (word >> (32 - bits))


cdef inline uint32_t word_at(const uint8_t* key) noexcept nogil:
    """Four bytes, the first of them the lowest."""
    return <uint32_t>key[0] | <uint32_t>key[1] << 8 | <uint32_t>key[2] << 16 | <uint32_t>key[3] << 24


cdef inline void mix(uint32_t* a, uint32_t b, uint32_t* c, int bits) noexcept nogil:
    """One step of the hash's loop."""
    a[0] = (a[0] - c[0]) ^ rotated(c[0], bits)
    c[0] += b


cdef inline void finish(uint32_t* a, uint32_t b, int bits) noexcept nogil:
    """One step of the hash's end."""
    a[0] = (a[0] ^ b) - rotated(b, bits)


cdef uint32_t name_hash(const uint8_t* key, Py_ssize_t size) noexcept nogil:
    """Jenkins' lookup3 of the bytes and a zero behind them, the hash that CRFsuite's files are sorted by."""
    cdef uint32_t a, b, c
    cdef uint8_t[12] rest
    cdef Py_ssize_t left = size + 1
    a = b = c = <uint32_t>0xdeadbeef + <uint32_t>left
    while left > 12:
        a += word_at(key)
        b += word_at(key + 4)
        # The last of the twelve bytes is never the zero at the end: then no more than twelve would be left.
        c += word_at(key + 8)
        mix(&a, b, &c, 4)
        mix(&b, c, &a, 6)
        mix(&c, a, &b, 8)
        mix(&a, b, &c, 16)
        mix(&b, c, &a, 19)
        mix(&c, a, &b, 4)
        key += 12
        left -= 12
    memset(rest, 0, 12)
    memcpy(rest, key, left - 1)
    a += word_at(rest)
    b += word_at(rest + 4)
    c += word_at(rest + 8)
    finish(&c, b, 14)
    finish(&a, c, 11)
    finish(&b, a, 25)
    finish(&c, b, 16)
    finish(&a, c, 4)
    finish(&b, a, 14)
    finish(&c, b, 24)
    return c


def name_hashes(const uint8_t[::1] text, const int64_t[::1] lengths):
    """Hashes [n] uint32 of names that stand end to end."""
    import numpy as np

    out = np.empty(lengths.shape[0], dtype=np.uint32)
    cdef uint32_t[::1] hashes = out
    cdef Py_ssize_t k, at = 0
    for k in range(lengths.shape[0]):
        hashes[k] = name_hash(&text[at] if lengths[k] else NULL, lengths[k])
        at += lengths[k]
    return out


cdef void* resized(void* memory, size_t size) except NULL:
    """Return memory of another size with the same beginning."""
    cdef void* found = realloc(memory, size)
    if found == NULL:
        raise MemoryError
    return found


cdef class _Walk:
    """A walk through the attributes of items, each of which is passed to `take`."""

    cdef char* buffer  # the name of the attribute at hand
    cdef Py_ssize_t room

    def __cinit__(self):
        self.room = 1024
        self.buffer = <char*>resized(NULL, self.room)

    def __dealloc__(self):
        free(self.buffer)

    cdef int take(self, const char* name, Py_ssize_t size, double value) except -1:
        raise NotImplementedError  # each kind of walk has its own: C methods cannot be declared without a body

    cdef Py_ssize_t put(self, object text, Py_ssize_t at) except -1:
        """Write a name into the buffer behind its first `at` bytes; returns where it ends."""
        cdef Py_ssize_t size
        cdef const char* source
        if isinstance(text, str):
            source = PyUnicode_AsUTF8AndSize(text, &size)
        elif isinstance(text, bytes):
            source = PyBytes_AS_STRING(text)
            size = PyBytes_GET_SIZE(text)
        else:
            raise TypeError(f"the name of an attribute must be a string, not {text!r}")
        if at + size + 1 > self.room:
            self.buffer = <char*>resized(self.buffer, 2 * (at + size + 1))
            self.room = 2 * (at + size + 1)
        memcpy(self.buffer + at, source, size)
        return at + size

    cdef int item(self, object x, Py_ssize_t at, int depth) except -1:
        """Walk through the attributes of an item; their names begin with the first `at` bytes of the buffer."""
        cdef Py_ssize_t end
        if depth > DEEPEST:
            raise ValueError(f"dictionaries are nested more than {DEEPEST} deep")
        if isinstance(x, dict):
            for key, value in (<dict>x).items():
                end = self.put(key, at)
                if isinstance(value, str) or isinstance(value, bytes):
                    self.buffer[end] = COLON
                    end = self.put(value, end + 1)
                    self.take(self.buffer, end, 1.0)
                elif isinstance(value, (dict, list, set)):
                    self.buffer[end] = COLON
                    self.item(value, end + 1, depth + 1)
                else:
                    self.take(self.buffer, end, <double?>value if isinstance(value, float) else float(value))
        else:
            for key in x:
                end = self.put(key, at)
                self.take(self.buffer, end, 1.0)
        return 0


cdef class ItemRows(_Walk):
    """Items as they are given, with the names of their attributes put together once for several uses."""

    cdef bytearray text
    cdef list ends, values, items

    def __init__(self, xseq):
        self.text, self.ends, self.values, self.items = bytearray(), [0], [], [0]
        for x in xseq:
            self.item(x, 0, 0)
            self.items.append(len(self.values))

    cdef int take(self, const char* name, Py_ssize_t size, double value) except -1:
        self.text += name[:size]
        self.ends.append(len(self.text))
        self.values.append(value)
        return 0

    def __len__(self):
        return len(self.items) - 1

    def attributes(self):
        """A list of (name, value) for each item; the names are bytes."""
        text = bytes(self.text)
        names = [text[a:b] for a, b in zip(self.ends, self.ends[1:])]
        return [list(zip(names[a:b], self.values[a:b])) for a, b in zip(self.items, self.items[1:])]


cdef class LabelScorer:
    """A linear model over attributes. It does not change, so that threads can share it."""

    cdef readonly tuple labels
    cdef object kept  # the arrays that the pointers below lead into
    cdef const uint8_t* text
    cdef const int64_t* starts
    cdef const int64_t* lengths
    cdef const int64_t* ends
    cdef const int32_t* columns
    cdef const double* values
    cdef const double* transitions
    cdef const double* start
    cdef const double* end
    cdef int32_t* table  # numbers of attributes by hash, -1 for none
    cdef uint32_t* hashes  # of the attributes in the table
    cdef uint32_t mask
    cdef Py_ssize_t Y

    def __dealloc__(self):
        free(self.table)
        free(self.hashes)

    def __init__(
        self,
        tuple labels,                    # [Y]
        const uint8_t[::1] text,         # names of attributes
        const int64_t[::1] starts,       # [A] where they stand in the text
        const int64_t[::1] lengths,      # [A]
        const int64_t[::1] ends,         # [A+1] where the weights of each end
        const int32_t[::1] columns,      # [K] labels
        const double[::1] values,        # [K]
        const double[:, ::1] transitions,  # [Y, Y]
        const double[::1] start,         # [Y]
        const double[::1] end,           # [Y]
    ):
        cdef Py_ssize_t A = starts.shape[0], a, size = 16
        cdef uint32_t hashed, slot
        self.labels, self.Y = labels, len(labels)
        fits = transitions.shape[0] == transitions.shape[1] == start.shape[0] == end.shape[0] == self.Y
        if not fits or not self.Y or lengths.shape[0] != A or ends.shape[0] != A + 1 or A > 1 << 30:
            raise ValueError("weights do not fit labels or attributes")
        if ends[A] != columns.shape[0] or columns.shape[0] != values.shape[0] or ends[0] != 0:
            raise ValueError("weights do not fit attributes")
        for a in range(A):
            if starts[a] < 0 or lengths[a] < 0 or starts[a] + lengths[a] > text.shape[0] or ends[a] > ends[a + 1]:
                raise ValueError("names of attributes do not fit their text")
        for a in range(columns.shape[0]):
            if not 0 <= columns[a] < self.Y:
                raise ValueError("weights do not fit labels")
        self.kept = (text, starts, lengths, ends, columns, values, transitions, start, end)
        self.text = &text[0] if text.shape[0] else NULL
        self.starts = &starts[0] if A else NULL
        self.lengths = &lengths[0] if A else NULL
        self.ends = &ends[0]
        self.columns = &columns[0] if columns.shape[0] else NULL
        self.values = &values[0] if values.shape[0] else NULL
        self.transitions, self.start, self.end = &transitions[0, 0], &start[0], &end[0]
        while size < 2 * A:
            size *= 2
        self.mask = <uint32_t>(size - 1)
        self.table = <int32_t*>resized(self.table, size * sizeof(int32_t))
        self.hashes = <uint32_t*>resized(self.hashes, (A or 1) * sizeof(uint32_t))
        memset(self.table, 0xff, size * sizeof(int32_t))
        for a in range(A):
            hashed = name_hash(self.text + self.starts[a], self.lengths[a])
            self.hashes[a] = hashed
            slot = hashed & self.mask
            while self.table[slot] >= 0:
                slot = (slot + 1) & self.mask
            self.table[slot] = <int32_t>a

    cdef void add(self, const uint8_t* name, Py_ssize_t size, double value, double* row) noexcept nogil:
        """row [Y] += the weights of an attribute times its value, if it is known."""
        cdef uint32_t hashed = name_hash(name, size)
        cdef uint32_t slot = hashed & self.mask
        cdef Py_ssize_t k
        cdef int32_t a
        while True:
            a = self.table[slot]
            if a < 0:
                return
            if (
                self.hashes[a] == hashed and self.lengths[a] == size
                and memcmp(self.text + self.starts[a], name, size) == 0
            ):
                break
            slot = (slot + 1) & self.mask
        for k in range(self.ends[a], self.ends[a + 1]):
            row[self.columns[k]] += value * self.values[k]

    def label_rows(
        self,
        const uint8_t[::1] text,
        const int64_t[::1] starts,     # [nnz] where names of attributes stand in the text
        const int[::1] lengths,        # [nnz]
        const double[:] values,        # [nnz]
        const int64_t[::1] indptr,     # [N+1] where the attributes of rows begin and end
        const int64_t[::1] offsets,    # [S+1] rows of sequences
        double[::1] scores,            # scratch of longest * Y
        double[::1] work,              # scratch of longest * Y
        int[::1] path,                 # [offsets[S] - offsets[0]] out: the best labels
    ):
        """Label sequences of rows without the interpreter; the first one without a finite score, or -1."""
        cdef Py_ssize_t s, t, i, first, last, out = 0, bad = -1
        cdef double best
        with nogil:
            for s in range(offsets.shape[0] - 1):
                first, last = offsets[s], offsets[s + 1]
                if first == last:
                    continue
                memset(&scores[0], 0, (last - first) * self.Y * sizeof(double))
                for t in range(first, last):
                    for i in range(indptr[t], indptr[t + 1]):
                        self.add(&text[starts[i]], lengths[i], values[i], &scores[(t - first) * self.Y])
                best = best_labels(
                    &scores[0], self.transitions, self.start, self.end, last - first, self.Y, &path[out], &work[0]
                )
                if not isfinite(best) and bad < 0:
                    bad = s
                out += last - first
        return bad


cdef class ScoredItems(_Walk):
    """Scores of one sequence after another by a model; each thread has its own."""

    cdef LabelScorer model
    cdef double* scores  # [T, Y]
    cdef double* now  # its last row
    cdef double* work
    cdef int* path
    cdef Py_ssize_t Y, T, most
    cdef Py_ssize_t rows  # of the sequence that is being scored
    cdef bint busy  # while items are scored, which may be made by code that asks for labels, too
    cdef public object found  # marginals and the like, for the caller

    def __cinit__(self, LabelScorer model):
        self.model, self.Y = model, model.Y

    def __dealloc__(self):
        free(self.scores)
        free(self.work)
        free(self.path)

    cdef int take(self, const char* name, Py_ssize_t size, double value) except -1:
        if not isfinite(value):
            shown = name[:size].decode("utf-8", "backslashreplace")
            raise ValueError(f"the value of attribute {shown!r} is not finite (leave out what is missing)")
        self.model.add(<const uint8_t*>name, size, value, self.now)
        return 0

    cdef int next_row(self) except -1:
        """Make room for the scores of one more item."""
        cdef Py_ssize_t most
        if self.rows == self.most:
            most = 2 * self.most + 16
            self.scores = <double*>resized(self.scores, most * self.Y * sizeof(double))
            self.work = <double*>resized(self.work, most * self.Y * sizeof(double))
            self.path = <int*>resized(self.path, most * sizeof(int))
            self.most = most
        self.now = self.scores + self.rows * self.Y
        memset(self.now, 0, self.Y * sizeof(double))
        self.rows += 1
        return 0

    cdef int score(self, object xseq) except -1:
        cdef ItemRows rows
        cdef Py_ssize_t k, i
        cdef const char* text
        self.T, self.rows, self.found = 0, 0, None
        self.busy = True
        try:
            if isinstance(xseq, ItemRows):
                rows = xseq
                text = rows.text
                for i in range(len(rows.items) - 1):
                    self.next_row()
                    for k in range(rows.items[i], rows.items[i + 1]):
                        self.take(text + <Py_ssize_t>rows.ends[k], rows.ends[k + 1] - rows.ends[k], rows.values[k])
            else:
                for x in xseq:
                    self.next_row()
                    self.item(x, 0, 0)
            self.T = self.rows  # half a sequence is none
        finally:
            self.busy = False
        return 0

    def set(self, xseq):
        """Score a sequence of items."""
        cdef ScoredItems own = ScoredItems(self.model) if self.busy else self
        own.score(xseq)

    def __len__(self):
        return self.T

    def tag(self, xseq=None, Counters rules=None, otherwise=None):
        """Return the best labels of a sequence, or of the last one; of equals, those that come first in the model.

        Where they break rules, the result is that of `otherwise(self)`.
        """
        cdef Py_ssize_t t
        cdef double best
        cdef LabelScorer model = self.model
        if xseq is not None:
            if self.busy:
                return ScoredItems(model).tag(xseq, rules, otherwise)
            self.score(xseq)
        if self.T == 0:
            return []
        best = best_labels(
            self.scores, model.transitions, model.start, model.end, self.T, self.Y, self.path, self.work
        )
        if not isfinite(best):
            raise OverflowError("scores of the sequence are too large to compute with")
        if rules is not None and not rules.obeyed(self.path, self.T):
            return otherwise(self)
        return [model.labels[self.path[t]] for t in range(self.T)]

    def copy_scores(self, double[:, ::1] out):
        """Write the scores to out [T, Y]."""
        if out.shape[0] != self.T or out.shape[1] != self.Y:
            raise ValueError("the room does not fit the sequence")
        if self.T:
            memcpy(&out[0, 0], self.scores, self.T * self.Y * sizeof(double))
