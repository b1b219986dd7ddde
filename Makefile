# Each target does all its own set-up: a virtual environment in .venv, the pinned packages, then the work.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Threads of the numerical libraries: workers share the cores, and small models lose more by waiting than they gain.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test coverage lint types tools zoo clean

$(VENV)/.demo: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) -c constraints.txt -e '.[local,train]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) -c constraints.txt -e '.[local,train,hub,report,embed,serve,dev]'
	touch $@

demo: $(VENV)/.demo  ## the whole walk on embedded models: no key, no network, no GPU
	$(BIN)/pluribus demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

tools:  ## what the tests of the sandbox and of the pages need; where it can not be installed they are skipped and say so
	@{ command -v bwrap && command -v chromium && command -v chromedriver; } >/dev/null || { test "$$(id -u)" = 0 \
	&& command -v apt-get && apt-get -qq update && apt-get -qq install -y --no-install-recommends bubblewrap chromium \
	chromium-driver; } >/dev/null 2>&1 || true

test: lint types tools  ## everything that must hold: lint, strict types, architecture, tests
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

coverage: $(VENV)/.dev tools  ## the same tests with branch coverage, which takes them about 40 % longer
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --cov --cov-report=term:skip-covered

zoo: $(VENV)/.demo  ## train the embedded models again, from scratch; resumable
	$(BIN)/python -m pluribus.zoo.train

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .coverage
