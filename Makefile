# Every target first makes .venv from requirements.txt, once. Needs Python 3.11 with pip and venv, nothing else.

PYTHON ?= python3.11
SPACE ?= gp.yaml
ARGS ?=
UV := uv==0.13.9
python := .venv/bin/python
pip_quietly := --quiet --quiet --disable-pip-version-check --no-input
quick := not slow and not fault and not multi_process and not browser

.PHONY: help sweep test test-all check lint types references lock

help:
	@echo "make sweep      run a sweep (SPACE=gp.yaml ARGS='--trials 4')"
	@echo "make test       the tests, without the slow groups"
	@echo "make test-all   all tests; a skipped one is a failure"
	@echo "make references other implementations of the scores, for benchmarks/scores.py"
	@echo "make check      lint, types, test"
	@echo "make lock       make the lock files from pyproject.toml (ARGS=--upgrade: newest versions)"

# exec: make passes SIGTERM to its child only, which must be the sweep itself and not a shell.
sweep: .venv/made
	@exec $(python) sweeps/run.py --space "$(SPACE)" $(ARGS)

test: .venv/made
	@exec $(python) -m pytest -n 2 --dist worksteal -m "$(quick)" $(ARGS)

test-all: .venv/made .venv-references/made chromium
	@exec $(python) -m pytest --no-skips -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

references: .venv-references/made

# For the tests that look at MLflow's pages.
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || { \
	  echo "Installing Debian's chromium ..."; \
	  if [ "$$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi; \
	  $$sudo apt-get update -qq && $$sudo apt-get install -qq -y --no-install-recommends chromium >/dev/null; \
	} || { echo "chromium not found. Install it, so that it is on the PATH, and try again." >&2; exit 1; }

check: lint types test

lint: .venv/made
	$(python) -m ruff check .
	$(python) -m ruff format --check .

types: .venv/made
	$(python) -m mypy

# The stamp is made last: an interrupted install leaves none, and the next make begins again.
# compileall uses every core, where pip would compile on one; a file it cannot compile shows at import.
.venv/made: requirements.txt
	@$(PYTHON) -c "" >/dev/null 2>&1 || { \
	  echo "$(PYTHON) not found. Install Python 3.11, or say where it is: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info[:2] != (3, 11))" || { \
	  echo "Python 3.11 is needed, got $$($(PYTHON) -V 2>&1). Say where one is: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" >/dev/null 2>&1 || { \
	  echo "$(PYTHON) lacks the module venv. Install it (on Debian: python3.11-venv) and try again." >&2; exit 1; }
	@echo "Making .venv, once: the packages of requirements.txt, 3.3 GB on disk, one to three minutes ..."
	@start=$$(date +%s); \
	rm -rf .venv && \
	$(PYTHON) -m venv .venv && \
	$(python) -m pip install $(pip_quietly) --no-compile --require-hashes -r requirements.txt && \
	{ $(python) -m compileall -qq -j 0 .venv/lib || true; } && \
	touch $@ && \
	echo "Made .venv in $$(($$(date +%s) - start)) s."

# In an environment of its own: in one process with PyTorch TensorFlow crashes, and torch-fidelity brings a package named tests.
.venv-references/made: requirements-references.txt
	@echo "Making .venv-references, once: PyTorch and what is compared with it, 5.5 GB, one to three minutes ..."
	@rm -rf .venv-references && $(PYTHON) -m venv .venv-references
	@.venv-references/bin/python -m pip install $(pip_quietly) --no-compile --require-hashes -r requirements-references.txt
	@touch $@

# One lock for Linux and macOS, with the hashes of all files of the public index, whatever pip is set to use here.
lock:
	@$(PYTHON) -m venv .venv-lock && .venv-lock/bin/python -m pip install $(pip_quietly) $(UV)
	.venv-lock/bin/uv pip compile --quiet --no-config pyproject.toml --extra dev --universal --python-version 3.11 \
	  --fork-strategy fewest --generate-hashes --custom-compile-command "make lock" --output-file requirements.txt $(ARGS)
	.venv-lock/bin/uv pip compile --quiet --no-config --group pyproject.toml:references --constraint requirements.txt \
	  --universal --python-version 3.11 --fork-strategy fewest --generate-hashes --no-annotate \
	  --custom-compile-command "make lock" --output-file requirements-references.txt
	@rm -rf .venv-lock
