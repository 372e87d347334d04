# Shortcuts for developers; .ci/run is what CI runs.
PYTHON ?= python

.PHONY: test fault full lint docs bench

test:
	$(PYTHON) -m pytest -n auto

fault:
	$(PYTHON) -m pytest -m fault

full:
	$(PYTHON) -m pytest -n auto
	$(PYTHON) -m pytest -m fault
	$(PYTHON) -m pytest -m service
	$(PYTHON) -m pytest -m agents

lint:
	ruff check .
	ruff format --check .
	mypy
	pyright
	lint-imports

docs:
	mkdocs build --strict

bench:
	$(PYTHON) benchmarks/run.py
