# kcrf: everything a checkout needs, from Python 3.10+ and a C compiler.
#
#   make demo        build an environment, then featurize, select a basis, train, tag and evaluate
#   make test        build what the tests need and run them
#   make test-debug  the core's tests with bounds checks compiled in
#   make lint        style of Python and Cython
#   make clean       remove what these made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(wildcard src/kcrf_core/*.pyx src/kcrf_core/*.pxd) setup.py pyproject.toml

.PHONY: demo test test-debug lint clean
.DELETE_ON_ERROR:

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Built again when the Cython sources or the metadata change; Python sources are used in place.
$(VENV)/installed: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(VENV)/linters: pyproject.toml | $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[lint]'
	touch $@

# The main job, step by step; each file is made from the ones before it.
demo: demo/scores.txt
	@cat $<

# Every fifth utterance is kept for the test.
demo/test.conll: demo/train.conll ;

demo/train.conll: sample_data/pitch_accent.conll
	mkdir -p demo
	awk 'BEGIN { RS = ""; ORS = "\n\n" } { print > (NR % 5 ? "demo/train.conll" : "demo/test.conll") }' $<

demo/data.npz: demo/train.conll | $(VENV)/installed
	$(BIN)/kcrf featurize $< -o $@

demo/basis.npz: demo/data.npz
	$(BIN)/kcrf select-basis $< --kernel poly --degree 2 --size 500 -o $@

demo/model.npz: demo/data.npz demo/basis.npz
	$(BIN)/kcrf train $< --basis demo/basis.npz -o $@

demo/tagged.conll: demo/model.npz demo/test.conll
	$(BIN)/kcrf tag -m $< demo/test.conll -o $@

demo/scores.txt: demo/tagged.conll
	$(BIN)/kcrf evaluate $< > $@

test: $(VENV)/installed
	$(BIN)/python -m pytest

test-debug: $(VENV)/installed
	KCRF_DEBUG=1 $(BIN)/python setup.py --quiet build --build-base build/debug --build-lib build/debug/lib
	PYTHONPATH=build/debug/lib $(BIN)/python -m pytest tests/core

lint: $(VENV)/linters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint src  # it calls pycodestyle by name

clean:
	rm -rf $(VENV) build demo dist .pytest_cache .ruff_cache
	rm -rf src/*.egg-info src/*/*.so
	find src tests -name __pycache__ -exec rm -rf {} +
