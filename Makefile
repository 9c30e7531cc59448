# The developers' interface. Every target sets up what it needs; a second run reinstalls nothing.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed: the releases that are tested, or with constraints-min.txt the oldest that are allowed.
CONSTRAINTS ?= constraints.txt
READY := $(VENV)/.ready
READY_TESTS := $(VENV)/.ready-tests
READY_SLOW := $(VENV)/.ready-slow
READY_DOCS := $(VENV)/.ready-docs

.PHONY: help setup demo explorer-page test test-slow lint format docs wheel bench bench-check zoo clean

help:  ## say what there is
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Rebuilt only when the requirements change: what running needs, and on top of it what tests need and what Ray's need.
# torch is constrained to a build that pip finds without CUDA packages.
INSTALL := $(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS)

$(READY): pyproject.toml $(CONSTRAINTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) 'setuptools>=77'
	$(INSTALL) --no-build-isolation --editable '.[explore]'
	touch $@

$(READY_TESTS): $(READY)
	$(INSTALL) --no-build-isolation --editable '.[dev]'
	touch $@

$(READY_SLOW): $(READY_TESTS)
	$(INSTALL) --no-build-isolation --editable '.[dev,ray]'
	touch $@

$(READY_DOCS): $(READY)
	$(INSTALL) --no-build-isolation --editable '.[docs]'
	touch $@

setup: $(READY_TESTS)  ## create the virtual environment, with what developers need

demo: $(READY)  ## the study on what ships with vitscope, ending with where to look
	$(BIN)/vitscope demo

test: $(READY_TESTS) lint  ## lint, types and all quick tests; sets up the browser that page tests drive
	$(BIN)/python -m tests.browser
	$(BIN)/python -m pytest -n auto --dist loadfile

test-slow: $(READY_SLOW)  ## the heavy cases too, Ray's among them
	$(BIN)/python -m tests.browser
	$(BIN)/python -m pytest -n auto --dist loadfile -m "slow or not slow"

lint: $(READY_TESTS)  ## ruff, mypy, and rooms that look one way
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/mypy

format: $(READY_TESTS)  ## put the source in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

explorer-page: $(READY)  ## write docs/explorer.html anew: the zoo, running in a browser alone
	$(BIN)/vitscope explore --export docs/explorer.html

# Two pages of vitscope's own are part of it: the demo's, and the explorer with networks that run in the page.
docs: export SITE_PAGES := runs/site
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(READY_DOCS)  ## the site, in site/; a warning is an error
	$(BIN)/vitscope demo --out runs/demo
	mkdir -p $(SITE_PAGES)
	cp runs/demo/report.html $(SITE_PAGES)/demo.html
	$(BIN)/vitscope explore --export $(SITE_PAGES)/explorer.html
	$(BIN)/mkdocs build --strict --quiet

wheel: $(READY_TESTS)  ## what people install, in dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

bench: $(READY_TESTS)  ## speed and memory, as ratios to a bare forward pass in one run
	$(BIN)/python -m benchmarks $(SUITES)

bench-check: $(READY_TESTS)  ## the same, compared with the last quiet run: names what got worse by more than 10 %
	$(BIN)/python -m benchmarks $(SUITES) --check

# Two processes of one thread each teach faster than one of two, and step back for everything else. Whatever is
# interrupted goes on where it was: networks keep their checkpoints in runs/zoo2, and a cool-down has its own.
ZOO := OMP_NUM_THREADS=1 $(BIN)/python -m zoo
SHIPPED := $(addprefix zoo-ship-,dino moco clip fs mae beit none)
.PHONY: zoo-train zoo-train-1 zoo-train-2 $(SHIPPED)

zoo: zoo-train  ## teach the zoo from nothing, ship and examine it: about four CPU-hours, goes on if interrupted
	$(MAKE) --jobs 2 $(SHIPPED)
	$(ZOO) exam --write --seeds report --out runs/zoo2/exam.json

zoo-train: $(READY)  ## only teach it, or go on with it
	$(MAKE) --jobs 2 zoo-train-1 zoo-train-2

zoo-train-1 zoo-train-2:
	$(ZOO) train

$(SHIPPED): zoo-ship-%:
	$(ZOO) ship --only $*

clean:  ## remove what was built, but no results
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
