/* Hashes of texts and decimal numbers in them, for the library and for training, which reads the same files. */

#ifndef KCRF_TEXTS_H
#define KCRF_TEXTS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t kcrf_hash(const char *text, size_t size)
{
    uint64_t h = 0x9E3779B97F4A7C15ull ^ size, word;
    for (; size >= 8; text += 8, size -= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * 0xFF51AFD7ED558CCDull;
        h ^= h >> 32;
    }
    if (size) { /* the same as a word with zero bytes behind the text */
        uint32_t half = 0;
        word = 0;
        if (size >= 4) {
            uint32_t last;
            memcpy(&half, text, 4);
            memcpy(&last, text + size - 4, 4);
            word = half | ((uint64_t)last >> 8 * (8 - size)) << 32;
        } else
            word = (uint8_t)text[0] | (uint64_t)(size > 1 ? (uint8_t)text[1] : 0) << 8 |
                   (uint64_t)(size > 2 ? (uint8_t)text[2] : 0) << 16;
        h = (h ^ word) * 0xFF51AFD7ED558CCDull;
        h ^= h >> 32;
    }
    h *= 0xC4CEB9FE1A85EC53ull;
    return h ^ h >> 29;
}

/* Parse a decimal number, rounded as strtod rounds it in the C locale. Numbers of few digits are one product or quotient
   of doubles. Others go to strtod as an integer with an exponent, since its decimal point depends on the locale. The
   point between two doubles has at most 767 significant digits: of longer numbers the end is one more digit. */
static inline bool kcrf_number(const char *text, size_t size, double *out)
{
    static const double TENS[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t digits = 0;
    size_t at = 0, begin;
    int64_t exponent = 0, written = 0;
    bool negative = size && text[0] == '-', any = false, point = false, large = false, below = false;
    begin = at += negative || (size && text[0] == '+');
    for (; at < size; at++) {
        if (text[at] >= '0' && text[at] <= '9') {
            any = true;
            large |= digits > 900000000000000ull;
            if (!large)
                digits = 10 * digits + (uint64_t)(text[at] - '0');
            exponent -= point;
        } else if (text[at] == '.' && !point)
            point = true;
        else
            break;
    }
    size_t end = at;
    if (!any)
        return false;
    if (at < size && (text[at] | 32) == 'e') {
        at++;
        below = at < size && text[at] == '-';
        at += below || (at < size && text[at] == '+');
        if (at == size)
            return false;
        for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
            written = written < (int64_t)1 << 50 ? 10 * written + (text[at] - '0') : written;
        exponent += below ? -written : written;
    }
    if (at != size)
        return false;
    if (!large && exponent >= -22 && exponent <= 22)
        *out = exponent < 0 ? (double)digits / TENS[-exponent] : (double)digits * TENS[exponent];
    else if (digits == 0)
        *out = 0;
    else {
        char copy[800];
        size_t count = 0;
        bool rest = false;
        for (size_t k = begin; k < end; k++) {
            if (text[k] == '.' || (count == 0 && text[k] == '0'))
                continue;
            if (count < 768)
                copy[count++] = text[k];
            else {
                rest |= text[k] != '0';
                exponent++;
            }
        }
        if (rest) {
            copy[count++] = '1';
            exponent--;
        }
        exponent = exponent < -9999 ? -9999 : exponent > 9999 ? 9999 : exponent;
        snprintf(copy + count, sizeof copy - count, "e%d", (int)exponent);
        *out = strtod(copy, NULL);
    }
    *out = negative ? -*out : *out;
    return isfinite(*out);
}

#endif
