"""The C library from Python: models, taggers, and the hash tables that files of models hold."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

import numpy as np

cdef extern from "kcrf_runtime.h" nogil:
    ctypedef struct kcrf_error:
        int status
        char text[240]
    ctypedef struct kcrf_text:
        const char* text
        size_t size
    ctypedef struct kcrf_attribute:
        kcrf_text name
        double value
    struct kcrf_model:
        pass
    struct kcrf_tagger:
        pass
    int KCRF_OK
    int KCRF_MEMORY
    int KCRF_NUMERIC
    kcrf_model* kcrf_open_memory(const void* data, size_t size, kcrf_error* error)
    int kcrf_verify(const kcrf_model* model, kcrf_error* error)
    void kcrf_close(kcrf_model* model)
    size_t kcrf_label_count(const kcrf_model* model)
    size_t kcrf_column_count(const kcrf_model* model)
    kcrf_text kcrf_label_name(const kcrf_model* model, size_t label)
    kcrf_tagger* kcrf_tagger_new(const kcrf_model* model)
    void kcrf_tagger_free(kcrf_tagger* tagger)
    const kcrf_error* kcrf_tagger_error(const kcrf_tagger* tagger)
    int kcrf_set_columns(kcrf_tagger* tagger, const kcrf_text* cells, size_t positions)
    int kcrf_set_attributes(
        kcrf_tagger* tagger, const kcrf_attribute* attributes, const size_t* ends, size_t positions
    )
    const int32_t* kcrf_labels(kcrf_tagger* tagger)
    const int32_t* kcrf_viterbi(kcrf_tagger* tagger)
    const double* kcrf_marginals(kcrf_tagger* tagger)
    int kcrf_log_probability(kcrf_tagger* tagger, const int32_t* labels, double* result)
    size_t kcrf_nbest(
        kcrf_tagger* tagger, size_t number, const int32_t** labels, const double** log_probabilities
    )

cdef extern from "internal.h" nogil:
    struct room:
        void* memory
        size_t bytes
    uint64_t kcrf_hash(const char* text, size_t size)
    uint64_t kcrf_mix(uint64_t value)
    uint64_t kcrf_checksum(const uint8_t* data, size_t size)
    const char* kcrf_transformed(
        room* scratch, kcrf_text table, uint32_t transform, uint32_t length, const char* text, size_t* size
    )

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef int bits_for(Py_ssize_t count) noexcept:
    """Return the logarithm of a table's size; at most seven tenths of it are filled."""
    cdef int bits = 1
    while (<int64_t>7 << bits) < 10 * count:
        bits += 1
    return bits


def text_table(const uint8_t[::1] text, const int64_t[::1] lengths, const uint32_t[::1] codes, int64_t first):
    """Return slots [2^bits, 4] of texts that stand end to end, from `first` on in their section, and the bits."""
    cdef int bits = bits_for(lengths.shape[0])
    out = np.full((1 << bits, 4), 0xFFFFFFFF, dtype=np.uint32)
    cdef uint32_t[:, ::1] slots = out
    cdef uint64_t hashed, slot, mask = (<uint64_t>1 << bits) - 1
    cdef Py_ssize_t k
    cdef int64_t at = 0
    for k in range(lengths.shape[0]):
        hashed = kcrf_hash(<const char*>&text[at] if lengths[k] else NULL, lengths[k])
        slot = <uint32_t>hashed & mask
        while slots[slot, 1] != 0xFFFFFFFF:
            slot = (slot + 1) & mask
        slots[slot, 0], slots[slot, 1] = <uint32_t>(hashed >> 32), codes[k]
        slots[slot, 2], slots[slot, 3] = <uint32_t>(first + at), <uint32_t>lengths[k]
        at += lengths[k]
    return out, bits


def pair_table(const uint64_t[::1] keys, const uint32_t[::1] numbers, const uint32_t[::1] flags):
    """Return slots [2^bits, 2] of keys, numbers in the low half of the second word and flags above, and the bits."""
    cdef int bits = bits_for(keys.shape[0])
    out = np.empty((1 << bits, 2), dtype=np.uint64)
    out[:, 0], out[:, 1] = 0, 0xFFFFFFFF
    cdef uint64_t[:, ::1] slots = out
    cdef uint64_t slot, mask = (<uint64_t>1 << bits) - 1
    cdef Py_ssize_t k
    for k in range(keys.shape[0]):
        slot = kcrf_mix(keys[k]) & mask
        while <uint32_t>slots[slot, 1] != <uint32_t>0xFFFFFFFF:
            slot = (slot + 1) & mask
        slots[slot, 0], slots[slot, 1] = keys[k], numbers[k] | <uint64_t>flags[k] << 32
    return out, bits


def checksum(const uint8_t[::1] data):
    return kcrf_checksum(&data[0] if data.shape[0] else NULL, data.shape[0])


def transformed(values, uint32_t kind, uint32_t length, bytes table):
    """Return texts after a transform; see `enum transform`."""
    cdef kcrf_text characters
    cdef room scratch
    cdef size_t count
    cdef const char* text
    cdef bytes encoded
    characters.text, characters.size = table, len(table)
    scratch.memory, scratch.bytes = NULL, 0
    out = []
    try:
        for value in values:
            encoded = value.encode("utf-8", "surrogatepass")
            text, count = encoded, len(encoded)
            text = kcrf_transformed(&scratch, characters, kind, length, text, &count)
            if text == NULL:
                raise MemoryError
            out.append(text[:count].decode("utf-8", "surrogatepass"))
    finally:
        free(scratch.memory)
    return out


cdef class RuntimeModel:
    """A model in the form of a file, in memory."""

    cdef kcrf_model* model
    cdef const uint8_t[::1] data
    cdef list idle  # taggers that no thread uses now

    def __init__(self, data):
        cdef kcrf_error error
        whole = np.frombuffer(data, np.uint8)
        if whole.ctypes.data % 8:
            whole = np.frombuffer(bytearray(8) + bytearray(data), np.uint8)[8:]
        self.data, self.idle = whole, []
        self.model = kcrf_open_memory(&self.data[0] if len(whole) else NULL, len(whole), &error)
        if self.model == NULL:
            raise ValueError(error.text.decode("utf-8", "replace"))

    def __dealloc__(self):
        kcrf_close(self.model)

    def verify(self):
        """Raise an error unless the checksum is right."""
        cdef kcrf_error error
        if kcrf_verify(self.model, &error) != KCRF_OK:
            raise ValueError(error.text.decode("utf-8", "replace"))

    @property
    def labels(self):
        cdef kcrf_text name
        found = []
        for k in range(kcrf_label_count(self.model)):
            name = kcrf_label_name(self.model, k)
            found.append(name.text[:name.size].decode())
        return tuple(found)

    def label_cells(
        self,
        const uint8_t[::1] data,
        const int64_t[:, ::1] starts,      # [width, n] where values begin
        const int[:, ::1] lengths,         # [width, n]
        const int64_t[::1] places,         # [columns of the model] their places among these, -1 for unused ones
        const int64_t[::1] offsets,        # [S+1]
        int[::1] path,                     # [offsets[S] - offsets[0]] out: the best labels
    ):
        """Label sequences without the interpreter; return the first that cannot be labelled, or -1, and the reason."""
        cdef RuntimeTagger tagger = self.idle.pop() if self.idle else RuntimeTagger(self)
        cdef Py_ssize_t s, t, c, T, out = 0, columns = kcrf_column_count(self.model), bad = -1
        cdef kcrf_text* cells
        cdef const int32_t* best
        cdef const char* text = <const char*>&data[0] if data.shape[0] else NULL
        if places.shape[0] != columns or starts.shape[0] != lengths.shape[0] or starts.shape[1] != lengths.shape[1]:
            raise ValueError("columns do not fit the model")
        if not offsets.shape[0] or offsets[0] < 0 or offsets[offsets.shape[0] - 1] > starts.shape[1]:
            raise ValueError("offsets do not fit the data")
        with nogil:
            for s in range(offsets.shape[0] - 1):
                T = offsets[s + 1] - offsets[s]
                cells = tagger.cells_for(T * columns)
                if cells == NULL:
                    bad = s
                    break
                for t in range(T):
                    for c in range(columns):
                        if 0 <= places[c] < starts.shape[0]:
                            cells[t * columns + c].text = text + starts[places[c], offsets[s] + t]
                            cells[t * columns + c].size = lengths[places[c], offsets[s] + t]
                        else:
                            cells[t * columns + c].text, cells[t * columns + c].size = "", 0
                best = NULL
                if kcrf_set_columns(tagger.tagger, cells, T) == KCRF_OK:
                    best = kcrf_labels(tagger.tagger)
                if best == NULL:
                    bad = s
                    break
                if T:
                    memcpy(&path[out], best, T * sizeof(int32_t))
                out += T
        self.idle.append(tagger)
        return bad, "" if bad < 0 else kcrf_tagger_error(tagger.tagger).text.decode("utf-8", "replace")


cdef class RuntimeTagger:
    """The results of one sequence after another, by a model; each thread has its own."""

    cdef RuntimeModel model
    cdef kcrf_tagger* tagger
    cdef kcrf_text* cells
    cdef size_t room
    cdef Py_ssize_t T

    def __init__(self, RuntimeModel model not None):
        self.model = model
        self.tagger = kcrf_tagger_new(model.model)
        if self.tagger == NULL:
            raise MemoryError

    def __dealloc__(self):
        kcrf_tagger_free(self.tagger)
        free(self.cells)

    cdef kcrf_text* cells_for(self, size_t count) noexcept nogil:
        """Return room for so many cells; NULL: no memory."""
        cdef void* more
        if count >= self.room:
            more = realloc(self.cells, 2 * (count + 1) * sizeof(kcrf_text))
            if more == NULL:
                return NULL
            self.cells, self.room = <kcrf_text*>more, 2 * (count + 1)
        return self.cells

    cdef object error(self):
        cdef const kcrf_error* found = kcrf_tagger_error(self.tagger)
        if found.status == KCRF_MEMORY:
            return MemoryError()
        message = found.text.decode("utf-8", "replace")
        return OverflowError(message) if found.status == KCRF_NUMERIC else ValueError(message)

    def set_columns(self, rows):
        """Set a sequence by the texts of its columns, [positions][columns]."""
        cdef Py_ssize_t columns = kcrf_column_count(self.model.model), size, at = 0
        cdef kcrf_text* cells = self.cells_for(len(rows) * columns)
        if cells == NULL:
            raise MemoryError
        for row in rows:
            if len(row) != columns:
                raise ValueError(f"{len(row)} columns, expected {columns}")
            for value in row:
                cells[at].text = PyUnicode_AsUTF8AndSize(value, &size)
                cells[at].size = size
                at += 1
        self.T = len(rows)
        if kcrf_set_columns(self.tagger, cells, self.T) != KCRF_OK:
            raise self.error()

    def set_attributes(self, rows):
        """Set a sequence by the names and values of its attributes."""
        names = [[(name if isinstance(name, bytes) else name.encode(), value) for name, value in row] for row in rows]
        cdef Py_ssize_t count = sum(map(len, names)), k = 0, t = 0
        cdef kcrf_attribute* attributes = <kcrf_attribute*>malloc((count + 1) * sizeof(kcrf_attribute))
        cdef size_t* ends = <size_t*>malloc((len(names) + 1) * sizeof(size_t))
        try:
            if attributes == NULL or ends == NULL:
                raise MemoryError
            for row in names:
                for name, value in row:
                    attributes[k].name.text, attributes[k].name.size = <bytes>name, len(name)
                    attributes[k].value = value
                    k += 1
                ends[t] = k
                t += 1
            self.T = t
            if kcrf_set_attributes(self.tagger, attributes, ends, t) != KCRF_OK:
                raise self.error()
        finally:
            free(attributes)
            free(ends)

    cdef object path(self, const int32_t* found):
        if found == NULL:
            raise self.error()
        out = np.empty(self.T, dtype=np.int32)
        cdef int32_t[::1] labels = out
        if self.T:
            memcpy(&labels[0], found, self.T * sizeof(int32_t))
        return out

    def labels(self):
        """Return numbers of the best labels by the model's decoder, [T] int32."""
        return self.path(kcrf_labels(self.tagger))

    def viterbi(self):
        """Return numbers of the labels of the most probable labelling, [T] int32."""
        return self.path(kcrf_viterbi(self.tagger))

    def marginals(self):
        """Return p(y_t | x), [T, Y]."""
        cdef const double* found = kcrf_marginals(self.tagger)
        if found == NULL:
            raise self.error()
        out = np.empty((self.T, kcrf_label_count(self.model.model)))
        cdef double[:, ::1] node = out
        if out.size:
            memcpy(&node[0, 0], found, out.nbytes)
        return out

    def log_probability(self, labels):
        """Return the logarithm of the probability of numbers of labels [T]."""
        cdef const int32_t[::1] path = np.ascontiguousarray(labels, dtype=np.int32)
        cdef double result
        if path.shape[0] != self.T:
            raise ValueError(f"{path.shape[0]} labels, expected {self.T}")
        if kcrf_log_probability(self.tagger, &path[0] if self.T else NULL, &result) != KCRF_OK:
            raise self.error()
        return result

    def nbest(self, size_t number):
        """Return the most probable labellings [K, T] int32 and the logarithms of their probabilities [K]."""
        cdef const int32_t* labels
        cdef const double* logs
        cdef size_t found = kcrf_nbest(self.tagger, number, &labels, &logs)
        if not found:
            raise self.error()
        paths, probabilities = np.empty((found, self.T), dtype=np.int32), np.empty(found)
        cdef int32_t[:, ::1] path = paths
        cdef double[::1] own = probabilities
        memcpy(&path[0, 0], labels, paths.nbytes)
        memcpy(&own[0], logs, probabilities.nbytes)
        return paths, probabilities
