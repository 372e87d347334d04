# Shortcuts for developers; .ci/run is what CI runs.
PYTHON ?= python

.PHONY: test fault full agents-more lint docs bench conformance conformance-framework conformance-policy

test:
	$(PYTHON) -m pytest -n auto

fault:
	$(PYTHON) -m pytest -m fault

full:
	$(PYTHON) -m pytest -n auto
	FAULT_ROUNDS=50 $(PYTHON) -m pytest -m fault
	$(PYTHON) -m pytest -m service
	$(PYTHON) -m pytest -m agents

# The slower agent programs (opencode, Qwen Code on Node 22), with those that CI runs: docs/bridges.
agents-more:
	HOOKTURN_AGENTS_MORE=1 $(PYTHON) -m pytest -m agents tests/agents/test_real_opencode.py tests/agents/test_opencode_plugin.py \
		tests/agents/test_real_qwen.py tests/agents/test_real_done.py

lint:
	ruff check .
	ruff format --check .
	mypy
	pyright --pythonpath "$(shell command -v $(PYTHON))"
	lint-imports

docs:
	mkdocs build --strict

bench:
	$(PYTHON) benchmarks/run.py

# The conformance kit of AGENT-HOOKS-0.1, and what it cannot show (docs/conformance.md). Each part has an
# environment of its own below .ctk/, because their packages pin one another.
conformance: .ctk/kit/ready
	cd tests/conformance && ../../.ctk/kit/bin/python run.py
	cd tests/conformance && ../../.ctk/kit/bin/python mutants.py
	cd tests/conformance && ../../.ctk/kit/bin/python differential.py 1000
	cd tests/conformance && ../../.ctk/kit/bin/python declarations.py 10000

# These two are skipped where their packages cannot be had.
conformance-framework conformance-policy: conformance-%:
	@$(MAKE) --no-print-directory .ctk/$*/ready || { echo "skipped: its packages cannot be installed here"; exit 0; }; \
	test ! -e .ctk/$*/ready || .ctk/$*/bin/python tests/conformance/$*.py

.ctk/%/ready: tests/conformance/requirements/%.txt pyproject.toml
	$(PYTHON) -m venv .ctk/$*
	.ctk/$*/bin/pip install -q --disable-pip-version-check -r $< -e .
	touch $@
