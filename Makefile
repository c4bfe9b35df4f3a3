# The two commands of the README are `make run` and `make test`; both build the environment that they need, once.
# Nothing here names a package index: pip uses the one it is configured for.

VENV ?= .venv
BIN := $(VENV)/bin
LISTEN ?= 127.0.0.1:9092
DATA ?= data
ARGS ?=

# An interpreter that is new enough: the first that was built with optimisations, else the first. PYTHON=/path/to/python picks another.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 /usr/local/bin/python3 /usr/bin/python3
PYTHON ?= $(shell for name in $(CANDIDATES); do \
	said=$$("$$name" tools/interpreter.py 2>/dev/null) || continue; \
	case "$$said" in (*", optimised") echo "$$name"; exit;; esac; \
	first=$${first:-$$name}; done; echo "$$first")

# Tests that need more than packages from the index carry one of these marks; .ci/run runs them too.
ELSEWHERE := kafka_jars or java or node or go or spark or slow or faults or browser
MARKS ?= not ($(ELSEWHERE))
# These folders start many processes, other clients or many seeds, and take a sixth of the time: `make test-all` and .ci/run have them too.
THOROUGH := chaos container docs fuzz hostile interop model simulation soak workers
# One more than two processors: a third of the time tests wait. Each process collects all tests, which takes half a minute of a slow processor.
WORKERS ?= 3

# Says what takes long, and how long it took.
PROGRESS := sh tools/progress.sh
INSTALL := install --quiet --disable-pip-version-check --no-deps --require-hashes

LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make lock" --quiet

.PHONY: run compiled compile plain test test-all pipeline-test spark-versions search lint format lock config docs docs-site dist release clean

run: $(VENV)/runtime.stamp compiled
	@exec $(BIN)/python -m horolog serve --config config/server.properties --listen $(LISTEN) --data $(DATA) $(ARGS)

# Compiles the hot path where a C compiler is there; plain Python does the same work in more time. tools/compiled.py knows which are due.
compiled: $(VENV)/runtime.stamp
	@if $(BIN)/python -m tools.compiled --due >/dev/null; then echo "the hot path is compiled"; \
	elif command -v $${CC:-cc} >/dev/null 2>&1; then $(MAKE) --no-print-directory compile; \
	else $(BIN)/python -m tools.compiled --remove; echo "no C compiler here: the hot path runs as plain Python"; fi

compile: $(VENV)/compile.stamp
	@mkdir -p build
	@$(PROGRESS) build/compiled.log "compiling the hot path, which takes a minute or two" $(BIN)/python -m tools.compiled \
		&& echo "the hot path is compiled" \
		|| { $(BIN)/python -m tools.compiled --remove; echo "the hot path runs as plain Python: see build/compiled.log"; }

plain: $(VENV)/bin/python
	@$(BIN)/python -m tools.compiled --remove

# `make test ARGS=tests/interop` runs that folder: what the command line names is not left out.
test: LEFT_OUT := $(THOROUGH:%=--ignore=tests/%)
test: test-all

test-all: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "$(MARKS)" $(LEFT_OUT) $(ARGS)

# The pipeline's own tests, with Spark: half a gigabyte of packages that nothing else needs. A time-out would end the session of all.
pipeline-test: $(VENV)/pipeline.stamp
	$(BIN)/python -m pytest --timeout 600 tests/pipeline tests/docs/test_pages.py::test_the_page_of_the_pipeline $(ARGS)

# The pipeline on older releases of Spark: each is installed into an environment of its own, once, in the cache folder.
# SPARK_VERSIONS="4.0.5" tries that one alone.
SPARK_VERSIONS ?= all
spark-versions: $(VENV)/pipeline.stamp
	HOROLOG_SPARK_VERSIONS="$(SPARK_VERSIONS)" $(BIN)/python -m pytest -rs tests/pipeline/spark/test_spark_versions.py $(ARGS)

# Looks for faults that no fixed test finds, and keeps what it finds for the tests to replay. Without MINUTES it never ends.
search: $(VENV)/pipeline.stamp $(VENV)/fuzz.stamp
	$(BIN)/python -m tests.search $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)

# The test suites of other projects against a fresh broker; needs Go, a C compiler and the network. Not in .ci/run.
peers: $(VENV)/dev.stamp
	$(BIN)/python -m tests.peers $(ARGS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions packages/action/action.yml

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The tables of settings and metrics, written out for people.
config: $(VENV)/runtime.stamp
	$(BIN)/python -m horolog.broker.config.server_properties > config/server.properties
	$(BIN)/python -m tools.operations_tables docs/operations.md

# The tables in docs that come from code, and the reference of all folders in build/reference.md.
docs: $(VENV)/runtime.stamp
	$(BIN)/python -m tools.pages
	$(BIN)/python -m tools.reference

# The pages of docs as a site with search, in build/docs-site; it loads nothing from elsewhere. A link that leads nowhere is an error.
docs-site: $(VENV)-site/site.stamp
	$(VENV)-site/bin/python -m tools.docs_site build/docs-pages
	$(VENV)-site/bin/sphinx-build -q -W --keep-going -c docs/site build/docs-pages build/docs-site
	@echo "the site is in build/docs-site: open index.html there"

# The source archive, a wheel of plain Python, and one with the hot path compiled for each Python here that can be compiled for.
dist: $(VENV)-release/tools.stamp
	$(VENV)-release/bin/python -m tools.release archives

# All that a release consists of, in dist, each archive checked in an environment of its own. The last lines say what was skipped, and why.
# HOROLOG_SIGNING_KEY signs, BASE_IMAGE picks the base of the image. Nothing is published.
release: $(VENV)-release/tools.stamp docs-site
	$(VENV)-release/bin/python -m tools.release

# Locks hold for Python 3.11 to 3.14 on every platform; `make lock ARGS=--upgrade` takes newer releases.
lock: $(VENV)-lock/uv.stamp
	$(VENV)-lock/bin/uv pip compile pyproject.toml $(LOCK) $(ARGS) -o requirements/runtime.lock
	$(VENV)-lock/bin/uv pip compile pyproject.toml $(LOCK) $(ARGS) --extra console -c requirements/runtime.lock -o requirements/console.lock
	$(VENV)-lock/bin/uv pip compile pyproject.toml $(LOCK) $(ARGS) --group dev -c requirements/runtime.lock -o requirements/dev.lock
	$(VENV)-lock/bin/uv pip compile pyproject.toml $(LOCK) $(ARGS) --extra store -c requirements/dev.lock -o requirements/store.lock
	$(VENV)-lock/bin/uv pip compile pyproject.toml $(LOCK) $(ARGS) --extra pipeline --group connect -c requirements/dev.lock -o requirements/pipeline.lock
	$(VENV)-lock/bin/uv pip compile $(LOCK) $(ARGS) --group fuzz -c requirements/dev.lock -o requirements/fuzz.lock
	$(VENV)-lock/bin/uv pip compile $(LOCK) $(ARGS) --group compile -c requirements/dev.lock -o requirements/compile.lock
	$(VENV)-lock/bin/uv pip compile $(LOCK) $(ARGS) --group site -c requirements/dev.lock -o requirements/site.lock
	$(VENV)-lock/bin/uv pip compile $(LOCK) $(ARGS) --group release -c requirements/console.lock -o requirements/release.lock

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "building $(VENV) once, with $$($(PYTHON) tools/interpreter.py)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make environments; Debian and Ubuntu have that in the package python3-venv" >&2; exit 1; }

$(VENV)/runtime.stamp: requirements/runtime.lock | $(VENV)/bin/python
	@$(PROGRESS) $(VENV)/runtime.log "installing what horolog needs" $(BIN)/python -m pip $(INSTALL) -r requirements/runtime.lock
	@touch $@

$(VENV)/dev.stamp: requirements/dev.lock | $(VENV)/bin/python
	@$(PROGRESS) $(VENV)/dev.log "installing what the tests need" $(BIN)/python -m pip $(INSTALL) -r requirements/dev.lock
	@touch $@ $(VENV)/runtime.stamp

$(VENV)/pipeline.stamp: requirements/pipeline.lock $(VENV)/dev.stamp
	@$(PROGRESS) $(VENV)/pipeline.log "installing what the pipeline needs, half a gigabyte" $(BIN)/python -m pip $(INSTALL) -r requirements/pipeline.lock
	@touch $@

$(VENV)/fuzz.stamp: requirements/fuzz.lock $(VENV)/dev.stamp
	@$(PROGRESS) $(VENV)/fuzz.log "installing what fuzzing needs" $(BIN)/python -m pip $(INSTALL) -r requirements/fuzz.lock
	@touch $@

$(VENV)/compile.stamp: requirements/compile.lock $(VENV)/runtime.stamp
	@$(PROGRESS) $(VENV)/compile.log "installing what compiling needs" $(BIN)/python -m pip $(INSTALL) -r requirements/compile.lock
	@touch $@

$(VENV)-site/site.stamp: requirements/site.lock
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)-site
	@mkdir -p build
	@$(PROGRESS) build/site.log "installing what makes the site" $(VENV)-site/bin/python -m pip $(INSTALL) -r requirements/site.lock
	@touch $@

$(VENV)-release/tools.stamp: requirements/release.lock
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)-release
	@mkdir -p build
	@$(PROGRESS) build/release-tools.log "installing what builds a release" $(VENV)-release/bin/python -m pip $(INSTALL) -r requirements/release.lock
	@touch $@

$(VENV)-lock/uv.stamp:
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-lock $(VENV)-site $(VENV)-release build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
