"""Which names an expression needs."""

from __future__ import annotations

from .nodes import Binary, Call, Choice, Comparison, Name, Node, Unary


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
