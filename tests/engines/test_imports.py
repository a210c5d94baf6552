"""Engines are optional: the package does not import them, and their modules say which extra is missing."""

import subprocess
import sys

ENGINE_PACKAGES = {"dask", "pandas", "pyarrow", "pyspark"}


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_the_package_imports_no_engine():
    done = run("import staircase_fast, sys; print(*{name.partition('.')[0] for name in sys.modules})")
    assert not ENGINE_PACKAGES & set(done.stdout.split())
    assert "numpy" in done.stdout.split()


def test_without_pyspark_an_error_names_the_extra():
    done = run("import sys; sys.modules['pyspark'] = None; import staircase_fast.spark")
    text = "`staircase_fast.spark` needs pyspark, which is not installed: pip install '.[spark]' in a checkout."
    assert done.stderr.strip().endswith(f"ImportError: {text}")
