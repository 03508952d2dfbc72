# The commands of AgentOps. `make` alone lists them.
SHELL := /bin/sh
PY := .venv/bin/python
ARGS ?=
# The demo is on by default here, and only here: settings offer no tools by themselves.
AGENTOPS_TOOLS ?= demo
# Suites with a target of their own: slow, or with requirements that the product does not have.
APART := e2e fuzz mutants races chaos peers restore
CHROMIUM ?= $(shell command -v chromium 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help setup up test fuzz chaos check mutants races restore peers e2e claude bench lock need-python need-chromium

help: ## Show this list
	@sed -n 's/^\([a-z0-9]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

need-python:
	@command -v python3 >/dev/null 2>&1 || { echo "agentops: python3 is missing: apt-get install python3 python3-venv" >&2; exit 1; }
	@command -v git >/dev/null 2>&1 || { echo "agentops: git is missing: apt-get install git" >&2; exit 1; }

setup: need-python ## Install what running needs into .venv (nothing else is touched)
	@python3 scripts/install.py requirements.lock

up: setup ## Start everything on this machine; knobs: PORT, AGENTOPS_VAR, AGENTOPS_ORIGIN, AGENTOPS_DEMO_PASSWORD
	@AGENTOPS_TOOLS=$(AGENTOPS_TOOLS) exec $(PY) manage.py up

test: need-python ## Run the tests (no browser); ARGS="-k word" for some of them
	@python3 scripts/install.py requirements-dev.lock
	@$(PY) -m pytest tests $(APART:%=--ignore=tests/%) $(ARGS)

fuzz: need-python ## Play whole worlds by seed; SEEDS=n FIRST=n, or SEED=n (KILL=n) to see one again
	@python3 scripts/install.py requirements-dev.lock
	@FUZZ_SEEDS=$(or $(SEEDS),100) FUZZ_FIRST=$(or $(FIRST),1) FUZZ_SEED=$(SEED) FUZZ_KILL=$(KILL) $(PY) -m pytest tests/fuzz $(if $(SEED),-k whatever_happens) -s $(ARGS)

chaos: need-python ## Break everything among real processes and servers; KILLS=n, TRIALS=n, or SHORT=1 for a few cells
	@python3 scripts/install.py requirements-dev.lock
	@CHAOS_SHORT=$(SHORT) CHAOS_TRIALS=$(TRIALS) CHAOS_KILLS=$(KILLS) $(PY) -m pytest tests/chaos $(ARGS)
	@test -n "$(SHORT)" || $(PY) -m tests.chaos.report

mutants: need-python ## Break each promise in a copy and see its test fail; ARGS="-k seq" for some of them
	@python3 scripts/install.py requirements-dev.lock
	@$(PY) -m pytest tests/mutants $(ARGS)

races: need-python ## Act at the same moment in twenty processes; ROUNDS=1000 approvals (30 unless said)
	@python3 scripts/install.py requirements-dev.lock
	@TEST_RACES_ROUNDS=$(or $(ROUNDS),30) $(PY) -m pytest tests/races $(ARGS)

restore: need-python ## Follow docs/backup.md on real processes, and verify the record while fifty write
	@python3 scripts/install.py requirements-dev.lock
	@$(PY) -m pytest tests/restore $(ARGS)

peers: need-python ## Try us with suites that others made (docs/peers.md), in .venv-peers
	@python3 scripts/install.py tests/peers/requirements.lock
	@.venv-peers/bin/python -m pytest tests/peers $(ARGS)

check: need-python ## Run every check that is not a test: style, types, imports, sizes, templates, migrations
	@python3 scripts/install.py requirements-dev.lock
	@$(PY) -m checks $(ARGS)

claude: need-python ## Opt-in: a small run on the real API with ANTHROPIC_API_KEY (docs/models.md); ARGS="--model ..."
	@python3 scripts/install.py requirements.lock
	@AGENTOPS_TOOLS=$(AGENTOPS_TOOLS) $(PY) manage.py try_model $(ARGS)

need-chromium:
	@test -n "$(CHROMIUM)" || { echo "agentops: chromium is missing: apt-get install chromium, or name one in CHROMIUM" >&2; exit 1; }

e2e: need-python need-chromium ## Run the browser tests with the system's Chromium
	@python3 scripts/install.py requirements-e2e.lock
	@CHROMIUM=$(CHROMIUM) $(PY) -m pytest tests/e2e --output=artifacts/e2e --screenshot=only-on-failure $(ARGS)

bench: need-python need-chromium ## Run the benchmarks beside their peers; ARGS=name for one of them
	@python3 scripts/install.py requirements-e2e.lock
	@python3 scripts/install.py bench/requirements.lock
	@CHROMIUM=$(CHROMIUM) $(PY) scripts/with_servers.py $(PY) -m bench $(ARGS)

lock: need-python ## Resolve requirements*.in again into hashed lock files (a developer's command)
	@python3 scripts/install.py requirements-dev.lock
	@for name in requirements requirements-dev requirements-e2e bench/requirements tests/peers/requirements; do \
	  .venv/bin/uv pip compile --no-config --quiet --universal --python-version 3.11 --only-binary :all: \
	    --generate-hashes --no-emit-index-url --no-header $(ARGS) $$name.in -o $$name.lock || exit 1; \
	done
