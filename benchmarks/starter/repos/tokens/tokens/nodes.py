"""The parts of a parsed expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Constant:
    """A number, a text, a truth value or nothing."""

    value: object


@dataclass(frozen=True)
class Name:
    """A name, in parts where it has dots."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Unary:
    """A sign or ``not`` before an operand."""

    operator: str
    operand: Node


@dataclass(frozen=True)
class Binary:
    """Arithmetic, ``and`` or ``or`` between two operands."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Comparison:
    """A chain of comparisons: the first operand, then operators with their right operands."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Choice:
    """``then if test else other``."""

    test: Node
    then: Node
    other: Node


@dataclass(frozen=True)
class Call:
    """A function with its arguments."""

    function: str
    arguments: tuple[Node, ...]


Node = Union[Constant, Name, Unary, Binary, Comparison, Choice, Call]
