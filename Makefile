# What can be done with percolab.  Needs Python 3.11 or newer and make; everything else is installed
# into .venv.  `make PYTHON=python3.12 sweep` picks an interpreter.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
DOCUMENTED := $(VENV)/.documented
# CUDA=cuda13 or CUDA=cuda12 installs percolab's GPU extra too, by the driver's CUDA version.
CUDA ?=
COMMA := ,
EXTRA := $(if $(CUDA),[$(CUDA)],)
# TESTS="tests/cli tests/store" runs the slow tests of these alone; options of pytest may follow.
TESTS ?=
# Containers often forbid bytecode: every worker and command of the tests would compile all modules anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help sweep test test-slow test-blas lint test-gpu reproduce-figures redraw bench records kernels docs notebooks docs-figures wheel clean

help:  ## list these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "percolab needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv --upgrade-deps $(VENV)

# The pip of older Pythons takes twice as long.  Python compiles what is imported when it first is;
# pip would compile everything, one by one.
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

test: $(DEVELOPED) stale-kernels  ## run the tests that need no GPU, but for the slowest
	$(BIN)/python -m pytest -m "not gpu and not slow" -n auto --dist worksteal

test-slow: $(DEVELOPED) stale-kernels  ## run the slower ones: more lattices, kills, the documentation and its commands
	$(BIN)/python -m pytest -m slow -n auto --dist worksteal $(TESTS)

test-blas: $(DEVELOPED) stale-kernels  ## run the tests of fits with OpenBLAS and NumPy as on older processors
	$(BIN)/python scripts/blas_kernels.py

lint: $(DEVELOPED)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test-gpu: $(DEVELOPED) stale-kernels  ## compare CUDA with the CPU, bit for bit (skipped without a GPU)
	$(BIN)/python -m pytest -m gpu -rs tests

reproduce-figures: $(INSTALLED) stale-kernels  ## figures of Komura (2016), Weigel (2011), Guo (2011) and Fink (1997) into results/
	$(BIN)/python scripts/reproduce_figures.py

redraw: $(INSTALLED)  ## draw the stored figures of results/ anew, from stored numbers alone
	$(BIN)/python scripts/reproduce_figures.py --redraw

bench: $(INSTALLED) stale-kernels  ## time bonds, labels and rows on this machine
	$(BIN)/percolab bench

records: $(DEVELOPED) stale-kernels  ## make the records of results/h200 again; needs two GPUs and a quarter of an hour
	$(BIN)/python scripts/record_h200.py --budget 1000

kernels: $(DEVELOPED)  ## registers, shared memory and spills of every CUDA kernel (no GPU needed)
	$(BIN)/python scripts/kernel_report.py

docs: $(DOCUMENTED)  ## build the documentation site: build/docs/index.html
	$(BIN)/sphinx-build -W --keep-going -j auto -q docs build/docs

notebooks: $(DOCUMENTED) stale-kernels  ## execute the notebooks of the documentation, in place
	$(BIN)/python scripts/docs_blocks.py notebooks

docs-figures: $(INSTALLED) stale-kernels  ## draw the figures of the documentation again, by the commands on its pages
	$(BIN)/python scripts/docs_blocks.py figures

wheel: $(DEVELOPED)  ## build sdist and wheel into dist/ and test the wheel in a clean environment
	$(BIN)/python scripts/check_wheel.py

# Numba's kernel cache notices a change in a kernel's own file, not in the functions it calls: no
# cached kernel may be older than the newest source.
.PHONY: stale-kernels
stale-kernels:
	@newest=$$(find percolab -name '*.py' -exec ls -t {} + | sed -n 1p); \
	find percolab \( -name '*.nbi' -o -name '*.nbc' \) ! -newer "$$newest" -exec rm -f {} +

clean:  ## remove the environment and all caches
	rm -rf $(VENV) build dist docs/records *.egg-info .pytest_cache .ruff_cache .mypy_cache
	find percolab tests scripts results -name __pycache__ -type d -exec rm -rf {} +
