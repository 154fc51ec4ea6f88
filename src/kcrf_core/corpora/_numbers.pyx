"""Conversion of decimal numbers from bytes to doubles, the same ones that Python's `float` makes of them.

A number is a sign, digits with or without a point, and an exponent: w 10^q with a whole number w. Where w and 10^|q|
are doubles themselves, one operation rounds once and is right. Others are left to the C library.
"""

from libc.stdlib cimport strtod
from libc.string cimport memcpy

from ..system.types cimport uint64

cdef double TENS[23]                   # powers of ten that doubles hold exactly
TENS[:] = [10.0**q for q in range(23)]


cdef bint by_library(const unsigned char* text, Py_ssize_t length, double* number) noexcept nogil:
    """Parse digits as `float` does; return False for numbers that are too large."""
    cdef char copy[64]
    cdef char* end = NULL
    if length < 64:
        memcpy(copy, text, length)
        copy[length] = 0
        number[0] = strtod(copy, &end)
    if end != copy + length:  # it is longer, or the program has set another sign for the point
        with gil:
            number[0] = float(text[:length])
    return number[0] - number[0] == 0


cdef int parse_number(const unsigned char* text, Py_ssize_t length, double* number) noexcept nogil:
    """Return True if a text is a finite number, which is then stored in `number`.

    This is less than `float` takes: no nan, infinity, underscores, spaces and digits of other scripts.
    """
    cdef Py_ssize_t at = 0
    cdef uint64 w = 0
    cdef int digit, significant = 0, exponent = 0, written = 0
    cdef bint negative = False, negative_exponent = False, any_digit = False, lost = False, behind_point = False
    if length and (text[0] == c"-" or text[0] == c"+"):
        negative = text[0] == c"-"
        at = 1
    while at < length:
        digit = text[at] - c"0"
        if 0 <= digit <= 9:
            any_digit = True
            if significant < 19:
                w = 10 * w + digit
                significant += w != 0
                exponent -= behind_point
            else:
                lost |= digit != 0
                exponent += not behind_point
        elif text[at] == c"." and not behind_point:
            behind_point = True
        else:
            break
        at += 1
    if not any_digit:
        return False
    if at < length and (text[at] == c"e" or text[at] == c"E"):
        at += 1
        if at < length and (text[at] == c"-" or text[at] == c"+"):
            negative_exponent = text[at] == c"-"
            at += 1
        if at == length:
            return False
        while at < length:
            digit = text[at] - c"0"
            if digit < 0 or digit > 9:
                return False
            if written < 100000:
                written = 10 * written + digit
            at += 1
        lost |= written >= 100000
        exponent += -written if negative_exponent else written
    if at != length:
        return False
    if w == 0:
        number[0] = 0.0
    elif not lost and w <= 9007199254740992ULL and -22 <= exponent <= 22:
        number[0] = <double>w / TENS[-exponent] if exponent < 0 else <double>w * TENS[exponent]
    else:
        return by_library(text, length, number)
    if negative:
        number[0] = -number[0]
    return True
