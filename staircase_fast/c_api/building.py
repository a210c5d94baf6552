"""For programs that are compiled against the package."""

from __future__ import annotations

from pathlib import Path

import staircase_fast


def get_include() -> str:
    """The folder of `staircase_fast.h`, the header of the C API.

    The API fits, evaluates and updates online fits without Python objects and without the GIL.  Its results are equal
    to those of the package, bit for bit.  It is frozen: a program compiled against one release runs with later ones.
    The file `cython_api.pxd` of the package documents each function.

    Returns
    -------
    str

    Notes
    -----
    Cython finds `cython_api.pxd` in the installed package; it does not need this folder.

    .. code-block:: cython

        from staircase_fast cimport cython_api as sf

        cdef sf.sf_staircase *stairs
        with nogil:
            status = sf.sf_fit_squared(&x[0], &y[0], NULL, n, 0, &stairs, NULL)
        if status != sf.SF_OK:
            raise ValueError(sf.sf_status_message(status).decode())

    C and C++ include the header.  In `setup.py`::

        Extension("mine", ["mine.c"], include_dirs=[staircase_fast.get_include()])

    In `meson.build`::

        folder = run_command(py, ['-c', 'import staircase_fast as sf; print(sf.get_include())'], check: true)
        py.extension_module('mine', 'mine.c', include_directories: include_directories(folder.stdout().strip()))

    In both cases, list `staircase_fast` in the requirements of `[build-system]` and of `[project]`.

    Examples
    --------
    >>> import os
    >>> import staircase_fast as sf
    >>> os.listdir(sf.get_include())
    ['staircase_fast.h']
    """
    return str(Path(staircase_fast.__file__).resolve().parent / "include")
