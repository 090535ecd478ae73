# `make run` and `make test` need nothing but Python and make: they build the environment first if it is missing.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: env run test check plans bench clean

env: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(READY)

run: env        # the main job: a LLaMA block and the triangles of a real graph, planned, run and verified
	$(BIN)/einsql run queries/llama_block.sql
	$(BIN)/einsql run queries/triangles.sql

test: env       # every test, golden plans included
	$(BIN)/python -m pytest

check: env      # formatter, linter, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict planner
	$(BIN)/mypy gpu_exec einsql benchmarks

plans: env      # rewrite the golden plans of queries/*.sql; read the diff before committing it
	$(BIN)/python -m pytest tests/test_golden_plans.py --update-plans

bench: env      # ratios against NumPy and scalar rows in DuckDB, in one run
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
