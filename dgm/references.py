"""Objects that stand where a setting wants a name: ``module:qualname``, as a program passes or a person types it.

A program that passes a policy, an operator or a benchmark to ``dgm.evolve`` lends the object under its reference, which
is what the run records. Behind the class of an object stand its values, ``module:Class{'number': 4}``, or a digest of
them, so that objects with different values have different names. Another process finds the object again by importing
the module.

A reference from a run may be a stranger's, so that nothing but a class or a value is taken from an imported module: no
function is called, and recorded values become attributes without a call.
"""

import ast
import copy
import hashlib
import inspect
import logging
import pickle
import re
import secrets
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from dgm.errors import UserError
from dgm.factories import call_factory

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

REFERENCE = re.compile(
    r"(?P<module>[A-Za-z_][\w.]*):(?P<path>[A-Za-z_][\w.<>]*)(?P<values>\{.*\})?(?P<only_here>#[0-9a-f]+)?"
)
"""Without ``only_here``, another process can make the object as well."""
MAX_VALUES = 2_000
"""Characters of an object's values up to which they are recorded."""
UNRECORDED = "its values are not recorded, because they are not all numbers, texts, lists, tuples and dicts"
_HOOKS = frozenset(
    {"__getattr__", "__getattribute__", "__del__", "__deepcopy__", "__reduce__", "__reduce_ex__"}
)
_lent: dict[tuple[str, str], Any] = {}
"""Kind in the plural and reference → the object that this process was given."""

log = logging.getLogger(__name__)


def is_reference(name: str) -> bool:
    """Return whether a name has the form of a reference."""
    return REFERENCE.fullmatch(name) is not None


def lend_object(group: str, thing: object) -> str:
    """Keep an object for this process, and return the reference that names it and nothing else.

    Args:
        group: the kind in the plural: ``policies``, ``operators``, ``benchmarks``.
        thing: a class or function that makes one, or the object itself, of which a copy is kept. A benchmark is not
            copied, and may have values that are not recorded: its version says whether it is the same.
    """
    is_factory = _is_factory(thing)
    named: Any = thing if is_factory else type(thing)
    reference = f"{named.__module__}:{named.__qualname__}"
    kept = thing if is_factory or group == "benchmarks" else copy.deepcopy(thing)
    values = None if is_factory else _describe_values(kept)
    if values is not None:
        reference += values
    elif kept is not thing:
        log.warning("%s: %s; only a program that passes it can go on with its run", reference, UNRECORDED)
        reference += _digest_values(kept)
    known = _lent.get((group, reference), kept)
    if known is not kept and ((kept is thing and values is None) or type(known) is not type(kept)):
        # Another class, function or benchmark of the same name.
        reference += _make_mark()
    _lent[group, reference] = kept
    return reference


def is_lent(group: str, reference: str) -> bool:
    """Return whether this process was given an object under the reference."""
    return (group, reference) in _lent


def is_available(group: str, name: str) -> bool:
    """Return whether a name is a reference that was lent, or whose package is installed here; imports nothing."""
    if not is_reference(name):
        return False
    return is_lent(group, name) or find_spec(name.partition(":")[0].partition(".")[0]) is not None


def find_object(group: str, reference: str) -> Any:  # noqa: ANN401  (whatever it names)
    """Return what a reference names: what was lent under it, else what its module has.

    Raises:
        UserError: it cannot be imported here, its values are unknown here, or it names something else than a class or
            a value.
    """
    if is_lent(group, reference):
        return _lent[group, reference]
    parts = REFERENCE.fullmatch(reference)
    module, path, values, only_here = (
        parts.group("module", "path", "values", "only_here") if parts else ("",) * 4
    )
    where = f"{reference}, one of the {group},"
    if module == "__main__" or "<locals>" in path:
        raise UserError(
            f"{where} cannot be imported again: it was defined in a program's own file or in a function; put it into "
            "a module, or pass the object from Python (dgm.open)"
        )
    if only_here and group != "benchmarks":
        raise UserError(
            f"{where} was passed as an object: {UNRECORDED}; go on in Python, and pass it again: "
            f"dgm.open(…).resume(objects=[…])"
        )
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # a module may raise anything when it is imported
        raise UserError(
            f"{where} cannot be imported here ({type(error).__name__}: {error}); put its folder on PYTHONPATH"
        ) from error
    if _is_factory(found) and not isinstance(found, type):
        raise UserError(f"{where} is a function, which only the program that has it may pass; name a class")
    if not values:
        return found
    try:
        return _restore_object(found, ast.literal_eval(values[:MAX_VALUES]))
    except (TypeError, ValueError, SyntaxError, AttributeError, RecursionError, MemoryError) as error:
        raise UserError(f"{where} cannot be made with these values: {error}") from error


def make_object(found: Any, context: "DataclassInstance") -> Any:  # noqa: ANN401  (whatever it makes)
    """Return a fresh object: a copy of a value, so that two users of it do not share what it remembers, or a new one.

    A class or function is called by the rule of ``dgm.factories``: it may take no arguments.

    Raises:
        UnknownField: a class or function asks for what the record does not have.
    """
    return call_factory(found, context) if _is_factory(found) else copy.deepcopy(found)


def digest_of(group: str, reference: str) -> str | None:
    """Return the version of an object: the SHA-256 of the file that its class is written in; None where there is none.

    Raises:
        UserError: as ``find_object``.
    """
    found = find_object(group, reference)
    try:
        file = inspect.getsourcefile(found if _is_factory(found) else type(found))
        return hashlib.sha256(Path(file or "").read_bytes()).hexdigest()
    except (OSError, TypeError):
        return None


def record_versions(references: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str | None]]:
    """Return the version of each object that settings name by reference, as ``run.json`` keeps them.

    Args:
        references: kind in the plural → names, of which those that are no references are left out.
    """
    return {
        group: {name: digest_of(group, name) for name in names if is_reference(name)}
        for group, names in references.items()
        if any(map(is_reference, names))
    }


def _is_factory(thing: object) -> bool:
    return isinstance(thing, type) or inspect.isroutine(thing)


def _describe_values(thing: object) -> str | None:
    """Return an object's attributes as a literal, empty if there are none; None if no literal holds all of them."""
    kind = type(thing)
    if not _is_ordinary(kind):
        return None
    values = dict(getattr(thing, "__dict__", {}))
    for name in [name for base in kind.__mro__ for name, slot in vars(base).items() if _is_slot(slot)]:
        if hasattr(thing, name):
            values[name] = getattr(thing, name)
    try:
        if not _is_plain(values):
            return None
        # A "+" joins names.
        text = repr(dict(sorted(values.items()))).replace("+", "\\x2b") if values else ""
        is_complete = len(text) <= MAX_VALUES and (not values or ast.literal_eval(text) == values)
    except (ValueError, SyntaxError, RecursionError):
        return None
    return text if is_complete else None


def _digest_values(thing: object) -> str:
    """Return a mark that an object with the same values gets wherever it is passed again."""
    try:
        return f"#{hashlib.sha256(pickle.dumps(thing, protocol=4)).hexdigest()[:16]}"
    except Exception:  # noqa: BLE001  (any class may refuse to be pickled in its own way)
        return _make_mark()


def _restore_object(kind: Any, values: Any) -> object:  # noqa: ANN401  (whatever a module has, any literal)
    """Return an object of a class with these attributes, without a call of anything that the class defines.

    Raises:
        TypeError, AttributeError: the class is none of those whose objects ``_describe_values`` describes.
    """
    if not isinstance(kind, type) or not _is_ordinary(kind):
        raise TypeError("not an ordinary class")
    made: object = object.__new__(kind)
    for name, value in values.items():
        if not _is_slot(inspect.getattr_static(kind, name, None)):
            vars(made)[name] = value
        else:
            object.__setattr__(made, name, value)
    return made


def _is_ordinary(kind: type[object]) -> bool:
    """Return whether Python makes, copies and deletes objects of a class, and finds their attributes, by itself.

    A method that Python calls for that would act on values that may be a stranger's: ``__del__`` deletes files.
    """
    return kind.__new__ is object.__new__ and not any(
        _HOOKS & vars(base).keys() for base in kind.__mro__ if base is not object
    )


def _is_slot(attribute: object) -> bool:
    return isinstance(attribute, MemberDescriptorType)


def _is_plain(value: object) -> bool:
    """Return whether a literal gives back the value with the same types."""
    kind = type(value)
    if isinstance(value, dict) and kind is dict:
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple) and kind in (list, tuple):
        return all(map(_is_plain, value))
    return value is None or kind in (str, bytes, int, float, bool)


def _make_mark() -> str:
    return f"#{secrets.token_hex(4)}"
