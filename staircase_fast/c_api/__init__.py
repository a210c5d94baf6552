"""The code behind `staircase_fast.cython_api`, the frozen API for Cython, C and C++.

Each header implements a part of it in plain C structs: `_rows.pxd` checks rows, `_fit.pxd` fits, `_online.pxd` takes
rows in score order, `_staircase.pxd` evaluates.  Unlike other kernels, these check their input and allocate memory,
because their callers have no Python to do it.  `building.py` has `get_include`.

Tests: tests/c_api.
"""
