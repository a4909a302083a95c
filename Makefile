# Everything needs only Python 3.11+, g++, make and git; what else it takes goes into .venv, once.

PYTHON ?= python3
CXX ?= g++
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq install -c constraints.txt
KERNELS := $(wildcard native/*/*.cpp native/*/*.hpp)
NATIVE := CMakeLists.txt $(wildcard native/CMakeLists.txt native/*/CMakeLists.txt) $(KERNELS)
PYTEST_ARGS ?=
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-slow lint format docs bench sanitize wheel clean distclean

help: ## list the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(STAMPS)/package ## from a table to a model, with its report in epicycle-breast_cancer/
	@$(BIN)/epicycle train

test: $(STAMPS)/package $(STAMPS)/test ## run the test suite
	@$(BIN)/python -m pytest -n 2 --dist loadgroup $(PYTEST_ARGS)

test-slow: $(STAMPS)/package $(STAMPS)/test ## run the long campaigns: kills, fuzzing, coverage by simulation, more examples
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --slow $(PYTEST_ARGS)

lint: $(STAMPS)/package $(STAMPS)/lint ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(KERNELS)
	$(BIN)/lint-imports --no-logo

format: $(STAMPS)/lint ## put Python and C++ into the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(KERNELS)

docs: $(STAMPS)/package $(STAMPS)/docs ## build the documentation into docs/_build/html
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(STAMPS)/package $(STAMPS)/bench ## compare speed and memory with the peers
	@$(BIN)/python -m benchmarks $(BENCH_ARGS)

sanitize: $(STAMPS)/package $(STAMPS)/test ## run the native tests under AddressSanitizer and UBSan
	@CXX="$(CXX)" tools/sanitize $(BIN)

wheel: $(STAMPS)/wheel ## build sdist and wheel into dist/, and try the wheel in an empty environment
	@rm -rf build/dist dist
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m build --outdir build/dist .
	@mkdir -p dist && mv build/dist/*.tar.gz dist
	@if [ "$$(uname)" = Linux ]; then PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/dist/*.whl; \
	else mv build/dist/*.whl dist; fi
	@$(BIN)/python tools/check_wheel.py dist/*.whl

clean: ## remove what was built, keep .venv
	@rm -rf build dist epicycle-breast_cancer docs/_build docs/auto_examples docs/api/generated docs/sg_execution_times.rst
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv too
	@rm -rf $(VENV)

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "epicycle needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/pip || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); } || { \
	  rm -rf $(VENV); echo "$(PYTHON) -m venv failed; Debian and Ubuntu keep it in the package python3-venv" >&2; exit 1; }
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/tools: constraints.txt pyproject.toml | $(STAMPS)/venv
	@echo "installing the build tools"
	@$(PIP) scikit-build-core nanobind cmake ninja
	@touch $@

# Without build isolation the build folder stays valid between runs: only what changed is compiled.
$(STAMPS)/package: pyproject.toml constraints.txt $(NATIVE) $(STAMPS)/tools | $(STAMPS)/venv
	@echo "building and installing epicycle"
	@$(PIP) --no-build-isolation -e .
	@touch $@

$(STAMPS)/test $(STAMPS)/lint $(STAMPS)/docs $(STAMPS)/bench $(STAMPS)/wheel: $(STAMPS)/%: pyproject.toml constraints.txt tools/requirements.py | $(STAMPS)/venv
	@echo "installing what '$*' needs"
	@$(BIN)/python tools/requirements.py $* > $@.txt
	@$(PIP) -r $@.txt
	@touch $@
