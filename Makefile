# Everything starts here. `make run` and `make test` need nothing but Python 3.11 or newer and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATABASE := dist/spack-cache.db
PORT ?= 8001

.PHONY: run test loop check bench bench-site lock clean
.DELETE_ON_ERROR:

run: $(DATABASE)
	$(BIN)/spack-cache-db serve $(DATABASE) --port $(PORT)

$(DATABASE): $(VENV)/run.done $(wildcard pages/*) $(shell find builder -name '*.py')
	$(BIN)/spack-cache-db build pages -o $@

# All tests. Those of the site drive Debian's Chromium, and say so where it is missing.
test: $(VENV)/test.done
	$(BIN)/python -m pytest -n auto --dist worksteal

# The usual loop: no real processes, no browser, no large inputs.
loop: $(VENV)/test.done
	$(BIN)/python -m pytest -m "not slow"

check: $(VENV)/test.done
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/test.done
	$(BIN)/python -m benchmarks

bench-site: $(VENV)/test.done
	$(BIN)/python -m benchmarks.site

# requirements/*.lock follow from pyproject.toml: the versions that were tested and the hashes of
# their files, the same for each Python and platform below. UPGRADE=-U takes the newest versions.
COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make lock" $(UPGRADE)
PYTHONS := 3.11 3.12 3.13 3.14
PLATFORMS := x86_64-manylinux_2_28 aarch64-manylinux_2_28 x86_64-apple-darwin aarch64-apple-darwin
lock: $(VENV)/test.done
	$(COMPILE) -o requirements/test.lock pyproject.toml --group all
	$(COMPILE) -o requirements/run.lock pyproject.toml -c requirements/test.lock
	$(COMPILE) -o requirements/build.lock --group pyproject.toml:build -c requirements/test.lock
	for lock in requirements/*.lock; do for python in $(PYTHONS); do for platform in $(PLATFORMS); do \
		$(BIN)/uv pip install -q --dry-run --target $(VENV)/none --only-binary :all: --require-hashes \
			--python-version $$python --python-platform $$platform -r $$lock || exit 1; \
	done; done; done

clean:
	rm -rf $(VENV) .bootstrap dist

# Debian's Python may come without the means to make environments; virtualenv brings its own.
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; name one: make PYTHON=...") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV) || { \
		rm -rf $(VENV); \
		$(PYTHON) -m pip install -q --target .bootstrap "virtualenv<22" && \
		PYTHONPATH=.bootstrap $(PYTHON) -m virtualenv -q $(VENV); }

INSTALL := $(BIN)/python -m pip install -q --require-hashes
INSTALL_CHECKOUT := $(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .

$(VENV)/run.done: $(BIN)/python requirements/run.lock requirements/build.lock pyproject.toml
	$(INSTALL) -r requirements/build.lock
	$(INSTALL) -r requirements/run.lock
	$(INSTALL_CHECKOUT)
	touch $@

$(VENV)/test.done: $(BIN)/python requirements/test.lock pyproject.toml
	$(INSTALL) -r requirements/test.lock
	$(INSTALL_CHECKOUT)
	touch $@ $(VENV)/run.done
