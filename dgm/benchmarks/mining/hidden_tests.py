"""Takes tests out of the files that agents see: the functions of named tests, and nothing else of a file."""

import ast
from collections.abc import Collection, Mapping
from dataclasses import replace

from dgm.domain import Snapshot

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def hide_tests(files: Snapshot, names: Collection[str]) -> Snapshot:
    """Return the test files without the named tests, as they are changed.

    Args:
        files: of the repository.
        names: tests as pytest names them; of a test with parameters all go.

    Raises:
        ValueError: a test is not a function in its own file, or a file cannot be read without it.
    """
    wanted: dict[str, set[tuple[str, ...]]] = {}
    for name in names:
        file, *parts = name.partition("[")[0].split("::")
        wanted.setdefault(file, set()).add(tuple(parts))
    return {
        file: replace(files[file], data=_without(file, files[file].data, tests))
        for file, tests in wanted.items()
    }


def _without(file: str, source: bytes, tests: Collection[tuple[str, ...]]) -> bytes:
    try:
        tree = ast.parse(source)
    except (SyntaxError, RecursionError) as error:
        raise ValueError(f"{file} is no Python that can be read") from error
    functions = _functions(tree)
    lines = source.split(b"\n")
    for test in sorted(tests):
        if test not in functions:
            raise ValueError(f"{file} does not hold the function {'.'.join(test)} itself")
    for first, last, indent in sorted((_place(functions[test]) for test in tests), reverse=True):
        lines[first:last] = (
            [b" " * indent + b"pass"] if indent and _is_alone(lines, first, last, indent) else []
        )
    changed = b"\n".join(lines)
    try:
        ast.parse(changed)
    except SyntaxError as error:
        raise ValueError(f"{file} cannot be read without its tests") from error
    return changed


def _functions(tree: ast.Module) -> Mapping[tuple[str, ...], _Function]:
    found: dict[tuple[str, ...], _Function] = {}
    for node in tree.body:
        if isinstance(node, _Function):
            found[(node.name,)] = node
        elif isinstance(node, ast.ClassDef):
            found |= {(node.name, one.name): one for one in node.body if isinstance(one, _Function)}
    return found


def _place(node: _Function) -> tuple[int, int, int]:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    assert node.end_lineno is not None
    return first - 1, node.end_lineno, node.col_offset


def _is_alone(lines: list[bytes], first: int, last: int, indent: int) -> bool:
    """Return whether a class would be left without a body."""

    def inside(rows: list[bytes]) -> bool:
        for row in rows:
            if row.strip() and not row.lstrip().startswith(b"#"):
                return len(row) - len(row.lstrip()) >= indent
        return False

    return not inside(lines[last:]) and not inside(lines[:first][::-1])
