# Each target does all its own set-up: a virtual environment in .venv, the pinned packages, then the work.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Threads of the numerical libraries: workers share the cores, and small models lose more by waiting than they gain.
export OMP_NUM_THREADS ?= 1
# What one process compiled no other compiles again: torch and transformers alone take each 20 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test suite coverage lint types tools zoo clean

# uv takes a tenth of pip's time for the rest. It knows no index but its own, so pip's is handed on to it; what it can
# not do, pip does.
UV_INDEX = "$${PIP_INDEX_URL:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null)}"
UV := $(BIN)/python -m uv pip install --quiet --python $(BIN)/python --system-certs
define install
test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
$(PIP) torch==2.13.0
{ $(PIP) uv==0.13.9 && UV_DEFAULT_INDEX=$(UV_INDEX) $(UV) -c constraints.txt -e '.[$(EXTRAS)]'; } \
|| $(PIP) -c constraints.txt -e '.[$(EXTRAS)]'
touch $@
endef

$(VENV)/.demo: EXTRAS := local,train
$(VENV)/.demo: pyproject.toml constraints.txt
	$(install)

$(VENV)/.dev: EXTRAS := local,train,hub,report,embed,serve,dev
$(VENV)/.dev: pyproject.toml constraints.txt
	$(install)

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

test:  ## everything that must hold: lint, strict types, architecture, tests; what waits runs beside what computes
	$(MAKE) --jobs=2 lint tools
	$(MAKE) --jobs=2 types suite

suite: $(VENV)/.dev tools
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

coverage: $(VENV)/.dev tools  ## the same tests with branch coverage, which takes them about 40 % longer
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --cov --cov-report=term:skip-covered

zoo: $(VENV)/.demo  ## train the embedded models again, from scratch; resumable
	$(BIN)/python -m pluribus.zoo.train

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .coverage
