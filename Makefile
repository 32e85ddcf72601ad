# Plait's commands. `make serve` and `make test` do all the set-up they need.
# A stamp in the venv records what is installed, so a second call is instant.

VENV    := .venv
BIN     := $(VENV)/bin
LOCKS   := .ci/requirements
PYTHON  ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
             $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP     := $(BIN)/python -m pip --disable-pip-version-check
SOURCES := server/plait tests e2e .ci
ARGS    ?=
ENGINES ?= llamacpp mlx
MINUTES ?= 10
SECONDS ?= 300

.DEFAULT_GOAL := help
.PHONY: help setup serve setup-dev torch system browser web model model-chat model-speech \
        model-listening model-embed setup-test check format lint types layers check-web test e2e \
        bench proof chaos soak fuzz clean

help: ## list the commands
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | \
	  while IFS='|' read -r name text; do printf '  make %-11s %s\n' "$$name" "$$text"; done

# --- running ---------------------------------------------------------------------------------

setup: $(VENV)/.runtime ## make .venv with the locked runtime dependencies

serve: setup ## set up, fetch the starter model if missing, serve the playground on loopback
	@exec $(BIN)/plait serve $(ARGS)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Plait needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(LOCKS)/runtime.lock $(LOCKS)/build.lock pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r $(LOCKS)/build.lock -r $(LOCKS)/runtime.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# --- developing ------------------------------------------------------------------------------

setup-dev: $(VENV)/.dev ## also what tests and checks need (adds mlx on Linux)

$(VENV)/.dev: $(LOCKS)/dev.lock $(LOCKS)/build.lock pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r $(LOCKS)/build.lock -r $(LOCKS)/dev.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $(VENV)/.runtime $@

torch: $(VENV)/.torch ## also PyTorch and the kokoro package, for the tests of that engine

# A CPU build where pip is told of one. Outside the lock: its hash depends on the build.
$(VENV)/.torch: $(VENV)/.dev $(LOCKS)/kokoro.lock
	$(PIP) install torch==2.13.0
	$(PIP) install --require-hashes --no-deps -r $(LOCKS)/kokoro.lock
	@touch $@

web: web/node_modules/.stamp

web/node_modules/.stamp: web/package-lock.json web/package.json
	@command -v npm >/dev/null || { echo "The web checks need node 20 or newer with npm: install it and try again."; exit 1; }
	cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

system:
	@.ci/system-packages

browser: system
	@.ci/browser >/dev/null

model: model-chat model-speech model-listening model-embed

# One target per model, as the forms of one model wait for each other; `make -j` pulls them at once.
model-chat: setup-dev
	$(BIN)/plait models pull --engine llamacpp
	$(BIN)/plait models pull --engine mlx

model-speech: setup-dev
	$(BIN)/plait models pull --engine kokoro-onnx kokoro-82m
	$(BIN)/plait models pull --engine kokoro-torch kokoro-82m

model-listening: setup-dev
	$(BIN)/plait models pull --engine whisper whisper-tiny.en
	$(BIN)/plait models pull --engine whisper whisper-base

model-embed: setup-dev
	$(BIN)/plait models pull --engine onnx all-minilm-l6-v2
	$(BIN)/plait models pull --engine onnx all-minilm-l6-v2-int8

# --- checking --------------------------------------------------------------------------------

check: format lint types layers check-web ## format, lint, types, layers; Python and web (-k shows all)

format: setup-dev
	$(BIN)/ruff format --check $(SOURCES)

lint: setup-dev
	$(BIN)/ruff check $(SOURCES)

types: setup-dev
	$(BIN)/mypy $(SOURCES)

layers: setup-dev
	$(BIN)/lint-imports

check-web: web
	cd web && npm run --silent check

setup-test: setup-dev torch web browser model

test: setup-test ## every test: Python, JavaScript, end to end; sets up all it needs
	@$(BIN)/python .ci/suites.py python,installs,web+engines+waits proofs e2e+sound

e2e: setup-dev web browser model ## the browser tests alone
	@$(BIN)/python .ci/suites.py e2e+sound

bench: setup-dev model ## cancel latency and throughput of each engine on this machine
	for engine in $(ENGINES); do for what in cancel chat; do \
	  $(BIN)/plait bench $$what --engine $$engine $(ARGS) || exit 1; done; done

proof: setup-test ## the proofs in full size (long); writes docs/proofs/<date>.md
	PLAIT_TEST_PROOF=full $(BIN)/python -m pytest tests/proofs tests/live tests/engines
	PLAIT_TEST_PROOF=full $(BIN)/python -m pytest e2e/test_leaving.py e2e/test_lighthouse.py

chaos: setup-dev ## servers killed, starved, flooded and lied to, in full size (long); ARGS go to pytest
	PLAIT_TEST_PROOF=full $(BIN)/python -m pytest tests/chaos $(ARGS)

soak: setup-dev model ## a server under everything clients do, for MINUTES; the report is in build/soak
	$(BIN)/plait bench soak --minutes $(MINUTES) --report build/soak $(ARGS)

fuzz: setup-dev ## hostile frames on the wire's codec for SECONDS; goes on from build/fuzz
	$(BIN)/python -m tests.fuzz.campaign $(SECONDS)

clean: ## remove what these commands made (models stay; see `plait models remove`)
	rm -rf $(VENV) build dist web/node_modules .mypy_cache .pytest_cache .ruff_cache \
	  .import_linter_cache .hypothesis test-results
