/* Labels sequences with a model that `kcrf export --to runtime` wrote. C99, no dependencies, no global state.

   A model is read only: threads share it. Each thread has a tagger of its own, whose memory is used again for the next
   sequence; nothing is allocated once the longest sequence has been seen. Results belong to the tagger and are valid
   until the next call for it. Texts are UTF-8 and need no zero byte at their end.

       kcrf_error error;
       kcrf_model *model = kcrf_open("model.kcrf", &error);
       kcrf_tagger *tagger = model ? kcrf_tagger_new(model) : NULL;
       kcrf_text cells[] = {{"the", 3}, {"DT", 2}, {"cat", 3}, {"NN", 2}};    two positions, two columns each
       if (tagger && kcrf_set_columns(tagger, cells, 2) == KCRF_OK) {
           const int32_t *labels = kcrf_labels(tagger);
           if (labels)
               puts(kcrf_label_name(model, labels[0]).text);
       } */

#ifndef KCRF_RUNTIME_H
#define KCRF_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KCRF_FILE_VERSION 3

enum kcrf_status {
    KCRF_OK,
    KCRF_IO,      /* a file cannot be read */
    KCRF_FORMAT,  /* no model, or a damaged one */
    KCRF_MEMORY,
    KCRF_INPUT,   /* a value that the model cannot take */
    KCRF_NUMERIC, /* scores are too large, or no labelling is possible */
};

typedef struct {
    int status;
    char text[240]; /* a message for users */
} kcrf_error;

typedef struct {
    const char *text;
    size_t size;
} kcrf_text;

typedef struct {
    kcrf_text name;
    double value;
} kcrf_attribute;

typedef struct kcrf_model kcrf_model;
typedef struct kcrf_tagger kcrf_tagger;

/* Open a file, which is mapped where the system can do that, or a file's bytes, which must stay and begin at a multiple
   of 8. NULL where that fails. Header, section table and plan are checked. */
kcrf_model *kcrf_open(const char *path, kcrf_error *error);
kcrf_model *kcrf_open_memory(const void *data, size_t size, kcrf_error *error);
void kcrf_close(kcrf_model *model); /* after all of its taggers */

size_t kcrf_label_count(const kcrf_model *model);
kcrf_text kcrf_label_name(const kcrf_model *model, size_t label); /* ends with a zero byte, which is not counted */
int kcrf_takes_attributes(const kcrf_model *model); /* else positions have columns */
size_t kcrf_column_count(const kcrf_model *model);  /* of input, without the label */
kcrf_text kcrf_column_name(const kcrf_model *model, size_t column);
int kcrf_column_used(const kcrf_model *model, size_t column); /* other columns may be anything */

/* 1 if training had this value of a column, or this attribute of any column; 0 if it did not, or too rarely for a weight;
   -1 if the model has no table of the column's values: numbers, and columns of templates or lexicons alone. */
int kcrf_knows(const kcrf_model *model, size_t column, kcrf_text value);

kcrf_tagger *kcrf_tagger_new(const kcrf_model *model); /* NULL: no memory */
void kcrf_tagger_free(kcrf_tagger *tagger);
const kcrf_error *kcrf_tagger_error(const kcrf_tagger *tagger); /* of the last call that failed */

/* Set a sequence: cells [positions, columns], or attributes of which those of position t end at ends[t]. */
int kcrf_set_columns(kcrf_tagger *tagger, const kcrf_text *cells, size_t positions);
int kcrf_set_attributes(
    kcrf_tagger *tagger, const kcrf_attribute *attributes, const size_t *ends, size_t positions);

/* Numbers of the best labels [positions] by the model's decoder; NULL: see the error. */
const int32_t *kcrf_labels(kcrf_tagger *tagger);
const int32_t *kcrf_viterbi(kcrf_tagger *tagger);   /* the most probable labelling */
const double *kcrf_marginals(kcrf_tagger *tagger);  /* p(label | sequence), [positions, labels] */
int kcrf_log_probability(kcrf_tagger *tagger, const int32_t *labels, double *result);

#ifdef __cplusplus
}
#endif

#endif
