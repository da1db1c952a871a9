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

# The locks hold the versions that were tested. requirements/*.lock follow from pyproject.toml.
lock: $(VENV)/test.done
	$(BIN)/pip-compile -q --strip-extras --no-emit-index-url --no-emit-find-links --extra workers -o requirements/run.lock pyproject.toml
	$(BIN)/pip-compile -q --strip-extras --no-emit-index-url --no-emit-find-links --all-extras -o requirements/test.lock pyproject.toml

clean:
	rm -rf $(VENV) .bootstrap dist

# Debian's Python may come without the means to make environments; virtualenv brings its own.
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; name one: make PYTHON=...") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV) || { \
		rm -rf $(VENV); \
		$(PYTHON) -m pip install -q --target .bootstrap "virtualenv<22" && \
		PYTHONPATH=.bootstrap $(PYTHON) -m virtualenv -q $(VENV); }

$(VENV)/run.done: $(BIN)/python requirements/run.lock pyproject.toml
	$(BIN)/python -m pip install -q -r requirements/run.lock
	$(BIN)/python -m pip install -q --no-deps -e .
	touch $@

$(VENV)/test.done: $(BIN)/python requirements/test.lock pyproject.toml
	$(BIN)/python -m pip install -q -r requirements/test.lock
	$(BIN)/python -m pip install -q --no-deps -e .
	touch $@ $(VENV)/run.done
