"""Objects that stand where a setting wants a name: ``module:qualname``, as a program passes or a person types it.

A program that passes a policy, an operator or a benchmark to ``dgm.evolve`` lends the object under its reference, which
is what the run records. Another process finds it again by importing the module. A reference from a run may be a
stranger's, so that nothing but a class or a value is taken from an imported module: no function is called.
"""

import copy
import hashlib
import inspect
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgm.errors import UserError
from dgm.factories import call_factory

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.<>]*")
_lent: dict[tuple[str, str], Any] = {}
"""Kind in the plural and reference → the object that this process was given."""


def is_reference(name: str) -> bool:
    """Return whether a name has the form of a reference."""
    return REFERENCE.fullmatch(name) is not None


def lend_object(group: str, thing: object) -> str:
    """Keep an object for this process, and return the reference that names it.

    Args:
        group: the kind in the plural: ``policies``, ``operators``, ``benchmarks``.
        thing: a class or function that makes one, or the object itself, of which a copy is kept.
    """
    named: Any = thing if _is_factory(thing) else type(thing)
    reference = f"{named.__module__}:{named.__qualname__}"
    kept = thing if _is_factory(thing) or group == "benchmarks" else copy.deepcopy(thing)
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
        UserError: it cannot be imported here, or names something else than a class or a value.
    """
    if is_lent(group, reference):
        return _lent[group, reference]
    module, _, path = reference.partition(":")
    where = f"{reference}, one of the {group},"
    if module == "__main__" or "<locals>" in path:
        raise UserError(
            f"{where} cannot be imported again: it was defined in a program's own file or in a function; put it into "
            "a module, or pass the object from Python (dgm.open)"
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
    return found


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
