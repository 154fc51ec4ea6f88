"""Conversion of decimal numbers from bytes to doubles, the same ones that Python's `float` makes of them.

A number is a sign, digits with or without a point, and an exponent: w 10^q with a whole number w. Where w and 10^|q|
are doubles themselves, one operation rounds once and is right. Else 5^q is taken from a table, rounded to 128 bits: the
product with w has an error of less than one unit of its second word, so that it rounds to the double of the true
value unless the bits below the last one of the double are all ones, or just one half. These, numbers of more than 19
digits and those that are too small for 53 bits are left to Python.
"""

from libc.string cimport memcpy

ctypedef unsigned long long uint64

cdef enum:
    LEAST = -342                       # of powers of ten: below all is zero, above all is infinite
    MOST = 308
    POWERS = 651

cdef uint64 FIRST_WORD[POWERS]         # of 5^q 2^-EXPONENT, between 2^127 and 2^128
cdef uint64 SECOND_WORD[POWERS]
cdef int EXPONENT[POWERS]
cdef double TENS[23]                   # powers of ten that doubles hold exactly


def _fill_tables():
    for number in range(POWERS):
        q = number + LEAST
        power = 5 ** abs(q)
        if q >= 0:
            shift = power.bit_length() - 128
            words = power >> shift if shift > 0 else power << -shift
        else:
            shift = -(power.bit_length() + 127)
            words = (1 << -shift) // power
        FIRST_WORD[number], SECOND_WORD[number], EXPONENT[number] = words >> 64, words & ((1 << 64) - 1), shift
    for number in range(23):
        TENS[number] = 10.0 ** number


_fill_tables()


cdef inline uint64 multiply(uint64 a, uint64 b, uint64* low) noexcept nogil:
    """Return the high word of a product, and its low one. C has no type of 128 bits that all compilers know."""
    cdef uint64 a_low = a & 0xFFFFFFFFULL, a_high = a >> 32, b_low = b & 0xFFFFFFFFULL, b_high = b >> 32
    cdef uint64 lowest = a_low * b_low, first = a_high * b_low, second = a_low * b_high
    cdef uint64 middle = (lowest >> 32) + (first & 0xFFFFFFFFULL) + (second & 0xFFFFFFFFULL)
    low[0] = a * b
    return a_high * b_high + (first >> 32) + (second >> 32) + (middle >> 32)


cdef inline bint product(uint64 w, int q, double* number) noexcept nogil:
    """Compute w 10^q as the nearest double; return False where that is not certain. w is not zero."""
    cdef uint64 high, middle, more, low, mantissa, rest, half, bits
    cdef int shift = 0, dropped, exponent
    if q < LEAST or q > MOST:
        return False
    while not w >> 56:
        w <<= 8
        shift += 8
    while not w >> 63:
        w <<= 1
        shift += 1
    high = multiply(w, FIRST_WORD[q - LEAST], &middle)
    more = multiply(w, SECOND_WORD[q - LEAST], &low)
    middle += more
    high += middle < more
    dropped = 11 if high >> 63 else 10
    mantissa = high >> dropped
    half = (<uint64>1) << (dropped - 1)
    rest = high & (2 * half - 1)
    if middle == 0xFFFFFFFFFFFFFFFFULL or (rest == half and middle == 0):
        return False
    mantissa += rest >= half
    exponent = dropped + 128 + EXPONENT[q - LEAST] + q - shift + 52 + 1023
    if mantissa >> 53:
        mantissa >>= 1
        exponent += 1
    if exponent < 1 or exponent > 2046:
        return False
    bits = (mantissa & 0xFFFFFFFFFFFFFULL) | (<uint64>exponent << 52)
    memcpy(number, &bits, sizeof(double))
    return True


cdef bint by_python(const unsigned char* text, Py_ssize_t length, double* number) noexcept nogil:
    """Parse digits as `float` does; return False for numbers that are too large."""
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
    elif lost or not product(w, exponent, number):
        return by_python(text, length, number)
    if negative:
        number[0] = -number[0]
    return True
