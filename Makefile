# Everything that can be done with percolab.  This needs make and Python 3.11 or newer; all else is
# installed into .venv.  `make PYTHON=python3.12 sweep` chooses an interpreter.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
DOCUMENTED := $(VENV)/.documented
# CUDA=cuda13 or CUDA=cuda12 (the driver's CUDA version) also installs percolab's GPU extra.
CUDA ?=
COMMA := ,
EXTRA := $(if $(CUDA),[$(CUDA)],)
# TESTS="tests/cli tests/store" runs only the slow tests in these folders; pytest options may follow.
TESTS ?=
# Containers often forbid bytecode: every worker and command of the tests would compile all modules anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help sweep test test-slow test-blas lint test-gpu reproduce-figures redraw bench records kernels docs notebooks docs-figures wheel clean

help:  ## list these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "percolab needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv --upgrade-deps $(VENV)

# The pip of older Pythons takes twice as long.  Python compiles a module at its first import; pip
# would compile all modules, one by one.
$(INSTALLED): $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --no-compile --editable ".$(EXTRA)"
	touch $@

$(DEVELOPED): $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev$(if $(CUDA),$(COMMA)$(CUDA))]"
	touch $(INSTALLED) $@

$(DOCUMENTED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[docs]"
	touch $@

sweep: $(INSTALLED) stale-kernels  ## install percolab, find the honeycomb threshold (results.h5), plot it (results.png)
	$(BIN)/percolab sweep --lattice honeycomb
	$(BIN)/percolab plot results.h5

test: $(DEVELOPED) stale-kernels  ## run the tests that need no GPU, except the slow ones
	$(BIN)/python -m pytest -m "not gpu and not slow" -n auto --dist worksteal

test-slow: $(DEVELOPED) stale-kernels  ## run the slow tests: more lattices, killed runs, the documentation and its commands
	$(BIN)/python -m pytest -m slow -n auto --dist worksteal $(TESTS)

test-blas: $(DEVELOPED) stale-kernels  ## run the tests of fits with the OpenBLAS and NumPy code of older processors
	$(BIN)/python scripts/blas_kernels.py

lint: $(DEVELOPED)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test-gpu: $(DEVELOPED) stale-kernels  ## compare CUDA with the CPU, bit for bit (skipped without a GPU)
	$(BIN)/python -m pytest -m gpu -rs tests

reproduce-figures: $(INSTALLED) stale-kernels  ## make the figures of Komura (2016), Weigel (2011), Guo (2011) and Fink (1997) in results/
	$(BIN)/python scripts/reproduce_figures.py

redraw: $(INSTALLED)  ## redraw the figures in results/ from stored numbers
	$(BIN)/python scripts/reproduce_figures.py --redraw

bench: $(INSTALLED) stale-kernels  ## time the stages of a sample on this machine
	$(BIN)/percolab bench

records: $(DEVELOPED) stale-kernels  ## measure the records in results/h200 again; needs two GPUs and a quarter of an hour
	$(BIN)/python scripts/record_h200.py --budget 1000

kernels: $(DEVELOPED)  ## list registers, shared memory and spills of every CUDA kernel (no GPU needed)
	$(BIN)/python scripts/kernel_report.py

docs: $(DOCUMENTED)  ## build the documentation site: build/docs/index.html
	$(BIN)/sphinx-build -W --keep-going -j auto -q docs build/docs

notebooks: $(DOCUMENTED) stale-kernels  ## execute the notebooks of the documentation, in place
	$(BIN)/python scripts/docs_blocks.py notebooks

docs-figures: $(INSTALLED) stale-kernels  ## redraw the figures of the documentation, by the commands on its pages
	$(BIN)/python scripts/docs_blocks.py figures

wheel: $(DEVELOPED)  ## build sdist and wheel in dist/ and test the wheel in a clean environment
	$(BIN)/python scripts/check_wheel.py

# Numba's kernel cache notices changes in a kernel's own file, but not in functions that it calls from
# other files: delete cached kernels older than the newest source.
.PHONY: stale-kernels
stale-kernels:
	@newest=$$(find percolab -name '*.py' -exec ls -t {} + | sed -n 1p); \
	find percolab \( -name '*.nbi' -o -name '*.nbc' \) ! -newer "$$newest" -exec rm -f {} +

clean:  ## remove the environment and all caches
	rm -rf $(VENV) build dist docs/records *.egg-info .pytest_cache .ruff_cache .mypy_cache
	find percolab tests scripts results -name __pycache__ -type d -exec rm -rf {} +
