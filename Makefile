# On a fresh machine with Python >= 3.11:
#   make demo    set up, compile a program, show it run and write a page to look at
#   make test    set up, then lint, types and the normal test tier
# Set-up happens in .venv, and again only when what is installed changes.

VENV := .venv
# What an installation is made from, besides Python files.
KERNEL := src/tracr/runtime/kernel/c
INSTALLED := pyproject.toml setup.py $(wildcard $(KERNEL)/*)
# transformers and torch of .venv, and not tracr: what checkpoints must load with.
BARE := .venv-bare
# auto-circuit, and the original Tracr it needs, with tracr installed over that: what converters must load.
COMPARE := .venv-compare
SOURCES := $(shell find src/tracr -name '*.py')
BIN := $(VENV)/bin
# The first interpreter that is new enough; `make PYTHON=/path/to/python3 ...` picks another.
PYTHON ?= $(firstword $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p; done))

# A .venv whose interpreter is gone (Python was upgraded) is set up again.
$(shell $(BIN)/python -c '' 2>/dev/null || rm -f $(VENV)/.installed $(VENV)/.installed-dev $(VENV)/.installed-docs \
	$(VENV)/.installed-slow)
$(shell $(BARE)/bin/python -c '' 2>/dev/null || rm -f $(BARE)/.installed)
$(shell $(COMPARE)/bin/python -c '' 2>/dev/null || rm -f $(COMPARE)/.installed $(COMPARE)/.others)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Python compiles what is imported; most of what is installed never is.
PIP := pip install -q --no-compile
# Test processes run side by side: one BLAS thread each.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

WHEEL := .venv-wheel

# Install Debian packages, unless there are commands of their names (the last one's) already.
packages = command -v $(lastword $(1)) >/dev/null || { apt-get update -q && apt-get install -y -q $(1); }

.PHONY: demo test normal tiny slow mutants hunt lint test-wheel wheels coverage release-check kernel-check clean bundle browser \
	images docs notebooks
.DELETE_ON_ERROR:

define NEXT_STEPS

Those are the activations of a transformer whose weights were compiled from a program, not trained. Open
build/demo.html in a browser: it runs the program and the transformer side by side, step by step. Then type

    $(BIN)/tracr run sort 3 1 2 1                       another program; "tracr list" has them all
    $(BIN)/tracr draw sort 3 1 2 1 -o build/sort.svg    what a program computes, as a picture
    $(BIN)/tracr repl                                   your own program; docs/tutorial.md begins at the beginning
endef
export NEXT_STEPS

demo: $(VENV)/.installed
	@mkdir -p build
	$(BIN)/tracr run frac_prevs x a c x
	@echo
	$(BIN)/tracr show frac_prevs x a c x
	@echo
	$(BIN)/tracr explore frac_prevs x a c x -o build/demo.html
	@echo "$$NEXT_STEPS"

# Side by side: mypy keeps one processor busy for half a minute.
test: $(VENV)/.installed-dev
	$(MAKE) --no-print-directory -j 2 lint normal

normal: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

tiny: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q tests/test_tiny.py

# Minutes: thousands of random programs, long inputs, Ray, every framework, the examples and the notebook included,
# the quick tests and the doctests that ask for a library which `test` does not install,
# checkpoints in an environment without tracr, and another project's converter in an environment with both Tracrs.
# With TRACR_LONG=1 more than an hour (every night): more programs, and whole grids of which this runs a part.
slow: $(VENV)/.installed-slow $(BARE)/.installed $(COMPARE)/.installed
	$(BIN)/python -m pytest -q -n 2 --dist worksteal src docs README.md
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "slow or optional" --durations=40 --durations-min=10 tests

# Two thousand altered models against the checker of certificates; `slow` has them too, where it comes that far.
mutants: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -n 2 -m slow tests/certificate/test_mutants.py -k two_thousand

# Other random examples on every run, and more of them: what Hypothesis finds, it prints with how to run it again.
hunt: $(VENV)/.installed-slow
	TRACR_RANDOM=1 TRACR_LONG=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m hypothesis tests

# The built wheels: each in an environment without a C compiler and a network (sizes, imports, the same answers), and file
# by file against the source tree, which `make test` has tested. Then, on the installed wheel with the kernel, the tests
# of what an installation can break: imports, data files, commands, processes, saved and pickled models.
# Of the zoo, not every program: its files are those of the source tree.
INSTALLED_TESTS := $(addprefix tests/,cli learn playground runtime saving viz/explorer zoo test_demo.py test_import.py \
	test_installation.py test_pickling.py test_tiny.py) -k "not do_the_task and not those_of_the_program"
test-wheel: wheels
	$(WHEEL)/bin/python tools/artefacts.py test dist
	$(WHEEL)/bin/python -m $(PIP) "$$(ls dist/tracr-*-abi3-*.whl)[dev]"
	$(WHEEL)/bin/python -m pytest -q -n 2 --dist worksteal -m "not slow and not hypothesis and not repository" \
		$(INSTALLED_TESTS)

# The files of a release, in dist: source distribution, wheel of this platform, wheel of all platforms.
wheels:
	rm -rf dist build/lib* build/bdist* $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m $(PIP) 'build>=1.2'
	$(WHEEL)/bin/python tools/artefacts.py build dist

# The share of the lines of src that the normal tier runs, in build/coverage.txt; processes that tests start count too.
coverage: $(VENV)/.installed-dev
	$(BIN)/python -m $(PIP) 'coverage>=7.10'
	$(BIN)/python tools/coverage_report.py build/coverage.txt

# Everything a release needs, checked in turn; it stops before the upload (tools/release.py --list).
release-check: $(VENV)/.installed-dev
	$(BIN)/python -m $(PIP) 'build>=1.2' 'twine>=6'
	$(BIN)/python tools/release.py

# The C kernel: no warnings, headers that can be read alone, and its tests and broken networks under sanitizers.
# The package is copied to have a kernel of its own; the flags are those of setup.py and more.
STRICT := -Wall -Wextra -Werror -Wno-psabi -ffp-contract=off -pthread
SANITIZED := build/sanitized
# Python itself is not tested, and keeps memory to the end; leaks of the kernel are counted by fuzz_kernel.py.
SANITIZER = LD_PRELOAD="$$($(CC) -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=pymalloc_debug \
	PYTHONPATH=$(SANITIZED)
INCLUDE = -I"$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')"
kernel-check: $(VENV)/.installed-dev
	@$(call packages,gcc)
	for header in $(KERNEL)/*.h; do \
		$(CC) $(STRICT) -Wno-unused-function $(INCLUDE) -fsyntax-only -x c $$header || exit 1; done
	rm -rf $(SANITIZED)
	mkdir -p $(SANITIZED)
	cp -r src/tracr $(SANITIZED)
	rm -f $(SANITIZED)/$(KERNEL:src/%/c=%)/_kernel.*.so
	$(CC) $(STRICT) $(INCLUDE) -O3 -fPIC -shared $(KERNEL)/kernel.c -o $(SANITIZED)/ordinary.so
	$(CC) $(STRICT) $(INCLUDE) -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fPIC -shared \
		$(KERNEL)/kernel.c -o $(SANITIZED)/$(KERNEL:src/%/c=%)/_kernel.abi3.so
	$(SANITIZER) $(BIN)/python -m pytest -q tests/runtime/kernel/test_kernel.py tests/runtime/kernel/test_reading.py
	$(SANITIZER) $(BIN)/python -m tests.runtime.kernel.fuzz_kernel --against $(SANITIZED)/ordinary.so

# The explorer and the playground: their scripts are built from web/ (needs Node) and committed, so that Python users need
# no Node.
bundle: web/node_modules/.installed
	cd web && npm run -s build

# The explorer, the playground and the laboratory's report in a real browser: unit tests in Node, the committed bundles
# against their sources, the explorer's arithmetic against Python's (which `make test` leaves out where there is no Node),
# then headless Chromium.
browser: $(VENV)/.installed-dev web/node_modules/.installed
	@$(call packages,chromium)
	cd web && npm run -s test && npm run -s check
	$(BIN)/python -m pytest -q -n 2 tests/viz/explorer/test_core.py
	$(BIN)/python web/browser/fixtures.py build/explorer & $(BIN)/python web/browser/report_fixtures.py build/explorer \
		&& wait $$!
	cd web && TRACR_PYTHON=$(abspath $(BIN)/python) npm run -s browser

# The documentation site, with all its links checked: build/site/index.html (docs/site.md). A folder may hold several
# versions: `make docs SITE=/path`.
SITE := build/site
docs: $(VENV)/.installed-docs
	$(BIN)/python -m docs.generator $(SITE)

# The pictures of README.md.
images: $(VENV)/.installed-dev web/node_modules/.installed
	$(BIN)/tracr figure frac_prevs --input x,a,c,x --level 0 -o docs/images/frac_prevs.svg
	$(BIN)/tracr explore frac_prevs x a c x -o build/screenshot.html
	node web/browser/screenshot.js build/screenshot.html docs/images/explorer.png

# The outputs that are stored in the notebooks of examples/.
notebooks: $(VENV)/.installed-slow
	$(BIN)/python -m docs.generator.run_notebooks

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) $(WHEEL) $(BARE) $(COMPARE) build dist web/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f src/tracr/runtime/kernel/_kernel.*.so
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "tracr needs Python >= 3.11; name one with make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)

$(VENV)/.installed: $(INSTALLED) | $(BIN)/python
	$(BIN)/python -m $(PIP) -e .
	touch $@

$(VENV)/.installed-dev: $(INSTALLED) | $(BIN)/python
	$(BIN)/python -m $(PIP) -e '.[dev]'
	touch $(VENV)/.installed $@

$(VENV)/.installed-docs: $(INSTALLED) | $(BIN)/python
	$(BIN)/python -m $(PIP) -e '.[docs]'
	touch $(VENV)/.installed $@

# torch first, and pinned: left to itself pip takes a build several times the size.
$(VENV)/.installed-slow: $(VENV)/.installed-dev
	$(BIN)/python -m $(PIP) torch==2.13.0
	$(BIN)/python -m $(PIP) -e '.[dev,hf,jax,lab,lens,onnx,opt,sweep,torch]' nnsight
	touch $(VENV)/.installed $(VENV)/.installed-dev $@

# An environment that has the packages of .venv, but not tracr: that one is there by a .pth file, and those of a folder
# that is itself named in a .pth file are not read.
sharing = $(BIN)/python -m venv --clear $(1) && $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
	"$$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shared.pth"

$(BARE)/.installed: $(VENV)/.installed-slow
	$(call sharing,$(BARE))
	touch $@

# What differs here is its own: HookedTransformer ended with TransformerLens 3.
$(COMPARE)/.others: $(VENV)/.installed-slow
	$(call sharing,$(COMPARE))
	$(COMPARE)/bin/python -m $(PIP) --ignore-installed --no-deps \
		auto-circuit==1.0.1 tracr-pypi==1.0.0 transformer-lens==3.9.0 better-abc==0.0.3 ordered-set==4.1.0
	touch $@

$(COMPARE)/.installed: $(COMPARE)/.others $(INSTALLED) $(SOURCES)
	rm -rf build/lib* build/bdist*
	$(COMPARE)/bin/python -m $(PIP) --ignore-installed --no-deps .
	touch $@

web/node_modules/.installed: web/package.json web/package-lock.json
	@$(call packages,nodejs npm)
	cd web && npm ci --no-audit --no-fund --loglevel=error
	touch $@
