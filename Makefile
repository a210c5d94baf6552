# Needs python3 (3.11 or newer), a C compiler and make. Everything else is installed into .venv.
# Stamp files record what is up to date, so unchanged parts are neither installed nor built again.

PYTHON ?= python3
ASV ?= run --quick --python=same
# Duration and seed of the fuzz targets; without SEED, the seed is the date.
SECONDS ?= 60
BUDGET = --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))
FITS ?= 100
# The folder for the output of `make bench`.
RESULTS ?= build/bench

# A free-threaded Python, for `make test-free-threaded`.
FREE_THREADED ?= $(firstword $(shell command -v python3.14t python3.13t 2>/dev/null))

# Tests to run with sanitizers: all or short.
SANITIZE ?= all

ROOT := $(CURDIR)
VENV := .venv/bin/python
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet
HERE := PYTHONPATH="$(ROOT)" $(VENV)
ROOT_VENV := "$(ROOT)/$(VENV)"
ENGINES_VENV := build/engines-venv/bin/python
FREE_THREADED_VENV := build/free-threaded-venv/bin/python
FREE_THREADED_PIP := PYTHONPATH="$(ROOT)/build/free-threaded-pip" $(FREE_THREADED_VENV) $(PIP_INSTALL)
COVERAGE_FILE := $(ROOT)/build/coverage-data/python

KERNELS := $(wildcard staircase_fast/*.pyx staircase_fast/*.pxd staircase_fast/*/*.pyx staircase_fast/*/*.pxd)
PACKAGE := $(KERNELS) $(wildcard staircase_fast/*.py staircase_fast/*/*.py staircase_fast/*.pyi staircase_fast/py.typed) \
           $(wildcard staircase_fast/include/*.h) \
           setup.py pyproject.toml MANIFEST.in README.md LICENSE
TESTS := $(filter-out %/__pycache__,$(wildcard tests/* tests/*/* tests/*/*/*))
DOCS := $(wildcard docs/*.* docs/*/*.py docs/*/*.md docs/*/*.css docs/*/*/*.rst)
SPELLED := *.md *.py pyproject.toml Makefile .github asv_benchmarks docs staircase_fast tests
SDIST := $(PACKAGE) $(TESTS) $(DOCS) $(wildcard asv_benchmarks/*.* asv_benchmarks/benchmarks/*.py) \
         CHANGELOG.md CITATION.cff CODE_OF_CONDUCT.md CONTRIBUTING.md SECURITY.md Makefile .ci/run

# Variables of the caller's shell must not select another package or another build.
unexport PYTHONPATH PYTHONHOME STAIRCASE_FAST_DEBUG STAIRCASE_FAST_COVERAGE STAIRCASE_FAST_SANITIZE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-in-place test-checked test-wheel test-oldest test-browser test-engines test-free-threaded \
        release-check bench bench-engines many-rows asv fuzz fuzz-api fuzz-files fuzz-memory certify-scales same-bits \
        simulate-errors coverage-simulation limit-law peer-figures sanitize mutants lint docs coverage clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

demo: build/in-place.stamp .venv/cli.stamp .venv/plot.stamp .venv/sklearn.stamp  ## build and take the tour
	$(HERE) -m staircase_fast demo

# Users install the wheel, so all tests run on it. The in-place build is for development.
test: lint test-wheel test-checked  ## must pass before a merge: lint, tests on the wheel and on the checked build

test-in-place: build/in-place.stamp .venv/dev.stamp  ## tests, doctests and stubs on the build in the source tree
	$(HERE) -m pytest -n auto
	$(HERE) -m pytest --doctest-modules $(NO_ENGINES) staircase_fast
	$(HERE) $(STUBTEST)

test-checked: build/checked.stamp  ## tests on a build that checks bounds, overflow and assertions
	cd build/checked-install && export PYTHONPATH="$$PWD" \
	&& $(ROOT_VENV) -c "$$IMPORTED_FROM" "$$PWD" \
	&& $(ROOT_VENV) -m pytest -n auto -m "not long" "$(ROOT)/tests"

# The first fit runs in an environment with numpy alone; the tests use .venv.
test-wheel: build/wheel.stamp build/sdist.stamp  ## tests of the sdist on the wheel, outside the source tree
	$(IN_SDIST_TESTS) \
	&& "$(ROOT)/build/wheel-venv/bin/python" -c "import staircase_fast as sf; print(sf.fit([1, 2, 3], [1, 3, 2]))" \
	&& export PYTHONPATH="$(ROOT)/build/wheel-install" \
	&& $(ROOT_VENV) -c "$$IMPORTED_FROM" "$$PYTHONPATH" \
	&& $(ROOT_VENV) -m pytest -n auto tests \
	&& $(ROOT_VENV) -m pytest --doctest-modules $(NO_ENGINES) --pyargs staircase_fast \
	&& $(ROOT_VENV) $(STUBTEST)

test-oldest: build/oldest.stamp build/sdist.stamp  ## tests on the wheel with the oldest allowed dependencies
	$(IN_SDIST_TESTS) \
	&& "$(ROOT)/build/oldest-venv/bin/python" -m pytest -n auto -W ignore::DeprecationWarning tests

# The environments contain the package as a user installs it, and pytest to run the README.
release-check: build/wheel.stamp .venv/dev.stamp  ## check the metadata, and the README on installed wheel and sdist
	$(VENV) -m twine check --strict build/wheel/*.whl build/sdist/*.tar.gz
	$(VENV) tests/docs/check_description.py build/wheel/*.whl build/sdist/*.tar.gz
	for file in build/wheel/*.whl build/sdist/*.tar.gz; do \
	    $(PYTHON) -m venv --clear build/release-venv \
	    && build/release-venv/bin/python $(PIP_INSTALL) "$$file[sklearn]" "pytest>=8" hypothesis \
	    && (cd build && ../build/release-venv/bin/python -m pytest -p no:cacheprovider "$(ROOT)/tests/docs/test_readme.py" \
	        -k README.md) || exit 1; \
	done

test-browser: build/wheel.stamp  ## open a report in a real browser; installs Chromium if permitted
	PYTHONPATH="$(ROOT)/build/wheel-install" $(VENV) tests/cli/browser_report.py

# Spark needs Java 17 or newer. The engines have an environment of their own, because they restrict other packages.
# KILLS=20 repeats the tests that kill workers, executors and tasks.  The examples of docs/spark.md run in test_spark.py, on a cluster.
test-engines: build/engines.stamp build/wheel.stamp  ## tests on Dask and Spark; installs Java if permitted; KILLS=20
	sh tests/engines/install_java.sh
	cd build/wheel-install && export PYTHONPATH="$$PWD" KILLS=$(or $(KILLS),1) \
	&& "$(ROOT)/$(ENGINES_VENV)" -c "$$IMPORTED_FROM" "$$PWD" \
	&& "$(ROOT)/$(ENGINES_VENV)" -m pytest -m "not long" "$(ROOT)/tests/engines" \
	&& "$(ROOT)/$(ENGINES_VENV)" -m pytest "$(ROOT)/tests/docs/test_readme.py" -k dask \
	&& "$(ROOT)/$(ENGINES_VENV)" -m pytest --doctest-modules --pyargs staircase_fast.dask

# Importing our package must leave the GIL off; PYTHON_GIL=0 keeps it off if other packages would turn it on.
test-free-threaded: build/free-threaded.stamp  ## tests without the GIL; FREE_THREADED=path names the Python
	cd build/free-threaded-install && export PYTHONPATH="$$PWD" \
	&& "$(ROOT)/$(FREE_THREADED_VENV)" -c "$$IMPORTED_FROM" "$$PWD" \
	&& "$(ROOT)/$(FREE_THREADED_VENV)" -W error -c "$$GIL_IS_OFF" \
	&& PYTHON_GIL=0 "$(ROOT)/$(FREE_THREADED_VENV)" -m pytest -n auto -m "not long" --skip-missing "$(ROOT)/tests"

# The whole run takes long and much memory. ROWS limits the rows; RESULTS=docs replaces the stored run.
bench: build/in-place.stamp .venv/bench.stamp .venv/plot.stamp  ## compare the speed with other libraries; ROWS=1e5 SEED=1
	mkdir -p "$(RESULTS)"
	$(HERE) asv_benchmarks/compare.py --output "$(RESULTS)/bench.txt" $(if $(ROWS),--rows $(ROWS))
	$(HERE) asv_benchmarks/matrix.py --output "$(RESULTS)/matrix.txt" $(if $(ROWS),--most $(ROWS)) $(if $(SEED),--seed $(SEED))
	$(HERE) asv_benchmarks/growth.py --output "$(RESULTS)/growth.txt" $(if $(ROWS),--most $(ROWS))
	$(HERE) docs/pictures/time_over_rows.py "$(RESULTS)/growth.txt" "$(RESULTS)/time_over_rows.svg"

# ROWS is the number of rows in files and in Dask, and the largest number in Spark.
bench-engines: build/in-place.stamp .venv/cli.stamp build/wheel.stamp build/engines.stamp  ## time fits larger than memory, Dask and Spark; ROWS=1e6
	mkdir -p "$(RESULTS)"
	$(HERE) asv_benchmarks/engines.py --check $(if $(ROWS),--rows $(ROWS))
	PYTHONPATH="$(ROOT)/build/wheel-install" $(ENGINES_VENV) asv_benchmarks/engines_dask.py $(if $(ROWS),--rows $(ROWS))
	PYTHONPATH="$(ROOT)/build/wheel-install" $(ENGINES_VENV) asv_benchmarks/engines_spark.py \
	    --output "$(RESULTS)/engines_spark.txt" $(if $(ROWS),--most $(ROWS))

# The rows of the first table; RESULTS=docs replaces the stored run, which docs/scale.md shows.
many-rows: build/in-place.stamp .venv/dev.stamp  ## how many rows are live in fits of very many rows; ROWS=1e6
	mkdir -p "$(RESULTS)"
	$(HERE) asv_benchmarks/many_rows.py $(if $(ROWS),--most $(ROWS) --largest $(ROWS)) > "$(RESULTS)/many_rows.txt"

# asv stores facts about the machine in the home directory; here that is a folder under build, as are its results.
asv: build/in-place.stamp .venv/bench.stamp  ## run each asv benchmark once; ASV="run ..." for other commands
	mkdir -p build/asv/home
	cd asv_benchmarks && export HOME="$(ROOT)/build/asv/home" ASV_PYTHONPATH="$(ROOT)" \
	&& $(ROOT_VENV) -m asv machine --yes > "$$HOME/machine.txt" \
	&& $(ROOT_VENV) -m asv $(ASV)

fuzz: build/in-place.stamp .venv/dev.stamp  ## property tests with many random examples
	$(HERE) -m pytest -m hypothesis --hypothesis-profile=long

fuzz-api: build/in-place.stamp .venv/dev.stamp  ## random API calls compared with exact arithmetic; SECONDS=600 SEED=1
	$(HERE) tests/safety/fuzz_api.py $(BUDGET)

fuzz-files: build/in-place.stamp .venv/dev.stamp  ## load randomly damaged files; SECONDS=600 SEED=1
	$(HERE) tests/safety/fuzz_files.py $(BUDGET)

certify-scales: build/in-place.stamp .venv/dev.stamp  ## certify fits of every loss at every scale; FITS=300 SEED=1
	$(HERE) tests/safety/certify_scales.py $(FITS) $(or $(SEED),0)

fuzz-memory: build/in-place.stamp .venv/dev.stamp  ## make memory allocations fail; SECONDS=600 SEED=1
	$(HERE) tests/safety/fuzz_memory.py $(BUDGET)

same-bits: build/in-place.stamp .venv/dev.stamp  ## compare results with another built checkout; OTHER=path ROWS=1e7 SEED=1
	$(HERE) tests/safety/same_bits.py "$(OTHER)" $(if $(ROWS),--rows $(ROWS)) $(if $(SEED),--seed $(SEED))

simulate-errors: build/in-place.stamp .venv/dev.stamp  ## mean debiased errors of calibrated forecasts; SEED=1 RUNS=400
	$(HERE) tests/safety/simulate_errors.py $(if $(SEED),--seed $(SEED)) $(if $(RUNS),--runs $(RUNS))

sanitize: build/address.stamp build/thread.stamp  ## tests with memory and thread sanitizers; SANITIZE=short for fewer
	$(VENV) tests/safety/sanitize.py $(SANITIZE)

# Works on copies under build/mutants. MUTANTS selects mutants and passes options:
# `make mutants MUTANTS="_stack.pxd --jobs 1"`; `--help` lists them.
mutants: .venv/dev.stamp  ## mutation tests: report small changes of the code that no test detects
	$(VENV) tests/safety/mutants.py $(MUTANTS)

lint: .venv/dev.stamp  ## ruff, cython-lint, mypy, spelling, Markdown, workflows, project files
	$(VENV) -m ruff check
	$(VENV) -m ruff format --check
	PATH="$(ROOT)/.venv/bin:$$PATH" $(VENV) -m cython_lint.cython_lint $(KERNELS)
	$(VENV) -m mypy
	.venv/bin/codespell $(SPELLED)
	.venv/bin/rumdl check --quiet *.md docs
	.venv/bin/zizmor --offline --quiet .github
	$(VENV) -m repo_review --show err .
	$(VENV) tests/safety/mutants.py --check

docs: build/in-place.stamp .venv/docs.stamp  ## build the documentation in build/docs
	$(HERE) -m sphinx -q -W --keep-going -b html -d build/docs-trees docs build/docs
	@echo "open build/docs/index.html"

coverage-simulation: build/in-place.stamp .venv/dev.stamp  ## how often bands keep their promise; RUNS=1000 SEED=18 ROWS=1000 TRUTHS=p^2
	$(HERE) tests/calibration/simulate_coverage.py $(if $(RUNS),--runs $(RUNS)) $(if $(SEED),--seed $(SEED)) \
	    $(if $(ROWS),--rows $(ROWS)) $(if $(TRUTHS),--truths $(TRUTHS))

limit-law: build/in-place.stamp .venv/dev.stamp  ## quantiles for pointwise bands; RUNS=100000 SEED=2001
	$(HERE) tests/calibration/simulate_limit_law.py $(if $(RUNS),--runs $(RUNS)) $(if $(SEED),--seed $(SEED))

# `pip install relplot` into .venv adds its smooth calibration error.
peer-figures: build/in-place.stamp .venv/dev.stamp  ## our scores and errors beside those of other libraries; SEED=1
	$(HERE) tests/peers/print_figures.py $(if $(SEED),--seed $(SEED))

coverage: build/coverage.stamp  ## line coverage: Python 100 %, kernels 95 %
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

clean:  ## remove everything that make has created
	rm -rf .venv build demo dist docs/made *.egg-info .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache .rumdl_cache
	find staircase_fast -name '*.c' -delete -o -name '*.so' -delete
	find . -name __pycache__ -prune -exec rm -rf {} +

# Installing: each stamp stands for one extra or dependency group of pyproject.toml.

.venv/core.stamp: pyproject.toml
	test -x $(VENV) || $(PYTHON) -m venv .venv
	$(VENV) -c "$$REQUIREMENTS" > .venv/core.txt
	$(VENV) $(PIP_INSTALL) -r .venv/core.txt
	@touch $@

.venv/%.stamp: .venv/core.stamp
	@echo "installing the packages of the extra $*"
	$(VENV) -c "$$REQUIREMENTS" $* > .venv/$*.txt
	$(VENV) $(PIP_INSTALL) -r .venv/$*.txt
	@touch $@

# Building: setup.py compiles only changed files, each variant in its own folder.

build/in-place.stamp: $(KERNELS) setup.py .venv/core.stamp
	@echo "compiling the kernels that changed; all of them take some minutes"
	$(VENV) setup.py --quiet build_ext --inplace
	@touch $@

build/checked.stamp: $(PACKAGE) .venv/dev.stamp
	STAIRCASE_FAST_DEBUG=1 $(INSTALL_VARIANT)
	@touch $@

build/coverage.stamp: $(PACKAGE) .venv/dev.stamp
	STAIRCASE_FAST_COVERAGE=1 $(INSTALL_VARIANT)
	@touch $@

build/free-threaded.stamp: $(PACKAGE) build/free-threaded-venv.stamp
	rm -rf build/free-threaded-install
	$(FREE_THREADED_PIP) --no-build-isolation --no-deps --target build/free-threaded-install .
	@touch $@

# The pip of .venv may not support free-threaded wheels, and the interpreter may have no pip: install a new one.
# Optional packages without a wheel are omitted, and the tests that need them are skipped.
build/free-threaded-venv.stamp: .venv/core.stamp
	@test -n "$(FREE_THREADED)" || { echo "$$NO_FREE_THREADED" >&2; exit 1; }
	@"$(FREE_THREADED)" -c "$$IS_FREE_THREADED"
	rm -rf build/free-threaded-venv build/free-threaded-pip
	"$(FREE_THREADED)" -m venv --without-pip build/free-threaded-venv
	$(VENV) $(PIP_INSTALL) --target build/free-threaded-pip pip
	$(FREE_THREADED_PIP) --only-binary :all: -r .venv/core.txt hypothesis mpmath "pytest>=8" pytest-xdist
	$(VENV) -c "$$REQUIREMENTS" test > build/free-threaded-venv/test.txt
	while read -r requirement; do \
	    $(FREE_THREADED_PIP) --only-binary :all: "$$requirement" 2> build/free-threaded-venv/pip.log \
	    || echo "no wheel, omitted: $$requirement"; \
	done < build/free-threaded-venv/test.txt
	@touch $@

build/engines.stamp: pyproject.toml .venv/core.stamp
	$(PYTHON) -m venv --clear build/engines-venv
	$(VENV) -c "$$REQUIREMENTS" engines > build/engines-venv/engines.txt
	$(ENGINES_VENV) $(PIP_INSTALL) -r build/engines-venv/engines.txt
	@touch $@

build/address.stamp build/thread.stamp: $(PACKAGE) .venv/dev.stamp
	STAIRCASE_FAST_SANITIZE=$(@F:.stamp=) $(INSTALL_VARIANT)
	@touch $@

build/sdist.stamp: $(SDIST) .venv/dev.stamp
	rm -rf build/sdist *.egg-info
	$(VENV) -m build --no-isolation --sdist --outdir build/sdist -C=--global-option=--quiet
	@touch $@

# Built from the sdist in isolation, with the build requirements alone. Changed tests do not trigger a new wheel.
build/wheel.stamp: $(PACKAGE) | build/sdist.stamp
	rm -rf build/wheel build/wheel-install build/wheel-venv
	$(VENV) -m pip wheel --quiet --no-deps --wheel-dir build/wheel build/sdist/*.tar.gz
	$(VENV) -c "$$CHECK_CONTENTS" build/sdist/*.tar.gz build/wheel/*.whl
	$(VENV) $(PIP_INSTALL) --no-deps --target build/wheel-install build/wheel/*.whl
	$(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/python $(PIP_INSTALL) build/wheel/*.whl
	@touch $@

build/oldest.stamp: build/wheel.stamp
	rm -rf build/oldest-venv
	$(PYTHON) -m venv build/oldest-venv
	$(VENV) -c "$$REQUIREMENTS" test | sed -E 's/>=([0-9.]+).*/==\1.*/' > build/oldest-venv/oldest.txt
	build/oldest-venv/bin/python $(PIP_INSTALL) -r build/oldest-venv/oldest.txt build/wheel/*.whl
	@touch $@

# The target is named after the variant: build/checked.stamp fills build/checked-install.
INSTALL_VARIANT = $(VENV) $(PIP_INSTALL) --no-build-isolation --no-deps --upgrade \
    --target build/$(@F:.stamp=-install) .
IN_SDIST_TESTS = work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT \
    && tar -xzf build/sdist/*.tar.gz --strip-components=1 -C "$$work" && rm -r "$$work"/staircase_fast && cd "$$work"
NO_ENGINES = --ignore-glob="$(ROOT)/*staircase_fast/spark/*" --ignore-glob="$(ROOT)/*staircase_fast/dask.py"
STUBTEST = -m mypy.stubtest --ignore-disjoint-bases --mypy-config-file pyproject.toml \
    --allowlist tests/c_api/stubtest_allowlist.txt --ignore-unused-allowlist staircase_fast.cython_api

# Prints the build requirements, the dependencies, and the extras and groups named on the command line.
define REQUIREMENTS
import re, sys, tomllib
with open("pyproject.toml", "rb") as file:
    config = tomllib.load(file)
project = config["project"]
todo = config["build-system"]["requires"] + project["dependencies"]
extras, groups = project["optional-dependencies"], config["dependency-groups"]
for name in sys.argv[1:]:
    todo += groups[name] if name in groups else extras[name]
for requirement in todo:
    if isinstance(requirement, dict):
        todo += groups[requirement["include-group"]]
    elif ours := re.fullmatch(project["name"] + r"\[(.*)\]", requirement):
        todo += [r for extra in ours[1].split(",") for r in extras[extra]]
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

define IS_FREE_THREADED
import sys, sysconfig
if not sysconfig.get_config_var("Py_GIL_DISABLED"):
    sys.exit(f"{sys.executable} must be a free-threaded Python; got {sys.version}")
endef
export IS_FREE_THREADED

define GIL_IS_OFF
import sys, staircase_fast, staircase_fast.cython_api
if sys._is_gil_enabled():
    sys.exit("importing staircase_fast must leave the GIL off")
endef
export GIL_IS_OFF

define NO_FREE_THREADED
No free-threaded Python was found. Put python3.14t or python3.13t on PATH, or pass FREE_THREADED=path.
To build one, unpack the source of CPython 3.13 or newer, then run
  ./configure --disable-gil --prefix="$$HOME/python-free-threaded" && make -j2 && make install
endef
export NO_FREE_THREADED

define CHECK_CONTENTS
import re, sys, tarfile, zipfile
sdist = {name.partition("/")[2] for name in tarfile.open(sys.argv[1]).getnames()}
wheel = set(zipfile.ZipFile(sys.argv[2]).namelist())
ours = {name for name in sdist if re.match(r"staircase_fast/.+\.[^/]+$$", name)}
bad = [f"missing in the sdist: {name}" for name in ("tests/conftest.py", "Makefile") if name not in sdist]
private = re.compile(r".*\.pyx|(?!staircase_fast/(__init__|cython_api)\.).*\.pxd")
bad += [f"missing in the wheel: {name}" for name in ours - wheel if not private.fullmatch(name)]
bad += [f"not compiled: {name}" for name in ours if name.endswith(".pyx")
        and not any(re.match(re.escape(name[:-3]) + r".*(so|pyd)$$", made) for made in wheel)]
bad += [f"must not be shipped: {name}" for name in sdist | wheel
        if re.search(r"\.(c|cpp|gcno)$$", name) and not name.startswith("tests/")]
bad += [f"must not be in the wheel: {name}" for name in wheel
        if private.fullmatch(name) or not name.startswith("staircase_fast")]
sys.exit("\n".join(sorted(bad)) or None)
endef
export CHECK_CONTENTS
