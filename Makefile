# The face of the repository: `make help`. The work is done by CMake, scripts/ and
# tests/cluster/loadline-cluster, each of which can be run by itself.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# dev, release, asan or tsan (CMakePresets.json); the programs land in build/$(PRESET)/bin.
PRESET ?= dev
# The nodes of `make up`: a file of tests/cluster/fleets or one of your own.
FLEET ?= demo
# The measured runs of `make score`.
CORPUS ?= tests/data/measured-runs.csv
# The Kubernetes minor of the test cluster: 1.36 or 1.37.
CONTROL_PLANE ?= 1.36

# Compiled objects are kept outside the tree, so that a fresh clone builds quickly.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/loadline
export CCACHE_DIR ?= $(CACHE)/ccache
export CCACHE_MAXSIZE ?= 3G
export CONTROL_PLANE

PROGRAMS := loadline-webhook loadline-operator kubectl-loadline
UNIT_TESTS := $(patsubst tests/unit/%/,unit_%,$(sort $(dir $(wildcard tests/unit/*/*_test.cpp))))
CLUSTER := tests/cluster/loadline-cluster
CHAOS = tests/cluster/loadline-chaos --programs build/$(PRESET)/bin
MINUTES ?= 30
UP := build/cluster
STAGES := scripts/stages.sh

# build/PRESET/CMakeCache.txt says that the preset is configured; CMake then sees by itself what changed.
configure = [ -f build/$(1)/CMakeCache.txt ] || cmake --preset $(1) > /dev/null

.PHONY: help
help: ## Say what there is
	@echo "Loadline. Usage: make TARGET [PRESET=dev|release|asan|tsan] [FLEET=demo|FILE] [CONTROL_PLANE=1.36|1.37]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing: Debian packages, a Go, the test cluster's programs
	@$(STAGES) setup \
	  "Debian packages" scripts/setup.sh \
	  "control plane $(CONTROL_PLANE) (about 12 minutes the first time)" "$(CLUSTER) build --control-plane $(CONTROL_PLANE)"

.PHONY: build
build: ## Build programs and tests into build/PRESET/bin
	@$(call configure,$(PRESET)); cmake --build --preset $(PRESET)

.PHONY: programs
programs:
	@$(call configure,$(PRESET)); cmake --build --preset $(PRESET) --target $(PROGRAMS)

.PHONY: test
test: ## Unit tests under ASan and UBSan, then the tests on a real control plane
	@$(STAGES) test \
	  "what is needed to build" "$(MAKE) -s setup" \
	  "build the unit tests with AddressSanitizer and UBSan" "$(MAKE) -s unit-programs PRESET=asan" \
	  "unit tests" "ctest --test-dir build/asan --output-on-failure --no-tests=error -j2 -L unit" \
	  "build the programs and the cluster tests" "$(MAKE) -s programs cluster-programs PRESET=dev" \
	  "tests on a real control plane $(CONTROL_PLANE)" "ctest --test-dir build/dev --output-on-failure --no-tests=error -L cluster"
	@echo "Shown: every rule by itself, with memory errors and undefined behaviour checked; and the three"
	@echo "programs against a real Kubernetes $(CONTROL_PLANE) API server, scheduler and controller manager."

.PHONY: test-unit
test-unit: ## Only the unit tests (PRESET=tsan for ThreadSanitizer)
	@$(MAKE) -s unit-programs; ctest --test-dir build/$(PRESET) --output-on-failure --no-tests=error -j2 -L unit

.PHONY: unit-programs cluster-programs
unit-programs:
	@$(call configure,$(PRESET)); cmake --build --preset $(PRESET) --target $(UNIT_TESTS)
cluster-programs:
	@$(call configure,$(PRESET)); cmake --build --preset $(PRESET) --target cluster_tests

.PHONY: lint
lint: ## Formatting, chart, YAML, shell and Python
	@scripts/lint.sh

.PHONY: tidy
tidy: ## clang-tidy; a quarter of an hour the first time, then only what changed
	@scripts/tidy.sh

.PHONY: format
format: ## Rewrite the C++ sources with clang-format
	@git ls-files '*.h' '*.cpp' | xargs clang-format -i

.PHONY: bench
bench: ## Time the estimator and the placement (release build)
	@$(call configure,release); cmake --build --preset release --target bench; build/release/bin/bench

.PHONY: score
score: ## Compare the estimator with the measured runs of CORPUS (default tests/data/measured-runs.csv)
	@$(call configure,release); cmake --build --preset release --target loadline-score
	@build/release/bin/loadline-score --corpus $(CORPUS)

.PHONY: fuzz
fuzz: ## Feed the parsers random input for SECONDS_EACH seconds each (default 30)
	@scripts/fuzz.sh

.PHONY: chaos
chaos: ## The operator under every fault, at every write (SUITES="cut garbage" for some)
	@$(STAGES) chaos \
	  "what is needed to build" "$(MAKE) -s setup" \
	  "build the programs" "$(MAKE) -s programs" \
	  "suites" "$(CHAOS) $(SUITES)"

.PHONY: soak
soak: ## The operator under random faults for MINUTES (default 30): memory and files stay flat, nothing is lost
	@$(STAGES) soak \
	  "what is needed to build" "$(MAKE) -s setup" \
	  "build the programs" "$(MAKE) -s programs" \
	  "soak" "$(CHAOS) soak --minutes $(MINUTES)"

.PHONY: demo
demo: ## The whole story on a real control plane, checked step by step
	@$(STAGES) demo \
	  "what is needed to build" "$(MAKE) -s setup" \
	  "build the three programs" "$(MAKE) -s programs" \
	  "the story" "demo/demo.py --control-plane $(CONTROL_PLANE) --programs build/$(PRESET)/bin"

.PHONY: up
up: ## Leave a control plane with a fleet (FLEET=) and Loadline running, to play with
	@$(STAGES) up \
	  "what is needed to build" "$(MAKE) -s setup" \
	  "build the three programs" "$(MAKE) -s programs" \
	  "start" "$(CLUSTER) up --dir $(UP) --control-plane $(CONTROL_PLANE) --fleet $(FLEET)" \
	  "install Loadline" "$(CLUSTER) install --dir $(UP) --bin build/$(PRESET)/bin"
	@echo "export KUBECONFIG=$(CURDIR)/$(UP)/kubeconfig"

.PHONY: down
down: ## End what `make up` started
	@$(CLUSTER) down --dir $(UP)

.PHONY: clean
clean: ## Remove build/ (the caches outside the tree stay)
	@if [ -f $(UP)/state.json ]; then $(CLUSTER) down --dir $(UP); fi
	@rm -rf build
