"""The code behind `staircase_fast.cython_api`, the frozen API for Cython, C and C++.

Rows are checked, fitted and evaluated in plain C structs; online fits are those of `streams`.  Unlike other kernels,
these functions check their input and allocate memory, because their callers have no Python layer to do it.

Tests: tests/c_api.
"""
