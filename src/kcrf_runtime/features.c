/* From the texts of a sequence to codes, and from codes to scores of labels.

   All values of a column are hashed once, and looked up in the tables of the families of the column. Values that were
   met before are remembered in a table of fixed size, with their codes and what they add to scores around them; so are
   values together with those behind them, where conjunctions of one column use them. Scores are sums of rows of weights
   in double precision: for each column and distance in the order of the fields, then over columns and distances. Sums
   of a column are stored in single precision if weights are no doubles. What is remembered changes no bit. */

#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t kcrf_mix(uint64_t value)
{
    value += 0x9E3779B97F4A7C15ull;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ value >> 27) * 0x94D049BB133111EBull;
    return value ^ value >> 31;
}

static void *grown(struct room *room, size_t items, size_t item)
{
    if (items > (SIZE_MAX / 4 - 64) / item)
        return NULL;
    if (items * item > room->bytes || !room->memory) {
        size_t bytes = items * item + SPARE(items * item);
        void *memory = realloc(room->memory, bytes);
        if (!memory)
            return NULL;
        room->memory = memory;
        room->bytes = bytes;
    }
    return room->memory;
}

void *kcrf_grow(kcrf_tagger *tagger, struct room *room, size_t items, size_t item)
{
    void *memory = grown(room, items, item);
    if (!memory)
        kcrf_fail(&tagger->error, KCRF_MEMORY, "out of memory");
    return memory;
}

/* ---------------------------------------------------------------------------------------------------- tables */

/* Code of a text in the table of a family, NONE if it is not there. */
INLINE uint32_t find_text(const kcrf_model *model, const struct family *family, const char *text, size_t size, uint64_t hash)
{
    const struct slot *slots = model->slots + family->first_slot;
    uint32_t mask = (uint32_t)(((uint64_t)1 << family->bits) - 1), tag = (uint32_t)(hash >> 32);
    uint32_t at = (uint32_t)hash & mask;
    for (uint32_t tries = 0; tries <= mask; tries++, at = (at + 1) & mask) {
        const struct slot *slot = slots + at;
        if (slot->code == NONE)
            break;
        if (slot->tag == tag && slot->size == size && (uint64_t)slot->at + size <= model->count[TEXT] &&
            memcmp((const char *)model->at[TEXT] + slot->at, text, size) == 0)
            return slot->code < family->codes ? slot->code : NONE;
    }
    return NONE;
}

INLINE const struct pair *find_pair(const kcrf_model *model, uint64_t first, uint32_t bits, uint64_t key)
{
    const struct pair *pairs = model->pairs + first;
    uint64_t mask = ((uint64_t)1 << bits) - 1, at = kcrf_mix(key) & mask;
    for (uint64_t tries = 0; tries <= mask && pairs[at].number != NONE; tries++, at = (at + 1) & mask)
        if (pairs[at].key == key)
            return pairs + at;
    return NULL;
}

/* ---------------------------------------------------------------------------------------------------- Unicode */

enum { PAGE = 128, PAGES = 0x110000 / PAGE, RECORDS = 256, HEAD = PAGES * 2 + RECORDS * 4 };
enum { KIND = 3, CASED = 4, IGNORABLE = 8, SPECIAL = 16 };

static uint32_t number_at(const uint8_t *data)
{
    uint32_t number;
    memcpy(&number, data, 4);
    return number;
}

/* The record of a character: kind (1 capital, 2 letter, 3 digit), properties, and what makes a small letter of it. */
static uint32_t record_of(kcrf_text table, uint32_t c)
{
    const uint8_t *data = (const uint8_t *)table.text;
    uint16_t page;
    if (table.size < HEAD || c >= 0x110000)
        return 0;
    memcpy(&page, data + 2 * (c / PAGE), 2);
    uint64_t place = HEAD + (uint64_t)page * PAGE + c % PAGE;
    return place < table.size ? number_at(data + PAGES * 2 + 4 * data[place]) : 0;
}

/* The next character and its number of bytes; a byte that is no UTF-8 is a character of its own. */
static size_t next_character(const uint8_t *text, size_t size, uint32_t *c)
{
    size_t more = text[0] < 0x80 ? 0 : text[0] >= 0xF0 ? 3 : text[0] >= 0xE0 ? 2 : text[0] >= 0xC0 ? 1 : 0;
    *c = text[0];
    if (more == 0 || more >= size)
        return 1;
    *c &= 0x3F >> more;
    for (size_t k = 1; k <= more; k++)
        *c = *c << 6 | (text[k] & 0x3F);
    return more + 1;
}

static size_t put_character(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    out[0] = (char)(0xF0 << (3 - more) | c >> 6 * more);
    for (size_t k = 1; k <= more; k++)
        out[k] = (char)(0x80 | (c >> 6 * (more - k) & 0x3F));
    return more + 1;
}

/* True if a capital sigma ends a word: a letter before it and none behind it, apart from characters such as quotes. */
static bool final_sigma(kcrf_text table, const uint8_t *text, size_t size, size_t at)
{
    uint32_t c, record = 0;
    for (size_t k = at; k > 0;) {
        do
            k--;
        while (k > 0 && (text[k] & 0xC0) == 0x80);
        next_character(text + k, size - k, &c);
        record = record_of(table, c);
        if (!(record & IGNORABLE))
            break;
    }
    if (!(record & CASED) || record & IGNORABLE)
        return false;
    for (size_t k = at + 2; k < size;) {
        k += next_character(text + k, size - k, &c);
        record = record_of(table, c);
        if (!(record & IGNORABLE))
            return !(record & CASED);
    }
    return true;
}

static size_t lower(kcrf_text table, const char *text, size_t size, char *out)
{
    size_t count = 0;
    uint32_t c;
    for (size_t at = 0; at < size;) {
        if ((uint8_t)text[at] < 0x80) {
            char one = text[at++];
            out[count++] = one >= 'A' && one <= 'Z' ? (char)(one + 32) : one;
            continue;
        }
        size_t bytes = next_character((const uint8_t *)text + at, size - at, &c);
        uint32_t record = record_of(table, c);
        if (c == 0x3A3 && final_sigma(table, (const uint8_t *)text, size, at))
            c = 0x3C2;
        else
            c += (uint32_t)((int32_t)record >> 8);
        if (bytes == 1)
            out[count++] = text[at];
        else
            count += put_character(c & 0x1FFFFF, out + count);
        if (record & SPECIAL) /* a capital I with a dot: the dot stays */
            count += put_character(0x307, out + count);
        at += bytes;
    }
    return count;
}

static size_t shape(kcrf_text table, const char *text, size_t size, char *out)
{
    size_t count = 0;
    uint32_t c, before = NONE;
    for (size_t at = 0; at < size;) {
        uint8_t one = (uint8_t)text[at];
        if (one < 0x80) {
            c = one >= 'A' && one <= 'Z' ? 'X' : (one | 32) >= 'a' && (one | 32) <= 'z' ? 'x' : one >= '0' && one <= '9' ? 'd' : one;
            at++;
        } else {
            at += next_character((const uint8_t *)text + at, size - at, &c);
            uint32_t kind = record_of(table, c) & KIND;
            c = kind == 0 ? c : (uint32_t)"?Xxd"[kind];
        }
        if (c != before)
            count += put_character(c, out + count);
        before = c;
    }
    return count;
}

/* The part of a text from its first letter or digit to its last one; of size 0 if there is none. */
static const char *between_edges(kcrf_text table, const char *text, size_t *size)
{
    size_t first = *size, last = *size;
    uint32_t c;
    for (size_t at = 0; at < *size;) {
        size_t bytes = next_character((const uint8_t *)text + at, *size - at, &c);
        if (record_of(table, c) & KIND) {
            first = first < at ? first : at;
            last = at + bytes;
        }
        at += bytes;
    }
    *size = last - first;
    return text + first;
}

/* Punctuation before and behind the letters and digits of a text, and an x in their place; a text without any. */
static size_t edges(kcrf_text table, const char *text, size_t size, char *out)
{
    size_t count = size;
    const char *own = between_edges(table, text, &count);
    size_t before = (size_t)(own - text), behind = size - before - count;
    memcpy(out, text, before);
    if (count)
        out[before++] = 'x';
    memcpy(out + before, own + count, behind);
    return before + behind;
}

/* A text without what stands around its letters and digits, in lower case; one without any, as it is. */
static size_t stripped(kcrf_text table, const char *text, size_t size, char *out)
{
    size_t count = size;
    const char *own = between_edges(table, text, &count);
    return count ? lower(table, own, count, out) : lower(table, text, size, out);
}

/* The kind of a word without punctuation around it: of a number by its digits, else by its capitals. */
static const char *word_kind(kcrf_text table, const char *text, size_t size)
{
    static const char *const DIGITS[] = {"d", "dd", "ddd", "dddd", "ddddd"};
    uint32_t counts[4] = {0, 0, 0, 0}, characters = 0, longest = 0, runs = 0, run = 0, c, first = 0;
    text = between_edges(table, text, &size);
    for (size_t at = 0; at < size; characters++) {
        at += next_character((const uint8_t *)text + at, size - at, &c);
        uint32_t kind = record_of(table, c) & KIND;
        first = characters ? first : kind;
        counts[kind]++;
        runs += kind && !run;
        run = kind ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    uint32_t capitals = counts[1], small = counts[2], digits = counts[3];
    if (size == 0)
        return "";
    if (digits == 4 && small < 2 && size == 4 + small && (!small || text[4] > '9') && /* 1400 to 2099, 1999a */
        (text[0] == '2' ? text[1] == '0' : text[0] == '1' && text[1] >= '4'))
        return "year";
    if (digits == characters)
        return DIGITS[digits < 5 ? digits - 1 : 4];
    if (digits)
        return capitals + small ? "mixed" : runs == 2 ? "range" : "digits";
    if (longest == 1)
        return characters == 1 ? "letter" : "initials";
    return capitals && !small ? "capitals" : first == 1 ? "capital" : "word";
}

/* Bytes of the first, or last, characters of a text. */
static size_t affix(const char *text, size_t size, uint32_t length, bool first)
{
    size_t at = 0, seen = 0;
    if (first) {
        for (; at < size; at++)
            if (((uint8_t)text[at] & 0xC0) != 0x80 && seen++ == length)
                break;
        return at;
    }
    while (at < size && seen < length)
        if (((uint8_t)text[size - ++at] & 0xC0) != 0x80)
            seen++;
    return at;
}

const char *kcrf_transformed(
    struct room *room, kcrf_text table, uint32_t transform, uint32_t length, const char *text, size_t *size)
{
    size_t count;
    char *out;
    switch (transform) {
    case IDENTITY:
        return text;
    case PREFIX:
        *size = affix(text, *size, length, true);
        return text;
    case SUFFIX:
        count = affix(text, *size, length, false);
        text += *size - count;
        *size = count;
        return text;
    case WORD_KIND:
        text = word_kind(table, text, *size);
        *size = strlen(text);
        return text;
    default:
        out = grown(room, *size + 1, 8); /* lower case takes 6 bytes for one at most */
        if (out)
            *size = (transform == SHAPE      ? shape
                     : transform == EDGES    ? edges
                     : transform == STRIPPED ? stripped
                                             : lower)(table, text, *size, out);
        return out;
    }
}

/* ---------------------------------------------------------------------------------------------------- codes */

static void zero_digits(const char *text, size_t size, char *out)
{
    for (size_t k = 0; k < size; k++)
        out[k] = text[k] >= '1' && text[k] <= '9' ? '0' : text[k];
}

/* Put the code of the first variant of a text that the table of a family has, or NONE: of a lexicon, of embeddings. */
static int variant_code(kcrf_tagger *tagger, const struct family *family, const char *text, size_t size, uint64_t hash, uint32_t *code)
{
    const kcrf_model *model = tagger->model;
    kcrf_text table = {model->at[UNICODE], model->count[UNICODE]};
    if (family->transform == VARIANTS && (*code = find_text(model, family, text, size, hash)) != NONE)
        return KCRF_OK;
    char *both = kcrf_grow(tagger, &tagger->text, size + 1, 8);
    if (!both)
        return tagger->error.status;
    size_t lower_size = lower(table, text, size, both);
    char *zeros = both + lower_size;
    if ((*code = find_text(model, family, both, lower_size, kcrf_hash(both, lower_size))) != NONE)
        return KCRF_OK;
    if (family->transform == STRIPPED) {
        size = stripped(table, text, size, both);
        *code = find_text(model, family, both, size, kcrf_hash(both, size));
        return KCRF_OK;
    }
    zero_digits(text, size, zeros);
    if ((*code = find_text(model, family, zeros, size, kcrf_hash(zeros, size))) != NONE)
        return KCRF_OK;
    zero_digits(both, lower_size, both);
    *code = find_text(model, family, both, lower_size, kcrf_hash(both, lower_size));
    return KCRF_OK;
}

static int value_codes(kcrf_tagger *tagger, uint32_t column, const char *text, size_t size, uint64_t hash, int32_t *out)
{
    const kcrf_model *model = tagger->model;
    kcrf_text table = {model->at[UNICODE], model->count[UNICODE]};
    uint32_t first = model->column_families[column], last = model->column_families[column + 1];
    const struct family *lead = model->families + first;
    uint32_t leading = lead->leads && lead->kind == VALUE ? find_text(model, lead, text, size, hash) : NONE;
    if (leading != NONE) {
        const uint32_t *codes = model->codes + lead->numbers + (uint64_t)leading * (last - first);
        for (uint32_t f = first; f < last; f++)
            out[f - first] = codes[f - first] < model->families[f].codes ? (int32_t)codes[f - first] : -1;
        return KCRF_OK;
    }
    for (uint32_t f = first; f < last; f++, out++) {
        const struct family *family = model->families + f;
        size_t own_size = size;
        *out = -1;
        if (family->kind != VALUE)
            continue;
        if (family->transform == VARIANTS || family->transform == STRIPPED) {
            uint32_t code;
            if (variant_code(tagger, family, text, size, hash, &code))
                return tagger->error.status;
            *out = (int32_t)(code == NONE ? family->missing : code);
            continue;
        }
        const char *own = kcrf_transformed(&tagger->text, table, family->transform, family->length, text, &own_size);
        if (!own)
            return kcrf_fail(&tagger->error, KCRF_MEMORY, "out of memory");
        uint32_t code = find_text(model, family, own, own_size, own == text && own_size == size ? hash : kcrf_hash(own, own_size));
        *out = (int32_t)(code == NONE ? family->missing : code);
    }
    return KCRF_OK;
}

INLINE double number_of(const void *row, const int bytes, uint64_t k)
{
    return bytes == 8 ? ((const double *)row)[k] : ((const float *)row)[k];
}

/* out [columns] += factor times the row of weights. Columns of a damaged file are below 65536, and out has room. */
INLINE void add_row(const kcrf_model *model, const struct term *term, const int bytes, uint64_t row, double factor, double *restrict out)
{
    const uint32_t *start = model->starts + term->first_start + row;
    uint64_t k = start[0], end = start[1], width = term->columns;
    if (k >= end || end > model->count[COLUMNS])
        return;
    if (end - k == width) {
        for (uint64_t y = 0; y < width; y++)
            out[y] += factor * number_of(model->values, bytes, k + y);
        return;
    }
    for (; k < end; k++)
        out[model->columns[k]] += factor * number_of(model->values, bytes, k);
}

INLINE uint64_t row_of(const struct field *field, int32_t code)
{
    return field->first_row + (uint64_t)(uint32_t)code * field->stride;
}

/* Sums of the rows of fields of a column for each distance; the code of family f is codes[(f - first) * step]. Where
   weights are not doubles, sums are stored in single precision: they take half the memory, which is what lookups cost. */
EACH_WIDTH static void column_sums(const kcrf_tagger *tagger, uint32_t column, uint32_t first, const int32_t *codes, size_t step, char *out)
{
    const kcrf_model *model = tagger->model;
    const uint32_t bytes = model->meta->value_bytes;
    size_t S = model->stride;
    double *restrict row_sums = tagger->row;
    for (uint32_t d = model->column_distances[column]; d < model->column_distances[column + 1]; d++, out += S * tagger->sum_bytes) {
        memset(row_sums, 0, S * sizeof *row_sums);
        for (uint32_t k = model->distances[d].first; k < model->distances[d].last; k++) {
            const struct term *term = model->terms + model->summed[k].term;
            const struct field *field = model->fields + model->summed[k].field;
            int32_t code = codes[(field->family - first) * step];
            if (code < 0)
                continue;
            uint64_t row = row_of(field, code);
            bytes == 8 ? add_row(model, term, 8, row, 1.0, row_sums) : add_row(model, term, 4, row, 1.0, row_sums);
        }
        if (tagger->sum_bytes == 8)
            memcpy(out, row_sums, S * sizeof *row_sums);
        else
            for (size_t y = 0; y < S; y++)
                ((float *)out)[y] = (float)row_sums[y];
    }
}

/* out [stride] = the sum of `count` rows, in their order. Eight labels at a time, so that sums stay in registers. */
INLINE void add_rows(const char *const *rows, size_t count, size_t S, const int bytes, double *restrict out)
{
    for (size_t y = 0; y < S; y += 8) {
        double sums[8] = {0};
        for (size_t d = 0; d < count; d++)
            for (size_t k = 0; k < 8; k++)
                sums[k] += number_of(rows[d], bytes, y + k);
        memcpy(out + y, sums, sizeof sums);
    }
}

/* out [stride] = the sum of all that columns add to a position; `places` [columns, N] of their values from it on. */
EACH_WIDTH static void add_sums(const kcrf_tagger *tagger, const char *const *places, size_t N, double *out)
{
    const kcrf_model *model = tagger->model;
    size_t S = model->stride, count = model->column_distances[model->meta->columns], row = S * tagger->sum_bytes;
    const char **rows = tagger->rows;
    const struct distance *near = model->distances;
    for (size_t d = 0; d < count; d++, near++)
        rows[d] = places[near->column * N + (size_t)(ptrdiff_t)near->offset] + near->number * row;
    tagger->sum_bytes == 8 ? add_rows(rows, count, S, 8, out) : add_rows(rows, count, S, 4, out);
}

static struct remembered *known_at(const kcrf_tagger *tagger, size_t number)
{
    return (struct remembered *)(void *)(tagger->known + number * tagger->known_bytes);
}

static int32_t *codes_of(const kcrf_tagger *tagger, struct remembered *known)
{
    return (int32_t *)(void *)((char *)(known + 1) + tagger->sums_room);
}

/* Code of a conjunction at place b, from those of its parts. */
INLINE int32_t conjunction_code(const kcrf_model *model, const struct family *family, const int32_t *codes, size_t N, size_t b)
{
    const struct part *parts = model->parts + family->first_part;
    int64_t combined = -1;
    for (uint32_t k = 0; k < family->parts; k++) {
        int64_t place = (int64_t)b + parts[k].offset;
        int32_t code = place < 0 || place >= (int64_t)N ? -1 : codes[(size_t)parts[k].family * N + (size_t)place];
        if (code < 0) {
            combined = -1;
            break;
        }
        if (k == 0) {
            combined = code;
            continue;
        }
        uint64_t key = (uint64_t)combined * parts[k].codes + (uint32_t)code;
        const struct pair *pair = find_pair(model, parts[k].first_pair, parts[k].bits, key);
        combined = pair ? (int64_t)pair->number : -1;
        if (combined < 0)
            break;
    }
    return combined >= 0 && combined < family->codes ? (int32_t)combined : (int32_t)family->missing;
}

/* The known value of a text, or NULL and the slot that it may take. */
static struct remembered *find_known(const kcrf_tagger *tagger, uint32_t column, uint64_t hash, kcrf_text text, uint64_t **slot)
{
    for (size_t at = hash & (tagger->known_slots - 1);; at = (at + 1) & (tagger->known_slots - 1)) {
        *slot = tagger->slots + at;
        uint64_t found = ACQUIRED(**slot); /* threads may share the table */
        if (!found)
            return NULL;
        struct remembered *known = known_at(tagger, (uint32_t)found - 1);
        if (found >> 32 == hash >> 32 && known->hash == hash && known->column == column &&
            known->size == text.size && !memcmp(known->text, text.text, text.size))
            return known;
    }
}

static uint64_t slot_of(uint64_t hash, size_t number) { return hash >> 32 << 32 | (number + 1); }

/* Add a value to those that taggers share, which are never forgotten, and return it; NULL if there is no room. */
static struct remembered *shared(kcrf_tagger *all, const struct remembered *own, kcrf_text text)
{
    uint64_t *slot, none = 0;
    struct remembered *found = find_known(all, own->column, own->hash, text, &slot);
    if (found || ACQUIRED(all->known_count) >= all->known_slots / 2)
        return found;
    size_t number = INCREASED(all->known_count);
    if (number >= all->known_slots / 2)
        return NULL;
    struct remembered *known = memcpy(known_at(all, number), own, all->known_bytes);
    for (; !CHANGED(*slot, none, slot_of(own->hash, number)); none = 0)
        if ((found = find_known(all, own->column, own->hash, text, &slot)))
            return found; /* another thread was sooner; this place stays unused */
    return known;
}

/* What a value of a column adds to scores around place b; `text` is the value or, where conjunctions of the column are
   summed with it, its code and those of the next `span` values. There is room for one more value. NULL: no memory. */
static const char *sums_of(kcrf_tagger *tagger, uint32_t column, uint64_t hash, kcrf_text text, int32_t *codes, size_t N, size_t b)
{
    const kcrf_model *model = tagger->model;
    uint32_t first = model->column_families[column], last = model->column_families[column + 1];
    uint64_t *slot;
    struct remembered *known = tagger->shared ? find_known(tagger->shared, column, hash, text, &slot) : NULL;
    if (!known && (tagger->known_count || !tagger->shared))
        known = find_known(tagger, column, hash, text, &slot);
    if (!known) {
        known = known_at(tagger, tagger->known_count);
        if (model->spans[column]) {
            for (uint32_t f = last; f < model->count[FAMILIES]; f++)
                if (model->summed_with[f] == column)
                    codes[f * N + b] = conjunction_code(model, model->families + f, codes, N, b);
            column_sums(tagger, column, 0, codes + b, N, (char *)(known + 1));
        } else {
            if (value_codes(tagger, column, text.text, text.size, kcrf_hash(text.text, text.size), codes_of(tagger, known)))
                return NULL;
            column_sums(tagger, column, first, codes_of(tagger, known), 1, (char *)(known + 1));
        }
        known->hash = hash, known->column = column, known->size = (uint32_t)text.size;
        memcpy(known->text, text.text, text.size <= LONGEST_KNOWN ? text.size : 0); /* longer ones are not found again */
        struct remembered *found = tagger->shared && text.size <= LONGEST_KNOWN ? shared(tagger->shared, known, text) : NULL;
        if (!found && text.size <= LONGEST_KNOWN && !find_known(tagger, column, hash, text, &slot))
            *slot = slot_of(hash, tagger->known_count);
        tagger->known_count += !found;
        known = found ? found : known;
    }
    for (uint32_t f = first; f < last && model->needed_of[column]; f++)
        if (model->needed[f])
            codes[f * N + b] = codes_of(tagger, known)[f - first];
    return (const char *)(known + 1);
}

/* The text by which a value of a column is remembered: the cell or, where conjunctions of the column are summed with it,
   codes from place b on. These are put in `key`. */
INLINE kcrf_text text_at(const kcrf_model *model, uint32_t column, const kcrf_text *cells, const int32_t *codes, size_t N, size_t b, int32_t *key)
{
    const int32_t *first = codes + model->column_families[column] * N;
    uint32_t span = model->spans[column];
    if (!span)
        return cells[(b - model->meta->reach) * model->meta->columns + column];
    for (size_t k = 0; k <= span; k++)
        key[k] = b + k < N ? first[b + k] : -1;
    return (kcrf_text){(const char *)key, (span + 1) * 4};
}

/* Codes of families of values [families, N], and scores of labels [T, stride] by columns. */
static int column_scores(kcrf_tagger *tagger, const kcrf_text *cells, size_t T, int32_t *codes, size_t N, double *scores)
{
    const kcrf_model *model = tagger->model;
    size_t reach = model->meta->reach, S = model->stride, row = S * tagger->sum_bytes;
    uint32_t columns = model->meta->columns;
    int32_t key[LONGEST_KNOWN / 4];
    const kcrf_tagger *near = tagger->shared ? tagger->shared : tagger;
    const char **places = kcrf_grow(tagger, &tagger->places, columns * N + 1, sizeof *places);
    uint64_t *hashes = kcrf_grow(tagger, &tagger->hashes, columns * N + 1, sizeof *hashes);
    if (!places || !hashes)
        return tagger->error.status;
    for (uint32_t c = 0; c < columns; c++) {
        size_t own_room = (model->column_distances[c + 1] - model->column_distances[c]) * row;
        const char *beyond = tagger->beyond + model->column_distances[c] * 2 * reach * row;
        uint32_t first = model->column_families[c];
        for (size_t d = 0; d < 2 * reach; d++) {
            size_t at = d < reach ? reach - 1 - d : T + d;
            places[c * N + at] = beyond + d * own_room;
            for (uint32_t f = first; f < model->column_families[c + 1]; f++)
                if (model->needed[f])
                    codes[f * N + at] = (int32_t)(model->families[f].codes + d);
        }
        for (size_t t = 0; t < T && model->spans[c]; t++) { /* of the only family of the column */
            kcrf_text cell = cells[t * columns + c];
            if (value_codes(tagger, c, cell.text, cell.size, kcrf_hash(cell.text, cell.size), codes + first * N + reach + t))
                return tagger->error.status;
        }
        for (size_t b = model->spans[c] ? 0 : reach; b < (model->spans[c] ? N : reach + T); b++) {
            kcrf_text text = text_at(model, c, cells, codes, N, b, key);
            hashes[c * N + b] = kcrf_hash(text.text, text.size) ^ c * 0x9E3779B97F4A7C15ull;
            FETCH(near->slots + (hashes[c * N + b] & (near->known_slots - 1)));
        }
    }
    size_t t = 0; /* the next position to score, for which places up to t + 2 reach are needed */
    for (size_t b = 0; b < N; b++) {
        if (tagger->known_count + columns > tagger->known_slots / 2) { /* forget all values, and find those in use again */
            memset(tagger->slots, 0, tagger->known_slots * sizeof *tagger->slots);
            tagger->known_count = 0;
            b = b > 2 * reach ? b - 2 * reach : 0;
        }
        for (uint32_t c = 0; c < columns; c++) {
            if (model->column_families[c] == model->column_families[c + 1])
                continue;
            size_t begin = model->spans[c] ? 0 : reach, end = model->spans[c] ? N : reach + T, ahead = b + FETCHED_AHEAD;
            if (ahead >= begin && ahead < end) {
                uint32_t number = (uint32_t)ACQUIRED(near->slots[hashes[c * N + ahead] & (near->known_slots - 1)]);
                const char *known = (const char *)known_at(near, number ? number - 1 : 0);
                for (size_t k = 0; k < sizeof(struct remembered) + (model->column_distances[c + 1] - model->column_distances[c]) * row; k += 64)
                    FETCH(known + k);
            }
            if (b >= begin && b < end &&
                !(places[c * N + b] = sums_of(tagger, c, hashes[c * N + b], text_at(model, c, cells, codes, N, b, key), codes, N, b)))
                return tagger->error.status;
        }
        if (b >= 2 * reach && b - 2 * reach == t && t < T)
            add_sums(tagger, places + b - reach, N, scores + t++ * S);
    }
    return KCRF_OK;
}

static int numbers_of(kcrf_tagger *tagger, uint32_t f, const kcrf_text *cells, size_t T, double *out)
{
    const kcrf_model *model = tagger->model;
    const struct family *family = model->families + f;
    const double *about = model->numbers + family->numbers;
    for (size_t t = 0; t < T; t++) {
        kcrf_text cell = cells[t * model->meta->columns + family->column];
        double number;
        if (find_text(model, family, cell.text, cell.size, kcrf_hash(cell.text, cell.size)) != NONE) {
            out[t] = about[2];
            continue;
        }
        if (!kcrf_number(cell.text, cell.size, &number))
            return kcrf_fail(&tagger->error, KCRF_INPUT, "position %zu: '%.*s' in column '%s' is not a number", t + 1,
                             (int)(cell.size < 60 ? cell.size : 60), cell.text, kcrf_column_name(model, family->column).text);
        out[t] = (number - about[0]) / about[1];
        if (!(fabs(out[t]) < 1e18))
            return kcrf_fail(&tagger->error, KCRF_INPUT, "position %zu: a value of '%s' is too large to compute with", t + 1,
                             kcrf_column_name(model, family->column).text);
    }
    return KCRF_OK;
}

/* The string that parts of a template make at a position: `*parts` moves behind the last of them. */
static const char *line_at(
    kcrf_tagger *tagger, const struct part **parts, const struct part *end, const kcrf_text *cells, size_t T, size_t t, size_t *size)
{
    const kcrf_model *model = tagger->model;
    size_t count = 0;
    for (const struct part *part = *parts; part < end;) {
        char beyond[16];
        kcrf_text piece;
        if (part->family == NONE) {
            piece.text = (const char *)model->at[TEXT] + part->first_pair;
            piece.size = part->bits;
        } else {
            int64_t last = (int64_t)T - 1, place = (int64_t)t + part->offset;
            if (part->flags & FROM_ENDS)
                place = part->offset >= 0 ? part->offset - 1 : (int64_t)T + part->offset;
            int64_t distance = place < 0 ? -place : place - last;
            if (place >= 0 && place <= last)
                piece = cells[(size_t)place * model->meta->columns + part->family];
            else {
                char sign = place < 0 ? '-' : '+';
                if (part->flags & WAPITI)
                    snprintf(beyond, sizeof beyond, "_x%c%c", sign, distance > 4 ? '#' : (char)('0' + distance));
                else
                    snprintf(beyond, sizeof beyond, "_B%c%d", sign, (int)distance);
                piece.text = beyond;
                piece.size = strlen(beyond);
            }
        }
        char *out = kcrf_grow(tagger, &tagger->text, count + piece.size + 1, 1);
        if (!out)
            return NULL;
        memcpy(out + count, piece.text, piece.size);
        count += piece.size;
        *parts = part + 1;
        if (part++->flags & LAST_OF_LINE)
            break;
    }
    *size = count;
    return kcrf_grow(tagger, &tagger->text, count + 1, 1);
}

/* 0 outside of a lexicon's entries, 1 at the first word of one and 2 inside of one. */
static void lexicon_codes(const kcrf_model *model, const struct family *family, const int32_t *codes, size_t N, size_t T, int32_t *out)
{
    const struct part *levels = model->parts + family->first_part;
    size_t covered = 0;
    for (size_t t = 0; t < T; t++) {
        size_t end = 0;
        uint64_t node = 0;
        for (uint32_t depth = 0; depth < family->parts && t + depth < T; depth++) {
            int32_t word = codes[(size_t)levels[depth].family * N + model->meta->reach + t + depth];
            const struct pair *found = word < 0 ? NULL : find_pair(model, levels[depth].first_pair, levels[depth].bits, node * levels[depth].codes + (uint32_t)word);
            if (!found)
                break;
            if (found->flags & WHOLE)
                end = t + depth + 1;
            if (!(found->flags & LONGER))
                break;
            node = found->number;
        }
        out[t] = covered > t ? 2 : end > 0;
        covered = end > covered ? end : covered;
    }
}

/* ---------------------------------------------------------------------------------------------------- scores */

static int by_feature(const void *a, const void *b)
{
    uint32_t one = ((const struct entry *)a)->feature, other = ((const struct entry *)b)->feature;
    return (one > other) - (one < other);
}

/* Sort the attributes of a position and add up those that stand there twice; those of value 0 are left out. */
static size_t merged(struct entry *entries, size_t count)
{
    size_t kept = 0;
    qsort(entries, count, sizeof *entries, by_feature);
    for (size_t k = 0; k < count; k++)
        if (kept && entries[kept - 1].feature == entries[k].feature)
            entries[kept - 1].value += entries[k].value;
        else
            entries[kept++] = entries[k];
    for (size_t k = count = 0; k < kept; k++)
        if (entries[k].value != 0)
            entries[count++] = entries[k];
    return count;
}

struct input {
    const int32_t *codes;  /* [families, N] from the first position on */
    const double *numbers; /* [families, N] likewise, of numbers alone */
    const struct entry *bag;
    const size_t *bag_ends; /* [T] */
    size_t N;
};

struct conjunction {
    uint64_t key, row;
    double square;
};

struct conjunctions {
    const kcrf_model *model;
    const struct term *term;
    double *out;
    size_t count;
    struct conjunction all[256];
};

/* Add the rows of conjunctions: places in the table, then in the rows, are fetched for all before they are used. */
INLINE void add_all(struct conjunctions *C, const int bytes)
{
    const kcrf_model *model = C->model;
    const struct term *term = C->term;
    const struct pair *pairs = model->pairs + term->first_pair;
    uint64_t mask = ((uint64_t)1 << term->bits) - 1;
    size_t found = 0;
    for (size_t k = 0; k < C->count; k++)
        FETCH(pairs + (kcrf_mix(C->all[k].key) & mask));
    for (size_t k = 0; k < C->count; k++) {
        const struct pair *pair = find_pair(model, term->first_pair, term->bits, C->all[k].key);
        if (pair && pair->number < term->rows) {
            C->all[found] = (struct conjunction){0, pair->number, C->all[k].square};
            FETCH(model->starts + term->first_start + pair->number);
            found++;
        }
    }
    for (size_t k = 0; k < found; k++) {
        uint64_t start = model->starts[term->first_start + C->all[k].row];
        FETCH(model->columns + start);
        FETCH(model->values + start * (uint64_t)bytes);
    }
    for (size_t k = 0; k < found; k++)
        add_row(model, term, bytes, C->all[k].row, C->all[k].square, C->out);
    C->count = 0;
}

INLINE void take(struct conjunctions *C, const int bytes, uint64_t key, double square)
{
    if (C->count == sizeof C->all / sizeof *C->all)
        add_all(C, bytes);
    C->all[C->count++] = (struct conjunction){key, 0, square};
}

static void add_conjunctions(const kcrf_model *model, const struct term *term, const int bytes, const uint32_t *features, size_t n, double *out)
{
    const double *squares = model->numbers + term->squares;
    uint64_t base = term->base;
    struct conjunctions C;
    C.model = model, C.term = term, C.out = out, C.count = 0;
    take(&C, bytes, 0, squares[0]);
    for (size_t i = 0; i < n && term->degree > 0; i++) {
        uint64_t one = features[i] + (uint64_t)1;
        take(&C, bytes, one, squares[1]);
        for (size_t j = i + 1; j < n && term->degree > 1; j++) {
            uint64_t two = one * base + features[j] + 1;
            take(&C, bytes, two, squares[2]);
            for (size_t k = j + 1; k < n && term->degree > 2; k++)
                take(&C, bytes, two * base + features[k] + 1, squares[3]);
        }
    }
    add_all(&C, bytes);
}

INLINE int add_term(kcrf_tagger *tagger, const struct term *term, const int bytes, const struct place *places, size_t count, const struct input *in, size_t t, double *restrict out)
{
    const kcrf_model *model = tagger->model;
    size_t begin = t ? in->bag_ends[t - 1] : 0, end = in->bag_ends[t], known = 0;
    uint32_t *features = NULL;
    bool real = false;
    if (term->kind & OF_CONJUNCTIONS) {
        features = kcrf_grow(tagger, &tagger->work, count + (end - begin), sizeof *features);
        if (!features)
            return tagger->error.status;
    }
    for (size_t f = 0; f < count; f++) {
        const struct field *field = model->fields + places[f].field;
        const struct family *family = model->families + field->family;
        if (family->kind == NUMBER) {
            real = true;
            continue;
        }
        if (family->kind == BAG) {
            for (size_t k = begin; k < end; k++)
                if (features)
                    features[known++] = field->first_feature + in->bag[k].feature;
                else
                    add_row(model, term, bytes, field->first_row + (uint64_t)in->bag[k].feature * field->stride, in->bag[k].value, out);
            continue;
        }
        int32_t code = in->codes[field->family * in->N + t + (size_t)(ptrdiff_t)field->offset];
        if (code < 0)
            continue;
        if (features)
            features[known++] = field->first_feature + (uint32_t)code;
        else
            add_row(model, term, bytes, row_of(field, code), 1.0, out);
    }
    if (features)
        add_conjunctions(model, term, bytes, features, known, out);
    if (real) {
        double *sums = kcrf_grow(tagger, &tagger->sums, 65536, sizeof *sums);
        if (!sums)
            return tagger->error.status;
        memset(sums, 0, term->columns * sizeof *sums);
        for (size_t f = 0; f < count; f++) {
            const struct field *field = model->fields + places[f].field;
            if (model->families[field->family].kind == NUMBER)
                add_row(model, term, bytes, field->first_row, in->numbers[field->family * in->N + t + (size_t)(ptrdiff_t)field->offset], sums);
        }
        for (uint32_t y = 0; y < term->columns; y++)
            out[y] += sums[y];
    }
    return KCRF_OK;
}

/* Make room for scores [T, stride] of labels, zeros at first. */
static double *fresh_scores(kcrf_tagger *tagger, size_t T)
{
    double *scores = kcrf_grow(tagger, &tagger->scores, T * tagger->model->stride + 65536, sizeof *scores);
    if (scores)
        memset(scores, 0, T * tagger->model->stride * sizeof *scores);
    return scores;
}

/* True if no value is NaN or infinite: then differences of values to themselves are 0. */
INLINE bool all_finite(const double *values, size_t count)
{
    uint64_t others = 0;
    for (size_t k = 0; k < count; k++)
        others += values[k] - values[k] != 0;
    return others == 0;
}

/* Add all fields that are not summed by columns to scores, and make potentials [T, Y, Y] of terms of pairs, or [T, P]. */
EACH_WIDTH static int score(kcrf_tagger *tagger, const struct input *in, size_t T, double *scores)
{
    const kcrf_model *model = tagger->model;
    const struct meta *meta = model->meta;
    size_t Y = meta->labels, S = model->stride, width = meta->edges_apart ? Y * Y : 0, count;
    double *pairs = width ? kcrf_grow(tagger, &tagger->edges, T * width + 65536, sizeof *pairs) : NULL;
    if (width && !pairs)
        return tagger->error.status;
    if (pairs)
        memset(pairs, 0, T * width * sizeof *pairs);
    for (size_t t = 0; t < T && !model->plain; t++) {
        double *own = scores + t * S;
        uint32_t kinds = 0;
        const struct place *places = model->summed + model->others;
        for (uint64_t k = 0; k < model->count[TERMS]; k++, places += count) {
            const struct term *term = model->terms + k;
            double *out = term->kind & OF_PAIRS ? pairs + t * width : own;
            count = model->term_others[k];
            int status = meta->value_bytes == 8 ? add_term(tagger, term, 8, places, count, in, t, out)
                                                : add_term(tagger, term, 4, places, count, in, t, out);
            if (status)
                return status;
            kinds |= term->kind;
        }
        if (kinds & IN_HALVES) { /* sqrt(0.5) times the only column, and its negative */
            own[0] *= 0.70710678118654757;
            own[1] = -own[0];
        }
        if (meta->calibrated)
            for (size_t y = 0; y < Y; y++)
                own[y] = meta->sharpness * own[y] + model->numbers[meta->offsets + y];
    }
    if (!all_finite(scores, T * S) || (pairs && !all_finite(pairs, T * width)))
        return kcrf_fail(&tagger->error, KCRF_NUMERIC, "scores are not finite: are the numbers in the units of the training data?");
    for (size_t t = 0; t < T && pairs; t++) {
        if (meta->order == 1)
            for (size_t k = 0; k < width; k++)
                pairs[t * width + k] = (model->numbers[meta->edges + k] + pairs[t * width + k]) * meta->sharpness;
        else
            for (uint32_t p = 0; p < meta->pair_states; p++) /* in place: P <= Y^2, and pairs come in ascending order */
                pairs[t * meta->pair_states + p] =
                    (model->numbers[meta->edges + p] + pairs[t * width + (size_t)model->states[p] * Y + (size_t)model->states[meta->pair_states + p]]) * meta->sharpness;
    }
    tagger->scored = true;
    return KCRF_OK;
}

/* The first table of a column is that of values as they are, if there is one. Words of lexicons are not those of training. */
int kcrf_knows(const kcrf_model *model, size_t column, kcrf_text value)
{
    kcrf_text table = {model->at[UNICODE], model->count[UNICODE]};
    const struct family *own = NULL, *all = model->families, *end = all + model->count[FAMILIES];
    uint32_t kind = kcrf_takes_attributes(model) ? BAG : VALUE;
    for (const struct family *one = all; one < end && !own; one++) {
        bool fits = one->kind == kind && (kind == BAG || one->column == column) && one->missing == NONE;
        for (const struct family *other = all; other < end && fits; other++)
            fits = other->kind != LEXICON || !other->parts || model->parts[other->first_part].family != (size_t)(one - all);
        own = fits ? one : NULL;
    }
    if (!own)
        return -1;
    struct room room = {NULL, 0};
    const char *text = kcrf_transformed(&room, table, own->transform, own->length, value.text, &value.size);
    int known = !text ? -1 : find_text(model, own, text, value.size, kcrf_hash(text, value.size)) != NONE;
    free(room.memory);
    return known;
}

/* ---------------------------------------------------------------------------------------------------- sequences */

kcrf_tagger *kcrf_tagger_new(const kcrf_model *model)
{
    kcrf_tagger *tagger = calloc(1, sizeof *tagger);
    size_t reach = model->meta->reach, S = model->stride, columns = model->meta->columns;
    if (!tagger)
        return NULL;
    tagger->model = model;
    size_t most_distances = tagger->most_families = 1;
    for (size_t c = 0; c < columns; c++) {
        size_t families = model->column_families[c + 1] - model->column_families[c];
        size_t distances = model->column_distances[c + 1] - model->column_distances[c];
        tagger->most_families = families > tagger->most_families ? families : tagger->most_families;
        most_distances = distances > most_distances ? distances : most_distances;
    }
    size_t slots = columns ? 2 * (size_t)MOST_KNOWN : 2, bytes = tagger->sum_bytes = model->meta->value_bytes;
    size_t distances = model->column_distances[columns];
    double least = 2.0 * (double)columns * (2.0 * (double)reach + 2), row = (double)S * (double)bytes, every = 128 + row * (double)most_distances + 4 * (double)tagger->most_families; /* may not fit a size_t */
    if ((17 + least) * every + 2.0 * (double)reach * row * (double)distances > MOST_BEYOND)
        return kcrf_tagger_free(tagger), NULL;
    while (slots > 32 && (double)slots / 2 * every > (double)KNOWN_BYTES)
        slots /= 2;
    while ((double)slots < least) /* values around a position are known at the same time */
        slots *= 2;
    tagger->known_slots = slots;
    tagger->sums_room = most_distances * S * bytes;
    tagger->known_bytes = (sizeof(struct remembered) + tagger->sums_room + 4 * tagger->most_families + 63) / 64 * 64;
    tagger->slots = calloc(slots, sizeof *tagger->slots);
    tagger->known_memory = malloc(slots / 2 * tagger->known_bytes + 64);
    tagger->beyond = malloc(distances * 2 * reach * S * bytes + 1);
    tagger->rows = malloc((distances + 1) * sizeof *tagger->rows);
    tagger->row = malloc((S + 65536) * sizeof *tagger->row);
    if (!tagger->slots || !tagger->known_memory || !tagger->beyond || !tagger->rows || !tagger->row)
        return kcrf_tagger_free(tagger), NULL;
    tagger->known = (char *)tagger->known_memory + (64 - (uintptr_t)tagger->known_memory % 64) % 64;
    int32_t *codes = (int32_t *)(void *)tagger->known;
    char *out = tagger->beyond;
    for (uint32_t c = 0; c < columns; c++)
        for (size_t d = 0; d < 2 * reach; d++) {
            for (uint32_t f = model->column_families[c]; f < model->column_families[c + 1]; f++)
                codes[f - model->column_families[c]] =
                    model->families[f].kind == VALUE ? (int32_t)(model->families[f].codes + d) : -1;
            if (!model->spans[c])
                column_sums(tagger, c, model->column_families[c], codes, 1, out);
            out += (model->column_distances[c + 1] - model->column_distances[c]) * S * bytes;
        }
    return tagger;
}

void kcrf_tagger_free(kcrf_tagger *tagger)
{
    if (!tagger)
        return;
    void *parts[] = {tagger->codes.memory, tagger->numbers.memory, tagger->scores.memory, tagger->edges.memory, tagger->text.memory,
                     tagger->bag.memory, tagger->forward.memory, tagger->backward.memory, tagger->path.memory, tagger->best.memory,
                     tagger->memory.memory, tagger->work.memory, tagger->sums.memory, tagger->places.memory, tagger->hashes.memory,
                     tagger->likely.memory, tagger->slots, tagger->known_memory, tagger->beyond, (void *)tagger->rows, tagger->row, tagger};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        free(parts[k]);
}

const kcrf_error *kcrf_tagger_error(const kcrf_tagger *tagger) { return &tagger->error; }

static int begin(kcrf_tagger *tagger, size_t T, bool attributes)
{
    tagger->T = T;
    tagger->scored = tagger->has_marginals = false;
    tagger->error.status = KCRF_OK;
    tagger->error.text[0] = 0;
    if (T > tagger->model->longest)
        return kcrf_fail(&tagger->error, KCRF_MEMORY, "the sequence is too long");
    if (attributes != kcrf_takes_attributes(tagger->model))
        return kcrf_fail(&tagger->error, KCRF_INPUT, "the model labels positions with %s", attributes ? "columns" : "attributes");
    return KCRF_OK;
}

int kcrf_set_columns(kcrf_tagger *tagger, const kcrf_text *cells, size_t T)
{
    const kcrf_model *model = tagger->model;
    size_t reach = model->meta->reach, N = T + 2 * reach, F = model->count[FAMILIES];
    if (begin(tagger, T, false))
        return tagger->error.status;
    int32_t *codes = kcrf_grow(tagger, &tagger->codes, F * N + 1, sizeof *codes);
    size_t *bag_ends = kcrf_grow(tagger, &tagger->memory, T + 1, sizeof *bag_ends);
    double *numbers = NULL;
    struct entry *bag = NULL;
    size_t in_bag = 0;
    double *scores = fresh_scores(tagger, T);
    if (!codes || !bag_ends || !scores)
        return tagger->error.status;
    memset(bag_ends, 0, (T + 1) * sizeof *bag_ends);
    if (column_scores(tagger, cells, T, codes, N, scores))
        return tagger->error.status;
    for (size_t f = 0; f < F; f++) {
        const struct family *family = model->families + f;
        int32_t *own = codes + f * N;
        if (family->kind == VALUE)
            continue;
        if (family->kind == CONJUNCTION) {
            for (size_t b = 0; b < N && (model->needed[f] || model->summed_with[f] == NONE); b++)
                own[b] = conjunction_code(model, family, codes, N, b);
            continue;
        }
        if (family->kind == NUMBER) {
            numbers = kcrf_grow(tagger, &tagger->numbers, F * N + 1, sizeof *numbers);
            if (!numbers)
                return tagger->error.status;
            memset(numbers + f * N, 0, N * sizeof *numbers);
            if (numbers_of(tagger, (uint32_t)f, cells, T, numbers + f * N + reach))
                return tagger->error.status;
            continue;
        }
        if (family->kind == BAG) {
            const struct part *end = model->parts + family->first_part + family->parts;
            for (size_t t = 0; t < T; t++) {
                size_t first = in_bag;
                for (const struct part *at = model->parts + family->first_part; at < end;) {
                    size_t size;
                    const char *text = line_at(tagger, &at, end, cells, T, t, &size);
                    bag = text ? kcrf_grow(tagger, &tagger->bag, in_bag + 1, sizeof *bag) : NULL;
                    if (!bag)
                        return tagger->error.status;
                    uint32_t code = find_text(model, family, text, size, kcrf_hash(text, size));
                    bag[in_bag].feature = code;
                    bag[in_bag].value = 1.0;
                    in_bag += code != NONE;
                }
                in_bag = first + (bag ? merged(bag + first, in_bag - first) : 0);
                bag_ends[t] = in_bag;
            }
            continue;
        }
        lexicon_codes(model, family, codes, N, T, own + reach);
        for (size_t d = 1; d <= reach && model->needed[f]; d++) {
            own[reach - d] = (int32_t)(family->codes + d - 1);
            own[reach + T + d - 1] = (int32_t)(family->codes + reach + d - 1);
        }
    }
    struct input in = {codes + reach, numbers ? numbers + reach : NULL, bag, bag_ends, N};
    return score(tagger, &in, T, scores);
}

int kcrf_set_attributes(kcrf_tagger *tagger, const kcrf_attribute *attributes, const size_t *ends, size_t T)
{
    const kcrf_model *model = tagger->model;
    const struct meta *meta = model->meta;
    if (begin(tagger, T, true))
        return tagger->error.status;
    if (meta->bag_family >= model->count[FAMILIES] || model->families[meta->bag_family].kind != BAG)
        return kcrf_fail(&tagger->error, KCRF_FORMAT, "the model is damaged: no attributes");
    const struct family *family = model->families + meta->bag_family;
    size_t count = T ? ends[T - 1] : 0, in_bag = 0;
    struct entry *bag = kcrf_grow(tagger, &tagger->bag, count + 1, sizeof *bag);
    size_t *bag_ends = kcrf_grow(tagger, &tagger->memory, T + 1, sizeof *bag_ends);
    double *scores = fresh_scores(tagger, T);
    if (!bag || !bag_ends || !scores)
        return tagger->error.status;
    for (size_t t = 0, k = 0; t < T; t++) {
        size_t first = in_bag;
        for (; k < ends[t]; k++) {
            if (!(fabs(attributes[k].value) < 1e18))
                return kcrf_fail(&tagger->error, KCRF_INPUT, "position %zu: the value of attribute '%.*s' is not finite or too large", t + 1,
                                 (int)(attributes[k].name.size < 60 ? attributes[k].name.size : 60), attributes[k].name.text);
            if (attributes[k].value == 0)
                continue;
            kcrf_text name = attributes[k].name;
            uint32_t code = find_text(model, family, name.text, name.size, kcrf_hash(name.text, name.size));
            bag[in_bag].feature = code;
            bag[in_bag].value = attributes[k].value;
            in_bag += code != NONE;
        }
        if (meta->sorted_bag)
            in_bag = first + merged(bag + first, in_bag - first);
        bag_ends[t] = in_bag;
    }
    /* Families other than the bag look at columns, of which there are none. */
    struct input in = {NULL, NULL, bag, bag_ends, 0};
    return score(tagger, &in, T, scores);
}
