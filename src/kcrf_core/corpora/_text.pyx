"""CoNLL lines as bytes: where the values of each row stand, distinct values numbered, columns appended.

No string is made here: a value is a place and a length in the bytes that were read. Distinct values are numbered in
the order of their first appearance, by an open-addressing hash table: `slots` [power of two] hold numbers or -1, and
a number stands for the value at its first row. Functions allocate nothing.
"""

from libc.string cimport memchr, memcmp, memcpy

ctypedef long long int64
ctypedef unsigned long long uint64

cdef enum:
    SPACE = 32
    TAB = 9
    LINE_FEED = 10
    CARRIAGE_RETURN = 13


cdef inline bint blank(const unsigned char* data, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    while first < last and data[first] == SPACE:
        first += 1
    return first == last


cdef inline Py_ssize_t line_end(const unsigned char* data, Py_ssize_t first, Py_ssize_t size) noexcept nogil:
    """Where the line that begins at `first` has its line feed, or the end of the data."""
    cdef const void* found = memchr(data + first, LINE_FEED, size - first)
    return size if found is NULL else <const unsigned char*>found - data


cdef Py_ssize_t split_row(
    const unsigned char* data, Py_ssize_t first, Py_ssize_t last, bint tabs, Py_ssize_t width,
    int64* starts, int64* lengths, Py_ssize_t stride,
) noexcept nogil:
    """Places and lengths of the values of a row, `stride` apart, the first `width` of them; how many there are."""
    cdef Py_ssize_t at = first, begin, columns = 0
    cdef unsigned char separator = TAB if tabs else SPACE
    if not tabs:
        while last > first and data[last - 1] == SPACE:
            last -= 1
        while at < last and data[at] == SPACE:
            at += 1
    while True:
        begin = at
        while at < last and data[at] != separator:
            at += 1
        if columns < width:
            starts[columns * stride] = begin
            lengths[columns * stride] = at - begin
        columns += 1
        if at == last:
            return columns
        at += 1
        if not tabs:
            while data[at] == SPACE:  # the row does not end in one
                at += 1


def first_row(const unsigned char[::1] data, Py_ssize_t begin):
    """First and last byte of the first line from `begin` on that is not blank, without its end; (-1, -1) if none is."""
    cdef Py_ssize_t first = begin, last, stop, size = data.shape[0]
    while first < size:
        stop = last = line_end(&data[0], first, size)
        if last > first and data[last - 1] == CARRIAGE_RETURN:
            last -= 1
        if not blank(&data[0], first, last):
            return first, last
        first = stop + 1
    return -1, -1


def columns_of(const unsigned char[::1] data, Py_ssize_t first, Py_ssize_t last, bint tabs):
    """How many values a row has."""
    return split_row(&data[0], first, last, tabs, 0, NULL, NULL, 0)


def split_rows(
    const unsigned char[::1] data,
    Py_ssize_t begin,                  # where the first line begins
    bint tabs,                         # TABs separate values, else runs of spaces
    int64[:, ::1] starts,              # [width, rows] out: where values begin
    int64[:, ::1] lengths,             # [width, rows] out
    int64[::1] ends,                   # [rows] out: where the row ends, before its line end
    int64[::1] numbers,                # [rows] out: its line, from 0
):
    """Split all lines that are not blank; rows found, then the first of uneven width and the first with a stray TAB.

    It stops at the first row of uneven width. Each of the last two is -1 where there is none.
    """
    cdef Py_ssize_t first = begin, last, stop, columns, size = data.shape[0]
    cdef Py_ssize_t width = starts.shape[0], capacity = starts.shape[1], row = 0, line = 0, stray = -1
    with nogil:
        while first < size and row < capacity:
            stop = last = line_end(&data[0], first, size)
            if last > first and data[last - 1] == CARRIAGE_RETURN:
                last -= 1
            if not blank(&data[0], first, last):
                columns = split_row(&data[0], first, last, tabs, width, &starts[0, row], &lengths[0, row], capacity)
                ends[row] = last
                numbers[row] = line
                if not tabs and stray < 0 and memchr(&data[first], TAB, last - first) is not NULL:
                    stray = row
                if columns != width:
                    with gil:
                        return row, row, stray
                row += 1
            first = stop + 1
            line += 1
    return row, -1, stray


cdef inline uint64 hashed(const unsigned char* value, Py_ssize_t length) noexcept nogil:
    """FNV-1a, then mixed so that the low bits depend on all of it."""
    cdef uint64 h = 0xcbf29ce484222325ULL
    cdef Py_ssize_t i
    for i in range(length):
        h = (h ^ value[i]) * 0x100000001b3ULL
    return h ^ (h >> 32)


def number_values(
    const unsigned char[::1] data,
    const int64[::1] starts,           # [n]
    const int64[::1] lengths,          # [n]
    int[::1] slots,                    # [power of two above n] of -1
    int64[::1] first,                  # [n] out: the first row of each distinct value
    int[::1] codes,                    # [n] out: the number of each row's value
):
    """Number the distinct values of a column; how many there are."""
    cdef Py_ssize_t t, known, n = starts.shape[0], count = 0
    cdef uint64 place, mask = slots.shape[0] - 1
    cdef const unsigned char* value
    with nogil:
        for t in range(n):
            value = &data[0] + starts[t]
            place = hashed(value, lengths[t]) & mask
            while slots[place] >= 0:
                known = first[slots[place]]
                if lengths[known] == lengths[t] and memcmp(&data[0] + starts[known], value, lengths[t]) == 0:
                    break
                place = (place + 1) & mask
            if slots[place] < 0:
                slots[place] = <int>count
                first[count] = t
                count += 1
            codes[t] = slots[place]
    return count


def join_values(
    const unsigned char[::1] data,
    const int64[::1] starts,           # [n]
    const int64[::1] lengths,          # [n]
    unsigned char[::1] out,            # [sum of lengths + n] out
):
    """Copy values with a line feed behind each; none has one inside."""
    cdef Py_ssize_t t, at = 0
    with nogil:
        for t in range(starts.shape[0]):
            if lengths[t]:
                memcpy(&out[at], &data[starts[t]], lengths[t])
            at += lengths[t]
            out[at] = LINE_FEED
            at += 1


def append_values(
    const unsigned char[::1] data,
    const int64[::1] ends,             # [n] where something is put in, ascending
    const int[::1] numbers,            # [n] which text
    const unsigned char[::1] texts,    # all texts end to end
    const int64[::1] text_ends,        # [texts]
    unsigned char[::1] out,            # [bytes of data and of what is put in] out
):
    """Copy the data with a text put in at each place."""
    cdef Py_ssize_t t, at = 0, copied = 0, length, begin
    cdef int number
    with nogil:
        for t in range(ends.shape[0]):
            length = ends[t] - copied
            memcpy(&out[at], &data[copied], length)
            at += length
            copied = ends[t]
            number = numbers[t]
            begin = 0 if number == 0 else text_ends[number - 1]
            length = text_ends[number] - begin
            memcpy(&out[at], &texts[begin], length)
            at += length
        length = data.shape[0] - copied
        if length:
            memcpy(&out[at], &data[copied], length)
