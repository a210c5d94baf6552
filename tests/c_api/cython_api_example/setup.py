"""Build two users of the C-level API, one in Cython and one in C: python setup.py build_ext --inplace."""

from Cython.Build import cythonize
from setuptools import Extension, setup

import staircase_fast

if __name__ == "__main__":
    setup(
        name="cython_api_example",
        ext_modules=[
            *cythonize(Extension("in_cython", ["in_cython.pyx"]), language_level=3),
            Extension("in_c", ["in_c.c"], include_dirs=[staircase_fast.get_include()]),
        ],
    )
