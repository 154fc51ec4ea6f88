# Labels one sequence, as tag.c does: Rscript tag.R model.kcrf the/DT cat/NN
arguments <- commandArgs(trailingOnly = TRUE)
dyn.load("tag_r.so")
model <- .Call("kcrf_r_open", arguments[1])
writeLines(.Call("kcrf_r_labels", model, sapply(strsplit(arguments[-1], "/"), identity)))
