# `make` alone prints what there is. Everything else works from a fresh clone: it needs Python 3.11 or later, nothing more.

PYTHON ?= python3
BIN := .venv/bin

# What the environment was made from: the lock, and pyproject.toml down to its first ruled line. While this is what
# stands in .venv/made-from, there is nothing to install.
MADE_FROM = $(CURDIR) $(shell { cat requirements-dev.lock; sed '/^\# ---/q' pyproject.toml; } | cksum)
PIP = PYTHONUNBUFFERED=1 $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off
COMPILE = CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --generate-hashes --no-emit-index-url \
	--no-emit-trusted-host --no-emit-find-links --strip-extras --allow-unsafe

.DEFAULT_GOAL := help
.PHONY: help run psql test pooled soak check fix bench lock migration venv

help: ## print this
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "%-18s %s\n", $$1, $$2 }'

run: venv ## everything from nothing: packages, PostgreSQL, a sample source, first ticks; then serves
	@exec $(BIN)/wakebell dev

psql: venv ## a prompt on the PostgreSQL of a running `make run`
	@exec $(BIN)/python -m app.dev.psql $(ARGS)

test: venv ## everything from nothing, then all tests; what was left out is listed with its reason
	@$(BIN)/python -m pytest -n 3 -rs

pooled: venv ## all tests once more, on Debian's older PostgreSQL and through its pgbouncer in transaction mode
	@WAKEBELL_TESTS_ON=debian WAKEBELL_TESTS_THROUGH=pgbouncer $(BIN)/python -m pytest -n 3 -rs

soak: venv ## 50,000 jobs, eight processes, one killed every second; ARGS=--pooler through pgbouncer; then people who chat, and ten minutes of fuzzing
	@$(BIN)/python -m tests.soak $(ARGS)
	@$(BIN)/python -m tests.soak.chats
	@$(BIN)/python -m tests.soak.chats --redis
	@$(BIN)/python -m tests.soak.quiet
	@$(BIN)/python -m bench.fuzz --minutes 10

check: venv ## format, lint, types, import contracts, workflows: all that needs no database
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/actionlint .github/workflows/*.yml
	$(BIN)/zizmor --offline --no-progress --persona=pedantic .github/workflows

fix: venv ## format, and repair what the linter can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: venv ## the queue beside its peers and hand-written loops; ARGS=--quick to try it out, else half an hour
	@$(BIN)/python -m bench.queues $(ARGS)

lock: venv ## choose the newest allowed packages, and write both lock files
	$(COMPILE) --upgrade --output-file requirements.lock pyproject.toml
	$(COMPILE) --upgrade --extra dev --extra embedded --constraint requirements.lock \
		--output-file requirements-dev.lock pyproject.toml

migration: venv ## M="expand: add jobs.note": an empty migration of that name
	@case "$(M)" in "expand: "?* | "contract: "?*) ;; \
		*) echo 'Say what it does: make migration M="expand: ..." or M="contract: ...".' >&2; exit 1 ;; esac
	@$(BIN)/python -c 'import sys; from app.stores.migrations import new_version; print(new_version(sys.argv[1]))' "$(M)"

# A chosen PYTHON that the environment was not made with makes it anew, and so does a folder that has moved.
venv:
	@if [ "$$(cat .venv/made-from 2>/dev/null)" = "$(MADE_FROM)" ] && [ -x $(BIN)/python ] && \
		{ [ "$(origin PYTHON)" = file ] || [ "$$($(BIN)/python --version)" = "$$($(PYTHON) --version 2>&1)" ]; }; \
		then exit 0; fi; \
	if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		found=$$($(PYTHON) --version 2>&1) || found="not to be found"; \
		echo "Wakebell needs Python 3.11 or later, and $(PYTHON) is $$found:" \
			"name another one with make PYTHON=python3.12 $(or $(firstword $(MAKECMDGOALS)),run)." >&2; exit 1; fi; \
	set -e; \
	printf %s "Making .venv with $$($(PYTHON) --version); the first time takes about a minute "; \
	$(PYTHON) -m venv --clear .venv; \
	{ $(PIP) --require-hashes -r requirements-dev.lock && $(PIP) --no-deps --no-build-isolation -e . \
		&& echo "$(MADE_FROM)" > .venv/made-from; } | awk '/^Collecting/ { printf "."; fflush() } END { print "" }'; \
	[ -e .venv/made-from ]
