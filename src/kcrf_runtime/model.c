/* Opens files of models, and checks all that is not checked where it is used. */

#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#if (defined(__unix__) || defined(__APPLE__)) && !defined(__wasi__) && !defined(__EMSCRIPTEN__)
#define CAN_MAP 1
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

static const uint32_t ITEMS[SECTIONS] = {
    sizeof(struct meta), 1, 8, sizeof(struct family), sizeof(struct part), sizeof(struct slot), sizeof(struct pair),
    sizeof(struct term), sizeof(struct field), 4, 2, 1, 8, 4, 1, 4,
};

int kcrf_fail(kcrf_error *error, int status, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        error->status = status;
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return status;
}

static int damaged(kcrf_error *error, const char *what)
{
    return kcrf_fail(error, KCRF_FORMAT, "the model is damaged: %s", what);
}

/* True if items first:first+count are inside of `size` items. */
static bool within(uint64_t first, uint64_t count, uint64_t size) { return first <= size && count <= size - first; }

static bool table_within(uint64_t first, uint32_t bits, uint64_t size)
{
    return bits < 32 && within(first, (uint64_t)1 << bits, size);
}

static int check_names(const kcrf_model *model, kcrf_error *error)
{
    const struct meta *meta = model->meta;
    const uint32_t *names = model->at[NAMES];
    const char *text = model->at[TEXT];
    if (model->count[NAMES] != (uint64_t)meta->labels + meta->columns + meta->comments)
        return damaged(error, "names");
    for (uint64_t k = 0; k < model->count[NAMES]; k++) {
        uint64_t end = (uint64_t)names[2 * k] + names[2 * k + 1];
        if (end >= model->count[TEXT] || text[end])
            return damaged(error, "a name");
    }
    return KCRF_OK;
}

static bool ascending(const int32_t *values, uint32_t count, int64_t first, int64_t last)
{
    bool good = values[0] == first && values[count - 1] == last;
    for (uint32_t k = 1; k < count; k++)
        good &= values[k] >= values[k - 1];
    return good;
}

/* States of second order: first and second labels [P], begin [Y+1], into [P], into_begin [Y+1], block [Y+1]. */
static int check_states(const kcrf_model *model, kcrf_error *error)
{
    const struct meta *meta = model->meta;
    uint64_t Y = meta->labels, P = meta->pair_states, count = model->count[NUMBERS];
    bool good = within(meta->start, Y, count) && within(meta->end, Y, count);
    good &= !meta->calibrated || within(meta->offsets, Y, count);
    good &= !meta->bonus || within(meta->bonus - 1, Y + (meta->order == 1 ? Y * Y : P), count);
    if (meta->order == 1)
        good &= within(meta->edges, Y * Y, count);
    else if (good) {
        const int32_t *first = model->states, *second = first + P, *begin = second + P, *into = begin + Y + 1;
        const int32_t *into_begin = into + P, *block = into_begin + Y + 1;
        good = meta->order == 2 && P > 0 && P <= Y * Y && model->count[STATES] == 3 * P + 3 * (Y + 1) &&
               within(meta->edges, P, count) && within(meta->triples, meta->transitions, count) &&
               meta->transitions <= 0x7FFFFFFF;
        good = good && ascending(begin, Y + 1, 0, P) && ascending(into_begin, Y + 1, 0, P) &&
               ascending(block, Y + 1, 0, meta->transitions);
        /* Pairs come in ascending order, and so do those that end in a label: each stands in one block from and into. */
        for (uint64_t j = 0; good && j < Y; j++) {
            good = (int64_t)(into_begin[j + 1] - into_begin[j]) * (begin[j + 1] - begin[j]) == block[j + 1] - block[j];
            for (int32_t p = begin[j]; good && p < begin[j + 1]; p++)
                good = first[p] == (int64_t)j && second[p] >= 0 && second[p] < (int64_t)Y && (p == begin[j] || second[p] > second[p - 1]);
            for (int32_t k = into_begin[j]; good && k < into_begin[j + 1]; k++)
                good = into[k] >= 0 && into[k] < (int64_t)P && second[into[k]] == (int64_t)j && (k == into_begin[j] || into[k] > into[k - 1]);
        }
    }
    return good ? KCRF_OK : damaged(error, "transitions");
}

static int check_families(kcrf_model *model, kcrf_error *error)
{
    const struct meta *meta = model->meta;
    model->column_families = calloc((size_t)meta->columns + 1, sizeof(uint32_t));
    if (!model->column_families)
        return kcrf_fail(error, KCRF_MEMORY, "out of memory");
    uint32_t before = 0;
    for (uint32_t f = 0; f < model->count[FAMILIES]; f++) {
        const struct family *own = model->families + f;
        bool of_column = own->kind == VALUE || own->kind == NUMBER, has_table = own->kind != CONJUNCTION;
        bool good = own->kind <= BAG && own->codes < 0x7FFFFFFF - 2 * meta->reach &&
                    (own->missing == NONE || own->missing < own->codes) && own->transform <= STRIPPED &&
                    within(own->first_part, own->parts, model->count[PARTS]) &&
                    (!has_table || table_within(own->first_slot, own->bits, model->count[SLOTS])) &&
                    (own->kind != NUMBER || within(own->numbers, 3, model->count[NUMBERS])) &&
                    (own->kind != CONJUNCTION || own->parts > 1) && (own->kind != LEXICON || own->codes == 3) &&
                    (own->kind == BAG ? f == meta->bag_family : !meta->attributes) &&
                    (!of_column || (own->column >= before && own->column < meta->columns));
        if (good && of_column) {
            before = own->column;
            model->column_families[before + 1] = f + 1;
        }
        for (uint32_t k = own->first_part; good && k < own->first_part + own->parts; k++) {
            const struct part *part = model->parts + k;
            if (own->kind == CONJUNCTION || own->kind == LEXICON) {
                good = table_within(part->first_pair, part->bits, model->count[PAIRS]) && part->family < f &&
                       part->offset >= -(int64_t)meta->reach && part->offset <= (int64_t)meta->reach &&
                       (own->kind != LEXICON || (model->families[part->family].kind == VALUE && k - own->first_part < 100000)) &&
                       model->families[part->family].kind != BAG && model->families[part->family].kind != NUMBER;
            } else
                good = part->family == NONE ? within(part->first_pair, part->bits, model->count[TEXT])
                                            : part->family < meta->columns && part->offset > -(1 << 20) && part->offset < 1 << 20;
        }
        if (!good)
            return damaged(error, "a feature");
    }
    for (uint32_t c = 1; c <= meta->columns; c++)
        if (model->column_families[c] < model->column_families[c - 1])
            model->column_families[c] = model->column_families[c - 1];
    for (uint32_t c = 0; c < meta->columns; c++) {
        const struct family *own = model->families + model->column_families[c];
        uint64_t families = model->column_families[c + 1] - model->column_families[c];
        if (families && own->leads && !within(own->numbers, own->codes * families, model->count[CODES]))
            return damaged(error, "codes of features");
    }
    for (uint32_t f = 0; f < model->count[FAMILIES]; f++) /* those of columns come first, without gaps */
        if ((f < model->column_families[meta->columns]) != (model->families[f].kind == VALUE || model->families[f].kind == NUMBER))
            return damaged(error, "the order of features");
    return KCRF_OK;
}

static int check_terms(const kcrf_model *model, kcrf_error *error)
{
    const struct meta *meta = model->meta;
    uint64_t Y = meta->labels, entries = model->count[COLUMNS], bytes = meta->value_bytes;
    bool good = (bytes == 8 || bytes == 4) && model->count[VALUES] / bytes == entries &&
                entries <= UINT32_MAX;
    uint32_t halves = 0, whole = 0;
    for (uint64_t k = 0; good && k < model->count[TERMS]; k++) {
        const struct term *own = model->terms + k;
        uint64_t width = own->kind & OF_PAIRS ? Y * Y : own->kind & IN_HALVES ? 1 : Y;
        good = (own->kind & ~7u) == 0 && own->columns == width && width <= 65536 &&
               (!(own->kind & IN_HALVES) || (Y == 2 && !(own->kind & OF_PAIRS))) && (!(own->kind & OF_PAIRS) || meta->edges_apart) &&
               within(own->first_field, own->fields, model->count[FIELDS]) && own->rows < UINT32_MAX &&
               within(own->first_start, own->rows + 1, model->count[STARTS]);
        uint32_t bags = 0;
        halves |= own->kind & IN_HALVES;
        whole |= !(own->kind & (IN_HALVES | OF_PAIRS));
        if (good && own->kind & OF_CONJUNCTIONS)
            good = own->degree <= 3 && table_within(own->first_pair, own->bits, model->count[PAIRS]) &&
                   within(own->squares, own->degree + 1, model->count[NUMBERS]);
        for (uint32_t f = own->first_field; good && f < own->first_field + own->fields; f++) {
            const struct field *field = model->fields + f;
            good = field->family < model->count[FAMILIES] && field->offset >= -(int64_t)meta->reach &&
                   field->offset <= (int64_t)meta->reach;
            if (good && own->kind & OF_CONJUNCTIONS) /* features of a position have room for one bag */
                good = model->families[field->family].kind != BAG || bags++ == 0;
            else if (good) {
                const struct family *family = model->families + field->family;
                uint64_t codes = family->kind == NUMBER ? 1 : (uint64_t)family->codes + 2 * meta->reach;
                codes = family->kind == BAG || family->kind == CONJUNCTION ? family->codes : codes;
                good = codes == 0 || (uint64_t)field->first_row + (codes - 1) * field->stride < own->rows;
            }
        }
    }
    return good && !(halves && whole) ? KCRF_OK : damaged(error, "a term");
}

/* Find the sections of a file. */
static int find_sections(kcrf_model *model, kcrf_error *error)
{
    struct header header;
    const struct section *table = (const void *)(model->data + sizeof header);
    const uint16_t one = 1;
    if (!*(const uint8_t *)&one || (uintptr_t)model->data % 8)
        return kcrf_fail(error, KCRF_FORMAT, "a model needs a little-endian processor and an address that is a multiple of 8");
    if (model->size < sizeof header || memcmp(model->data, MAGIC, 8))
        return kcrf_fail(error, KCRF_FORMAT, "not a model for kcrf-tag (write one with kcrf export --to runtime)");
    memcpy(&header, model->data, sizeof header);
    if (header.version != KCRF_FILE_VERSION)
        return kcrf_fail(error, KCRF_FORMAT, "a model of version %u, and this program reads version %u: export it again",
                         (unsigned)header.version, KCRF_FILE_VERSION);
    if (header.size != model->size)
        return kcrf_fail(error, KCRF_FORMAT, "the model has %llu bytes instead of %llu: it is cut off",
                         (unsigned long long)model->size, (unsigned long long)header.size);
    if (header.sections != SECTIONS || model->size < sizeof header + sizeof(struct section) * SECTIONS)
        return damaged(error, "the section table");
    for (int k = 0; k < SECTIONS; k++) {
        const struct section *own = table + k;
        if (own->kind != (uint32_t)k || own->item != ITEMS[k] || own->offset % 8 || own->offset > model->size ||
            own->count > (model->size - own->offset) / own->item)
            return damaged(error, "the section table");
        model->at[k] = model->data + own->offset;
        model->count[k] = own->count;
    }
    return KCRF_OK;
}

static int check(kcrf_model *model, kcrf_error *error)
{
    if (model->count[META] != 1)
        return damaged(error, "no description");
    const struct meta *meta = model->meta = model->at[META];
    model->families = model->at[FAMILIES], model->parts = model->at[PARTS], model->slots = model->at[SLOTS];
    model->pairs = model->at[PAIRS], model->terms = model->at[TERMS], model->fields = model->at[FIELDS];
    model->starts = model->at[STARTS], model->columns = model->at[COLUMNS], model->values = model->at[VALUES];
    model->numbers = model->at[NUMBERS], model->states = model->at[STATES];
    model->codes = model->at[CODES];
    if (meta->labels == 0 || meta->labels > 65536 || meta->columns > 1000000 || meta->reach > 100000 ||
        !isfinite(meta->sharpness) || meta->separator > 127 || model->count[FAMILIES] > 1000000)
        return damaged(error, "its description");
    if (check_names(model, error) || check_states(model, error) || check_families(model, error) ||
        check_terms(model, error))
        return error ? error->status : KCRF_FORMAT;
    return KCRF_OK;
}

static int by_column(const void *a, const void *b)
{
    const int64_t *one = a, *other = b;
    int order = (one[0] > other[0]) - (one[0] < other[0]);
    return order ? order : (one[1] > other[1]) - (one[1] < other[1]);
}

/* Column that fields of a family are summed with: its own, or that of all parts of a conjunction, if those are near and
   their values few, so that the same ones come again. */
static uint32_t column_of(const kcrf_model *model, const struct family *family)
{
    uint32_t column = family->column;
    const struct part *parts = model->parts + family->first_part;
    bool behind = false; /* else the value alone decides, and codes of values have no place for the conjunction's */
    if (family->kind == VALUE)
        return column;
    for (uint32_t k = 0; k < family->parts && family->kind == CONJUNCTION; k++) {
        const struct family *own = model->families + parts[k].family;
        column = k ? column : own->column;
        behind |= parts[k].offset > 0;
        if (own->kind != VALUE || own->column != column || parts[k].offset < 0 || parts[k].offset >= LONGEST_KNOWN / 4 || own->codes > 512 ||
            model->column_families[column + 1] - model->column_families[column] > 1)
            return NONE;
    }
    return family->kind == CONJUNCTION && behind ? column : NONE;
}

/* Collect fields by columns and distances, in the order of terms and fields. */
static int plan_sums(kcrf_model *model, kcrf_error *error)
{
    const struct meta *meta = model->meta;
    uint64_t count = 0, distances = 0, families = model->count[FAMILIES];
    for (uint64_t k = 0; k < model->count[TERMS]; k++)
        count += model->terms[k].fields;
    if (count > UINT32_MAX || count > SIZE_MAX / 64)
        return kcrf_fail(error, KCRF_MEMORY, "out of memory");
    int64_t(*keys)[2] = malloc((count + 1) * sizeof *keys); /* column and distance; term and field in order */
    struct place *sorted = malloc((count + 1) * sizeof *sorted);
    model->summed = malloc((count + 1) * sizeof *model->summed);
    model->distances = malloc((count + 1) * sizeof *model->distances);
    model->column_distances = calloc((size_t)meta->columns + 1, sizeof(uint32_t));
    model->spans = calloc((size_t)meta->columns + 1, sizeof(uint32_t));
    model->summed_with = malloc((families + 1) * sizeof(uint32_t));
    model->term_others = calloc(model->count[TERMS] + 1, sizeof(uint32_t));
    model->needed = calloc(families + 1, 1);
    model->needed_of = calloc((size_t)meta->columns + 1, 1);
    uint32_t *with = model->summed_with;
    bool there = keys && sorted && model->summed && model->distances && model->column_distances && model->spans &&
                 model->needed && model->needed_of && model->term_others && with;
    for (uint32_t f = 0; there && f < families; f++) {
        const struct family *family = model->families + f;
        with[f] = column_of(model, family);
        for (uint32_t k = 0; k < family->parts; k++) {
            const struct part *part = model->parts + family->first_part + k;
            if (family->kind == CONJUNCTION || family->kind == LEXICON)
                model->needed[part->family] = 1;
            if (with[f] != NONE && family->kind == CONJUNCTION && (uint32_t)part->offset > model->spans[with[f]])
                model->spans[with[f]] = (uint32_t)part->offset;
        }
    }
    uint64_t begin = 0, others = count;
    for (uint32_t k = 0; there && k < model->count[TERMS]; k++)
        for (uint32_t f = 0; f < model->terms[k].fields; f++) {
            struct place place = {k, model->terms[k].first_field + f};
            const struct field *field = model->fields + place.field;
            if (with[field->family] != NONE && !(model->terms[k].kind & (OF_CONJUNCTIONS | OF_PAIRS))) {
                keys[begin][0] = (int64_t)with[field->family] << 32 | (uint32_t)(field->offset + (int32_t)meta->reach);
                keys[begin][1] = (int64_t)begin;
                model->summed[begin++] = place;
            } else {
                model->needed[field->family] = 1;
                model->summed[--others] = place;
                model->term_others[k]++;
            }
        }
    for (uint64_t k = others, last = count; there && k + 1 < last; k++) { /* in their order again */
        struct place place = model->summed[k];
        model->summed[k] = model->summed[--last];
        model->summed[last] = place;
    }
    model->others = others;
    model->plain = others == count && !meta->calibrated;
    for (uint32_t k = 0; k < model->count[TERMS]; k++)
        model->plain &= !model->terms[k].kind;
    for (uint32_t f = 0; there && f < families; f++)
        if (model->needed[f] && model->families[f].kind == VALUE && !model->spans[model->families[f].column])
            model->needed_of[model->families[f].column] = 1;
    if (there)
        qsort(keys, begin, sizeof *keys, by_column);
    for (uint64_t k = 0; there && k < begin; k++) {
        uint32_t column = (uint32_t)(keys[k][0] >> 32);
        sorted[k] = model->summed[keys[k][1]];
        if (k == 0 || keys[k][0] != keys[k - 1][0]) {
            bool same = k && column == (uint32_t)(keys[k - 1][0] >> 32);
            uint32_t number = same ? model->distances[distances - 1].number + 1 : 0;
            model->distances[distances++] =
                (struct distance){model->fields[sorted[k].field].offset, (uint32_t)k, 0, column, number};
            model->column_distances[column + 1] = (uint32_t)distances;
        }
        model->distances[distances - 1].last = (uint32_t)k + 1;
    }
    for (uint32_t c = 1; there && c <= meta->columns; c++)
        if (model->column_distances[c] < model->column_distances[c - 1])
            model->column_distances[c] = model->column_distances[c - 1];
    if (there)
        memcpy(model->summed, sorted, begin * sizeof *sorted);
    free(sorted);
    free(keys);
    return there ? KCRF_OK : kcrf_fail(error, KCRF_MEMORY, "out of memory");
}

/* Find the longest sequence whose sizes can be computed: the products below are taken without checks for it. */
static int measure(kcrf_model *model, kcrf_error *error)
{
    const struct meta *meta = model->meta;
    uint64_t Y = meta->labels, P = meta->order == 2 ? meta->pair_states : Y, most = 8;
    uint64_t widths[] = {P + 8, Y + 8, meta->edges_apart ? Y * Y : 0, model->count[FAMILIES] + meta->columns};
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
        most = widths[k] > most ? widths[k] : most;
    uint64_t positions = SIZE_MAX / 64 / most, ends = 2 * (uint64_t)meta->reach + 2;
    model->longest = (size_t)(positions > ends ? positions - ends : 0);
    if ((6.0 * (double)Y + 4) * (double)(Y + 8) > (double)(SIZE_MAX / 64)) /* of transitions in several forms */
        return kcrf_fail(error, KCRF_MEMORY, "out of memory");
    return KCRF_OK;
}

/* Lay transitions, and `more` where it is not NULL, out for vectors: [2, Y, stride], the second is the transpose. Rows
   end with labels that nothing leads to. Behind them, `lead` [stride] for up to 64 labels. */
static void lay_out(const double *edges, const double *more, size_t Y, size_t S, double *rows)
{
    double *lead = rows + 2 * Y * S;
    for (size_t k = 0; k < (2 * Y + 1) * S; k++)
        rows[k] = -INFINITY;
    for (size_t k = 0; k < Y * Y; k++)
        rows[k / Y * S + k % Y] = rows[(Y + k % Y) * S + k / Y] = more ? edges[k] + more[k] : edges[k];
    for (size_t j = 0; j < Y && Y <= 64; j++)
        for (size_t k = 0; k < Y * Y; k++) {
            double value = rows[j * S + k % Y] - rows[k / Y * S + k % Y]; /* NaN: no label can follow either */
            lead[j] = value > lead[j] ? value : lead[j];
        }
}

/* Prepare transitions of first order. */
static int prepare(kcrf_model *model, kcrf_error *error)
{
    const struct meta *meta = model->meta;
    size_t Y = meta->labels, S = model->stride = kcrf_stride(Y);
    if (meta->order > 1 || meta->edges_apart)
        return KCRF_OK;
    double top = -INFINITY, bottom = INFINITY, *rows = model->padded = malloc(((meta->bonus ? 6 : 4) * Y + 2) * S * sizeof *rows);
    if (!rows)
        return kcrf_fail(error, KCRF_MEMORY, "out of memory");
    const double *edges = model->numbers + meta->edges;
    for (size_t k = 0; k < Y * Y; k++) {
        top = edges[k] > top ? edges[k] : top;
        bottom = edges[k] < bottom && edges[k] > -INFINITY ? edges[k] : bottom;
    }
    lay_out(edges, NULL, Y, S, rows);
    model->exponentials = rows + (2 * Y + 1) * S;
    for (size_t k = 0; k < 2 * Y * S; k++)
        model->exponentials[k] = exp(rows[k] - top);
    if (meta->bonus)
        lay_out(edges, model->numbers + meta->bonus - 1 + Y, Y, S, model->with_bonus = rows + (4 * Y + 1) * S);
    model->shift = top;
    model->depth = top > -INFINITY ? top - bottom : INFINITY;
    return KCRF_OK;
}

static kcrf_model *finish(kcrf_model *model, int sections, kcrf_error *error)
{
    if (sections == KCRF_OK && check(model, error) == KCRF_OK && measure(model, error) == KCRF_OK && prepare(model, error) == KCRF_OK && plan_sums(model, error) == KCRF_OK)
        return model;
    kcrf_close(model);
    return NULL;
}

kcrf_model *kcrf_open_memory(const void *data, size_t size, kcrf_error *error)
{
    kcrf_model *model = calloc(1, sizeof *model);
    if (!model)
        return kcrf_fail(error, KCRF_MEMORY, "out of memory"), NULL;
    model->data = data;
    model->size = size;
    return finish(model, find_sections(model, error), error);
}

kcrf_model *kcrf_open_sections(const void *const *at, const uint64_t *count, kcrf_error *error)
{
    kcrf_model *model = calloc(1, sizeof *model);
    if (!model)
        return kcrf_fail(error, KCRF_MEMORY, "out of memory"), NULL;
    for (int k = 0; k < SECTIONS; k++) {
        model->at[k] = at[k];
        model->count[k] = count[k];
    }
    return finish(model, KCRF_OK, error);
}

kcrf_model *kcrf_open(const char *path, kcrf_error *error)
{
    kcrf_model *model = calloc(1, sizeof *model);
    bool good = false;
    if (!model)
        return kcrf_fail(error, KCRF_MEMORY, "out of memory"), NULL;
#ifdef CAN_MAP
    struct stat about;
    int file = open(path, O_RDONLY);
    if (file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
        void *memory = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, file, 0);
        if (memory != MAP_FAILED) {
            model->owned = memory;
            model->size = (size_t)about.st_size;
            good = model->mapped = true;
        }
    }
    if (file >= 0)
        close(file);
#else
    FILE *file = fopen(path, "rb");
    if (file && fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        rewind(file);
        model->owned = size > 0 ? malloc((size_t)size) : NULL;
        model->size = size > 0 ? (size_t)size : 0;
        good = model->owned && fread(model->owned, 1, model->size, file) == model->size;
    }
    if (file)
        fclose(file);
#endif
    if (!good) {
        kcrf_fail(error, KCRF_IO, "%.190s: cannot be read, or is empty", path);
        kcrf_close(model);
        return NULL;
    }
    model->data = model->owned;
    return finish(model, find_sections(model, error), error);
}

void kcrf_close(kcrf_model *model)
{
    if (!model)
        return;
#ifdef CAN_MAP
    if (model->mapped)
        munmap(model->owned, model->size);
    else
#endif
        free(model->owned);
    void *parts[] = {model->column_families, model->column_distances, model->summed_with, model->spans, model->distances, model->summed,
                     model->needed, model->needed_of, model->term_others, model->padded, model};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        free(parts[k]);
}

static kcrf_text name_of(const kcrf_model *model, size_t number)
{
    const uint32_t *names = model->at[NAMES];
    kcrf_text found = {"", 0};
    if (number < model->count[NAMES]) {
        found.text = (const char *)model->at[TEXT] + names[2 * number];
        found.size = names[2 * number + 1];
    }
    return found;
}

size_t kcrf_label_count(const kcrf_model *model) { return model->meta->labels; }

kcrf_text kcrf_label_name(const kcrf_model *model, size_t label)
{
    return name_of(model, label < model->meta->labels ? label : SIZE_MAX);
}

int kcrf_takes_attributes(const kcrf_model *model) { return model->meta->attributes != 0; }

size_t kcrf_column_count(const kcrf_model *model) { return model->meta->columns; }

kcrf_text kcrf_column_name(const kcrf_model *model, size_t column)
{
    return name_of(model, column < model->meta->columns ? model->meta->labels + column : SIZE_MAX);
}

kcrf_text kcrf_comment(const kcrf_model *model, size_t number)
{
    return name_of(model, number < model->meta->comments ? model->meta->labels + model->meta->columns + number : SIZE_MAX);
}

int kcrf_column_used(const kcrf_model *model, size_t column)
{
    if (column >= model->meta->columns)
        return 0;
    if (model->column_families[column + 1] > model->column_families[column])
        return 1;
    for (uint64_t f = 0; f < model->count[FAMILIES]; f++)
        for (uint32_t k = 0; k < model->families[f].parts; k++)
            if (model->families[f].kind == BAG && model->parts[model->families[f].first_part + k].family == column)
                return 1;
    return 0;
}
