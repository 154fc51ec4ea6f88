"""Lines as bytes: places of the values of each row, numbers of distinct values, parsed numbers, added columns.

No string is made here: a value is a place and a length in the bytes that were read. Distinct values are numbered in
the order of their first appearance, by an open-addressing hash table: `slots` hold numbers or -1. Functions allocate
nothing and release the interpreter's lock.
"""

from libc.math cimport NAN
from libc.string cimport memchr, memcmp, memcpy

from ..system.types cimport int64, uint64

cdef extern from "texts.h" nogil:
    uint64 kcrf_hash(const char* text, size_t size)
    bint kcrf_number(const char* text, size_t size, double* number)

cdef enum:
    SPACE = 32
    TAB = 9
    LINE_FEED = 10
    CARRIAGE_RETURN = 13
    QUOTE = 34
    COLON = 58
    BACKSLASH = 92
    FIRST_MASK = 255                   # one less than the slots that a table begins with

cdef enum:
    UNCLOSED = -1                      # in the place of the number of values

cdef const unsigned char* EMPTY = b""  # C compares and copies no bytes at NULL, not even none


cdef inline bint blank(
    const unsigned char* data, Py_ssize_t first, Py_ssize_t last, unsigned char separator
) noexcept nogil:
    """Return True if a line holds nothing but spaces, TABs and separators."""
    while first < last and (data[first] == SPACE or data[first] == TAB or data[first] == separator):
        first += 1
    return first == last


cdef inline Py_ssize_t line_end(const unsigned char* data, Py_ssize_t first, Py_ssize_t size) noexcept nogil:
    """Return the place of the line feed of the line that begins at `first`, or the end of the data."""
    cdef const void* found = memchr(data + first, LINE_FEED, size - first)
    return size if found is NULL else <const unsigned char*>found - data


cdef inline Py_ssize_t before_return(const unsigned char* data, Py_ssize_t first, Py_ssize_t stop) noexcept nogil:
    """Return the end of a line that stops at `stop`, without a carriage return."""
    return stop - 1 if stop > first and data[stop - 1] == CARRIAGE_RETURN else stop


cdef inline bint is_comment(
    const unsigned char* data, Py_ssize_t first, Py_ssize_t last, const unsigned char[::1] marks, const int[::1] sizes
) noexcept nogil:
    """Return True if a line begins with one of the marks, which stand end to end."""
    cdef Py_ssize_t i, at = 0
    for i in range(sizes.shape[0]):
        if last - first >= sizes[i] and memcmp(data + first, &marks[at], sizes[i]) == 0:
            return True
        at += sizes[i]
    return False


cdef Py_ssize_t split_row(
    const unsigned char* data, Py_ssize_t first, Py_ssize_t last, unsigned char separator, Py_ssize_t width,
    Py_ssize_t most, int64* starts, int* lengths, Py_ssize_t stride,
) noexcept nogil:
    """Find places and lengths of the first `width` values of a row, `stride` apart; return their number, up to `most`.

    Spaces separate in runs, and those around a row do not count.
    """
    cdef Py_ssize_t at = first, begin, columns = 0
    cdef bint runs = separator == SPACE
    if runs:
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
            lengths[columns * stride] = <int>(at - begin)
        columns += 1
        if at == last or columns == most:
            return columns
        at += 1
        if runs:
            while data[at] == SPACE:  # the row does not end in one
                at += 1


cdef Py_ssize_t split_quoted(
    const unsigned char* data, Py_ssize_t first, Py_ssize_t last, unsigned char separator, Py_ssize_t width,
    unsigned char* out, int64* starts, int* lengths, Py_ssize_t stride,
) noexcept nogil:
    """Find values as `split_row` does, where they may be quoted; return UNCLOSED if a quote is not closed.

    The first `width` values without their quotes are written to the same places of `out` or before them.
    """
    cdef Py_ssize_t at = first, begin, end, columns = 0
    cdef bint inside
    while True:
        begin = end = at
        inside = at < last and data[at] == QUOTE
        at += inside
        while at < last:
            if inside:
                if data[at] == QUOTE:
                    if at + 1 < last and data[at + 1] == QUOTE:
                        at += 1
                    else:
                        inside = False
                        at += 1
                        continue
            elif data[at] == separator:
                break
            if columns < width:
                out[end] = data[at]
            end += 1
            at += 1
        if inside:
            return UNCLOSED
        if columns < width:
            starts[columns * stride] = begin
            lengths[columns * stride] = <int>(end - begin)
        columns += 1
        if at == last:
            return columns
        at += 1


def last_sequence_end(
    const unsigned char[::1] data,
    Py_ssize_t begin,                  # where a row begins
    unsigned char separator,
    const unsigned char[::1] marks,    # of comments
    const int[::1] sizes,
    Py_ssize_t place,                  # of the column whose values tell sequences apart, or -1
    unsigned char[::1] out,            # [bytes of data] scratch for values without quotes; empty where none are read
    bytes before,                      # value of the column above `begin`, or None
):
    """Return the end of the last whole sequence, or 0, where to go on, and the value of the column there, or None.

    An empty value repeats the one above it.
    """
    cdef Py_ssize_t first = begin, last, stop, columns, end = 0, size = data.shape[0], row_end = begin, known = -1
    cdef int64 start = 0
    cdef int length = 0
    cdef bint quoted = out.shape[0] > 0
    cdef const unsigned char* value = NULL
    cdef const unsigned char* source = &data[0]
    if quoted:
        source = &out[0]
    if before is not None:
        value, known = before, len(before)
    with nogil:
        while first < size:
            stop = line_end(&data[0], first, size)
            if stop == size:
                break
            last = before_return(&data[0], first, stop)
            if blank(&data[0], first, last, separator):
                end = stop + 1
                known = -1
            elif not is_comment(&data[0], first, stop, marks, sizes):
                if quoted:
                    columns = split_quoted(&data[0], first, last, separator, place + 1, &out[0], &start, &length, 0)
                else:
                    columns = split_row(&data[0], first, last, separator, place + 1, place + 1, &start, &length, 0)
                if 0 <= place < columns and length:
                    if known >= 0 and (known != length or memcmp(value, source + start, length) != 0):
                        end = row_end
                    value, known = source + start, length
                row_end = stop + 1
            first = stop + 1
    return end, max(row_end, end), value[:known] if known >= 0 else None


def split_rows(
    const unsigned char[::1] data,
    Py_ssize_t begin,                  # where the first line begins
    Py_ssize_t line,                   # its number
    unsigned char separator,
    const unsigned char[::1] marks,    # what lines that are passed over begin with, end to end
    const int[::1] sizes,
    unsigned char[::1] out,            # [bytes of data] out: values without their quotes; empty where none are read
    int64[:, ::1] starts,              # [width, rows] out: where values begin
    int[:, ::1] lengths,               # [width, rows] out
    int64[::1] ends,                   # [rows] out: where the row ends, before its line end
    int64[::1] numbers,                # [rows] out: its line
    int64[::1] offsets,                # [rows + 1] out: the rows that sequences begin with, then the number of rows
    bint ragged=False,                 # whether rows may have more values, which are left where they are
):
    """Split all lines that are rows; return the numbers of rows and sequences, and the first rows with mistakes.

    These are the first row of another width and its number of values, the first with a stray TAB, and the line of the
    first whose quote is not closed; each is -1 where there is none. It stops at the first row that cannot be split.
    """
    cdef Py_ssize_t first = begin, last, stop, columns = 0, size = data.shape[0], row = 0, sequences = 0
    cdef Py_ssize_t width = starts.shape[0], capacity = starts.shape[1], stray = -1, uneven = -1, unclosed = -1
    cdef bint quoted = out.shape[0] > 0, between = True
    with nogil:
        while first < size and row < capacity:
            stop = line_end(&data[0], first, size)
            last = before_return(&data[0], first, stop)
            if blank(&data[0], first, last, separator):
                between = True
            elif not is_comment(&data[0], first, last, marks, sizes):
                numbers[row] = line
                if quoted:
                    columns = split_quoted(&data[0], first, last, separator, width, &out[0], &starts[0, row],
                                           &lengths[0, row], capacity)
                    if columns == UNCLOSED:
                        unclosed = line
                        break
                else:
                    columns = split_row(&data[0], first, last, separator, width, width if ragged else size,
                                        &starts[0, row], &lengths[0, row], capacity)
                    if separator == SPACE and stray < 0 and memchr(&data[first], TAB, last - first) is not NULL:
                        stray = row
                ends[row] = last
                if columns != width and not ragged:
                    uneven = row
                    break
                if between:
                    offsets[sequences] = row
                    sequences += 1
                    between = False
                row += 1
            first = stop + 1
            line += 1
        offsets[sequences] = row
    return row, sequences, uneven, columns, stray, unclosed


cdef void fill_slots(int* slots, uint64 mask, const uint64* hashes, Py_ssize_t count) noexcept nogil:
    """Put the numbers of values that are known to be distinct into the slots of their hashes."""
    cdef Py_ssize_t i
    cdef uint64 place
    for place in range(mask + 1):
        slots[place] = -1
    for i in range(count):
        place = hashes[i] & mask
        while slots[place] >= 0:
            place = (place + 1) & mask
        slots[place] = <int>i


cdef Py_ssize_t number_values(
    const unsigned char* data, const int64* starts, const int* lengths, Py_ssize_t n,
    int* slots, uint64* hashes, int* first, int* codes,
) noexcept nogil:
    """Number the distinct values of a column, and return how many there are."""
    cdef Py_ssize_t t, known, count = 0
    cdef uint64 place, h, mask = FIRST_MASK
    cdef const unsigned char* value
    fill_slots(slots, mask, hashes, 0)
    for t in range(n):
        value = data + starts[t]
        h = kcrf_hash(<const char*>value, lengths[t])
        place = h & mask
        while slots[place] >= 0:
            if hashes[slots[place]] == h:
                known = first[slots[place]]
                if lengths[known] == lengths[t] and memcmp(data + starts[known], value, lengths[t]) == 0:
                    break
            place = (place + 1) & mask
        if slots[place] < 0:
            slots[place] = <int>count
            hashes[count] = h
            first[count] = <int>t
            codes[t] = <int>count
            count += 1
            if 2 * <uint64>count > mask:
                mask = 2 * mask + 1
                fill_slots(slots, mask, hashes, count)
        else:
            codes[t] = slots[place]
    return count


def code_columns(
    const unsigned char[::1] data,
    const int64[:, ::1] starts,        # [width, n]
    const int[:, ::1] lengths,         # [width, n]
    const int64[::1] which,            # [m] columns
    int[::1] slots,                    # [power of two, at least 4 n and 512] scratch
    uint64[:, ::1] hashes,             # [m, n] out: of each distinct value
    int[:, ::1] first,                 # [m, n] out: the first row of each distinct value
    int[:, ::1] codes,                 # [m, n] out: the number of each row's value
    int64[::1] counts,                 # [m] out: distinct values
):
    """Number the distinct values of some columns."""
    cdef Py_ssize_t m
    cdef const unsigned char* text = &data[0] if data.shape[0] else EMPTY
    with nogil:
        for m in range(which.shape[0]):
            counts[m] = number_values(
                text, &starts[which[m], 0], &lengths[which[m], 0], starts.shape[1],
                &slots[0], &hashes[m, 0], &first[m, 0], &codes[m, 0],
            )


def copy_texts(
    const unsigned char[::1] data,
    const int64[:, ::1] starts,        # [width, n]
    const int[:, ::1] lengths,         # [width, n]
    const int64[::1] which,            # [m]
    unsigned char[::1] blob,           # [bytes] out
):
    """Copy all values of some columns end to end, column by column."""
    cdef Py_ssize_t m, t, at = 0, length
    cdef const unsigned char* text = &data[0] if data.shape[0] else EMPTY
    with nogil:
        for m in range(which.shape[0]):
            for t in range(starts.shape[1]):
                length = lengths[which[m], t]
                if length:
                    memcpy(&blob[at], text + starts[which[m], t], length)
                at += length


def merge_values(
    const unsigned char[::1] part,     # values of a part, end to end
    const int64[::1] part_ends,        # [n] where each ends
    const uint64[::1] part_hashes,     # [n]
    int[::1] slots,                    # [power of two, more than twice the values with those of the part] in and out
    unsigned char[::1] blob,           # in and out: values so far, with room for those of the part
    int64[::1] ends,                   # in and out, likewise
    uint64[::1] hashes,                # in and out, likewise
    Py_ssize_t count,                  # values so far
    int[::1] numbers,                  # [n] out: the number of each value of the part
):
    """Number the distinct values of a part after those that came before it, and return their new number."""
    cdef Py_ssize_t i, known, length, size, start
    cdef uint64 place, h, mask = slots.shape[0] - 1
    cdef const unsigned char* value
    cdef const unsigned char* text = &part[0] if part.shape[0] else EMPTY
    with nogil:
        for i in range(part_ends.shape[0]):
            start = part_ends[i - 1] if i else 0
            length, value, h = part_ends[i] - start, text + start, part_hashes[i]
            place = h & mask
            while slots[place] >= 0:
                known = slots[place]
                if hashes[known] == h:
                    start = ends[known - 1] if known else 0
                    if ends[known] - start == length and memcmp(&blob[0] + start, value, length) == 0:
                        break
                place = (place + 1) & mask
            if slots[place] < 0:
                slots[place] = <int>count
                hashes[count] = h
                size = ends[count - 1] if count else 0
                if length:
                    memcpy(&blob[0] + size, value, length)
                ends[count] = size + length
                count += 1
            numbers[i] = slots[place]
    return count


def place_values(const uint64[::1] hashes, Py_ssize_t count, int[::1] slots):
    """Put the numbers of the first `count` distinct values into slots, [power of two, more than twice as many]."""
    with nogil:
        fill_slots(&slots[0], slots.shape[0] - 1, &hashes[0], count)


def number_columns(
    const unsigned char[::1] data,
    const int64[:, ::1] starts,        # [width, n]
    const int[:, ::1] lengths,         # [width, n]
    const int64[::1] which,            # [m] columns
    const unsigned char[::1] marks,    # texts that stand for missing values, end to end
    const int[::1] sizes,              # [marks] their lengths
    double[:, ::1] numbers,            # [m, n] out: NaN where a value is missing
    unsigned char[::1] numeric,        # [m] out: whether all values are numbers or missing
    bint all_of_them,                  # else a column ends where one is neither; NaN and -1 otherwise
    signed char[:, ::1] kinds,         # [m, n] out, or [0, 0]: 1 a number, 0 missing, -1 neither
):
    """Parse columns of numbers."""
    cdef Py_ssize_t m, t, n = starts.shape[1], i, at
    cdef int length, kind
    cdef bint mark, keep = kinds.shape[0] > 0
    cdef bint begins[256]
    cdef const unsigned char* value
    cdef const unsigned char* text = &data[0] if data.shape[0] else EMPTY
    with nogil:
        for i in range(256):
            begins[i] = False
        at, mark = 0, False
        for i in range(sizes.shape[0]):
            if sizes[i]:
                begins[marks[at]] = True
            else:
                mark = True  # nothing at all
            at += sizes[i]
        for m in range(which.shape[0]):
            numeric[m] = True
            for t in range(n):
                value, length = text + starts[which[m], t], lengths[which[m], t]
                kind = -1
                if length == 0:
                    kind = 0 if mark else -1
                elif begins[value[0]]:
                    at = 0
                    for i in range(sizes.shape[0]):
                        if sizes[i] == length and memcmp(&marks[at], value, length) == 0:
                            kind = 0
                            break
                        at += sizes[i]
                if kind < 0:
                    kind = 1 if kcrf_number(<const char*>value, length, &numbers[m, t]) else -1
                if kind <= 0:
                    numbers[m, t] = NAN
                if keep:
                    kinds[m, t] = kind
                if kind < 0:
                    numeric[m] = False
                    if not all_of_them:
                        break


def split_attributes(
    const unsigned char[::1] data,     # changed where there are escapes: names without backslashes take their places
    const int64[::1] first,            # [rows] where the fields of rows begin, behind the label
    const int64[::1] last,             # [rows] where rows end
    int64[::1] starts,                 # [fields] out: where names begin
    int[::1] lengths,                  # [fields] out
    double[::1] values,                # [fields] out
    int64[::1] indptr,                 # [rows + 1] out
):
    """Take the fields of attribute files apart; return True if all values are 1, and the first bad field.

    That is its row or -1, its begin and end, and True if its name is missing, else its weight is not a number.
    """
    cdef Py_ssize_t row, at, begin, end, colon, out, count = 0
    cdef bint ones = True, escaped
    cdef unsigned char* text = <unsigned char*>&data[0] if data.shape[0] else NULL
    with nogil:
        indptr[0] = 0
        for row in range(first.shape[0]):
            at = first[row]
            while at < last[row]:
                begin, colon, escaped = at, -1, False
                while at < last[row]:
                    if text[at] > BACKSLASH:  # most letters
                        at += 1
                        continue
                    if text[at] == TAB:
                        break
                    if text[at] == COLON:
                        colon = at
                    elif (text[at] == BACKSLASH and at + 1 < last[row]
                          and (text[at + 1] == BACKSLASH or text[at + 1] == COLON)):
                        escaped = True
                        at += 1
                    at += 1
                end = at
                at += 1
                if begin == end:
                    continue
                values[count] = 1.0
                if colon >= 0:
                    if colon == begin or not kcrf_number(<char*>text + colon + 1, end - colon - 1, &values[count]):
                        with gil:
                            return ones, row, begin, end, colon == begin
                    ones &= values[count] == 1.0
                    end = colon
                if escaped:
                    out = begin
                    colon = begin
                    while colon < end:
                        if (text[colon] == BACKSLASH and colon + 1 < end
                                and (text[colon + 1] == BACKSLASH or text[colon + 1] == COLON)):
                            colon += 1
                        text[out] = text[colon]
                        out += 1
                        colon += 1
                    end = out
                starts[count] = begin
                lengths[count] = <int>(end - begin)
                count += 1
            indptr[row + 1] = count
    return ones, -1, -1, -1, False


def put_values(
    const unsigned char[::1] data,
    const int64[::1] begins,           # [n] where something is put in, ascending
    const int64[::1] ends,             # [n] in place of what stands up to here
    const int[::1] numbers,            # [n] which text
    const unsigned char[::1] texts,    # all texts end to end
    const int64[::1] text_ends,        # [texts]
    unsigned char[::1] out,            # [bytes of data and of what is put in, less what it replaces] out
):
    """Copy the data with a text put in at each place."""
    cdef Py_ssize_t t, at = 0, copied = 0, length, begin
    cdef int number
    with nogil:
        for t in range(ends.shape[0]):
            length = begins[t] - copied
            memcpy(&out[at], &data[copied], length)
            at += length
            copied = ends[t]
            number = numbers[t]
            begin = 0 if number == 0 else text_ends[number - 1]
            length = text_ends[number] - begin
            if length:
                memcpy(&out[at], &texts[begin], length)
            at += length
        length = data.shape[0] - copied
        if length:
            memcpy(&out[at], &data[copied], length)
