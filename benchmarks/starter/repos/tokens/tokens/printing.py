"""A tree back to text, with no more parentheses than it needs."""

from __future__ import annotations

from .nodes import Binary, Choice, Comparison, Constant, Name, Node, Unary

_LEVELS = {"or": 1, "and": 2, "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6, "^": 8}
_CHOICE, _NOT, _COMPARISON, _SIGN, _ATOM = 0, 3, 4, 7, 9


def _level(node: Node) -> int:
    if isinstance(node, Choice):
        return _CHOICE
    if isinstance(node, Comparison):
        return _COMPARISON
    if isinstance(node, Unary):
        return _NOT if node.operator == "not" else _SIGN
    if isinstance(node, Binary):
        return _LEVELS[node.operator]
    return _ATOM


def _constant(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return "'" + escaped.replace("\n", "\\n").replace("\t", "\\t") + "'"
    return repr(value)


def _inside(node: Node, at_least: int) -> str:
    text = unparse(node)
    return text if _level(node) >= at_least else f"({text})"


def unparse(node: Node) -> str:
    """Text that parses to the same tree."""
    level = _level(node)
    if isinstance(node, Constant):
        return _constant(node.value)
    if isinstance(node, Name):
        return ".".join(node.parts)
    if isinstance(node, Unary):
        return ("not " if node.operator == "not" else "-") + _inside(node.operand, level)
    if isinstance(node, Binary):
        if node.operator == "^":
            return f"{_inside(node.left, _ATOM)} ^ {_inside(node.right, _SIGN)}"
        return f"{_inside(node.left, level)} {node.operator} {_inside(node.right, level + 1)}"
    if isinstance(node, Comparison):
        links = [f"{operator} {_inside(operand, level + 1)}" for operator, operand in node.rest]
        return " ".join([_inside(node.first, level + 1), *links])
    if isinstance(node, Choice):
        then, test = _inside(node.then, _CHOICE + 1), _inside(node.test, _CHOICE + 1)
        return f"{then} if {test} else {unparse(node.other)}"
    return f"{node.function}({', '.join(unparse(argument) for argument in node.arguments)})"
