/* Opens damaged copies of a model and labels with those that open: sanitizers watch for reads outside of the file.

       fuzz MODEL DATA COUNT SEED      DATA has a row on each line, TAB-separated; blank lines end sequences

   A copy is as large as the file to the byte, so that the first byte behind it is none of ours. */

#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

static uint64_t next(void) /* xorshift64 */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        exit(2);
    *size = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*size + 1);
    if (!data || fread(data, 1, *size, file) != *size)
        exit(2);
    fclose(file);
    return data;
}

/* Change words of one section: they stay plausible, so that a plan is damaged that passes simple checks. */
static void damage_section(char *data, size_t size)
{
    static const enum section_kind PLAN[] = {META, FAMILIES, PARTS, TERMS, FIELDS, STATES};
    struct section own;
    size_t kind = next() % 4 ? PLAN[next() % (sizeof PLAN / sizeof *PLAN)] : next() % SECTIONS;
    size_t entry = sizeof(struct header) + kind * sizeof own;
    if (size < entry + sizeof own)
        return;
    memcpy(&own, data + entry, sizeof own);
    if (own.item == 0 || own.count == 0 || own.offset > size || own.count > (size - own.offset) / own.item)
        return;
    size_t step = own.item < 4 ? own.item : next() % 2 ? own.item : 4, items = (size_t)own.count * own.item / step;
    for (uint64_t changes = 1 + next() % 3; changes > 0; changes--) {
        char kept[sizeof(struct meta)], *one = data + own.offset + next() % items * step, *other = data + own.offset + next() % items * step;
        uint32_t small = (uint32_t)(next() % 8);
        if (step > 4 && next() % 2)
            memcpy(one + next() % (step / 4) * 4, &small, 4);
        else if (step <= 4 && next() % 3 == 0)
            memcpy(one, &small, step);
        else {
            memcpy(kept, one, step);
            memmove(one, other, step);
            if (next() % 2)
                memcpy(other, kept, step);
        }
    }
}

static void damage(char *data, size_t size)
{
    static const uint64_t ODD[] = {0, 1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 65536, 3};
    uint64_t changes = next() % 4;
    if (changes == 0)
        damage_section(data, size);
    for (; changes > 0; changes--) {
        size_t near = next() % 4 ? size : size < 4096 ? size : 4096; /* the plan is at the beginning */
        size_t at = next() % near, width = (size_t)1 << next() % 4;
        uint64_t value = next() % 2 ? ODD[next() % (sizeof ODD / sizeof *ODD)] : next();
        if (next() % 3)
            at = at / width * width;
        memcpy(data + at, &value, width < size - at ? width : size - at);
    }
}

/* Some value that is no UTF-8, or a long one, or a number, in memory that ends with it. */
static kcrf_text hostile(void)
{
    static char *room;
    static const char *const NUMBERS[] = {"1e308", "-1.7976931348623159e308", "4.9406564584124654e-324", "1e999999999999999999", "0x1p3", "nan", "1e", "+", "."};
    size_t size = next() % 8 ? next() % 6 : next() % 700;
    kcrf_text value;
    uint64_t kind = next() % 3, byte = next();
    if (kind == 0) {
        const char *number = NUMBERS[next() % (sizeof NUMBERS / sizeof *NUMBERS)];
        size = strlen(number);
        room = realloc(room, size);
        memcpy(room, number, size);
    } else {
        room = realloc(room, size + (size == 0));
        for (size_t k = 0; k < size; k++)
            room[k] = (char)(kind == 1 ? 0xC0 | (byte & 0x3F) : next());
    }
    value.text = room;
    value.size = size;
    return value;
}

/* One byte that a table of characters makes three of: a record whose small letter has a dot, as that of a capital I has. */
static void widen(void)
{
    enum { PAGES = 0x110000 / 128, HEAD = PAGES * 2 + 256 * 4, DOTTED = 16 };
    static char table[HEAD + 128], text[150];
    uint32_t record = DOTTED | 1 << 8;
    struct room room = {NULL, 0};
    memcpy(table + PAGES * 2 + 4, &record, 4);
    table[HEAD + 0xB5 % 128] = 1;
    memset(text, 0xB5, sizeof text);
    for (size_t length = 100; length <= sizeof text; length += 50) {
        size_t size = length;
        kcrf_transformed(&room, (kcrf_text){table, sizeof table}, LOWER, 0, text, &size);
        if (size != 3 * length)
            abort();
    }
    free(room.memory);
}

static unsigned label(const kcrf_model *model, const char *text, size_t size)
{
    kcrf_tagger *tagger = kcrf_tagger_new(model);
    kcrf_text cells[4096];
    kcrf_attribute attributes[4096];
    size_t ends[512], T = 0, columns = kcrf_column_count(model), count = 0, at = 0;
    unsigned labelled = 0;
    bool odd = false;
    while (tagger && at < size) {
        const char *line = text + at, *stop = memchr(line, '\n', size - at);
        size_t length = stop ? (size_t)(stop - line) : size - at;
        at += length + 1;
        if (length && T < 512 && (T + 1) * columns < 4096 && count + 64 < 4096) {
            const char *field = line, *end = line + length;
            for (size_t c = 0; c < columns || (kcrf_takes_attributes(model) && c < 64 && field < end); c++) {
                const char *tab = field < end ? memchr(field, '\t', (size_t)(end - field)) : NULL;
                kcrf_text value = {field, (size_t)((tab ? tab : end) - field)};
                if (next() % 256 == 0 && !odd) { /* one in a sequence: they share their room */
                    value = hostile();
                    odd = true;
                }
                (void)kcrf_knows(model, c, value);
                if (kcrf_takes_attributes(model)) {
                    attributes[count].name = value;
                    attributes[count++].value = 1.0 + (double)c;
                } else
                    cells[T * columns + c] = value;
                field = tab ? tab + 1 : end;
            }
            ends[T++] = count;
            if (next() % 8) /* short sequences, too, while a tagger has room for no longer one */
                continue;
        }
        int status = kcrf_takes_attributes(model) ? kcrf_set_attributes(tagger, attributes, ends, T) : kcrf_set_columns(tagger, cells, T);
        const int32_t *labels;
        double log_probability;
        if (!status && (labels = kcrf_labels(tagger)))
            for (size_t t = 0; t < T; t++)
                labelled += kcrf_label_name(model, (size_t)labels[t]).size > 0;
        for (int calls = 0; calls < 3 && !status; calls++) { /* in any order: they use the same room */
            switch (next() % 3) {
            case 0:
                kcrf_marginals(tagger);
                break;
            case 1:
                kcrf_viterbi(tagger);
                break;
            default:
                if ((labels = kcrf_viterbi(tagger)) && T) {
                    int32_t *copy = memcpy(malloc(T * sizeof *copy), labels, T * sizeof *copy);
                    kcrf_log_probability(tagger, copy, &log_probability);
                    free(copy);
                }
            }
        }
        T = count = 0;
        odd = false;
    }
    kcrf_tagger_free(tagger);
    return labelled;
}

int main(int count, char **arguments)
{
    if (count != 5)
        return 2;
    size_t size, data_size;
    char *model = read_file(arguments[1], &size), *data = read_file(arguments[2], &data_size);
    long rounds = atol(arguments[3]), opened = 0, labelled = 0;
    state = 0x9E3779B97F4A7C15ull + strtoull(arguments[4], NULL, 10);
    widen();
    for (long k = 0; k < rounds; k++) {
        size_t own = next() % 16 ? size : next() % (size + 1);
        char *copy = malloc(own ? own : 1);
        memcpy(copy, model, own);
        if (own && k) /* the first is whole */
            damage(copy, own);
        kcrf_error error;
        kcrf_model *found = kcrf_open_memory(copy, own, &error);
        if (found) {
            opened++;
            labelled += label(found, data, data_size) > 0;
            kcrf_close(found);
        }
        free(copy);
    }
    printf("%ld files, %ld opened, %ld labelled\n", rounds, opened, labelled);
    free(model);
    free(data);
    return 0;
}
