/* The file of a model, and the structures that it is used through.

   A file is a header, a table with one entry for each kind of section, and the sections, all little-endian, each at a
   multiple of 8. The plan of a model is a list of families: functions of a position with a code as their result, such as
   "the number of the suffix of column 0". A field is a family at some distance, and each of its codes has a row of
   weights. Sections hold:

       values of hash tables      checked where they are used: a code is below the family's, a text is in the section
       everything else            checked when the file is opened

   Codes of a family are 0..codes-1, then those of positions beyond the ends: `reach` before the first position, and
   `reach` after the last. Arrays of codes have `reach` more entries on both sides. */

#ifndef KCRF_INTERNAL_H
#define KCRF_INTERNAL_H

#include "kcrf_runtime.h"
#include "texts.h"

#include <stdarg.h>

#define MAGIC "KCRFTAG"

enum section_kind {
    META, TEXT, NAMES, FAMILIES, PARTS, SLOTS, PAIRS, TERMS, FIELDS, STARTS, COLUMNS, VALUES, NUMBERS, STATES,
    UNICODE, CODES, SECTIONS
};

struct header {
    char magic[8];
    uint32_t version, sections;
    uint64_t size;
};

struct section {
    uint32_t kind, item; /* bytes of an item */
    uint64_t offset, count;
};

struct meta {
    uint32_t labels, columns, attributes, reach;
    uint32_t order, edges_apart, posterior, bonus; /* of spans: 1 + its place in NUMBERS, or 0. First labels [Y], then as edges */
    uint32_t value_bytes, row_width, sorted_bag, calibrated;
    uint32_t pair_states, transitions, separator, header; /* of second order: P and Q; separator 0: by the first row */
    uint32_t comments, format, bag_family, reserved;        /* format 0 columns, 1 attributes, 2 not for kcrf-tag */
    double sharpness;
    /* Places of doubles in NUMBERS. */
    uint64_t start, end, edges, triples, offsets;
};

enum family_kind { VALUE, CONJUNCTION, LEXICON, NUMBER, BAG };
/* Variants: the first that the table has of the value, in lower case, with digits as 0, and with both. Stripped, of words of lexicons: the
   value in lower case, else that without what stands around its letters and digits. */
enum transform { IDENTITY, LOWER, PREFIX, SUFFIX, SHAPE, VARIANTS, EDGES, WORD_KIND, STRIPPED };

struct family {
    uint32_t kind, column, transform, length;
    uint32_t first_part, parts;   /* of conjunctions, lexicons and bags of templates */
    uint32_t first_slot, bits;    /* of the table of values: 2^bits slots */
    uint32_t codes, missing;      /* code of values that are not in the table; NONE for none */
    uint32_t leads, reserved;     /* the first family of a column: codes of all of them by its code are in CODES */
    uint64_t numbers;             /* of a number: mean, scale, fill; of one that leads: where these codes begin */
};

/* Of a conjunction: the part's family and distance and, but for the first part, the table of pairs with those before it.
   Of a bag: a literal text (family NONE), or the value of a column. Of a lexicon: a level of its tree. */
struct part {
    uint32_t family;
    int32_t offset;
    uint32_t first_pair, bits; /* of a table of keys; literal text: at and size */
    uint32_t codes, flags;
};

struct slot {
    uint32_t tag, code, at, size; /* code NONE: empty */
};

struct pair {
    uint64_t key;
    uint32_t number, flags; /* number NONE: empty */
};

struct term {
    uint32_t kind, columns, first_field, fields;
    uint32_t degree, first_pair, bits, reserved; /* of conjunctions of features */
    uint64_t first_start, rows;
    uint64_t base; /* of conjunctions: of keys, whose squares are at `squares` */
    uint64_t squares;
};

struct field {
    uint32_t family;
    int32_t offset;
    uint32_t first_row, stride; /* the row of code c is first_row + c * stride */
    uint32_t first_feature, reserved;
};

#define NONE 0xFFFFFFFFu
#define NONE64 0xFFFFFFFFFFFFFFFFull
#ifndef MOST_KNOWN
#ifdef __wasm__
#define MOST_KNOWN 8192          /* values that a tagger remembers */
#else
#define MOST_KNOWN 65536
#endif
#endif
#ifndef SPARE
#define SPARE(bytes) ((bytes) / 2 + 64) /* that room has for more; tests have none, so that sanitizers see its end */
#endif
#define KNOWN_BYTES ((size_t)MOST_KNOWN * 768) /* as much as they take at most; there are fewer if each is large */
#define MOST_BEYOND (1 << 28)    /* bytes of sums beyond the ends; a damaged file may ask for more */
#define LONGEST_KNOWN 40         /* bytes of such a value */
#define FETCHED_AHEAD 4          /* positions between one whose values are looked up and one whose values are fetched */

enum term_kind { OF_CONJUNCTIONS = 1, OF_PAIRS = 2, IN_HALVES = 4 }; /* halves: one column of weights for two labels */
enum part_flag { FROM_ENDS = 1, WAPITI = 2, LAST_OF_LINE = 4 };
enum node_flag { WHOLE = 1, LONGER = 2 }; /* of nodes of a lexicon's tree: an entry ends here, or there are longer ones */

/* Fields of one column at one distance: what they add to scores is one vector, which is remembered. Conjunctions of a
   column that has one family belong to it: what they add depends on `span` more values. */
struct distance {
    int32_t offset;
    uint32_t first, last;  /* in `summed` */
    uint32_t column, number; /* among those of the column */
};

struct place {
    uint32_t term, field;
};

struct kcrf_model {
    const uint8_t *data;
    size_t size;
    void *owned;
    bool mapped;
    const void *at[SECTIONS];
    uint64_t count[SECTIONS];
    const struct meta *meta;
    const struct family *families;
    const struct part *parts;
    const struct slot *slots;
    const struct pair *pairs;
    const struct term *terms;
    const struct field *fields;
    const uint32_t *starts;
    const uint16_t *columns;
    const uint8_t *values;
    const double *numbers;
    const int32_t *states;
    const uint32_t *codes;
    uint32_t *column_families; /* [columns + 1] families of a column stand together, those of no column last */
    uint32_t *column_distances;  /* [columns + 1] */
    uint32_t *summed_with;     /* [families] column that fields of the family are summed with, or NONE */
    uint32_t *spans;           /* [columns] */
    struct distance *distances;
    struct place *summed; /* fields that are summed by columns, then all others */
    uint64_t others;      /* where those begin */
    uint32_t *term_others; /* [terms] their number */
    uint8_t *needed;      /* [families] codes are looked at by other families or terms */
    uint8_t *needed_of;   /* [columns] those of a family of the column are, and stand with its values */
    bool plain;           /* scores are sums by columns and no more */
    size_t longest;            /* positions whose arrays have sizes that fit a size_t */
    double *padded;            /* of first order: [2, Y, stride] transitions and their transpose; [stride] how much better than
                                  behind another label one can be behind this, for up to 64 labels */
    double *exponentials;      /* [2, Y, stride] */
    double *with_bonus;        /* like `padded`, with the bonus of spans; NULL: there is none */
    size_t stride;
    double shift, depth;       /* largest transition, which exponentials are divided by, and its distance to the least */
};

/* A value of a column; what it adds to scores stands behind it [most distances of a column, stride], then its codes. */
struct remembered {
    uint64_t hash;
    uint32_t column, size;
    char text[LONGEST_KNOWN];
};

struct room {
    void *memory;
    size_t bytes;
};

struct kcrf_tagger {
    const kcrf_model *model;
    kcrf_error error;
    size_t T;
    struct room codes, numbers, scores, edges, text, bag, forward, backward, path, best, memory, work, sums, places, hashes, likely;
    uint64_t *slots;           /* [known_slots] a power of two, at most half of them filled: 32 bits of the hash and, below
                                  them, 1 + the number of the value; or 0 */
    char *known;               /* [known_slots / 2, known_bytes] values in the order of their first use, so that frequent ones are near */
    char *beyond;              /* [distances, 2 reach, stride] sums of positions beyond the ends */
    const char **rows;         /* [distances] */
    double *row;               /* [stride + 65536] */
    kcrf_tagger *shared;       /* one of the same model whose values others find, too, and add to; NULL: none */
    void *known_memory;
    size_t known_slots, known_count, known_bytes, most_families, sum_bytes, sums_room; /* room: bytes of the sums of a value */
    bool scored, has_marginals;
    double log_z;
};

struct entry {
    uint32_t feature;
    double value;
};

int kcrf_fail(kcrf_error *error, int status, const char *format, ...);
void *kcrf_grow(kcrf_tagger *tagger, struct room *room, size_t items, size_t item);
uint64_t kcrf_mix(uint64_t value);

/* Opens a model by its sections, which stand anywhere: all but TEXT at multiples of 8. They must stay
   there until it is closed. */
kcrf_model *kcrf_open_sections(const void *const *at, const uint64_t *count, kcrf_error *error);
kcrf_text kcrf_comment(const kcrf_model *model, size_t number);

/* A text after a transform, in `room` or in its own place; NULL: no memory. `table` has the properties of characters. */
const char *kcrf_transformed(
    struct room *room, kcrf_text table, uint32_t transform, uint32_t length, const char *text, size_t *size);

static inline size_t kcrf_stride(size_t width) { return (width + 7) / 8 * 8; }

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define EACH_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#define AS_VECTOR _Pragma("GCC unroll 1") /* GCC would make scalars of a short loop before it looks for vectors */
#else
#define EACH_WIDTH
#define AS_VECTOR
#endif
#if defined(__GNUC__)
#define LOWEST(bits) ((bits) ? (size_t)__builtin_ctzll(bits) : (size_t)64) /* number of the lowest bit that is set */
#define INLINE static inline __attribute__((always_inline))
#define FETCH(address) __builtin_prefetch(address)
#define ACQUIRED(value) __atomic_load_n(&(value), __ATOMIC_ACQUIRE)
#define INCREASED(value) __atomic_fetch_add(&(value), 1, __ATOMIC_RELAXED)
#define CHANGED(value, before, next) __atomic_compare_exchange_n(&(value), &(before), next, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
#else
static inline size_t LOWEST(uint64_t bits)
{
    size_t number = 0;
    while (number < 64 && !(bits >> number & 1))
        number++;
    return number;
}
#define FETCH(address) (void)(address)
#define ACQUIRED(value) (value) /* taggers share nothing */
#define INCREASED(value) (value)++
#define CHANGED(value, before, next) ((value) = (next), true)
#define INLINE static inline
#endif

#endif
