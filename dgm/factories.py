"""The rule by which a factory gets its context record; the same for built-in parts, plug-ins and references.

A context record is a dataclass with all that a part of one kind may be made from. A factory takes the whole record as
its one argument, or names the record's fields as its arguments, as the fixtures of pytest are asked for.
"""

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_ONE_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_ANY_NUMBER = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class _Bare(Protocol): ...


_PROTOCOL_INIT = vars(_Bare)["__init__"]
"""The constructor of classes that inherit from a protocol and have none of their own."""


class UnknownField(TypeError):
    """A factory asks for something that its context record does not have; the message lists the fields."""


def call_factory(factory: Callable[..., Any], context: "DataclassInstance") -> Any:  # noqa: ANN401  (whatever it makes)
    """Return what a factory makes from a context record.

    Arguments that are named like public fields of the record get those fields. A ``**`` argument gets all fields that
    have no argument of their own. Where the only argument without a default is positional and names no field, it gets
    the whole record; so does a first argument whose default is None, or a ``*`` argument, where nothing else is
    required. Any other argument with a default keeps it, and a factory without arguments gets none.

    Args:
        factory: a class, a function or another callable.
        context: the record of the factory's kind.

    Raises:
        UnknownField: an argument without a default is no field. Errors of the factory itself propagate unchanged.
    """
    parameters, fields = _parameters_of(factory), public_fields(context)
    if parameters is None or _takes_record(parameters, fields):
        return factory(context)
    unknown = [each.name for each in _required(parameters) if each.name not in fields]
    if unknown:
        raise UnknownField(_unknown_text(unknown, fields, type(context).__name__))
    by_position = [each for each in parameters if each.kind is Parameter.POSITIONAL_ONLY]
    placed = {each.name for each in by_position}
    takes_all = any(each.kind is Parameter.VAR_KEYWORD for each in parameters)
    asked = fields if takes_all else {each.name for each in parameters if each.kind not in _ANY_NUMBER}
    return factory(
        *(fields.get(each.name, each.default) for each in by_position),
        **{name: value for name, value in fields.items() if name in asked and name not in placed},
    )


def public_fields(context: "DataclassInstance") -> Mapping[str, object]:
    """Return the fields of a context record that a factory can ask for, by name."""
    names = [field.name for field in dataclasses.fields(context)]
    return {name: getattr(context, name) for name in names if not name.startswith("_")}


def _parameters_of(factory: Callable[..., Any]) -> Sequence[Parameter] | None:
    """Return None if it is not callable, or compiled without a description of its arguments."""
    inits = [vars(each)["__init__"] for each in _lineage(factory) if "__init__" in vars(each)]
    try:
        if not inits or inits[0] is not _PROTOCOL_INIT:
            return list(inspect.signature(factory).parameters.values())
        # A class that inherits from a protocol hides its constructor until its first object is made.
        own = next(init for init in inits if init is not _PROTOCOL_INIT)
        return [] if own is vars(object)["__init__"] else list(inspect.signature(own).parameters.values())[1:]
    except (TypeError, ValueError):
        return None


def _lineage(factory: Callable[..., Any]) -> Sequence[type]:
    return factory.__mro__ if isinstance(factory, type) else ()


def _required(parameters: Sequence[Parameter]) -> Sequence[Parameter]:
    return [each for each in parameters if each.default is each.empty and each.kind not in _ANY_NUMBER]


def _takes_record(parameters: Sequence[Parameter], fields: Mapping[str, object]) -> bool:
    first = next((each for each in parameters if each.kind is not Parameter.KEYWORD_ONLY), None)
    if first is None or (first.kind in _ONE_POSITION and first.name in fields):
        return False
    if required := _required(parameters):
        return required == [first]
    return first.kind is Parameter.VAR_POSITIONAL or (first.kind in _ONE_POSITION and first.default is None)


def _unknown_text(unknown: Sequence[str], fields: Mapping[str, object], record: str) -> str:
    near = difflib.get_close_matches(unknown[0], fields, 1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    named = ", ".join(f"'{name}'" for name in unknown)
    what = "argument {} is no field" if len(unknown) == 1 else "arguments {} are no fields"
    return f"{what.format(named)} of {record} ({hint}there are: {', '.join(fields)})"
