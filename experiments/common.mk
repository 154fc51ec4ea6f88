# What the Makefiles of experiments have in common: include ../common.mk
#
#   make DATA=folder CORES=2        the place of the data, and so many cores for all of it (taskset; Linux)
#   make DATA=folder -j 8 THREADS=2   eight runs at the same time, of two threads each, where runs are files of their own

DATA ?= ../../data
KCRF ?= ../../.venv/bin/kcrf
PYTHON ?= ../../.venv/bin/python
export PYTHONPATH := ..$(if $(PYTHONPATH),:$(PYTHONPATH))

# The option of commands that THREADS becomes.
OWN = $(if $(THREADS),--threads $(THREADS))
# The same and that of ENGINE, for training.
TRAINING = $(OWN) $(if $(ENGINE),--engine $(ENGINE))

# Of two CPUs that are threads of one core, the first.
ifdef CORES
CPUS := $(shell lscpu -p=CPU,CORE | grep -v '^\#' | sort -t, -k2,2n -u | head -n $(CORES) | cut -d, -f1 | paste -sd,)
SHELL := taskset
.SHELLFLAGS := -c $(CPUS) /bin/sh -c
endif
