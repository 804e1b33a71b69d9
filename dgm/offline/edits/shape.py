"""The parts of a scaffold's control loop, found by structure whatever their present names."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dgm.offline.edits.source import Files, LineRange, modules, range_of

ASKS = r"reply|ask|complete|completion|chat|query|respond|generate"
RUNS = r"run|run_tool|execute|perform|dispatch|call_tool"


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that asks the model and runs the tools that it asks for."""

    path: str
    function: ast.FunctionDef
    loop: ast.For | ast.While
    ask: ast.Assign
    """``answer = reply(messages, …)``."""
    answer: str
    messages: str
    """The name of the list, even if the call wraps it."""
    stop: ast.If
    """``if not calls: return 0``, with any added conditions."""
    calls: str
    each: ast.For
    """``for call in …:``."""
    call: str
    run: ast.Assign
    """``result = run(…)``."""
    result: str

    @property
    def counter(self) -> str | None:
        """The name that counts the steps from 0; ``None`` if the loop has no such name."""
        ranged = isinstance(self.loop, ast.For) and isinstance(self.loop.target, ast.Name)
        return self.loop.target.id if ranged else None  # type: ignore[union-attr]

    def place(self, node: ast.stmt | ast.expr) -> LineRange:
        """Return the lines of one of the loop's parts."""
        return range_of(self.path, node)


def loop(files: Files) -> Loop | None:
    """Return the first loop of that shape; ``None`` if there is none."""
    for path, _, tree in modules(files):
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for node in ast.walk(function):
                if isinstance(node, ast.For | ast.While):
                    found = _loop(path, function, node)
                    if found:
                        return found
    return None


def _loop(path: str, function: ast.FunctionDef, node: ast.For | ast.While) -> Loop | None:
    ask = next((item for item in node.body if _is_call_of(item, ASKS)), None)
    stop = next((item for item in node.body if isinstance(item, ast.If) and _is_stop_check(item)), None)
    each = next((item for item in node.body if isinstance(item, ast.For)), None)
    run = next((item for item in each.body if _is_call_of(item, RUNS)), None) if each else None
    if not (isinstance(ask, ast.Assign) and stop and each and isinstance(run, ast.Assign)):
        return None
    answer, result, call = _name(ask.targets[0]), _name(run.targets[0]), _name(each.target)
    messages = next((name for name in _names(ask.value) if re.search("mess|hist|conv", name)), None)
    calls = next((name for name in _names(stop.test) if re.search("call", name)), None)
    if not (answer and result and call and messages and calls):
        return None
    return Loop(path, function, node, ask, answer, messages, stop, calls, each, call, run, result)


def _is_call_of(node: ast.stmt, pattern: str) -> bool:
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
        return False
    callee = node.value.func
    name = callee.attr if isinstance(callee, ast.Attribute) else _name(callee)
    return bool(name and re.fullmatch(pattern, name))


def _is_stop_check(node: ast.If) -> bool:
    """Return whether a statement is ``if not calls …: … return``, or the same with ``break``."""
    negated = any(isinstance(part, ast.Not) for part in ast.walk(node.test))
    return negated and isinstance(node.body[-1], ast.Return | ast.Break)


def _name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def _names(node: ast.expr) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
