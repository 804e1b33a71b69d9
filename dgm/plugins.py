"""Policies, operators, models, benchmarks and sandboxes by name: built in, installed, or passed as objects.

A distribution offers one with an entry point in the group ``dgm.policies``, ``dgm.operators``, ``dgm.models``,
``dgm.benchmarks``, ``dgm.sandboxes`` or ``dgm.sinks``; users type the entry point's name. A program passes an object
under its reference, ``module:Class{'number': 4}``, which is what the run records, with the object's values or a digest
of them. Another process finds the object again by importing the module. A reference may be a stranger's: no function is
called, and values become attributes of ordinary classes without a call.
"""

import ast
import copy
import dataclasses
import difflib
import hashlib
import inspect
import logging
import pickle
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from inspect import Parameter
from pathlib import Path
from traceback import walk_tb
from types import MappingProxyType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, Protocol

from dgm.errors import PluginFault, UserError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

REFERENCE = re.compile(
    r"(?P<module>[A-Za-z_][\w.]*):(?P<path>[A-Za-z_][\w.<>]*)(?P<values>\{.*\})?(?P<digest>#[0-9a-f]+)?"
)
"""With a digest instead of values, only a process that was passed the object has it."""
MAX_VALUES = 2_000
"""Characters of an object's values up to which they are recorded."""
UNRECORDED = "its values are not recorded, because they are not all numbers, texts, lists, tuples and dicts"
NO_NAMES: Mapping[str, str] = MappingProxyType({})
FUNCTION_MARK = "__dgm_plugin__"
"""Attribute of a function that settings may name; a reference to any other function may be a stranger's."""
_HOOKS = {"__getattr__", "__getattribute__", "__del__", "__deepcopy__", "__reduce__", "__reduce_ex__"}
"""Methods that Python calls by itself, which might act on values of a stranger: ``__del__`` deletes files."""
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_lent: dict[tuple[str, str], Any] = {}
"""Group and reference → the object that this process was passed."""

log = logging.getLogger(__name__)


class _Bare(Protocol): ...


def find_installed(group: str) -> Mapping[str, EntryPoint]:
    """Return the installed plug-ins of a group, such as ``policies``, by name."""
    return {point.name: point for point in entry_points(group=f"dgm.{group}")}


def is_reference(name: str) -> bool:
    """Return whether a name has the form of a reference."""
    return REFERENCE.fullmatch(name) is not None


def find_plugin(group: str, name: str, builtin: Mapping[str, str]) -> Any:  # noqa: ANN401  (whatever it names)
    """Return the object that a name refers to; ``builtin`` maps names to ``module:attribute``.

    Raises:
        UserError: nothing has that name (lists the available names), or it cannot be loaded.
    """
    if name in builtin:
        module, _, attribute = builtin[name].partition(":")
        return getattr(import_module(module), attribute)
    points = find_installed(group)
    if name in points:
        try:
            return points[name].load()
        except (Exception, SystemExit) as error:  # a module may raise anything on import
            raise UserError(
                f"{describe_plugin(group, name)} cannot be loaded: {_error_text(error)}"
            ) from error
    if is_reference(name):
        return find_object(group, name)
    known = sorted([*builtin, *points])
    kind = group.replace("_", " ")
    raise UserError(f"unknown name '{name}' among the {kind} ({_suggest(name, known)})")


def make_plugin(
    group: str,
    name: str,
    context: "DataclassInstance",
    builtin: Mapping[str, str] = NO_NAMES,
    shape: Mapping[str, int | None] = MappingProxyType({}),
) -> Any:  # noqa: ANN401  (whatever the plug-in makes)
    """Make a part from the context record of its kind, as ``call_factory`` does; a value behind a reference is copied.

    ``shape`` is checked as ``check_shape`` does.

    Raises:
        UserError: nothing has that name, it cannot be loaded, or it does not fit. Errors raised inside the plug-in
            propagate unchanged.
    """
    factory = find_plugin(group, name, builtin)
    if name in builtin:
        return call_factory(factory, context)
    try:
        part = make_object(factory, context) if is_reference(name) else call_factory(factory, context)
    except TypeError as error:
        if not isinstance(error, UnknownField) and find_faulty_plugin(error):
            raise
        raise UserError(f"{describe_plugin(group, name)}{_source_place(factory)}: {error}") from error
    check_shape(group, name, part, shape)
    return part


class UnknownField(TypeError):
    """A factory asks for something that its context record does not have."""


def call_factory(factory: Callable[..., Any], context: "DataclassInstance") -> Any:  # noqa: ANN401  (whatever it makes)
    """Return what a factory makes from a context record.

    A factory gets the whole record if that is its only required, positional argument and no field has its name. Else
    its arguments get the fields that are named like them, as fixtures of pytest do; ``**`` gets all other fields.

    Raises:
        UnknownField: an argument without a default is no field.
    """
    names = [field.name for field in dataclasses.fields(context) if not field.name.startswith("_")]
    fields = {name: getattr(context, name) for name in names}
    parameters = _parameters_of(factory)
    required = [p for p in parameters if p.default is p.empty and p.kind not in _VARIADIC]
    unknown = [p.name for p in required if p.name not in fields]
    if len(required) == len(unknown) == 1 and required[0].kind is not Parameter.KEYWORD_ONLY:
        return factory(context)
    if unknown:
        words = ", ".join(f"'{name}'" for name in unknown)
        verb = f"argument {words} is no field" if len(unknown) == 1 else f"arguments {words} are no fields"
        raise UnknownField(f"{verb} of {type(context).__name__} ({_suggest(unknown[0], names)})")
    takes_all = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    accepted = fields if takes_all else {p.name for p in parameters if p.kind not in _VARIADIC}
    return factory(**{name: value for name, value in fields.items() if name in accepted})


def _parameters_of(factory: Callable[..., Any]) -> Sequence[Parameter]:
    inits = [vars(kind)["__init__"] for kind in getattr(factory, "__mro__", ()) if "__init__" in vars(kind)]
    hidden = vars(_Bare)["__init__"]
    if inits and inits[0] is hidden:
        # A class that inherits from a protocol hides its constructor until its first object is made.
        constructor = next(init for init in inits if init is not hidden)
        return (
            []
            if constructor is object.__init__
            else [*inspect.signature(constructor).parameters.values()][1:]
        )
    return list(inspect.signature(factory).parameters.values())


def check_shape(group: str, name: str, part: object, shape: Mapping[str, int | None]) -> None:
    """Check that a plug-in's part has all attributes of its protocol; parts of dgm itself are not checked.

    ``shape`` maps an attribute to the number of arguments of the method; None if it is not a method.

    Raises:
        UserError: an attribute is missing, or takes other arguments.
    """
    if name not in find_installed(group) and not is_reference(name):
        return
    subject, kind = f"{describe_plugin(group, name)}{_source_place(part)}", type(part).__name__
    if missing := [attribute for attribute in shape if not hasattr(part, attribute)]:
        raise UserError(f"{subject}: {kind} has no {', '.join(missing)}")
    for attribute, count in shape.items():
        if count is not None and not _accepts(getattr(part, attribute), count):
            subject = f"{describe_plugin(group, name)}{_source_place(getattr(part, attribute))}"
            wanted = "1 argument" if count == 1 else f"{count} arguments"
            raise UserError(f"{subject}: {kind}.{attribute} must take {wanted}")


def check_function(group: str, name: str, function: Callable[..., object], count: int) -> None:
    """Check the number of arguments of a plug-in that is a function.

    Raises:
        UserError: it takes others.
    """
    if not _accepts(function, count):
        subject = f"{describe_plugin(group, name)}{_source_place(function)}"
        raise UserError(f"{subject}: must take {count} arguments")


def _accepts(method: Any, count: int) -> bool:  # noqa: ANN401  (any attribute)
    try:
        inspect.signature(method).bind(*range(count))
    except ValueError:
        return True  # a compiled function does not describe its arguments
    except TypeError:
        return False
    return True


def check_answer(answer: object, kind: type, call: str) -> None:
    """Check the type of a plug-in's answer to a call, such as ``operator 'x': make``.

    Raises:
        PluginFault: the answer has another type.
    """
    if not isinstance(answer, kind):
        raise PluginFault(
            f"{call} returned {repr(answer)[:80]}, which is no {kind.__name__}; a fault of a plug-in"
        )


def find_faulty_plugin(error: BaseException) -> str:
    """Return the installed package of plug-ins in which an error was raised, with file and line; empty if none."""
    points = entry_points()
    groups = [group for group in points.groups if group.startswith("dgm.")]
    packages = {point.module.partition(".")[0] for group in groups for point in points.select(group=group)}
    frames = [frame for frame in _frames(error) if frame[0] in packages - {"dgm"}]
    return f"package '{frames[-1][0]}', {frames[-1][1]}" if frames else ""


def _frames(error: BaseException) -> Sequence[tuple[str, str]]:
    """Return package and ``file:line`` of each frame of an error, the innermost last."""
    return [
        (str(frame.f_globals.get("__name__", "")).partition(".")[0], f"{frame.f_code.co_filename}:{line}")
        for frame, line in walk_tb(error.__traceback__)
    ]


def describe_plugin(group: str, name: str) -> str:
    """Return the description of a plug-in or of an object behind a reference, for messages."""
    kind, point = group.replace("_", " "), find_installed(group).get(name)
    if point is None:
        return f"{name}, one of the {kind}"
    return f"plug-in '{name}' among the {kind} ({point.value}, of {point.dist.name if point.dist else '?'})"


def _error_text(error: BaseException) -> str:
    """Return the error with its type and the innermost place outside Python's import system and dgm."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: SyntaxError: {error.msg}"
    places = [place for package, place in _frames(error) if package not in ("importlib", "dgm")]
    return f"{f'{places[-1]}: ' if places else ''}{type(error).__name__}: {error}"


def _source_place(thing: object) -> str:
    """Return ``, file:line`` of a function or class, or of the class of an object."""
    source: Any = thing if inspect.isroutine(thing) or isinstance(thing, type) else type(thing)
    try:
        return f", {inspect.getsourcefile(source)}:{inspect.getsourcelines(source)[1]}"
    except (OSError, TypeError):
        return ""


def _suggest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return (f"did you mean '{near[0]}'? " if near else "") + f"there are: {', '.join(known)}"


def lend_object(group: str, thing: object) -> str:
    """Keep an object for this process, and return the reference that names it and nothing else.

    Of an object a copy is kept, except of a benchmark, whose version says whether it is the same.
    """
    is_factory = _is_factory(thing)
    named: Any = thing if is_factory else type(thing)
    reference = f"{named.__module__}:{named.__qualname__}"
    copied = thing if is_factory or group == "benchmarks" else copy.deepcopy(thing)
    values = None if is_factory else _describe_values(copied)
    if values is not None:
        reference += values
    elif copied is not thing:
        log.warning("%s: %s; only a program that passes it can go on with its run", reference, UNRECORDED)
        reference += _digest_values(copied)
    known = _lent.get((group, reference), copied)
    if known is not copied and ((copied is thing and values is None) or type(known) is not type(copied)):
        # Another class, function or benchmark of the same name.
        reference += f"#{secrets.token_hex(4)}"
    _lent[group, reference] = copied
    return reference


def is_lent(group: str, reference: str) -> bool:
    """Return whether this process was passed an object under the reference."""
    return (group, reference) in _lent


def is_available(group: str, name: str) -> bool:
    """Return whether a name is a reference that was lent, or whose package is installed here; imports nothing."""
    package = name.partition(":")[0].partition(".")[0]
    return is_reference(name) and (is_lent(group, name) or find_spec(package) is not None)


def find_object(group: str, reference: str) -> Any:  # noqa: ANN401  (whatever it names)
    """Return what was lent under a reference, else what its module has.

    Raises:
        UserError: it cannot be imported here, its values are unknown here, or it is neither a class nor a value.
    """
    if is_lent(group, reference):
        return _lent[group, reference]
    parts = REFERENCE.fullmatch(reference)
    module, path, values, digest = parts.groups() if parts else ("", "", "", "")
    subject = f"{reference}, one of the {group},"
    if module == "__main__" or "<locals>" in path:
        raise UserError(
            f"{subject} cannot be imported again: it was defined in a program's own file or in a function; put it into "
            "a module, or pass the object from Python"
        )
    if digest and group != "benchmarks":
        raise UserError(
            f"{subject} was passed as an object: {UNRECORDED}; resume the run from Python, and pass the object again"
        )
    try:
        thing: Any = import_module(module)
        for part in path.split("."):
            thing = getattr(thing, part)
    except (Exception, SystemExit) as error:  # a module may raise anything when it is imported
        hint = "; put its folder on PYTHONPATH" if isinstance(error, ModuleNotFoundError) else ""
        raise UserError(
            f"{subject} cannot be imported here ({type(error).__name__}: {error}){hint}"
        ) from error
    if inspect.isroutine(thing) and not hasattr(thing, FUNCTION_MARK):
        advice = "mark it with @policy" if group == "policies" else "name a class"
        raise UserError(f"{subject} is a function, which only the program that has it may pass; {advice}")
    if not values:
        return thing
    try:
        return _restore_object(thing, ast.literal_eval(values[:MAX_VALUES]))
    except (TypeError, ValueError, SyntaxError, AttributeError, RecursionError, MemoryError) as error:
        raise UserError(f"{subject} cannot be made with these values: {error}") from error


def make_object(thing: Any, context: "DataclassInstance") -> Any:  # noqa: ANN401  (whatever it makes)
    """Return a copy of a value, so that two users of it do not share its state, or a new object of a class."""
    return call_factory(thing, context) if _is_factory(thing) else copy.deepcopy(thing)


def digest_of(group: str, reference: str) -> str | None:
    """Return the SHA-256 of the file that an object's class is written in; None where there is none.

    Raises:
        UserError: as ``find_object``.
    """
    thing = find_object(group, reference)
    try:
        file = inspect.getsourcefile(thing if _is_factory(thing) else type(thing))
        return hashlib.sha256(Path(file or "").read_bytes()).hexdigest()
    except (OSError, TypeError):
        return None


def _is_factory(thing: object) -> bool:
    return isinstance(thing, type) or inspect.isroutine(thing)


def _describe_values(thing: object) -> str | None:
    """Return an object's attributes as a literal, empty if there are none; None if no literal holds all of them."""
    if not _is_ordinary(type(thing)):
        return None
    state = object.__getstate__(thing)
    tables = state if isinstance(state, tuple) else (state,)
    values = {name: value for table in tables for name, value in (table or {}).items()}
    try:
        # A "+" joins names.
        text = repr(dict(sorted(values.items()))).replace("+", "\\x2b") if values else ""
        is_complete = (
            _is_plain(values) and len(text) <= MAX_VALUES and ast.literal_eval(text or "{}") == values
        )
    except (ValueError, SyntaxError, RecursionError):
        return None
    return text if is_complete else None


def _digest_values(thing: object) -> str:
    """Return a mark that an object with the same values gets wherever it is passed again."""
    try:
        return f"#{hashlib.sha256(pickle.dumps(thing, protocol=4)).hexdigest()[:16]}"
    except Exception:  # noqa: BLE001  (any class may refuse to be pickled in its own way)
        return f"#{secrets.token_hex(4)}"


def _restore_object(kind: Any, values: Mapping[str, Any]) -> object:  # noqa: ANN401  (whatever a module has)
    """Return an object of a class with these attributes, without a call of anything that the class defines."""
    if not isinstance(kind, type) or not _is_ordinary(kind):
        raise TypeError("not an ordinary class")
    thing: object = object.__new__(kind)
    for name, value in values.items():
        if isinstance(inspect.getattr_static(kind, name, None), MemberDescriptorType):
            object.__setattr__(thing, name, value)
        else:
            vars(thing)[name] = value
    return thing


def _is_ordinary(kind: type[object]) -> bool:
    """Return whether Python makes, copies and deletes objects of a class, and finds their attributes, by itself."""
    bases = [base for base in kind.__mro__ if base is not object]
    return kind.__new__ is object.__new__ and not any(_HOOKS & vars(base).keys() for base in bases)


def _is_plain(value: object) -> bool:
    """Return whether a literal gives back the value with the same types."""
    kind = type(value)
    if isinstance(value, dict) and kind is dict:
        return all(map(_is_plain, [*value, *value.values()]))
    if isinstance(value, list | tuple) and kind in (list, tuple):
        return all(map(_is_plain, value))
    return value is None or kind in (str, bytes, int, float, bool)
