"""Changes of names: another variable, attribute, method or function of the same scope; another exception."""

import ast
from collections.abc import Iterator

from dgm.offline.mutations.code import Change, Code

_EXCEPTIONS = ("ValueError", "KeyError", "TypeError", "IndexError", "LookupError", "AttributeError",
               "ZeroDivisionError", "OSError", "UnicodeDecodeError", "StopIteration", "ArithmeticError")  # fmt: skip
_WIDER = {
    "KeyError": "(KeyError, IndexError)",
    "ValueError": "(ValueError, TypeError)",
    "IndexError": "(IndexError, KeyError)",
    "TypeError": "(TypeError, ValueError)",
}
_MOST = 14


def variables(code: Code) -> Iterator[Change]:
    """Use another variable of the same function."""
    read = {n.id for n in ast.walk(code.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    idle = [name for name in code.names if name not in read]
    for node in code.nodes:
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id not in code.names:
            continue
        for name in idle:
            if name not in ("self", "cls", "_") and not _same_statement(code, node, name):
                yield code.swap(node, name, "idle variable", 1.2 + 0.2 * _alike(name, node.id))
        if isinstance(code.parents.get(node), ast.Attribute) and node.id in ("self", "cls"):
            continue
        for name in code.names[:_MOST]:
            if name not in (node.id, "self", "cls"):
                yield code.swap(node, name, "other variable", 0.3 + 0.2 * _alike(name, node.id))


def _same_statement(code: Code, node: ast.AST, name: str) -> bool:
    """Return whether a name appears at or after a node's line, so that it may have no value there."""
    line = code.start(node)[0]
    return any(
        isinstance(other, ast.Name) and other.id == name and other.lineno >= line
        for other in ast.walk(code.tree)
    )


def targets(code: Code) -> Iterator[Change]:
    """Assign to another variable."""
    for node in code.nodes:
        if isinstance(node, ast.Assign | ast.AugAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    for name in code.names[:_MOST]:
                        if name not in (target.id, "self", "cls"):
                            yield code.swap(target, name, "other target", 0.12)


def attributes(code: Code) -> Iterator[Change]:
    """Use another attribute or method of the same class, or one used elsewhere in the unit."""
    used: dict[str, dict[str, None]] = {}
    for node in code.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used.setdefault(node.value.id, {}).setdefault(node.attr)
    everywhere = sorted({name for names in used.values() for name in names})
    for node in code.nodes:
        if not isinstance(node, ast.Attribute):
            continue
        stem = code.text(node.value)
        if stem in ("self", "cls"):
            called = isinstance(code.parents.get(node), ast.Call) and node in _functions(code)
            others = code.around.methods if called else code.around.attributes
        else:
            others = tuple(everywhere)
        for other in others[:40]:
            if other != node.attr:
                prior = 0.3 + 0.3 * _alike(other, node.attr)
                yield code.swap(node, f"{stem}.{other}", "other attribute", prior)


def _functions(code: Code) -> set[ast.AST]:
    return {node.func for node in code.nodes if isinstance(node, ast.Call)}


def functions(code: Code) -> Iterator[Change]:
    """Call another function of the same module."""
    for node in code.nodes:
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in code.around.functions:
            for other in code.around.functions[:30]:
                if other != called.id:
                    yield code.swap(called, other, "other function", 0.2 + 0.3 * _alike(other, called.id))


def exceptions(code: Code) -> Iterator[Change]:
    """Raise or catch another exception."""
    known = tuple(dict.fromkeys((*code.around.exceptions, *_EXCEPTIONS)))
    near = frozenset(code.around.exceptions)
    for node in code.nodes:
        place: ast.expr | None = None
        if isinstance(node, ast.Raise) and node.exc is not None:
            place = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        elif isinstance(node, ast.ExceptHandler):
            place = node.type
        if not isinstance(place, ast.Name | ast.Tuple):
            continue
        for name in known[:24]:
            if name != code.text(place):
                yield code.swap(place, name, "exception", 0.5 if name in near else 0.25)
        if isinstance(node, ast.ExceptHandler) and isinstance(place, ast.Name):
            if place.id in _WIDER:
                yield code.swap(place, _WIDER[place.id], "exception", 0.35)
            for name in known[:24]:
                if name != place.id:
                    yield code.swap(
                        place, f"({place.id}, {name})", "exception", 0.3 if name in near else 0.15
                    )


def _alike(one: str, other: str) -> float:
    """Return how close two names are, 0 to 1: by shared words and shared beginning or end."""
    words = set(one.strip("_").split("_")) & set(other.strip("_").split("_"))
    if words:
        return 1.0
    return 0.5 if one[:3] == other[:3] or one[-3:] == other[-3:] else 0.0


OPERATORS = (variables, targets, attributes, functions, exceptions)
