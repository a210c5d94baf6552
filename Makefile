# Needs python3 (3.11 or later), a C compiler and make; the rest is installed into .venv.
# What has not changed is neither installed nor built again: the stamps remember.

PYTHON ?= python3
ASV ?= run --quick --python=same

ROOT := $(CURDIR)
VENV := .venv/bin/python
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet
HERE := PYTHONPATH="$(ROOT)" $(VENV)
ROOT_VENV := "$(ROOT)/$(VENV)"
COVERAGE_FILE := $(ROOT)/build/coverage-data/python

KERNELS := $(wildcard staircase_fast/*.pyx staircase_fast/*.pxd)
MODULES := $(patsubst staircase_fast/%.pyx,staircase_fast.%,$(wildcard staircase_fast/*.pyx))
PACKAGE := $(KERNELS) $(wildcard staircase_fast/*.py staircase_fast/*.pyi staircase_fast/py.typed) \
           setup.py pyproject.toml MANIFEST.in README.md LICENSE
TESTS := $(filter-out %/__pycache__,$(wildcard tests/* tests/*/*))
SDIST := $(PACKAGE) $(TESTS) $(wildcard asv_benchmarks/*.* asv_benchmarks/benchmarks/*.py docs/*.*) \
         CHANGELOG.md CONTRIBUTING.md Makefile .ci/run

# Nothing from the caller's shell may choose another package or another build.
unexport PYTHONPATH PYTHONHOME STAIRCASE_FAST_DEBUG STAIRCASE_FAST_COVERAGE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-in-place test-checked test-wheel bench asv fuzz lint coverage clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo: build/in-place.stamp  ## build and run the demonstration
	$(HERE) -m staircase_fast.demo

test: lint test-in-place test-checked test-wheel  ## lint, then all tests on all builds

test-in-place: build/in-place.stamp .venv/dev.stamp  ## tests and doctests on the in-place build
	$(HERE) -m pytest -n auto
	$(HERE) -m pytest --doctest-modules staircase_fast

test-checked: build/checked.stamp  ## tests on the checked build (bounds, overflow, assertions)
	cd build/checked-install && export PYTHONPATH="$$PWD" \
	&& $(ROOT_VENV) -c "$$IMPORTED_FROM" "$$PWD" \
	&& $(ROOT_VENV) -m pytest -n auto -m "not long" "$(ROOT)/tests"

# What the same code has passed twice tells nothing new of a wheel.
NOT_AGAIN := not rounds and not survey and not certificate and not many_rows and not exactness and not online \
    and not prefix and not accumulator and not groups and not losses and not venn

test-wheel: build/wheel.stamp build/sdist.stamp  ## the sdist's tests on the wheel, out of the tree
	work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT \
	&& tar -xzf build/sdist/*.tar.gz -C "$$work" && cd "$$work" \
	&& python="$(ROOT)/build/wheel-venv/bin/python" \
	&& "$$python" -c "$$IMPORTED_FROM" "$(ROOT)/build/wheel-venv" \
	&& "$$python" -m pytest -n auto -m "not long" -k "$(NOT_AGAIN)" "$$work"/staircase_fast-*/tests

bench: build/in-place.stamp .venv/bench.stamp  ## compare our speed with other libraries'
	$(HERE) asv_benchmarks/compare.py

# asv notes the machine in the home directory: this one lies under build, as do its results.
asv: build/in-place.stamp .venv/bench.stamp  ## asv's benchmarks, each once; ASV="run ..." for more
	mkdir -p build/asv/home
	cd asv_benchmarks && export HOME="$(ROOT)/build/asv/home" ASV_PYTHONPATH="$(ROOT)" \
	&& $(ROOT_VENV) -m asv machine --yes > "$$HOME/machine.txt" \
	&& $(ROOT_VENV) -m asv $(ASV)

fuzz: build/in-place.stamp .venv/dev.stamp  ## property tests with many random examples
	$(HERE) -m pytest -m hypothesis --hypothesis-profile=long

lint: build/in-place.stamp .venv/dev.stamp  ## ruff, cython-lint, mypy, stubtest
	$(VENV) -m ruff check
	$(VENV) -m ruff format --check
	PATH="$(ROOT)/.venv/bin:$$PATH" $(VENV) -m cython_lint.cython_lint $(KERNELS)
	$(VENV) -m mypy
	@printf '%s\n' $(CYTHON_MADE) > build/stubtest-allowlist
	$(HERE) -m mypy.stubtest --ignore-disjoint-bases --mypy-config-file pyproject.toml \
	    --allowlist build/stubtest-allowlist --ignore-unused-allowlist $(MODULES)

coverage: build/coverage.stamp  ## lines covered: Python 100 %, kernels 95 %
	rm -rf build/coverage-data && mkdir build/coverage-data
	find build/coverage -name '*.gcda' -delete
	cd build/coverage-install && export PYTHONPATH="$$PWD" COVERAGE_FILE="$(COVERAGE_FILE)" \
	&& $(ROOT_VENV) -c "$$IMPORTED_FROM" "$$PWD" \
	&& $(ROOT_VENV) -m coverage run --rcfile="$(ROOT)/pyproject.toml" -m pytest -n auto "$(ROOT)/tests"
	COVERAGE_FILE="$(COVERAGE_FILE)" $(VENV) -m coverage combine --quiet
	@python=0; kernels=0; \
	COVERAGE_FILE="$(COVERAGE_FILE)" $(VENV) -m coverage report || python=$$?; \
	$(VENV) -m gcovr build/coverage || kernels=$$?; \
	test $$python = 0 && test $$kernels = 0

clean:  ## remove all that make has made
	rm -rf .venv build dist *.egg-info .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -f staircase_fast/*.c staircase_fast/*.so demo-staircase.json
	find . -name __pycache__ -prune -exec rm -rf {} +

# Installing: each stamp stands for the requirements of some extras, from pyproject.toml.

.venv/core.stamp: pyproject.toml
	test -x $(VENV) || $(PYTHON) -m venv .venv
	$(VENV) -c "$$REQUIREMENTS" > .venv/core.txt
	$(VENV) $(PIP_INSTALL) -r .venv/core.txt
	@touch $@

.venv/%.stamp: .venv/core.stamp
	$(VENV) -c "$$REQUIREMENTS" $* > .venv/$*.txt
	$(VENV) $(PIP_INSTALL) -r .venv/$*.txt
	@touch $@

# Building: setup.py compiles only what has changed, each variant in its own directory.

build/in-place.stamp: $(KERNELS) setup.py .venv/core.stamp
	$(VENV) setup.py --quiet build_ext --inplace
	@touch $@

build/checked.stamp: $(PACKAGE) .venv/dev.stamp
	STAIRCASE_FAST_DEBUG=1 $(INSTALL_VARIANT)
	@touch $@

build/coverage.stamp: $(PACKAGE) .venv/dev.stamp
	STAIRCASE_FAST_COVERAGE=1 $(INSTALL_VARIANT)
	@touch $@

build/sdist.stamp: $(SDIST) .venv/dev.stamp
	rm -rf build/sdist *.egg-info
	$(VENV) -m build --no-isolation --sdist --outdir build/sdist -C=--global-option=--quiet
	@touch $@

# Out of the sdist, in isolation: needs the build requirements alone. Newer tests do not matter.
build/wheel.stamp: $(PACKAGE) | build/sdist.stamp
	rm -rf build/wheel build/wheel-venv
	$(VENV) -m pip wheel --quiet --no-deps --wheel-dir build/wheel build/sdist/*.tar.gz
	$(VENV) -c "$$CHECK_CONTENTS" build/sdist/*.tar.gz build/wheel/*.whl
	$(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/python $(PIP_INSTALL) "$$(echo build/wheel/*.whl)[test]"
	@touch $@

# The target is named after the variant: build/checked.stamp fills build/checked-install.
INSTALL_VARIANT = $(VENV) $(PIP_INSTALL) --no-build-isolation --no-deps --upgrade \
    --target build/$(@F:.stamp=-install) .
# Names that Cython adds to modules and classes; no stub mentions them.
CYTHON_MADE := '.*\.__test__' '.*\.__pyx_.*' '.*\.__(reduce|setstate)_cython__'

# Build requirements, dependencies and the extras named on the command line.
define REQUIREMENTS
import re, sys, tomllib
with open("pyproject.toml", "rb") as file:
    config = tomllib.load(file)
project = config["project"]
todo = config["build-system"]["requires"] + project["dependencies"]
todo += [f"{project['name']}[{extra}]" for extra in sys.argv[1:]]
for requirement in todo:
    ours = re.fullmatch(project["name"] + r"\[(.*)\]", requirement)
    if ours:
        todo += [r for extra in ours[1].split(",") for r in project["optional-dependencies"][extra]]
    else:
        print(requirement)
endef
export REQUIREMENTS

define IMPORTED_FROM
import pathlib, sys, staircase_fast
found, wanted = (pathlib.Path(p).resolve() for p in (staircase_fast.__file__, sys.argv[1]))
if wanted not in found.parents:
    sys.exit(f"staircase_fast must come from {wanted}; got {found}")
endef
export IMPORTED_FROM

define CHECK_CONTENTS
import re, sys, tarfile, zipfile
sdist = {name.partition("/")[2] for name in tarfile.open(sys.argv[1]).getnames()}
wheel = set(zipfile.ZipFile(sys.argv[2]).namelist())
ours = {name for name in sdist if re.match(r"staircase_fast/[^/]+$$", name)}
bad = [f"missing in the sdist: {name}" for name in ("tests/conftest.py", "Makefile") if name not in sdist]
bad += [f"missing in the wheel: {name}" for name in ours - wheel if not name.endswith(".pyx")]
bad += [f"not compiled: {name}" for name in ours if name.endswith(".pyx")
        and not any(re.match(re.escape(name[:-3]) + r".*(so|pyd)$$", made) for made in wheel)]
bad += [f"must not be shipped: {name}" for name in sdist | wheel if re.search(r"\.(c|cpp|gcno)$$", name)]
bad += [f"must not be in the wheel: {name}" for name in wheel
        if name.endswith(".pyx") or not name.startswith("staircase_fast")]
sys.exit("\n".join(sorted(bad)) or None)
endef
export CHECK_CONTENTS
