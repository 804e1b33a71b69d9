"""The parts of pytest's tests whose change makes some of them fail: a function's body, or one row of its table."""

import ast
from collections.abc import Iterator, Mapping, Sequence

from dgm.benchmarks.perturbation_likely import compared_leaves
from dgm.benchmarks.perturbation_sites import UNRELATED, USUAL, CertainSites, find_helpers
from dgm.benchmarks.perturbation_syntax import (
    Function,
    Site,
    SourceText,
    called_name,
    compared_sides,
    literal_leaves,
)

Units = Mapping[str, Sequence[Site]]
"""Part of a test → its places, of which one is changed."""
_EXCEPTIONS = frozenset({*USUAL, *UNRELATED, "KeyboardInterrupt"})


def find_units(source: SourceText, tests: Mapping[str, Sequence[bool]]) -> Units:
    """Return the parts of tests that can be changed.

    Args:
        source: a test file.
        tests: function, as ``Class::method`` or ``function`` → which of its tests, in pytest's order, fail without a
            fix; the others keep their values where each has a row of its own.
    """
    found: dict[str, Sequence[Site]] = {}
    for name, wanted in tests.items():
        function = _find_function(source.tree, name.split("::"))
        if function is None:
            continue
        key = f"{function.lineno}"
        rows = _rows(source, function)
        if len(rows) == len(wanted):
            rows = [row for row, fails in zip(rows, wanted, strict=True) if fails]
        if any(rows):
            found |= {f"{key}/{number}": row for number, row in enumerate(rows) if row}
        elif sites := _body(source, name, function):
            found[key] = sites
    return found


def _find_function(tree: ast.Module, path: Sequence[str]) -> Function | None:
    """Return the only function of that name, in the class or in a class of the module that it inherits from."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    body: Sequence[ast.stmt] = tree.body
    waiting, seen = list(path[:-1]), set[str]()
    while True:
        found = [node for node in body if isinstance(node, Function) and node.name == path[-1]]
        if found and not waiting:
            return found[0] if len(found) == 1 else None
        inner = [node for node in body if isinstance(node, ast.ClassDef) and waiting[:1] == [node.name]]
        if waiting and inner:
            kind = inner[-1]
            waiting.pop(0)
        else:
            return None
        while not waiting and not any(isinstance(n, Function) and n.name == path[-1] for n in kind.body):
            bases = [base.id for base in kind.bases if isinstance(base, ast.Name) and base.id in classes]
            if not bases or bases[0] in seen:
                return None
            seen.add(bases[0])
            kind = classes[bases[0]]
        body = kind.body


def _rows(source: SourceText, function: Function) -> Sequence[Sequence[Site]]:
    """Return the places in each row of a function's table that hold what is compared; nothing if it has none."""
    tables = [node for node in function.decorator_list if called_name(node) == "parametrize"]
    compared = {
        side.id for node in ast.walk(function) for side in compared_sides(node) if isinstance(side, ast.Name)
    }
    match tables:
        case [ast.Call(args=[names, table, *_])]:
            columns = _names(names)
            wanted = [number for number, name in enumerate(columns) if name in compared]
            rows = [_cells(row, len(columns)) for row in _elements(source.tree, table)]
            return [[s for n in wanted if n < len(row) for s in _literals(source, row[n])] for row in rows]
        case _:
            return []


def _names(node: ast.expr) -> Sequence[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [name.strip() for name in text.split(",") if name.strip()]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [str(each.value) if isinstance(each, ast.Constant) else "" for each in elements]
        case _:
            return []


def _elements(tree: ast.Module, table: ast.expr) -> Sequence[ast.expr]:
    """Return the rows of a table, which may be a variable of the module."""
    if isinstance(table, ast.Name):
        values = [
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == table.id for target in node.targets)
        ]
        table = values[0] if len(values) == 1 else table
    return table.elts if isinstance(table, (ast.List, ast.Tuple)) else []


def _cells(row: ast.expr, columns: int) -> Sequence[ast.expr]:
    if isinstance(row, ast.Call) and called_name(row) == "param":
        return row.args
    return row.elts if columns > 1 and isinstance(row, (ast.Tuple, ast.List)) else [row]


def _literals(source: SourceText, node: ast.expr) -> Iterator[Site]:
    for leaf in literal_leaves(node):
        yield Site("", *source.span(leaf), source.span(node))


def _body(source: SourceText, name: str, function: Function) -> Sequence[Site]:
    """Return the places in a body: surely compared values, else likely ones, else assertions to turn round."""
    classes = [node for node in source.tree.body if isinstance(node, ast.ClassDef) and function in node.body]
    helpers = find_helpers(source.tree, classes[0] if classes else None)
    certain = [
        site
        for site in CertainSites(source, name, function, helpers).find()
        if not _EXCEPTIONS.intersection(site.choices)
    ]
    leaves = [
        leaf for statement in function.body for node in ast.walk(statement) for leaf in compared_leaves(node)
    ]
    likely = [Site("", *source.span(leaf), source.span(leaf), certain=False) for leaf in leaves]
    return [site for site in certain if not site.choices] or likely or certain
