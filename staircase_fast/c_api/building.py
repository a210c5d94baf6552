"""For those who compile against the package."""

from __future__ import annotations

from pathlib import Path

import staircase_fast


def get_include() -> str:
    """The folder with `staircase_fast.h`, the header of the C-level API.

    The API fits, evaluates and takes rows online without Python objects and without the GIL, with the same bits as the
    functions of the package.  It is frozen: what compiles against one release runs with later ones.  The file
    `cython_api.pxd` of the package says what each function does.

    Returns
    -------
    str

    Notes
    -----
    Cython needs no folder: it finds `cython_api.pxd` where the package is installed.

    .. code-block:: cython

        from staircase_fast cimport cython_api as sf

        cdef sf.sf_staircase *stairs
        with nogil:
            status = sf.sf_fit_squared(&x[0], &y[0], NULL, n, 0, &stairs, NULL)
        if status != sf.SF_OK:
            raise ValueError(sf.sf_status_message(status).decode())

    C and C++ include the header, which `setup.py` finds so::

        Extension("mine", ["mine.c"], include_dirs=[staircase_fast.get_include()])

    and `meson.build` so::

        folder = run_command(py, ['-c', 'import staircase_fast as sf; print(sf.get_include())'], check: true)
        py.extension_module('mine', 'mine.c', include_directories: include_directories(folder.stdout().strip()))

    Either way `staircase_fast` is among the requirements in `[build-system]` as well as in `[project]`.

    Examples
    --------
    >>> import os
    >>> import staircase_fast as sf
    >>> os.listdir(sf.get_include())
    ['staircase_fast.h']
    """
    return str(Path(staircase_fast.__file__).resolve().parent / "include")
