/* Functions for .Call of tag.R. */

#include "kcrf_runtime.h"

#include <string.h>

#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>

static void finish(SEXP pointer) { kcrf_close(R_ExternalPtrAddr(pointer)); }

SEXP kcrf_r_open(SEXP path)
{
    kcrf_error error;
    kcrf_model *model = kcrf_open(Rf_translateChar(Rf_asChar(path)), &error);
    if (!model)
        Rf_error("%s", error.text);
    SEXP pointer = PROTECT(R_MakeExternalPtr(model, R_NilValue, R_NilValue));
    R_RegisterCFinalizer(pointer, finish);
    UNPROTECT(1);
    return pointer;
}

/* Return the labels of a matrix of texts, [columns, positions]. */
SEXP kcrf_r_labels(SEXP pointer, SEXP texts)
{
    const kcrf_model *model = R_ExternalPtrAddr(pointer);
    R_xlen_t columns = (R_xlen_t)kcrf_column_count(model), T = Rf_xlength(texts) / columns;
    kcrf_text *cells = (kcrf_text *)R_alloc((size_t)(T * columns + 1), sizeof *cells);
    for (R_xlen_t k = 0; k < T * columns; k++) {
        cells[k].text = Rf_translateCharUTF8(STRING_ELT(texts, k));
        cells[k].size = strlen(cells[k].text);
    }
    kcrf_tagger *tagger = kcrf_tagger_new(model);
    if (!tagger)
        Rf_error("out of memory");
    SEXP out = PROTECT(Rf_allocVector(STRSXP, T));
    const int32_t *best = kcrf_set_columns(tagger, cells, (size_t)T) ? NULL : kcrf_labels(tagger);
    kcrf_error error = *kcrf_tagger_error(tagger);
    for (R_xlen_t t = 0; best && t < T; t++)
        SET_STRING_ELT(out, t, Rf_mkCharCE(kcrf_label_name(model, (size_t)best[t]).text, CE_UTF8));
    kcrf_tagger_free(tagger);
    UNPROTECT(1);
    if (!best)
        Rf_error("%s", error.text);
    return out;
}
