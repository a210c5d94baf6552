"""A user's derivative: a Python function of arrays, or the address of a compiled one."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from staircase_fast import _validation

PLAIN, WITH_DATA = 13, 14  # numbers in `_slopes.pxd`
_SIGNATURES = {"double(double,double)": PLAIN, "double(double,double,void*)": WITH_DATA}


class Compiled(NamedTuple):
    """Where a compiled derivative is; `owner` is held, so that it stays there."""

    kind: int
    address: int
    user_data: int
    owner: object


def compiled(function: Any) -> Compiled | None:
    """What can be called without Python: a numba.cfunc, a ctypes function, a PyCapsule, a scipy.LowLevelCallable.

    None if it is none of these.
    """
    if isinstance(function, tuple) and hasattr(function, "function") and hasattr(function, "user_data"):
        inner = compiled(function.function)  # a scipy.LowLevelCallable
        if inner is None:
            _validation.unknown_derivative(function)
        return inner._replace(user_data=_address_of(function.user_data) or inner.user_data, owner=function)
    if type(function).__name__ == "PyCapsule":
        return _from_capsule(function)
    if isinstance(function, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return _from_ctypes(function, function)
    if isinstance(getattr(function, "address", None), int):
        described = getattr(function, "ctypes", None)
        if described is not None:
            return _from_ctypes(described, function)._replace(address=function.address)
        return Compiled(PLAIN, function.address, 0, function)
    return None


def _from_ctypes(function: Any, owner: object) -> Compiled:
    kinds = [getattr(kind, "__name__", "") for kind in function.argtypes or ()]
    plain = kinds == ["c_double", "c_double"]
    with_data = kinds == ["c_double", "c_double", "c_void_p"]
    if function.restype is not ctypes.c_double or not (plain or with_data):
        _validation.unknown_signature(f"{function.restype} {function.argtypes}", _SIGNATURES)
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    return Compiled(PLAIN if plain else WITH_DATA, address, 0, owner)


def _from_capsule(capsule: Any) -> Compiled:
    name, pointer = _opened(capsule)
    kind = _SIGNATURES.get("".join(name.split()))
    if kind is None:
        _validation.unknown_signature(name, _SIGNATURES)
    context_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetContext", ctypes.pythonapi))
    return Compiled(kind, pointer, context_of(capsule) or 0, capsule)


def _address_of(user_data: Any) -> int:
    """The address in a ctypes pointer or a capsule."""
    if user_data is None:
        return 0
    if type(user_data).__name__ == "PyCapsule":
        return _opened(user_data)[1]
    return ctypes.cast(user_data, ctypes.c_void_p).value or 0


def _opened(capsule: Any) -> tuple[str, int]:
    """The name of a PyCapsule and the pointer in it."""
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    name = name_of(capsule)
    return (name or b"").decode("utf-8", "replace"), kind(("PyCapsule_GetPointer", ctypes.pythonapi))(
        capsule, name
    ) or 0
