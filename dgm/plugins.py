"""Lookup of a policy, operator, model or benchmark by name: built-in ones, installed entry points, references.

A distribution offers one with an entry point in the group ``dgm.policies``, ``dgm.operators``, ``dgm.models``,
``dgm.benchmarks`` or ``dgm.sandboxes``. The entry point's name is what users type (``docs/library.md``). Errors of a
plug-in name its file and line.
"""

import difflib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from traceback import walk_tb
from types import FrameType
from typing import TYPE_CHECKING, Any

from dgm.errors import PluginFault, UserError
from dgm.factories import UnknownField, call_factory
from dgm.references import find_object, is_reference, make_object

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SHOWN = 80
"""Maximum number of characters shown of a value that does not fit."""
NO_BUILTIN: Mapping[str, str] = {}
"""Built-in parts of a kind where all names are those of plug-ins."""


def find_plugin(group: str, name: str, builtin: Mapping[str, str]) -> Any:  # noqa: ANN401  (whatever the plug-in names)
    """Return the object that ``name`` refers to.

    Args:
        group: the plural of the kind: ``policies``, ``operators``.
        name: what the user typed.
        builtin: name → ``module:attribute``.

    Raises:
        UserError: nothing has that name; the message lists the available names.
    """
    if name in builtin:
        module, _, attribute = builtin[name].partition(":")
        return getattr(import_module(module), attribute)
    points = find_installed(group)
    if name in points:
        return _load_point(group, points[name])
    if is_reference(name):
        return find_object(group, name)
    known = sorted([*builtin, *points])
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    kind = group.replace("_", " ")
    raise UserError(f"unknown name '{name}' among the {kind} ({hint}there are: {', '.join(known)})")


def find_installed(group: str) -> Mapping[str, EntryPoint]:
    """Return the installed plug-ins of a kind by name."""
    return {point.name: point for point in entry_points(group=f"dgm.{group}")}


def make_plugin(
    group: str,
    name: str,
    context: "DataclassInstance",
    builtin: Mapping[str, str] = NO_BUILTIN,
) -> Any:  # noqa: ANN401  (whatever the plug-in makes)
    """Make a part of any kind from the context record of its kind (``dgm.factories`` has the rule).

    A value behind a reference is copied.

    Args:
        group: the plural of the kind.
        name: what the user typed.
        context: the record of the kind; built-in parts and plug-ins get the same one.
        builtin: name → ``module:attribute``.

    Raises:
        UserError: nothing has that name, or it cannot be loaded, or it asks for what the record does not have. Errors
            raised inside the plug-in propagate unchanged.
    """
    factory = find_plugin(group, name, builtin)
    if name in builtin:
        return call_factory(factory, context)
    installed = name in find_installed(group)
    try:
        return call_factory(factory, context) if installed else make_object(factory, context)
    except UnknownField as error:
        raise UserError(
            f"{describe_plugin(group, name)}{_source_place(factory)}: {error}; name its fields, or give them defaults"
        ) from error
    except TypeError as error:
        if not installed or _frames(error):
            raise
        raise UserError(
            f"{describe_plugin(group, name)} cannot be called with what it is given: {error}"
        ) from error


def open_plugin(
    group: str,
    name: str,
    context: "DataclassInstance",
    builtin: Mapping[str, str],
    shape: Mapping[str, int | None],
) -> Any:  # noqa: ANN401  (whatever the plug-in makes)
    """Make a part as ``make_plugin`` does, and check the shape of one that is not built in.

    Raises:
        UserError: as ``make_plugin`` and ``check_shape``.
    """
    made = make_plugin(group, name, context, builtin)
    if name not in builtin:
        check_shape(group, name, made, shape)
    return made


def check_shape(group: str, name: str, made: object, shape: Mapping[str, int | None]) -> None:
    """Check that a plug-in's object has all attributes of its protocol.

    Args:
        group: the plural of the kind.
        name: name of the plug-in, or a reference; objects of dgm itself are not checked.
        made: the object that the plug-in made.
        shape: attribute → number of arguments of the method; None if it is not a method.

    Raises:
        UserError: an attribute is missing, or takes other arguments.
    """
    if name not in find_installed(group) and not is_reference(name):
        return
    kind = type(made).__name__
    missing = [attribute for attribute in shape if not hasattr(made, attribute)]
    if missing:
        raise UserError(
            f"{describe_plugin(group, name)}{_source_place(made)}: {kind} has no {', '.join(missing)}"
        )
    for attribute, count in shape.items():
        if count is not None and not _accepts_arguments(getattr(made, attribute), count):
            wanted = "1 argument" if count == 1 else f"{count} arguments"
            place = _source_place(getattr(made, attribute)) or _source_place(made)
            raise UserError(f"{describe_plugin(group, name)}{place}: {kind}.{attribute} must take {wanted}")


def check_answer(answer: object, kind: type, what: str) -> None:
    """Check that a plug-in's answer has the type that its protocol names.

    Args:
        answer: the returned value.
        kind: the expected type.
        what: description of the call for the message: ``operator 'x': make``.

    Raises:
        PluginFault: the answer has another type.
    """
    if not isinstance(answer, kind):
        shown = repr(answer)[:SHOWN]
        raise PluginFault(f"{what} returned {shown}, which is no {kind.__name__}; a fault of a plug-in")


def find_faulty_plugin(error: BaseException) -> str:
    """Return the installed plug-in in which an error was raised, with file and line; empty if there is none.

    If the error passed through several functions of plug-ins, name the innermost one.
    """
    frames = _frames(error)
    if not frames:
        return ""
    frame, line = frames[-1]
    places = {
        frame.f_globals.get("__name__"): {one.f_code.co_qualname.partition(".")[0] for one, _ in frames}
    }
    return f"{_describe_owner(frame, places)}, {frame.f_code.co_filename}:{line}"


def describe_plugin(group: str, name: str) -> str:
    """Return the description of an installed plug-in, or of an object behind a reference, for messages."""
    if name not in find_installed(group):
        return f"{name}, one of the {group.replace('_', ' ')}"
    point = find_installed(group)[name]
    where = point.dist.name if point.dist else "an unknown distribution"
    return f"plug-in '{name}' among the {group.replace('_', ' ')} ({point.value}, of {where})"


def _describe_owner(frame: FrameType, places: Mapping[Any, set[str]]) -> str:
    module = str(frame.f_globals.get("__name__", ""))
    package = module.partition(".")[0]
    points = [(g, point) for g, point in _iter_points() if point.module.partition(".")[0] == package]
    functions = places.get(module, set())
    exact = [
        each for each in points if each[1].module == module and each[1].attr.partition(".")[0] in functions
    ]
    found = exact or points
    if len(found) == 1 or exact:
        group, point = found[0]
        return describe_plugin(group.removeprefix("dgm."), point.name)
    names = ", ".join(sorted({f"'{point.name}'" for _, point in found}))
    return f"one of the plug-ins {names}"


def _frames(error: BaseException) -> Sequence[tuple[FrameType, int]]:
    """Return the frames of an error in packages of plug-ins, the innermost one last."""
    packages = {point.module.partition(".")[0] for _, point in _iter_points()} - {"dgm"}
    return [
        (frame, line)
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] in packages
    ]


def _iter_points() -> Iterator[tuple[str, EntryPoint]]:
    points = entry_points()
    for group in points.groups:
        if group.startswith("dgm."):
            yield from ((group, point) for point in points.select(group=group))


def _load_point(group: str, point: EntryPoint) -> Any:  # noqa: ANN401  (whatever the plug-in names)
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # a module may raise anything on import
        said = _error_text(error)
        raise UserError(f"{describe_plugin(group, point.name)} cannot be loaded: {said}") from error


def _error_text(error: BaseException) -> str:
    """Return the error with its type and the innermost place in a file outside Python's import system and dgm."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: SyntaxError: {error.msg}"
    own = ("importlib", "dgm")
    places = [
        f"{frame.f_code.co_filename}:{line}: "
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in own
    ]
    return f"{places[-1] if places else ''}{type(error).__name__}: {error}"


def _accepts_arguments(method: object, count: int) -> bool:
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True  # a compiled function does not describe its arguments
    return True


def _source_place(thing: object) -> str:
    """Return ``, file:line`` of a function or class, or of the class of an object."""
    source: Any = thing if inspect.isroutine(thing) or isinstance(thing, type) else type(thing)
    try:
        return f", {inspect.getsourcefile(source)}:{inspect.getsourcelines(source)[1]}"
    except (OSError, TypeError):
        return ""
