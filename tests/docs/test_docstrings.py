"""Every public name has a docstring in numpydoc format.  New names are found automatically."""

import dataclasses
import doctest
import importlib.util
import inspect
import pkgutil
import pydoc
import typing

import pytest

import staircase_fast as sf

validate = pytest.importorskip("numpydoc.validate")
pytestmark = pytest.mark.long

# numpydoc's error codes about the content, not the layout
CODES = {
    "GL03", "GL05", "GL06", "GL07", "GL08",  # blank lines, tabs, unknown sections, their order, no docstring
    "SS01", "SS03", "SS04",  # the summary
    "PR01", "PR02", "PR03", "PR10",  # parameters match the signature
    "RT02", "YD01",  # return values
    "EX01",  # an example
}  # fmt: skip
# methods for use inside the package: they need no example
INTERNAL = {
    "arguments", "check_spread", "cost_of_means", "has_integer_slopes", "natural_parameter", "of_rows", "parts",
    "slopes", "sort_keys",
}  # fmt: skip


def public_modules():
    """The package, and its modules that have an `__all__`."""
    names = {name for _, name, _ in pkgutil.iter_modules(sf.__path__) if not name.startswith("_")}
    names -= {"spark"}  # its classes have methods as in Spark
    if not importlib.util.find_spec("dask"):  # `make test-engines` installs it
        names -= {"dask"}
    modules = [sf, *(importlib.import_module(f"staircase_fast.{name}") for name in sorted(names))]
    return [module for module in modules if hasattr(module, "__all__")]


def own_members(cls):
    """Methods and properties that a class defines itself; overriding ones only if they have a docstring."""
    for name, member in vars(cls).items():
        plain = getattr(member, "__func__", member)
        if name.startswith("_") or not (inspect.isfunction(plain) or isinstance(plain, property)):
            continue
        if plain.__doc__ or not any(hasattr(base, name) for base in cls.__mro__[1:]):
            yield f"{cls.__module__}.{cls.__qualname__}.{name}", plain


def public_names():
    """Functions, classes, and the methods and properties of these, by their full names."""
    found = {}
    for module in public_modules():
        for name in module.__all__:
            public = getattr(module, name)
            if not (inspect.isfunction(public) or inspect.isclass(public)):
                continue
            found[f"{public.__module__}.{public.__qualname__}"] = public
            if inspect.isclass(public):
                found.update(own_members(public))
    return found


def is_form(public):
    """Whether an object is only a type for annotations."""
    return typing.is_typeddict(public) or getattr(public, "_is_protocol", False)


def fields_of(public):
    """The field names of a result class; None for other objects."""
    if dataclasses.is_dataclass(public):
        return tuple(field.name for field in dataclasses.fields(public))
    return getattr(public, "_fields", None) if inspect.isclass(public) else None


def needed(name, public):
    """The error codes that apply to a name."""
    if is_form(public):
        return CODES - {"PR01", "EX01"}
    if fields_of(public):
        return CODES - {"PR01"}  # its fields are documented as attributes
    if isinstance(public, property):
        return CODES - {"EX01"}
    if public is sf.InvalidTypeError:
        return CODES - {"PR01", "EX01"}  # see its base class
    owner, _, method = name.rpartition(".")
    again = any(hasattr(base, method) for base in getattr(NAMES.get(owner), "__mro__", ())[1:])
    return (
        CODES - {"PR01", "EX01"} if again or method in INTERNAL else CODES
    )  # an overriding method describes only what differs


NAMES = public_names()
CLASSES = {name: public for name, public in NAMES.items() if inspect.isclass(public) and not is_form(public)}
FUNCTIONS = {name: public for name, public in NAMES.items() if inspect.isfunction(public)}


def test_public_names_of_all_modules_are_found():
    for name in ("fitting.fit", "losses.Huber", "Online.extend", "typing.SupportsDLPack"):
        assert f"staircase_fast.{name}" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_numpydoc_reports_no_errors(name):
    codes = needed(name, NAMES[name])
    assert [error for error in validate.validate(name)["errors"] if error[0] in codes] == []


@pytest.mark.parametrize("name", [name for name, public in CLASSES.items() if fields_of(public)])
def test_the_docstring_of_a_result_lists_its_fields(name):
    described = validate.Validator(validate.get_doc_object(CLASSES[name])).doc["Attributes"]
    assert tuple(field.name for field in described) == fields_of(CLASSES[name])


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in sf.__all__
        if inspect.isclass(public := getattr(sf, name))
        and not hasattr(public, "_fields")
        and not issubclass(public, Exception)
    ],
)
def test_the_docstring_of_a_class_has_a_note_on_thread_safety(name):
    assert "Thread-safety: " in inspect.getdoc(getattr(sf, name))


def test_docstrings_of_functions_that_read_rows_have_a_note_on_thread_safety():
    for name in sf.__all__:
        public = getattr(sf, name)
        if inspect.isfunction(public) and {"scores", "y"} & set(inspect.signature(public).parameters):
            assert "Thread-safety: " in inspect.getdoc(public), name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_shows_the_signature(name):
    public = FUNCTIONS[name]
    shown = pydoc.plain(pydoc.render_doc(public))
    for parameter in inspect.signature(public).parameters:
        assert parameter in shown.splitlines()[2]
    assert "*args" not in shown.splitlines()[2]


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name):
    """Public classes report the package as their module, so `--doctest-modules` does not find their examples."""
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(verbose=False, optionflags=options)
    public = NAMES[name]
    for test in finder.find(public.fget if isinstance(public, property) else public, name, globs={}):
        found: list[str] = []
        assert runner.run(test, out=found.append).failed == 0, "".join(found)
