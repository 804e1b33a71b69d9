"""The value of a tree for given names, and the functions that every expression may call."""

from __future__ import annotations

import operator
from typing import Callable, Mapping, Optional

from .errors import EvaluationError
from .nodes import Binary, Call, Choice, Comparison, Constant, Name, Node, Unary
from .parser import parse

_ARITHMETIC: Mapping[str, Callable] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "^": operator.pow,
}
_COMPARISONS: Mapping[str, Callable] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _clamp(value: float, low: float, high: float) -> float:
    return max(low, min(value, high))


def _mean(*values: float) -> float:
    return sum(values) / len(values)


def _first(*values: object) -> object:
    """The first value that is there."""
    return next((value for value in values if value is not None), None)


FUNCTIONS: Mapping[str, Callable] = {
    "abs": abs,
    "clamp": _clamp,
    "first": _first,
    "len": len,
    "lower": str.lower,
    "max": max,
    "mean": _mean,
    "min": min,
    "round": round,
    "upper": str.upper,
}


class Evaluator:
    """Evaluates trees with one set of functions."""

    def __init__(self, functions: Optional[Mapping[str, Callable]] = None) -> None:
        self._functions = {**FUNCTIONS, **(functions or {})}

    def value(self, node: Node, names: Mapping[str, object]) -> object:
        """The value of a tree.

        Raises:
            EvaluationError: A name or function is unknown, or the operands do not fit.
        """
        if isinstance(node, Constant):
            return node.value
        if isinstance(node, Name):
            return self._look_up(node, names)
        if isinstance(node, Unary):
            return self._unary(node, names)
        if isinstance(node, Binary):
            if node.operator in ("and", "or"):
                return self._logical(node, names)
            return self._arithmetic(node, names)
        if isinstance(node, Comparison):
            return self._comparison(node, names)
        if isinstance(node, Choice):
            chosen = node.then if self.value(node.test, names) else node.other
            return self.value(chosen, names)
        return self._call(node, names)

    def _look_up(self, node: Name, names: Mapping[str, object]) -> object:
        found: object = names
        for depth, part in enumerate(node.parts, start=1):
            if not isinstance(found, Mapping):
                owner = ".".join(node.parts[: depth - 1])
                raise EvaluationError(f"{owner} has no parts")
            if part not in found:
                raise EvaluationError(f"unknown name {'.'.join(node.parts[:depth])}")
            found = found[part]
        return found

    def _unary(self, node: Unary, names: Mapping[str, object]) -> object:
        operand = self.value(node.operand, names)
        if node.operator == "not":
            return not operand
        try:
            return -operand
        except TypeError as error:
            raise EvaluationError(f"cannot negate {operand!r}") from error

    def _logical(self, node: Binary, names: Mapping[str, object]) -> object:
        """The operand that decides, as in Python; the right one is only evaluated when needed."""
        left = self.value(node.left, names)
        if node.operator == "and":
            return self.value(node.right, names) if left else left
        return left if left else self.value(node.right, names)

    def _arithmetic(self, node: Binary, names: Mapping[str, object]) -> object:
        left = self.value(node.left, names)
        right = self.value(node.right, names)
        try:
            return _ARITHMETIC[node.operator](left, right)
        except ZeroDivisionError as error:
            raise EvaluationError(f"{left!r} {node.operator} {right!r}: division by zero") from error
        except TypeError as error:
            raise EvaluationError(f"{left!r} {node.operator} {right!r}: operands do not fit") from error

    def _comparison(self, node: Comparison, names: Mapping[str, object]) -> bool:
        """Whether every link of the chain holds; operands behind a broken link are not evaluated."""
        left = self.value(node.first, names)
        for symbol, operand in node.rest:
            right = self.value(operand, names)
            try:
                holds = _COMPARISONS[symbol](left, right)
            except TypeError as error:
                raise EvaluationError(f"{left!r} {symbol} {right!r}: operands do not fit") from error
            if not holds:
                return False
            left = right
        return True

    def _call(self, node: Call, names: Mapping[str, object]) -> object:
        if node.function not in self._functions:
            raise EvaluationError(f"unknown function {node.function}")
        arguments = [self.value(argument, names) for argument in node.arguments]
        try:
            return self._functions[node.function](*arguments)
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise EvaluationError(f"{node.function}: {error}") from error


def evaluate(
    text: str,
    names: Optional[Mapping[str, object]] = None,
    functions: Optional[Mapping[str, Callable]] = None,
) -> object:
    """Parse an expression and give its value.

    Raises:
        ParseError: The text is not an expression.
        EvaluationError: The expression has no value for these names.
    """
    return Evaluator(functions).value(parse(text), names or {})


def _children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Unary):
        return (node.operand,)
    if isinstance(node, Binary):
        return (node.left, node.right)
    if isinstance(node, Comparison):
        return (node.first, *(operand for _, operand in node.rest))
    if isinstance(node, Choice):
        return (node.then, node.test, node.other)
    if isinstance(node, Call):
        return node.arguments
    return ()


def names_in(node: Node) -> list[str]:
    """The dotted names of a tree, each once, in the order in which they are written."""
    found: list[str] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, Name):
            name = ".".join(current.parts)
            if name not in found:
                found.append(name)
        pending.extend(reversed(_children(current)))
    return found
