# Needs make and python3 (3.11 or newer); all else is installed into .venv, Java with apt where it is missing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Spark's classes as Java has parsed them once, for the two hundred starts of Spark that the tests need.
ARCHIVE := $(VENV)/spark.jsa

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Containers often forbid it; without compiled files every run, and every process that a test starts, compiles all anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo demo-stocks demo-cluster quick test coverage lint type wheel bench docs lock clean java servers peers

# Which tests: a path, or words as for pytest -k. T=tests/balance, K="drain and not dead"
T ?=
K ?=
# How many at once: as many as cores, and one more, as tests also wait for servers to start and to stop. A test that
# fails is easier to follow with JOBS=0, which runs all in one process.
JOBS ?= $(shell expr $$(nproc) + 1)
PYTEST = $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadgroup --no-loadscope-reorder \
	$(if $(K),-k "$(K)") $(T)
QUICK := not (spark or process or server or postgresql or kafka or s3 or browser or slow)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: java $(INSTALLED) ## run the emergency application until Ctrl-C, or for DEMO_SECONDS=60
	@$(BIN)/tocsin demo $(if $(DEMO_SECONDS),--seconds $(DEMO_SECONDS))

demo-stocks: $(INSTALLED) ## run stock alerts on a content-based overlay until Ctrl-C, or for DEMO_SECONDS=60
	@$(BIN)/tocsin overlay demo $(if $(DEMO_SECONDS),--seconds $(DEMO_SECONDS))

# Without one of the servers it runs on those there are, and says what is missing.
demo-cluster: java $(INSTALLED) ## run it on a Spark cluster, Kafka, PostgreSQL and S3, each part on a host of its own; as root
	@scripts/ensure-iproute2
	@scripts/ensure-postgresql || true
	@scripts/ensure-kafka || true
	@scripts/ensure-s3 || true
	@$(BIN)/tocsin demo --hosts --people 100 --brokers 3 $(if $(DEMO_SECONDS),--seconds $(DEMO_SECONDS))

install: java $(INSTALLED) ## install everything into .venv

quick: $(INSTALLED) ## run the tests that need no server, no Spark and no browser; T=PATH and K=WORDS choose
	@$(PYTEST) -m "$(QUICK)" --hypothesis-profile quick

test: java servers $(ARCHIVE) ## run all tests; T=PATH and K=WORDS choose
	@$(PYTEST)

coverage: java servers $(ARCHIVE) ## run all tests and show which lines and branches none of them reaches
	@$(PYTEST) --cov --cov-report=term --cov-report=html:build/coverage

lint: $(INSTALLED) ## check style and format
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

type: $(INSTALLED) ## check types
	@$(BIN)/mypy

wheel: java $(INSTALLED) ## build the wheel, install it into an empty environment, and run the demo with it
	@scripts/try-wheel $(PYTHON)

bench: java peers $(INSTALLED) ## measure the data cluster, the planners, the brokers and matching
	@$(BIN)/tocsin bench data
	@$(BIN)/tocsin bench balance
	@$(BIN)/tocsin bench broker
	@$(BIN)/tocsin bench content

docs: $(INSTALLED) ## make the generated pages again
	@$(BIN)/tocsin settings --toml > tocsin.example.toml
	@$(BIN)/tocsin settings --markdown > docs/settings.md

lock: ## pin the newest versions that pyproject.toml allows
	@scripts/ensure-python $(PYTHON)
	@scripts/renew-lock $(PYTHON)

clean: ## remove the environment and all caches; data stay
	@rm -rf $(VENV) build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

java:
	@scripts/ensure-java

servers:
	@scripts/ensure-postgresql
	@scripts/ensure-kafka
	@scripts/ensure-s3
	@scripts/ensure-openssl
	@scripts/ensure-chromium
	@scripts/ensure-strace
	@scripts/ensure-iproute2
	@scripts/ensure-kustomize

peers: $(INSTALLED)
	@scripts/ensure-peers
	@$(BIN)/pip install --quiet --only-binary mtkahypar --editable '.[peer]' || \
		echo "Not installed: mtkahypar. tocsin bench balance leaves it out."

$(INSTALLED): requirements.lock pyproject.toml
	@scripts/ensure-python $(PYTHON)
	@echo "Installing into $(VENV) (once; a minute or two) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/pip install --quiet --requirement requirements.lock
	@$(BIN)/pip install --quiet --no-deps --editable .
	@touch $@

# All goes without it, only more slowly. Its time tells whether it is older than what is installed.
$(ARCHIVE): $(INSTALLED) | java
	@echo "Preparing quick starts of Spark (once; half a minute) ..."
	@$(BIN)/python -m tests.java || echo "Not prepared: the tests start Spark without it, which takes longer."
