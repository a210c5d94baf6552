"""A user's compiled derivative: which objects are accepted as one, and how its address is found.

An address is called without further checks, so it must come from an object that is known to hold a function of the
right type.  An integer is not accepted, nor is an object that merely has an attribute `address`.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import sys
from typing import Any, NamedTuple, NoReturn

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.losses.builtin import __all__ as built_in

PLAIN = len(built_in)  # in `Kind` of `_slopes.pxd`, the kinds of compiled functions follow the built-in losses
WITH_DATA = PLAIN + 1
_SIGNATURES = {"double(double,double)": PLAIN, "double(double,double,void*)": WITH_DATA}
_ARGUMENTS = {
    (ctypes.c_double, ctypes.c_double): PLAIN,
    (ctypes.c_double, ctypes.c_double, ctypes.c_void_p): WITH_DATA,
}
_NEEDS_THE_GIL = 4  # in the flags of ctypes: a function of Python's own C API
_Capsule = type(dt.datetime_CAPI)  # types.CapsuleType since Python 3.13

REQUIREMENT = (
    "must be a Python function of arrays or a compiled function: a ctypes function that is not NULL, "
    "a numba.cfunc, a PyCapsule or a scipy.LowLevelCallable"
)


class Compiled(NamedTuple):
    """The address of a compiled derivative; `owner` keeps the code alive."""

    kind: int
    address: int
    user_data: int
    owner: object


def compiled_derivative(function: Any) -> Compiled | None:
    """The derivative in a ctypes function, a numba.cfunc, a PyCapsule or a scipy.LowLevelCallable; else None."""
    if isinstance(function, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return _from_ctypes(function, function)
    if isinstance(function, _Capsule):
        return _from_capsule(function)
    if _is_instance(function, "numba.core.ccallback", "CFunc"):
        return _from_numba(function)
    if _is_instance(function, "scipy", "LowLevelCallable"):
        return _from_scipy(function)
    return None


def _is_instance(given: object, module: str, name: str) -> bool:
    """Whether an object is an instance of a class of another library, which is not imported for this."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(given, kind)


def _from_ctypes(function: Any, owner: object) -> Compiled:
    kind = _ARGUMENTS.get(tuple(function.argtypes or ()))
    if function.restype is not ctypes.c_double or kind is None or function._flags_ & _NEEDS_THE_GIL:
        _refuse_signature(f"{function.restype} {function.argtypes}")
    address = ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise InvalidTypeError("derivative", REQUIREMENT, found="got a NULL pointer")
    return Compiled(kind, address, 0, owner)


def _from_numba(function: Any) -> Compiled:
    try:
        described = function.ctypes
    except TypeError as error:  # ctypes has no such type, or nothing was compiled
        _refuse_signature(f"{function!r}: {error}")
    return _from_ctypes(described, function)


def _from_capsule(capsule: Any) -> Compiled:
    """A capsule is never empty, and its name is the type of the function."""
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    context_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetContext", ctypes.pythonapi))
    name = name_of(capsule)
    signature = (name or b"").decode("utf-8", "replace")
    kind = _SIGNATURES.get("".join(signature.split()))
    if kind is None:
        _refuse_signature(repr(signature))
    return Compiled(kind, pointer_of(capsule, name), context_of(capsule) or 0, capsule)


def _from_scipy(function: Any) -> Compiled:
    """SciPy makes a capsule of a function, its signature and its data; callers may give it a wrong signature."""
    made = compiled_derivative(tuple.__getitem__(function, 0))
    inner = compiled_derivative(function.function)
    if made is None or inner is None:
        raise InvalidTypeError("derivative", REQUIREMENT, value=function)
    if made.kind != inner.kind:
        _refuse_signature(f"{function!r} with the signature {function.signature}")
    return made._replace(owner=function)


def _refuse_signature(given: str) -> NoReturn:
    requirement = f"must be of the type {' or '.join(_SIGNATURES)}, callable without the GIL"
    raise InvalidInputError("derivative", requirement, found=f"got {given}")
