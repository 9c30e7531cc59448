# The developers' interface. Every target sets up what it needs; a second run reinstalls nothing.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test test-slow lint format bench zoo clean

help:  ## say what there is
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Rebuilt only when the requirements change. torch is constrained to a build that pip finds without CUDA packages.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt setuptools
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	touch $(READY)

setup: $(READY)  ## create the virtual environment

demo: $(READY)  ## the study on what ships with vitscope, ending with where to look
	$(BIN)/vitscope demo

test: $(READY) lint  ## lint, types and all quick tests
	$(BIN)/python -m pytest -n auto --dist loadfile

test-slow: $(READY)  ## the heavy cases too, Ray's among them
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[ray]'
	$(BIN)/python -m pytest -n auto --dist loadfile -m "slow or not slow"

lint: $(READY)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## put the source in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## speed and memory, as ratios to a bare forward pass in one run
	$(BIN)/python -m benchmarks

# Two processes of one thread each teach faster than one of two, and step back for everything else. Whatever is
# interrupted goes on where it was: networks keep their checkpoints in runs/zoo, and a cool-down has its own.
ZOO := OMP_NUM_THREADS=1 $(BIN)/python -m vitscope.teaching.zoo
SHIPPED := $(addprefix zoo-ship-,dino moco clip fs mae beit none)
.PHONY: zoo-train-1 zoo-train-2 $(SHIPPED)

zoo: $(READY)  ## teach the zoo from nothing, ship and examine it: about 4.5 CPU-hours, goes on if interrupted
	$(MAKE) --jobs 2 zoo-train-1 zoo-train-2
	$(MAKE) --jobs 2 $(SHIPPED)
	$(ZOO) exam --write --out runs/zoo/exam.json

zoo-train-1 zoo-train-2:
	$(ZOO) train

$(SHIPPED): zoo-ship-%:
	$(ZOO) ship --only $*

clean:  ## remove what was built, but no results
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
