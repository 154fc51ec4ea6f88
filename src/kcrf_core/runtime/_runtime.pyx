"""The C library from Python: models, taggers, items of attributes, and the hash tables that files of models hold."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Next
from cpython.object cimport PyObject
from libc.math cimport fabs, isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from array import array
from collections.abc import Mapping

from .._lazy import deferred

np = deferred("numpy")  # labels by names need none
cdef tuple NESTED = (list, tuple, set, frozenset, Mapping), NUMBERS = None

cdef extern from "internal.h" nogil:
    enum:
        TEXT
        SECTIONS
    struct room:
        void* memory
        size_t bytes
    struct kcrf_model:
        size_t stride
    struct kcrf_tagger:
        room scores

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
    int KCRF_OK
    int KCRF_MEMORY
    int KCRF_NUMERIC
    kcrf_model* kcrf_open_memory(const void* data, size_t size, kcrf_error* error)
    void kcrf_close(kcrf_model* model)
    int kcrf_takes_attributes(const kcrf_model* model)
    size_t kcrf_label_count(const kcrf_model* model)
    size_t kcrf_column_count(const kcrf_model* model)
    int kcrf_knows(const kcrf_model* model, size_t column, kcrf_text value)
    kcrf_text kcrf_label_name(const kcrf_model* model, size_t label)
    kcrf_tagger* kcrf_tagger_new(const kcrf_model* model)
    void kcrf_tagger_free(kcrf_tagger* tagger)
    const kcrf_error* kcrf_tagger_error(const kcrf_tagger* tagger)
    int kcrf_set_columns(kcrf_tagger* tagger, const kcrf_text* cells, size_t positions)
    int kcrf_set_attributes(
        kcrf_tagger* tagger, const kcrf_attribute* attributes, const size_t* ends, size_t positions
    )
    const int32_t* kcrf_labels(kcrf_tagger* tagger)
    const double* kcrf_marginals(kcrf_tagger* tagger)
    int kcrf_log_probability(kcrf_tagger* tagger, const int32_t* labels, double* result)

cdef extern from "internal.h" nogil:
    uint64_t kcrf_hash(const char* text, size_t size)
    uint64_t kcrf_mix(uint64_t value)
    kcrf_model* kcrf_open_sections(const void* const* at, const uint64_t* count, kcrf_error* error)
    void kcrf_fetch "FETCH" (const void* address)
    const char* kcrf_transformed(
        room* scratch, kcrf_text table, uint32_t transform, uint32_t length, const char* text, size_t* size
    )

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object text) noexcept
    const void* PyUnicode_DATA(object text) noexcept
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef enum:
    DEEPEST = 50  # dictionaries inside of dictionaries
    FETCHED = 64  # names whose slots are fetched at once
    COLON = 58


cdef int bits_for(Py_ssize_t count) noexcept:
    """Return the logarithm of a table's size; at most seven tenths of it are filled."""
    cdef int bits = 1
    while (<int64_t>7 << bits) < 10 * count:
        bits += 1
    return bits


def text_table(
    const uint8_t[::1] text,
    const int64_t[::1] starts,         # [n] where names begin in the text
    const int64_t[::1] lengths,        # [n]
    const uint32_t[::1] codes,         # [n]; None: 0, 1, ...
    int64_t first,                     # their place in the section; -1: the section is the text itself
):
    """Return where names begin and end in the text, their slots [2^bits, 4], and the bits."""
    cdef int bits = bits_for(lengths.shape[0])
    cdef Py_ssize_t k, block, n = lengths.shape[0]
    cdef int64_t low = text.shape[0], high = 0
    for k in range(n):
        if starts[k] < 0 or lengths[k] < 0 or starts[k] + lengths[k] > text.shape[0]:
            raise ValueError("names do not fit the text")
        low, high = min(low, starts[k]), max(high, starts[k] + lengths[k])
    low = min(low, high)
    cdef int64_t moved = 0 if first < 0 else first - low
    out = bytearray(b"\xff") * (16 << bits)
    cdef uint32_t[:, ::1] slots = memoryview(out).cast("I", (1 << bits, 4))
    cdef const char* whole = <const char*>&text[0] if text.shape[0] else NULL
    cdef uint64_t hashes[FETCHED]
    cdef uint64_t hashed, slot, mask = (<uint64_t>1 << bits) - 1
    for block in range(0, n, FETCHED):
        for k in range(block, min(block + FETCHED, n)):  # slots are fetched side by side
            hashed = hashes[k - block] = kcrf_hash(whole + starts[k], lengths[k])
            kcrf_fetch(&slots[<uint32_t>hashed & mask, 0])
        for k in range(block, min(block + FETCHED, n)):
            hashed = hashes[k - block]
            slot = <uint32_t>hashed & mask
            while slots[slot, 1] != <uint32_t>0xFFFFFFFF:
                slot = (slot + 1) & mask
            slots[slot, 0], slots[slot, 1] = <uint32_t>(hashed >> 32), <uint32_t>k
            if codes is not None:
                slots[slot, 1] = codes[k]
            slots[slot, 2], slots[slot, 3] = <uint32_t>(starts[k] + moved), <uint32_t>lengths[k]
    return low, high, out, bits


def largest_size(const double[::1] values):
    """Return the largest number without its sign, or one that is not finite if there is any."""
    cdef double found = 0
    cdef Py_ssize_t k
    for k in range(values.shape[0]):
        if not fabs(values[k]) <= found:
            found = fabs(values[k])
            if not isfinite(found):
                break
    return found


def weight_rows(
    Py_ssize_t width,
    const int64_t[::1] ends,           # [D+1] where the weights of rows begin and end
    const int[::1] labels,             # [K] of weights
    const double[::1] weights,         # [K]
    const int64_t[::1] source,         # [n] rows to write, -1 for none; None: all
    int64_t first,                     # weights that stand before them
    Py_ssize_t filling,                # a row is whole that has weights for at least one in so many labels
):
    """Return where rows begin [n+1], labels of weights, and weights; whole rows have zeros in between."""
    cdef Py_ssize_t k, e, own, row, n = ends.shape[0] - 1 if source is None else source.shape[0]
    begins = array("I", (0,)) * (n + 1)
    cdef uint32_t[::1] starts = begins
    cdef int64_t at = 0
    longest(ends, min(labels.shape[0], weights.shape[0]))  # with an error where they do not fit
    for k in range(n):
        row = k
        if source is not None:
            row = source[k]
        if row >= ends.shape[0] - 1:
            raise ValueError("there are fewer rows of weights")
        own = ends[row + 1] - ends[row] if row >= 0 else 0
        starts[k] = first + at
        at += width if own and own * filling >= width else own
    starts[n] = first + at
    if first + at > 0xFFFFFFFF:
        raise OverflowError("there are more weights than a file can have")
    out, found = array("H", (0,)) * at, array("d", (0,)) * at
    cdef uint16_t[::1] columns = out
    cdef double[::1] values = found
    for k in range(n):
        row, own = k, starts[k + 1] - starts[k]
        if source is not None:
            row = source[k]
        if not own:
            continue
        for e in range(ends[row], ends[row + 1]):
            if not 0 <= labels[e] < width:
                raise ValueError("a weight has a label that is not there")
            at = starts[k] - first + (labels[e] if own == width else e - ends[row])
            columns[at], values[at] = labels[e], weights[e]
    return begins, out, found


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


cdef inline int enlarge(void** memory, size_t* room, size_t needed, size_t item) except -1:
    """Make room for at least so many items, and for twice as many if there must be more."""
    cdef void* more
    if needed > room[0]:
        more = realloc(memory[0], (2 * needed + 64) * item)
        if more == NULL:
            raise MemoryError
        memory[0], room[0] = more, 2 * needed + 64
    return 0


cdef inline const char* utf8_of(object text, Py_ssize_t* size) except NULL:
    """Return the bytes of a text, which belong to it."""
    if PyUnicode_IS_COMPACT_ASCII(text):
        size[0] = PyUnicode_GET_LENGTH(text)
        return <const char*>PyUnicode_DATA(text)
    return PyUnicode_AsUTF8AndSize(text, size)


cdef bint is_vector(value) except -1:
    """Return True for an array, or a list that begins with a number."""
    if isinstance(value, (list, tuple)):
        return len(value) and isinstance(value[0], (int, float) + NUMBERS)
    return isinstance(value, np.ndarray)


cdef object names_of(item):
    """Return names of attributes that an estimator is given, in one order, or a dictionary."""
    cdef bint good = isinstance(item, (list, tuple, set, frozenset))
    if not good and isinstance(item, Mapping):
        return dict(item)
    for name in item if good else ():
        good = good and isinstance(name, (str, bytes))
    if not good:
        shown = repr(item) if len(repr(item)) < 60 else type(item).__name__
        raise TypeError(f"expected a dictionary of attributes or a list of their names, not {shown}")
    # Sets have no order of their own, and that of attributes must not depend on the run.
    return sorted(item, key=text_of) if isinstance(item, (set, frozenset)) else item


cdef str text_of(name):
    """Return a text or the UTF-8 of one as a text."""
    if isinstance(name, str):
        return name
    try:
        return (<bytes>name).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{name!r} is not UTF-8: text is given as a string or in UTF-8") from None


cdef class ItemRows:
    """The attributes of items, their names end to end in one text.

    An item is what python-crfsuite takes for one:

        {"bias": 1.0}                  attribute bias, value 1; a truth value is 1 or 0
        {"word": "cat"}                attribute word:cat, value 1; bytes are taken as they are
        {"next": {"word": "sat"}}      attribute next:word:sat; lists and sets of names likewise
        ["bias", "word=cat"]           attributes of value 1, of anything that can be iterated over

    With a dictionary of `arrays`, the rules are those of estimators: names are not empty, bytes are
    UTF-8, values are finite, and arrays and lists of numbers are put there by name, with the number
    of their item.
    """

    cdef char* text
    cdef kcrf_attribute* entries
    cdef size_t* ends  # [items] of their entries
    cdef size_t used, text_room, count, room, items, item_room  # `used` bytes of text belong to attributes
    cdef bint strict, zeros  # attributes of value zero are kept
    cdef dict arrays

    def __init__(self, xseq, dict arrays=None):
        global NUMBERS
        self.strict, self.arrays, self.zeros = arrays is not None, arrays, True
        if self.strict:
            NUMBERS = np.number, np.bool_
        self.read(xseq)

    def __dealloc__(self):
        free(self.text)
        free(self.entries)
        free(self.ends)

    @cython.final
    cdef int read(self, xseq) except -1:
        """Take the attributes of items in the place of those that are there."""
        cdef const char* name
        cdef size_t k
        self.used = self.count = self.items = 0
        for x in xseq:
            self.item(x, 0, 0)
            enlarge(<void**>&self.ends, &self.item_room, self.items + 1, sizeof(size_t))
            self.ends[self.items] = self.count
            self.items += 1
        name = self.text
        for k in range(self.count):
            self.entries[k].name.text = name
            name += self.entries[k].name.size
        return 0

    @cython.final
    cdef inline size_t put(self, object text, size_t at) except? 0:
        """Write a part of a name behind its first `at` bytes; return where it ends."""
        cdef Py_ssize_t size
        cdef const char* source
        if self.strict and isinstance(text, str) and not PyUnicode_IS_COMPACT_ASCII(text):
            text = text.encode("utf-8", "surrogatepass")  # half of a surrogate pair as models store it
        elif isinstance(text, bytes):
            if self.strict:
                text_of(text)
        elif not isinstance(text, str):
            raise TypeError(f"the name of an attribute must be a string, not {text!r}")
        if isinstance(text, str):
            source = utf8_of(text, &size)
        else:
            source, size = PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
        # Room for a colon behind it, and for the next name that begins in the same way.
        enlarge(<void**>&self.text, &self.text_room, self.used + 2 * at + size + 1, 1)
        memcpy(self.text + self.used + at, source, size)
        return at + size

    cdef str name(self, size_t size):
        return self.text[self.used:self.used + size].decode("utf-8", "surrogatepass")

    @cython.final
    cdef inline int take(self, size_t size, double value, size_t at) except -1:
        """End the name at hand; the next one begins with the same `at` bytes."""
        if self.strict:
            if not isfinite(value):
                shown = self.name(size)
                raise ValueError(f"the value of attribute {shown!r} is not finite (leave out what is missing)")
            if not size:
                raise ValueError("an attribute without a name")
        if value == 0 and not self.zeros:
            return 0
        enlarge(<void**>&self.entries, &self.room, self.count + 1, sizeof(kcrf_attribute))
        self.entries[self.count].name.size = size
        self.entries[self.count].value = value
        self.count += 1
        if at:
            memcpy(self.text + self.used + size, self.text + self.used, at)
        self.used += size
        return 0

    @cython.final
    cdef int item(self, object x, size_t at, int depth) except -1:
        """Walk through the attributes of an item, whose names begin with `at` bytes that are there."""
        cdef size_t end
        cdef Py_ssize_t place = 0, size
        cdef PyObject* found[2]
        if depth > DEEPEST:
            raise ValueError(f"dictionaries are nested more than {DEEPEST} deep")
        if self.strict and not isinstance(x, dict):
            x = names_of(x)
        if not isinstance(x, dict):
            for key in x:
                self.take(self.put(key, at), 1.0, at)
            return 0
        size = len(<dict>x)
        while PyDict_Next(x, &place, &found[0], &found[1]):
            key, value = <object>found[0], <object>found[1]
            if value is False and not self.zeros and isinstance(key, str):
                continue
            end = self.put(key, at)
            if isinstance(value, str) or isinstance(value, bytes):
                self.text[self.used + end] = COLON
                self.take(self.put(value, end + 1), 1.0, at)
            elif value is True or value is False:
                self.take(end, value is True, at)
            elif isinstance(value, float) or isinstance(value, int):
                self.take(end, value, at)
            elif self.strict and depth == 0 and is_vector(value):
                self.arrays.setdefault(self.name(end), []).append((self.items, np.asarray(value)))
            elif isinstance(value, (dict, list, set)) or (self.strict and isinstance(value, NESTED)):
                self.text[self.used + end] = COLON
                self.item(value, end + 1, depth + 1)
            elif not self.strict or isinstance(value, NUMBERS):
                self.take(end, value, at)
            else:
                raise TypeError(
                    f"the value of attribute {self.name(end)!r} is of type {type(value).__name__}; it may be a "
                    "string, a number, a truth value, a list of strings, a dictionary of these or an array"
                )
            if len(<dict>x) != size:  # code of a value has changed it
                raise RuntimeError("dictionary changed size during iteration")
        return 0

    def cells(self):
        """Return the text, where names begin and their lengths, values, and where items end [items + 1]."""
        cdef size_t k, at = 0
        text, values, indptr = np.empty(self.used, np.uint8), np.empty(self.count), np.zeros(self.items + 1, np.int64)
        starts, lengths = np.empty(self.count, np.int64), np.empty(self.count, np.int32)
        cdef uint8_t[::1] to_text = text
        cdef int64_t[::1] to_starts = starts, to_indptr = indptr
        cdef int[::1] to_lengths = lengths
        cdef double[::1] to_values = values
        if self.used:
            memcpy(&to_text[0], self.text, self.used)
        for k in range(self.count):
            to_starts[k], to_lengths[k], to_values[k] = at, self.entries[k].name.size, self.entries[k].value
            at += self.entries[k].name.size
        for k in range(self.items):
            to_indptr[k + 1] = self.ends[k]
        return text, starts, lengths, values, indptr

    def __len__(self):
        return self.items

    def attributes(self):
        """Return a list of (name, value) for each item; names are bytes."""
        cdef size_t t, k = 0
        out = []
        for t in range(self.items):
            out.append([])
            while k < self.ends[t]:
                name = self.entries[k].name
                out[t].append((name.text[:name.size], self.entries[k].value))
                k += 1
        return out


cdef class RuntimeModel:
    """A model in the form of a file, in memory, or by the bytes of its sections."""

    cdef kcrf_model* model
    cdef object data  # what the model reads
    cdef list idle  # taggers that no thread uses now
    cdef readonly tuple labels
    cdef readonly bint attributes  # positions have attributes, not columns

    def __init__(self, data):
        cdef kcrf_error error
        cdef kcrf_text label
        self.idle = []
        if isinstance(data, list):
            self.model = self.by_sections(data, &error)
        else:
            self.model = self.of_file(data, &error)
        if self.model == NULL:
            raise ValueError(error.text.decode("utf-8", "replace"))
        self.attributes = kcrf_takes_attributes(self.model)
        names = []
        for k in range(kcrf_label_count(self.model)):
            label = kcrf_label_name(self.model, k)
            names.append(label.text[:label.size].decode())
        self.labels = tuple(names)

    cdef kcrf_model* of_file(self, data, kcrf_error* error) except? NULL:
        cdef const uint8_t[::1] view = data
        if len(data) and <size_t>&view[0] % 8:
            view = bytearray(data)
        self.data = view
        return kcrf_open_memory(&view[0] if len(data) else NULL, len(data), error)

    cdef kcrf_model* by_sections(self, list sections, kcrf_error* error) except? NULL:
        """Open a model by (number of items, their bytes) of each section."""
        cdef const void* at[SECTIONS]
        cdef uint64_t count[SECTIONS]
        cdef const uint8_t[::1] view
        self.data = []
        if len(sections) != SECTIONS:
            raise ValueError(f"{len(sections)} sections, expected {SECTIONS}")
        for k, (items, data) in enumerate(sections):
            view = data if len(data) else bytes(8)
            if k != TEXT and <size_t>&view[0] % 8:
                view = bytearray(view)
            at[k], count[k] = &view[0], items
            self.data.append(view)
        return kcrf_open_sections(at, count, error)

    def __dealloc__(self):
        kcrf_close(self.model)

    def unseen(self, rows):
        """Return the number of values of columns, or attributes, that training did not have, and of those looked up."""
        cdef Py_ssize_t size, unseen = 0, total = 0
        cdef size_t k
        cdef int known
        cdef kcrf_text value
        cdef ItemRows items
        cdef str text
        if self.attributes:
            items = ItemRows(rows)
            for k in range(items.count):
                known = kcrf_knows(self.model, 0, items.entries[k].name)
                unseen, total = unseen + (known == 0), total + (known >= 0)
            return unseen, total
        for row in rows:
            for k, text in enumerate(row):
                value.text = utf8_of(text, &size)
                value.size = size
                known = kcrf_knows(self.model, k, value)
                unseen, total = unseen + (known == 0), total + (known >= 0)
        return unseen, total

    cdef RuntimeTagger borrowed(self):
        return self.idle.pop() if self.idle else RuntimeTagger(self)

    def label_cells(
        self,
        const uint8_t[::1] data,
        const int64_t[:, ::1] starts,      # [width, n] where values begin
        const int[:, ::1] lengths,         # [width, n]
        const int64_t[::1] places,         # [columns of the model] their places among these, -1 for unused ones
        const int64_t[::1] offsets,        # [S+1]
        int[::1] path,                     # [offsets[S] - offsets[0]] out: the best labels
    ):
        """Label sequences without the interpreter's lock; return False if one cannot be labelled."""
        cdef RuntimeTagger tagger = self.borrowed()
        cdef Py_ssize_t s, t, c, T, at, columns = kcrf_column_count(self.model)
        cdef bint good = True
        cdef kcrf_text* cells = tagger.cells_for(longest(offsets, starts.shape[1]) * columns)
        cdef const char* text = <const char*>&data[0] if data.shape[0] else NULL
        cdef int* out = room_for(path, offsets)
        if places.shape[0] != columns or starts.shape[0] != lengths.shape[0] or starts.shape[1] != lengths.shape[1]:
            raise ValueError("columns do not fit the model")
        with nogil:
            for s in range(offsets.shape[0] - 1):
                T = offsets[s + 1] - offsets[s]
                for t in range(T):
                    for c in range(columns):
                        at = t * columns + c
                        if 0 <= places[c] < starts.shape[0]:
                            cells[at].text = text + starts[places[c], offsets[s] + t]
                            cells[at].size = lengths[places[c], offsets[s] + t]
                        else:
                            cells[at].text, cells[at].size = "", 0
                good = kcrf_set_columns(tagger.tagger, cells, T) == KCRF_OK and tagger.put_labels(T, out)
                if not good:
                    break
                out += T
        self.idle.append(tagger)
        return good

    def label_attributes(
        self,
        const uint8_t[::1] data,
        const int64_t[::1] starts,         # [nnz] where names of attributes begin
        const int[::1] lengths,            # [nnz]
        const double[:] values,            # [nnz]
        const int64_t[::1] indptr,         # [n+1] where the attributes of positions begin and end
        const int64_t[::1] offsets,        # [S+1]
        int[::1] path,                     # [offsets[S] - offsets[0]] out: the best labels
    ):
        """Label sequences of attributes in the same way."""
        cdef RuntimeTagger tagger = self.borrowed()
        cdef ItemRows rows = ItemRows(())
        cdef Py_ssize_t s, t, k, T, first, most = longest(indptr, starts.shape[0])
        cdef bint good = True
        cdef int* out = room_for(path, offsets)
        cdef const char* text = <const char*>&data[0] if data.shape[0] else NULL
        enlarge(<void**>&rows.ends, &rows.item_room, longest(offsets, indptr.shape[0] - 1), sizeof(size_t))
        for s in range(offsets.shape[0] - 1):
            most = max(most, indptr[offsets[s + 1]] - indptr[offsets[s]])
        enlarge(<void**>&rows.entries, &rows.room, most, sizeof(kcrf_attribute))
        with nogil:
            for s in range(offsets.shape[0] - 1):
                T, first = offsets[s + 1] - offsets[s], indptr[offsets[s]]
                for k in range(first, indptr[offsets[s + 1]]):
                    rows.entries[k - first].name.text = text + starts[k]
                    rows.entries[k - first].name.size = lengths[k]
                    rows.entries[k - first].value = values[k]
                for t in range(T):
                    rows.ends[t] = indptr[offsets[s] + t + 1] - first
                good = kcrf_set_attributes(tagger.tagger, rows.entries, rows.ends, T) == KCRF_OK
                good = good and tagger.put_labels(T, out)
                if not good:
                    break
                out += T
        self.idle.append(tagger)
        return good


cdef Py_ssize_t longest(const int64_t[::1] offsets, Py_ssize_t most) except -1:
    """Return the largest difference of consecutive offsets, which ascend and lie between 0 and `most`."""
    cdef Py_ssize_t k, found = 0
    cdef bint good = offsets.shape[0] > 0 and offsets[0] >= 0
    for k in range(offsets.shape[0] - 1):
        good = good and offsets[k] <= offsets[k + 1]
        found = max(found, offsets[k + 1] - offsets[k])
    if not good or offsets[offsets.shape[0] - 1] > most:
        raise ValueError("offsets do not fit the data")
    return found


cdef int* room_for(int[::1] path, const int64_t[::1] offsets) except? NULL:
    if path.shape[0] != offsets[offsets.shape[0] - 1] - offsets[0]:
        raise ValueError("labels do not fit the data")
    return &path[0] if path.shape[0] else NULL


cdef class RuntimeTagger:
    """The results of one sequence after another, by a model; each thread has its own."""

    cdef RuntimeModel model
    cdef kcrf_tagger* tagger
    cdef kcrf_text* cells
    cdef size_t room
    cdef ItemRows rows  # of an earlier sequence, for their memory
    cdef Py_ssize_t T
    cdef bint ready  # a sequence is set

    def __init__(self, RuntimeModel model not None):
        self.model = model
        self.tagger = kcrf_tagger_new(model.model)
        if self.tagger == NULL:
            raise MemoryError("no memory to remember values of columns, for which there are at most 256 MiB")

    def __dealloc__(self):
        kcrf_tagger_free(self.tagger)
        free(self.cells)

    def __len__(self):
        return self.T

    cdef kcrf_text* cells_for(self, size_t count) except NULL:
        enlarge(<void**>&self.cells, &self.room, count + 1, sizeof(kcrf_text))
        return self.cells

    cdef bint put_labels(self, Py_ssize_t T, int* path) noexcept nogil:
        """Put the best labels of the sequence; return False where there are none."""
        cdef const int32_t* best = kcrf_labels(self.tagger)
        if best != NULL and T:
            memcpy(path, best, T * sizeof(int32_t))
        return best != NULL

    cdef object error(self):
        cdef const kcrf_error* found = kcrf_tagger_error(self.tagger)
        if found.status == KCRF_MEMORY:
            return MemoryError()
        message = found.text.decode("utf-8", "replace")
        return OverflowError(message) if found.status == KCRF_NUMERIC else ValueError(message)

    cdef int check(self) except -1:
        if not self.ready:
            raise ValueError("no sequence is set: there was none yet, or the last one was refused")
        return 0

    def set_columns(self, rows):
        """Set a sequence by the texts of its columns, [positions][columns]."""
        cdef Py_ssize_t columns = kcrf_column_count(self.model.model), size
        cdef kcrf_text* cells
        cdef tuple texts, row
        try:
            texts = tuple([tuple(one) for one in rows])
        finally:
            self.forget()  # a sequence that code of the rows has set
        cells = self.cells_for(len(texts) * columns)
        for row in texts:
            if len(row) != columns:
                raise ValueError(f"{len(row)} columns, expected {columns}")
            for value in row:
                if not isinstance(value, str):
                    raise TypeError(f"a text, not {type(value).__name__}")
                cells[0].text = utf8_of(value, &size)
                cells[0].size = size
                cells += 1
        self.end(kcrf_set_columns(self.tagger, self.cells, len(texts)), len(texts))

    def set_attributes(self, items):
        """Set a sequence by its items, which `ItemRows` describes; half a sequence is none."""
        cdef ItemRows rows = items if isinstance(items, ItemRows) else self.rows
        if rows is None:
            rows = ItemRows.__new__(ItemRows)
        self.rows = None  # code that makes items may use this tagger
        try:
            if rows is not items:
                rows.read(items)
        finally:
            self.forget()
        self.rows = rows if rows is not items else None
        self.end(kcrf_set_attributes(self.tagger, rows.entries, rows.ends, rows.items), rows.items)

    cdef void forget(self) noexcept:
        """Have no sequence: one of before would be taken for the one that could not be set."""
        self.T, self.ready = 0, False

    cdef int end(self, int status, Py_ssize_t T) except -1:
        """Have a sequence of T positions if it could be set, else none."""
        self.T, self.ready = T if status == KCRF_OK else 0, status == KCRF_OK
        if status != KCRF_OK:
            raise self.error()
        return 0

    def scores(self):
        """Return scores of labels, [T, Y], without transitions."""
        cdef Py_ssize_t Y = kcrf_label_count(self.model.model)
        self.check()
        if not self.T:
            return np.zeros((0, Y))
        cdef double[:, ::1] every = <double[:self.T, :self.model.model.stride]>self.tagger.scores.memory
        return np.ascontiguousarray(every[:, :Y])

    cdef const int32_t* found(self) except NULL:
        self.check()
        cdef const int32_t* found = kcrf_labels(self.tagger)
        if found == NULL:
            raise self.error()
        return found

    def labels(self):
        """Return numbers of the best labels by the model's decoder, [T] int32."""
        cdef const int32_t* found = self.found()
        out = np.empty(self.T, dtype=np.int32)
        cdef int32_t[::1] labels = out
        if self.T:
            memcpy(&labels[0], found, self.T * sizeof(int32_t))
        return out

    def label_names(self):
        """Return the best labels by the model's decoder, a list."""
        cdef const int32_t* found = self.found()
        cdef Py_ssize_t t
        return [self.model.labels[found[t]] for t in range(self.T)]

    def marginals(self):
        """Return p(y_t | x), [T, Y]."""
        self.check()
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
        cdef const int32_t[::1] path = array("i", labels)
        cdef double result = 0
        self.check()
        if path.shape[0] != self.T:
            raise ValueError(f"{path.shape[0]} labels, expected {self.T}")
        cdef int status = kcrf_log_probability(self.tagger, &path[0] if self.T else NULL, &result)
        if status != KCRF_OK:
            raise self.error()
        return result
