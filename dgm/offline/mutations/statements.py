"""Changes of whole statements: guards, places, returns, lost and doubled updates, defaults."""

import ast
from collections.abc import Iterator
from itertools import pairwise

from dgm.offline.mutations.code import Change, Code

_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Continue, ast.Break, ast.Delete)
_DEFAULTS = ("None", "0", "1", "True", "False", '""', "()")


def _blocks(code: Code) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    for node in ast.walk(code.tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and not isinstance(node, ast.Module):
                yield node, block


def _rows(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno


def _source(code: Code, node: ast.stmt) -> list[str]:
    first, last = _rows(node)
    return code.lines[first - 1 : last]


def _indent_rows(rows: list[str], by: int) -> list[str]:
    return [(" " * by + row if by > 0 else row[-by:]) if row.strip() else row for row in rows]


def places(code: Code) -> Iterator[Change]:
    """Move the last statement of a loop or branch out of it, or the statement after it in."""
    for node, block in _blocks(code):
        if not isinstance(node, ast.For | ast.While | ast.If | ast.With | ast.Try):
            continue
        loop = isinstance(node, ast.For | ast.While)
        last = block[-1]
        first_row, last_row = _rows(last)
        outer = len(code.margin(node.lineno))
        if len(block) > 1 and last_row == (node.end_lineno or last_row):
            moved = _indent_rows(_source(code, last), outer - last.col_offset)
            yield code.rows(first_row, last_row, moved, "move out", 0.8 if loop else 0.4)
            if len(block) > 2 and isinstance(last, _SIMPLE):
                before = block[-2]
                low = _rows(before)[0]
                both = _indent_rows(code.lines[low - 1 : last_row], outer - last.col_offset)
                yield code.rows(low, last_row, both, "move out", 0.2)
        behind = _next(code, node)
        if behind is not None and isinstance(behind, _SIMPLE) and block is getattr(node, "body", None):
            low, high = _rows(behind)
            moved = _indent_rows(_source(code, behind), last.col_offset - outer)
            if not getattr(node, "orelse", None) and low == (node.end_lineno or 0) + 1:
                yield code.rows(low, high, moved, "move in", 0.7 if loop else 0.4)


def _next(code: Code, node: ast.AST) -> ast.stmt | None:
    parent = code.parents.get(node)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and node in block:
            index = block.index(node)
            return block[index + 1] if index + 1 < len(block) else None
    return None


def order(code: Code) -> Iterator[Change]:
    """Swap two neighbouring statements."""
    for _, block in _blocks(code):
        for one, two in pairwise(block):
            if one.lineno == two.lineno or isinstance(one, ast.Return | ast.Raise | ast.FunctionDef):
                continue
            (low, middle), (start, high) = _rows(one), _rows(two)
            between = code.lines[middle : start - 1]
            rows = [*_source(code, two), *between, *_source(code, one)]
            simple = isinstance(one, _SIMPLE) and isinstance(two, _SIMPLE)
            yield code.rows(low, high, rows, "swap statements", 0.3 if simple else 0.2)


def deletions(code: Code) -> Iterator[Change]:
    """Leave a statement out."""
    for _, block in _blocks(code):
        for node in block:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) or len(block) == 1:
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            low, high = _rows(node)
            prior = 0.35 if isinstance(node, (*_SIMPLE, ast.If)) else 0.1
            yield code.rows(low, high, [], "delete", prior)


def leaving(code: Code) -> Iterator[Change]:
    """Return a value that is dropped, or exchange ``break``, ``continue`` and ``return``."""
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.stmt):
            continue
        margin = code.margin(node.lineno)
        low, high = _rows(node)
        if isinstance(node, ast.Continue):
            yield code.rows(low, high, [margin + "break"], "leave otherwise", 0.5)
        if isinstance(node, ast.Break):
            yield code.rows(low, high, [margin + "continue"], "leave otherwise", 0.5)
        if isinstance(node, ast.Return) and _in_loop(code, node):
            yield code.rows(low, high, [margin + "continue"], "leave otherwise", 0.4)
            yield code.rows(low, high, [margin + "break"], "leave otherwise", 0.2)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Name | ast.BinOp):
            yield Change(code.start(node), code.start(node), "return ", "missing return", 0.4)


def _in_loop(code: Code, node: ast.AST) -> bool:
    parent = code.parents.get(node)
    while parent is not None:
        if isinstance(parent, ast.For | ast.While):
            return True
        parent = code.parents.get(parent)
    return False


def change_return(code: Code) -> Iterator[Change]:
    """Add a ``return`` of a variable at the end of a function."""
    function = code.function
    if function is None:
        return
    last = function.body[-1]
    margin = " " * last.col_offset
    end = last.end_lineno or last.lineno
    names = [name for name in code.names if name != "cls"]
    if not isinstance(last, ast.Return | ast.Raise):
        for name in names[:10]:
            prior = 0.5 if name in ("result", "found", "out", "self") else 0.25
            yield code.rows(end + 1, end, [f"{margin}return {name}"], "missing return", prior, end)


def assignments(code: Code) -> Iterator[Change]:
    """Exchange ``=`` and ``+=``, or ``+=`` and ``-=``, or keep a value that is already stored."""
    for node in code.nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            start, end = code.end(node.targets[0]), code.start(node.value)
            if not isinstance(node.targets[0], ast.Tuple):
                yield Change(start, end, " += ", "accumulate", 0.6)
                yield Change(start, end, " -= ", "accumulate", 0.1)
                yield Change(start, end, " |= ", "accumulate", 0.05)
        if isinstance(node, ast.AugAssign):
            start, end = code.end(node.target), code.start(node.value)
            sign = code.between(start, end)
            yield Change(start, end, " = ", "overwrite", 0.4)
            if "+=" in sign:
                yield Change(start, end, " -= ", "accumulate", 0.4)
            if "-=" in sign:
                yield Change(start, end, " += ", "accumulate", 0.4)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            new = f"{code.text(target.value)}.setdefault({code.text(target.slice)}, {code.text(node.value)})"
            yield code.swap(node, new, "keep what is there", 0.3)


def guards(code: Code) -> Iterator[Change]:
    """Return at once for a parameter that is missing or empty, or skip such an item in a loop."""
    function = code.function
    if function is not None:
        body = [
            s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        ]
        if body:
            at = body[0].lineno
            pad = " " * body[0].col_offset
            for name in code.parameters:
                if name in ("self", "cls"):
                    continue
                for test in (f"{name} is None", f"not {name}"):
                    for value in ("None", name, "[]", "0", '""', "False"):
                        rows = [f"{pad}if {test}:", f"{pad}    return {value}"]
                        prior = 0.2 if value in ("None", name) else 0.08
                        yield code.rows(at, at - 1, rows, "guard", prior, at)
    for node in code.nodes:
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            at, pad, name = node.body[0].lineno, " " * node.body[0].col_offset, node.target.id
            for test in (f"not {name}", f"{name} is None"):
                yield code.rows(at, at - 1, [f"{pad}if {test}:", f"{pad}    continue"], "guard", 0.25, at)


def borrow_statement(code: Code) -> Iterator[Change]:
    """Add a statement of a sibling method, or of the unit itself, at the beginning or end of a block."""
    texts = tuple(dict.fromkeys((*code.around.statements, *_own_statements(code))))[:24]
    for node, block in _blocks(code):
        if isinstance(node, ast.ClassDef):
            continue
        pad = " " * block[0].col_offset
        documented = isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant)
        start = block[1].lineno if documented and len(block) > 1 else block[0].lineno
        end = block[-1].end_lineno or block[-1].lineno
        leaves = isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
        here = "\n".join(code.lines[start - 1 : end])
        for text in texts:
            if text in here:
                continue
            if leaves:
                last = block[-1].lineno
                yield code.rows(last, last - 1, [pad + text], "borrowed statement", 0.2, last)
            else:
                yield code.rows(end + 1, end, [pad + text], "borrowed statement", 0.2, end)
            yield code.rows(start, start - 1, [pad + text], "borrowed statement", 0.12, start)


def _own_statements(code: Code) -> list[str]:
    texts = [
        code.text(node)
        for node in code.nodes
        if isinstance(node, ast.AugAssign | ast.Assign | ast.Expr) and node.lineno == node.end_lineno
    ]
    return [text for text in texts if len(text) <= 60 and not text.startswith(("log.", "logger.", "print("))]


def defaults(code: Code) -> Iterator[Change]:
    """Use another default; for a mutable one, create a fresh value for each call."""
    function = code.function
    if function is None:
        return
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    pairs = [*zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True)]
    pairs += [
        (arg, value)
        for arg, value in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
        if value is not None
    ]
    for arg, value in pairs:
        text = code.text(value)
        for other in _DEFAULTS:
            if other != text and not isinstance(value, ast.List | ast.Dict):
                yield code.swap(value, other, "default", 0.3)
        if isinstance(value, ast.List | ast.Dict | ast.Call | ast.Set):
            yield from _fresh(code, function, arg.arg, value)


def _fresh(
    code: Code, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, value: ast.expr
) -> Iterator[Change]:
    body = function.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    at = body[1] if documented else body[0]
    pad = " " * at.col_offset
    head = code.between(code.end(value), (at.lineno, 0))
    guard = f"{pad}if {name} is None:\n{pad}    {name} = {code.text(value)}\n"
    yield Change(
        code.start(value), (at.lineno, 0), "None" + head + guard, "mutable default", 1.0, function.lineno
    )


OPERATORS = (
    places,
    order,
    deletions,
    leaving,
    change_return,
    assignments,
    guards,
    borrow_statement,
    defaults,
)
