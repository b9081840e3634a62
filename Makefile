# Everything a fresh machine needs for its first run: each target makes the virtual environment it uses.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What an installation is made of: when one of these changes, it is made again.
SOURCES := pyproject.toml setup.py constraints.txt $(wildcard src/regard/native/*.[ch])

.PHONY: demo test check lint types clean

demo: $(VENV)/.installed  ## train, measure and look into a translator on the embedded corpus
	$(BIN)/regard demo --out demo-run

test: $(VENV)/.installed-dev  ## all tests
	$(BIN)/python -m pytest --numprocesses 2

check: lint types

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

$(VENV)/.installed: $(SOURCES) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-dev: $(SOURCES) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(VENV)/.installed $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'regard needs Python 3.11 or newer; name it with: make PYTHON=python3.12 …' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "Python's venv module is missing; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

clean:
	rm -rf $(VENV) demo-run build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
