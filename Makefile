# kcrf: everything a checkout needs, from Python 3.10+ and a C compiler.
#
#   make demo        build an environment, then featurize, select a basis, train, tag and evaluate
#   make test        build what the tests need and run those of every day: four minutes on two cores
#   make test-all    these, the slow ones (make test-slow), and the core's with bounds checks (make test-debug)
#   make test-gpu    the engine of a device with PyTorch, on a GPU where there is one
#   make sanitize    the core's tests under address and undefined-behaviour sanitizers (GCC or Clang)
#   make fuzz        ten minutes of damaged and hostile input for every reader
#   make fuzz-runtime  100,000 damaged models for the C library and 500 runs of kcrf-tag, under sanitizers
#   make soak        two hundred rounds of train, tag and evaluate, half of them killed at some moment
#   make certificates  500 random fits, their bounds held against a reference in extended precision
#   make planted-bugs  some forty bugs, one at a time, each caught by the tests
#   make coverage    the lines and branches that the tests reach
#   make wheel       a wheel in dist/, tried in a new Debian without a compiler
#   make kcrf-tag    a program that tags without Python, in build/kcrf-tag, by the C compiler alone
#   make library     the C library for other programs, in build/libkcrf_runtime.a and .so
#   make wasm        the C library for browsers and Node, in build/kcrf.wasm, kcrf.mjs and browser.html, by Clang
#   make docs        the site in build/site, without warnings; external links are listed in build/external-links.txt
#   make figures-check  that README.md and docs/figures.md have the figures of experiments/, and which of them are older than a release
#   make man         write the manual pages from the options of the commands and from man/*.md
#   make lint        style of Python and Cython, types, and manual pages that are up to date
#   make clean       remove what these made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(wildcard src/kcrf_runtime/*.c src/kcrf_runtime/*.h)
SOURCES := $(wildcard src/kcrf_core/*/*.pyx src/kcrf_core/*/*.pxd src/kcrf_core/*/*.h) $(RUNTIME) setup.py pyproject.toml

# Tests start hundreds of commands: none should compile NumPy's modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: kcrf-tag library wasm fuzz-runtime demo test test-slow test-all test-gpu test-debug sanitize fuzz soak certificates planted-bugs coverage wheel docs figures-check man lint clean
.DELETE_ON_ERROR:

$(BIN)/python:
	@echo 'Making an environment in $(VENV) ...'
	$(PYTHON) -m venv $(VENV)

# Built again when the Cython sources or the metadata change; Python sources are used in place. Few modules of NumPy,
# SciPy and the like are ever imported, so pip compiles none of them: Python does at the first import. It is not quiet,
# so that a minute does not look like a halt.
$(VENV)/installed: $(SOURCES) | $(BIN)/python
	@echo 'Compiling kcrf, which takes about a minute on two cores ...'
	$(BIN)/python -m pip install --no-compile --editable .
	touch $@

# The packages $(1) of a dependency group or of an extra, into .venv or another environment $(2), also with a pip that does
# not know --group; kcrf itself stays as it is and is not compiled again. Python 3.10 has no tomllib, but pip has one.
define packages
$(or $(2),$(BIN))/python -m pip install --quiet --no-compile $$($(BIN)/python -c 'import importlib, sys; \
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "pip._vendor.tomli"); \
    project = toml.load(open("pyproject.toml", "rb")); \
    print(*(project["dependency-groups"] | project["project"]["optional-dependencies"])["$(1)"])')
endef

$(VENV)/test-tools: $(VENV)/installed
	$(call packages,test)
	touch $@

$(VENV)/gpu-tools: $(VENV)/test-tools
	$(call packages,gpu)
	touch $@

$(VENV)/linters: $(VENV)/installed
	$(call packages,lint)
	touch $@

# The main job, step by step; each file is made from the ones before it. A search for sigma2 would take most of the time.
demo: demo/scores.txt
	@cat $<

# Every fifth utterance is kept for the test.
demo/test.conll: demo/train.conll ;

demo/train.conll: sample_data/pitch_accent.conll
	mkdir -p demo
	awk 'BEGIN { RS = ""; ORS = "\n\n" } { print > (NR % 5 ? "demo/train.conll" : "demo/test.conll") }' $<

demo/data.npz: demo/train.conll | $(VENV)/installed
	$(BIN)/kcrf featurize $< --plain --window -1..1 -o $@

demo/basis.npz: demo/data.npz
	$(BIN)/kcrf select-basis $< --kernel poly --degree 2 --size 500 -o $@

demo/model.npz: demo/data.npz demo/basis.npz
	$(BIN)/kcrf train $< --basis demo/basis.npz --sigma2 3 --decode posterior -o $@

demo/tagged.conll: demo/model.npz demo/test.conll
	$(BIN)/kcrf tag -m $< demo/test.conll -o $@

demo/scores.txt: demo/tagged.conll
	$(BIN)/kcrf evaluate $< > $@

# A process for each core; one that has no tests left takes over half of what another still has.
# `make test COSTLIEST=10` ends with a table of the ten tests that took most processor time, and so does test-all.
PYTEST = $(BIN)/python -m pytest -n auto --dist worksteal --costliest $(COSTLIEST)
COSTLIEST = 0
test-slow test-all: COSTLIEST = 10

test: $(VENV)/test-tools
	@echo 'Running the tests, which takes about four minutes on two cores ...'
	$(PYTEST)

test-slow: $(VENV)/test-tools
	$(PYTEST) -m slow

test-all: test test-debug test-slow

# Two engines where there is a GPU, else the one without.
test-gpu: $(VENV)/gpu-tools
	KCRF_TEST_ENGINES=$$($(BIN)/python -c 'import torch; print("torch:cpu" + ",cuda" * torch.cuda.is_available())') \
	    $(BIN)/python -m pytest tests/core/test_device_engine.py tests/core/test_device_pivots.py

# Whole searches and what is Python alone index nothing that other tests do not.
UNCHECKED := tuning tuning_search scikit_learn plugins architecture config grid journal public_names structure

test-debug: $(VENV)/test-tools
	KCRF_DEBUG=1 $(BIN)/python setup.py --quiet build --build-base build/debug --build-lib build/debug/lib
	PYTHONPATH=$(CURDIR)/build/debug/lib $(PYTEST) tests/core $(UNCHECKED:%=--ignore tests/core/test_%.py)

# Of the C library and what it is compiled to.
BUILD := build
LIBRARY := $(filter-out %/tag.c,$(RUNTIME))
OBJECTS := $(patsubst src/kcrf_runtime/%.c,$(BUILD)/%.o,$(filter %.c,$(LIBRARY)))
library: $(BUILD)/libkcrf_runtime.a $(BUILD)/libkcrf_runtime.so
$(OBJECTS): $(BUILD)/%.o: src/kcrf_runtime/%.c $(filter %.h,$(RUNTIME))
	mkdir -p $(BUILD)
	$(CC) -std=c99 -O3 -ffp-contract=off -fPIC -Wall -Wextra $(CFLAGS) -c -o $@ $<
$(BUILD)/libkcrf_runtime.a: $(OBJECTS)
	$(AR) rcs $@ $^
$(BUILD)/libkcrf_runtime.so: $(OBJECTS)
	$(CC) -shared -o $@ $^ -lm

# Static where the C library allows it, so that one file is all that a machine needs. STATIC= links as usual.
STATIC ?= -static
kcrf-tag: build/kcrf-tag
build/kcrf-tag: $(RUNTIME)
	mkdir -p build
	$(CC) -std=c99 -O3 -ffp-contract=off -Wall -Wextra $(CFLAGS) $(STATIC) -o $@ $(filter %.c,$^) -lm -lpthread

# The library as a WebAssembly module without a main function, its JavaScript, and a page that has both inside it. Debian's
# packages: clang lld wasi-libc libclang-rt-dev-wasm32. The functions of the header are exported, but kcrf_open.
WASM_CC ?= clang --target=wasm32-wasi
wasm: $(BUILD)/kcrf.wasm $(BUILD)/kcrf.mjs $(BUILD)/browser.html
$(BUILD)/kcrf.wasm: $(LIBRARY)
	mkdir -p $(BUILD)
	$(WASM_CC) -mexec-model=reactor -std=c99 -O2 -ffp-contract=off -msimd128 -Wall -Wextra $(CFLAGS) -Wl,--strip-all \
	    $$(sed -n '/kcrf_open(/d; s/.*[ *]\(kcrf_[a-z_]*\)(.*/-Wl,--export=\1/p' src/kcrf_runtime/kcrf_runtime.h) \
	    -Wl,--export=malloc -Wl,--export=free -o $@ $(filter %.c,$^)

$(BUILD)/kcrf.mjs: src/kcrf_runtime/kcrf.mjs
	mkdir -p $(BUILD)
	cp $< $@

$(BUILD)/browser.html: docs/browser.html $(BUILD)/kcrf.mjs $(BUILD)/kcrf.wasm
	$(PYTHON) -c 'from base64 import b64encode; from pathlib import Path; \
	    url = lambda path, kind: f"data:{kind};base64,{b64encode(Path(path).read_bytes()).decode()}"; \
	    page = Path("$<").read_text("utf-8").replace("./kcrf.mjs", url("$(BUILD)/kcrf.mjs", "text/javascript")); \
	    print(page.replace("./kcrf.wasm", url("$(BUILD)/kcrf.wasm", "application/wasm")))' > $@

# Python does not know of sanitizers: what they need is loaded before it. What Python itself keeps is no leak of ours, and
# some tests ask for more memory than there is. Wrong uses of memory are described in build/sanitize/report.*; undefined
# behaviour is on stderr whatever log_path says, so pytest must not hold that back.
sanitize: $(VENV)/test-tools
	KCRF_SANITIZE=1 $(BIN)/python setup.py --quiet build --build-base build/sanitize --build-lib build/sanitize/lib
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
	    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0:log_path=$(CURDIR)/build/sanitize/report \
	    UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
	    PYTHONPATH=$(CURDIR)/build/sanitize/lib $(BIN)/python -m pytest --capture=sys $(SANITIZED)

# For a short trial: make fuzz FUZZ_SECONDS=30, make soak ROUNDS=5, make certificates FITS=10, make sanitize SANITIZED=tests/core/test_chain.py
SANITIZED ?= tests/core
FUZZ_SECONDS ?= 600
ROUNDS ?= 200
FITS ?= 500
DAMAGED ?= 100000

fuzz: $(VENV)/test-tools
	$(BIN)/python tests/fuzz.py --seconds $(FUZZ_SECONDS)

fuzz-runtime: $(VENV)/test-tools
	$(BIN)/python tests/runtime/fuzz.py --files $(DAMAGED)

soak: $(VENV)/test-tools
	$(BIN)/python tests/soak.py --rounds $(ROUNDS)

certificates: $(VENV)/test-tools
	$(BIN)/python tests/certificates.py $(FITS)

planted-bugs: $(VENV)/test-tools
	$(BIN)/python tests/planted_bugs.py

$(VENV)/coverage: | $(VENV)/test-tools
	$(BIN)/python -m pip install --quiet 'coverage>=7.10'
	touch $@

coverage: $(VENV)/coverage
	$(BIN)/python -m coverage run -m pytest -n auto -m ''
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

wheel: | $(BIN)/python
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	sh tests/clean_root.sh $(BIN)/python dist/kcrf-*.whl sample_data

# An environment of its own: nothing else needs these packages. --strict makes a broken link or anchor an error.
build/docs-venv/installed: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv build/docs-venv
	$(call packages,docs,build/docs-venv/bin)
	touch $@

docs: build/docs-venv/installed $(VENV)/installed
	$(BIN)/python site/pages.py
	NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --strict

# Older than the last release of CHANGELOG.md, or than a version: make figures-check RELEASE=0.3.0
figures-check:
	$(PYTHON) experiments/figures.py --check
	$(PYTHON) experiments/figures.py --older $(RELEASE)

man: $(VENV)/installed
	$(BIN)/python man/generate.py

lint: $(VENV)/linters
	$(BIN)/python man/generate.py --check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint src  # it calls pycodestyle by name

clean:
	rm -rf $(VENV) build demo dist .pytest_cache .ruff_cache
	rm -rf src/*.egg-info src/*/*.so src/*/*/*.so
	find src tests -name __pycache__ -exec rm -rf {} +
