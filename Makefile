# `make run` and `make test` need only Python 3.11 or newer and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VENV1 := .venv-datasette1
VENV_SPACK := .venv-spack
# One more worker than there are processors, because many tests wait for processes and timers.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST := python -m pytest -n $(WORKERS) --dist worksteal
# The outcome of each test, written as they come: a run that is ended keeps the names of what failed.
RESULTS := dist/test-results.txt
DATABASE := dist/spack-cache.db
PORT ?= 8001
# Programs that tests run, each with the Debian package that contains it.
PROGRAMS := chromium=chromium nginx=nginx-light systemd-analyze=systemd docker-registry=docker-registry \
	openssl=openssl curl=curl git=git zstd=zstd node=nodejs npm=npm jq=jq

# Without this, each of the hundreds of processes in tests would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run venv test programs test-datasette1 test-sqlite test-spack checkouts loop check docs attack bench bench-check bench-site lock dist clean
.DELETE_ON_ERROR:

run: $(DATABASE)
	@$(BIN)/spack-cache-db serve $(DATABASE) --port $(PORT)

$(DATABASE): $(VENV)/run.done $(shell find pages -type f; find builder -name '*.py')
	@mkdir -p $(@D)
	@$(BIN)/spack-cache-db build pages -o $@

# All tests. Some need a browser, a proxy or a registry: missing programs are installed if possible,
# otherwise these tests are skipped and listed at the end.
test: $(VENV)/test.done programs
	@mkdir -p dist && rm -f $(RESULTS)
	SPACK_CACHE_DB_TEST_RESULTS=$(RESULTS) $(BIN)/$(PYTEST)
	$(MAKE) test-datasette1

# Services of these packages are not started; the output of dpkg is in a file.
programs:
	@mkdir -p dist; PATH="$$PATH:/usr/sbin"; missing=; for each in $(PROGRAMS); do \
		command -v "$${each%=*}" > /dev/null || missing="$$missing $${each#*=}"; \
	done; \
	if test -n "$$missing"; then .ci/install-packages dist/programs.log $$missing; fi

# Each kind of page with the next version of Datasette, and a test with pandas.
test-datasette1: $(VENV1)/test.done
	$(VENV1)/bin/$(PYTEST) tests/site/test_smoke.py tests/test_python.py::test_a_result_is_a_data_frame

# Compare our answers with a real Spack: type the printed commands in fresh instances of it. SPACK and
# PACKAGES are Git checkouts of spack and spack-packages; no network is needed; ten minutes.
test-spack: checkouts $(VENV)/test.done $(VENV_SPACK)/test.done
	SPACK_PYTHON=$(abspath $(VENV_SPACK)/bin/python) $(BIN)/python -m live_spack "$(SPACK)" "$(PACKAGES)"

# Before anything is installed.
checkouts:
	@test -d "$(SPACK)" -a -d "$(PACKAGES)" || { \
		echo "name two Git checkouts: make test-spack SPACK=../spack PACKAGES=../spack-packages" >&2; \
		exit 2; }

# Building, reading and each kind of page with SQLite 3.26 and 3.34, which RHEL 8 and 9 have. Old npm
# packages contain the source code; it is compiled once, as RHEL does, in a minute.
OLD_SQLITE := 4.0.6=3260000 5.0.2=3340000
SQLITE_OPTIONS := -DSQLITE_ENABLE_FTS3 -DSQLITE_ENABLE_FTS3_PARENTHESIS -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_JSON1 \
	-DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_COLUMN_METADATA -DSQLITE_SECURE_DELETE -DSQLITE_ENABLE_UNLOCK_NOTIFY \
	-DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_ENABLE_DESERIALIZE
SQLITE_TESTS := tests/test_old_sqlite.py tests/test_old_databases.py tests/test_schema.py tests/test_queries.py \
	tests/test_verify.py tests/query tests/cli/test_find.py tests/cli/test_cover.py tests/site/test_smoke.py \
	tests/site/pages tests/site/sql
test-sqlite: $(VENV)/test.done $(foreach pair,$(OLD_SQLITE),$(VENV)/sqlite-$(subst =,-,$(pair))/libsqlite3.so.0)
	for each in $(subst =,-,$(OLD_SQLITE)); do \
		export LD_LIBRARY_PATH=$(CURDIR)/$(VENV)/sqlite-$$each; \
		$(BIN)/python tests/old_sqlite.py $${each#*-} && $(BIN)/$(PYTEST) -m "not slow" $(SQLITE_TESTS) || exit 1; \
	done

$(VENV)/sqlite-%/libsqlite3.so.0: requirements/old_sqlite.sha256
	mkdir -p $(@D)
	cd $(@D) && npm pack --silent sqlite3@$(firstword $(subst -, ,$*)) && sha256sum --check --ignore-missing $(CURDIR)/$<
	cd $(@D) && tar xzf sqlite3-*.tgz && tar xzf package/deps/sqlite-autoconf-*.tar.gz --strip-components 1
	cd $(@D) && gcc -O1 -w -shared -fPIC -Wl,-soname,libsqlite3.so.0 $(SQLITE_OPTIONS) -o libsqlite3.so.0 sqlite3.c -lpthread -ldl -lm

# The fast tests: no processes, servers, browsers or large inputs, none of the files that take half of
# the time of the others, and a fifth of the examples of properties.
LONG := $(addprefix tests/,test_old_databases.py test_sql_functions.py test_jobs.py test_hostile_values.py \
	test_test_runs.py test_verify.py serve/test_served.py assembly/test_history.py assembly/test_trees.py \
	assembly/test_kept_releases.py assembly/test_nights.py sources/fetch/test_binary_sizes.py \
	sources/fetch/test_signatures.py sources/indexes/test_spec_formats.py exports/test_export.py \
	cli/test_schemas.py cli/test_gate.py cli/test_tables.py query/choice/test_proposal_rule.py \
	query/answers/test_retention.py site/test_smoke.py site/sql/test_overtime.py \
	site/pages/test_install_box.py site/test_static_site.py sources/pages/test_looked_up.py \
	site/pages/test_toolchains.py assembly/test_unchanged.py assembly/test_modules.py)
loop: $(VENV)/test.done
	SPACK_CACHE_DB_TEST_EXAMPLES=0.2 $(BIN)/$(PYTEST) -n logical -m "not slow" $(addprefix --ignore=,$(LONG))

check: $(VENV)/test.done
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions deploy/ci/action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.gitlab-ci deploy/ci/gitlab.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/hadolint Containerfile
	$(MAKE) docs

# The documentation as a website, in dist/docs; a broken link is an error.
docs: $(VENV)/test.done
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Attacks with hostile SQL, parameters, clients, folders, archives, pages, indexes, databases and mirrors on
# real processes; ten minutes.
attack: $(VENV)/test.done
	$(BIN)/python -m attacks

bench: $(VENV)/test.done
	$(BIN)/python -m benchmarks

# Fails if builds of this checkout take a tenth more time or space than those of the commit BASE.
BASE ?= main
bench-check: $(VENV)/test.done
	$(BIN)/python -m benchmarks.compare $(BASE)

bench-site: $(VENV)/test.done
	$(BIN)/python -m benchmarks.site

# Write requirements/*.lock from pyproject.toml: the tested versions and the hashes of their files, for
# all Pythons and platforms below. UPGRADE=-U takes the newest versions. oldest.lock has the oldest
# versions that pyproject.toml allows; these have wheels for Python 3.11 only.
COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --only-binary :all: \
	--custom-compile-command "make lock" $(UPGRADE)
# What a test installs beside the packages of test.lock is without these.
TESTED = $(shell sed -n 's/^\([a-z0-9-]*\)==.*/--no-emit-package \1/p' requirements/test.lock)
PYTHONS := 3.11 3.12 3.13 3.14
PLATFORMS := x86_64-manylinux_2_28 aarch64-manylinux_2_28 x86_64-apple-darwin aarch64-apple-darwin
lock: $(VENV)/test.done
	$(COMPILE) -o requirements/test.lock pyproject.toml --group all --extra all
	$(COMPILE) -o requirements/run.lock pyproject.toml --extra all -c requirements/test.lock
	$(COMPILE) -o requirements/build.lock --group pyproject.toml:build -c requirements/test.lock
	$(COMPILE) -o requirements/datasette1.lock pyproject.toml --extra all --group test --group bench --group datasette1
	$(COMPILE) --resolution lowest-direct -o requirements/oldest.lock pyproject.toml --all-extras
	$(COMPILE) -o requirements/dask.lock pyproject.toml --extra dask -c requirements/test.lock
	$(COMPILE) -o requirements/plugins.lock --group pyproject.toml:plugins -c requirements/test.lock $(TESTED)
	$(COMPILE) -o requirements/spack.lock --group pyproject.toml:spack
	$(COMPILE) --excludes requirements/validators.excludes -o requirements/validators.lock --group pyproject.toml:validators -c requirements/test.lock
	for lock in $(filter-out requirements/oldest.lock requirements/plugins.lock,$(wildcard requirements/*.lock)); do for python in $(PYTHONS); do for platform in $(PLATFORMS); do \
		$(BIN)/uv pip install -q --dry-run --target $(VENV)/none --only-binary :all: --require-hashes \
			--python-version $$python --python-platform $$platform -r $$lock || exit 1; \
	done; done; done

# The sdist and the wheel; only the build tools are installed.
dist: $(VENV)/build.done
	$(BIN)/python -m hatchling build -d dist

# The environment of `run`, also used on servers.
venv: $(VENV)/run.done

clean:
	rm -rf $(VENV) $(VENV1) $(VENV_SPACK) .bootstrap dist

# Debian's Python may lack ensurepip; virtualenv brings its own.
$(BIN)/python $(VENV1)/bin/python $(VENV_SPACK)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; name one: make PYTHON=...") if sys.version_info < (3, 11) else 0'
	@$(PYTHON) -m venv $(@:/bin/python=) > /dev/null 2>&1 || { \
		rm -rf $(@:/bin/python=); \
		$(PYTHON) -m pip --version > /dev/null 2>&1 || { \
			echo "$(PYTHON) has neither venv nor pip: install the package python3-venv (or name another: make PYTHON=...)" >&2; \
			exit 1; \
		}; \
		$(PYTHON) -m pip install -q --target .bootstrap "virtualenv<22" && \
		PYTHONPATH=.bootstrap $(PYTHON) -m virtualenv -q $(@:/bin/python=); }

PIP := python -m pip install -q --disable-pip-version-check --root-user-action ignore
INSTALL := $(PIP) --require-hashes
INSTALL_CHECKOUT := $(PIP) --no-deps --no-build-isolation -e .
# Prints how many packages the files $(1) name, and the folder that they are installed into.
SAY_INSTALLING = @echo "Installing $$(cat $(1) | grep -c '^[^ ]*==') packages into $(@D); a minute or two ..."

$(VENV)/run.done: $(BIN)/python requirements/run.lock requirements/build.lock pyproject.toml
	$(call SAY_INSTALLING,requirements/build.lock requirements/run.lock)
	@$(BIN)/$(INSTALL) -r requirements/build.lock
	@$(BIN)/$(INSTALL) -r requirements/run.lock
	@$(BIN)/$(INSTALL_CHECKOUT)
	@touch $@

$(VENV)/build.done: $(BIN)/python requirements/build.lock
	$(call SAY_INSTALLING,requirements/build.lock)
	@$(BIN)/$(INSTALL) -r requirements/build.lock
	@touch $@

$(VENV)/test.done: $(BIN)/python requirements/test.lock pyproject.toml
	$(call SAY_INSTALLING,requirements/test.lock)
	@$(BIN)/$(INSTALL) -r requirements/test.lock
	@$(BIN)/$(INSTALL_CHECKOUT)
	@touch $@ $(VENV)/run.done $(VENV)/build.done

$(VENV1)/test.done: $(VENV1)/bin/python requirements/datasette1.lock pyproject.toml
	$(call SAY_INSTALLING,requirements/datasette1.lock)
	@$(VENV1)/bin/$(INSTALL) -r requirements/datasette1.lock
	@$(VENV1)/bin/$(INSTALL_CHECKOUT)
	@touch $@

$(VENV_SPACK)/test.done: $(VENV_SPACK)/bin/python requirements/spack.lock
	$(call SAY_INSTALLING,requirements/spack.lock)
	@$(VENV_SPACK)/bin/$(INSTALL) -r requirements/spack.lock
	@touch $@
