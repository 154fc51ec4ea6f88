/* Labels one sequence and prints the labels with their probabilities. Each argument is a position, with a slash between
   its columns. From the root of kcrf's sources:

     cc -std=c99 -O3 -ffp-contract=off -Isrc/kcrf_runtime -o tag examples/tag.c \
         src/kcrf_runtime/model.c src/kcrf_runtime/features.c src/kcrf_runtime/decode.c -lm
     ./tag model.kcrf the/DT cat/NN */

#include "kcrf_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments)
{
    kcrf_error error = {KCRF_INPUT, "usage: tag MODEL POSITION..."};
    kcrf_model *model = count > 1 ? kcrf_open(arguments[1], &error) : NULL;
    kcrf_tagger *tagger = model ? kcrf_tagger_new(model) : NULL; /* one for each thread */
    if (!tagger)
        return fprintf(stderr, "%s\n", error.text), 2;

    size_t T = (size_t)count - 2, columns = kcrf_column_count(model), Y = kcrf_label_count(model);
    kcrf_text *cells = malloc((T * columns + 1) * sizeof *cells); /* [positions, columns] */
    int32_t *labels = malloc((T + 1) * sizeof *labels);
    for (size_t k = 0; cells && k < T * columns; k++) {
        const char *before = k % columns ? cells[k - 1].text + cells[k - 1].size : NULL;
        cells[k].text = !before ? arguments[2 + k / columns] : before + (*before == '/');
        cells[k].size = strcspn(cells[k].text, "/");
    }
    const int32_t *best = cells && labels && !kcrf_set_columns(tagger, cells, T) ? kcrf_labels(tagger) : NULL;
    if (best)
        memcpy(labels, best, T * sizeof *labels); /* results are valid until the next call */
    const double *p = best ? kcrf_marginals(tagger) : NULL; /* [positions, labels] */
    if (!p)
        return fprintf(stderr, "%s\n", kcrf_tagger_error(tagger)->text), 3;
    for (size_t t = 0; t < T; t++)
        printf("%s\t%s\t%.6f\n", arguments[2 + t], kcrf_label_name(model, (size_t)labels[t]).text, p[t * Y + (size_t)labels[t]]);

    free(labels);
    free(cells);
    kcrf_tagger_free(tagger);
    kcrf_close(model);
    return 0;
}
