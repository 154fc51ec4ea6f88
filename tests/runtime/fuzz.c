/* Opens damaged copies of a model and labels with those that open: sanitizers watch for reads outside of the file.

       fuzz MODEL DATA COUNT SEED      DATA has a row on each line, TAB-separated; blank lines end sequences

   A copy is as large as the file to the byte, so that the first byte behind it is none of ours. */

#include "kcrf_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void damage(char *data, size_t size)
{
    static const uint64_t ODD[] = {0, 1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 65536, 3};
    for (uint64_t changes = 1 + next() % 4; changes > 0; changes--) {
        size_t near = next() % 4 ? size : size < 4096 ? size : 4096; /* the plan is at the beginning */
        size_t at = next() % near, width = (size_t)1 << next() % 4;
        uint64_t value = next() % 2 ? ODD[next() % (sizeof ODD / sizeof *ODD)] : next();
        if (next() % 3)
            at = at / width * width;
        memcpy(data + at, &value, width < size - at ? width : size - at);
    }
}

static unsigned label(const kcrf_model *model, const char *text, size_t size)
{
    kcrf_tagger *tagger = kcrf_tagger_new(model);
    kcrf_text cells[4096];
    kcrf_attribute attributes[4096];
    size_t ends[512], T = 0, columns = kcrf_column_count(model), count = 0, at = 0;
    unsigned labelled = 0;
    while (tagger && at < size) {
        const char *line = text + at, *stop = memchr(line, '\n', size - at);
        size_t length = stop ? (size_t)(stop - line) : size - at;
        at += length + 1;
        if (length && T < 512 && (T + 1) * columns < 4096 && count + 64 < 4096) {
            const char *field = line, *end = line + length;
            for (size_t c = 0; c < columns || (kcrf_takes_attributes(model) && c < 64 && field < end); c++) {
                const char *tab = field < end ? memchr(field, '\t', (size_t)(end - field)) : NULL;
                kcrf_text value = {field, (size_t)((tab ? tab : end) - field)};
                if (kcrf_takes_attributes(model)) {
                    attributes[count].name = value;
                    attributes[count++].value = 1.0 + (double)c;
                } else
                    cells[T * columns + c] = value;
                field = tab ? tab + 1 : end;
            }
            ends[T++] = count;
            continue;
        }
        int status = kcrf_takes_attributes(model) ? kcrf_set_attributes(tagger, attributes, ends, T) : kcrf_set_columns(tagger, cells, T);
        const int32_t *labels, *paths;
        const double *logs;
        if (!status && (labels = kcrf_labels(tagger)))
            for (size_t t = 0; t < T; t++)
                labelled += kcrf_label_name(model, (size_t)labels[t]).size > 0;
        if (!status) {
            kcrf_marginals(tagger);
            labelled += (unsigned)kcrf_nbest(tagger, 3, &paths, &logs);
        }
        T = count = 0;
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
