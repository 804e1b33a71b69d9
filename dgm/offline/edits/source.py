"""A scaffold's source as text that can be located by structure and changed by lines.

Everything works on whole lines, so that comments and formatting outside of a change stay the same.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from dgm import syntax
from dgm.offline.moves import Edit

Files = Mapping[str, str]
"""Relative path → text."""

Transform = Callable[[Files], "dict[str, str] | None"]
"""A function that returns the changed files only, or ``None`` if it does not apply."""

MAX_SOURCE_CHARACTERS = 60_000


@dataclass(frozen=True, slots=True)
class LineRange:
    """A range of lines in a file: ``first`` to ``last``, counted from 1, both included."""

    path: str
    first: int
    last: int
    indent: str = ""


@dataclass(frozen=True, slots=True)
class Constant:
    """A module's assignment of a literal to a name."""

    place: LineRange
    name: str
    value: object


@lru_cache(maxsize=256)
def parse(text: str) -> ast.Module | None:
    """Return the syntax tree, or ``None`` if the text is not Python or exceeds ``MAX_SOURCE_CHARACTERS``."""
    if len(text) > MAX_SOURCE_CHARACTERS:
        return None
    try:
        return syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def modules(files: Files) -> Iterator[tuple[str, str, ast.Module]]:
    """Yield path, text and tree of every Python file that parses, in order of path."""
    for path in sorted(files):
        tree = parse(files[path]) if path.endswith(".py") else None
        if tree is not None:
            yield path, files[path], tree


def constant(files: Files, name: str, kind: type | tuple[type, ...]) -> Constant | None:
    """Return the first module-level assignment of a literal of that type to a name that matches the pattern."""
    for path, _, tree in modules(files):
        for node in tree.body:
            found = _parse_assignment(node)
            if found and re.fullmatch(name, found[0]) and isinstance(found[1], kind):
                return Constant(range_of(path, node), found[0], found[1])
    return None


def _parse_assignment(node: ast.stmt) -> tuple[str, object] | None:
    """Return name and value of ``NAME = literal``."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and len(node.targets) == 1):
        return None
    target = node.targets[0]
    return (target.id, node.value.value) if isinstance(target, ast.Name) else None


def function(files: Files, name: str) -> tuple[str, ast.FunctionDef] | None:
    """Return path and node of the first module-level function whose name matches the pattern."""
    for path, _, tree in modules(files):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and re.fullmatch(name, node.name):
                return path, node
    return None


def range_of(path: str, node: ast.stmt | ast.expr) -> LineRange:
    """Return the lines of a node."""
    last = node.end_lineno or node.lineno
    return LineRange(path, node.lineno, last, " " * node.col_offset)


def lines_of(text: str) -> list[str]:
    """Split text into lines with their ends; a form feed does not end a line (as in ``ast``)."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def text_at(files: Files, where: LineRange) -> str:
    """Return the text of some lines."""
    return "".join(lines_of(files[where.path])[where.first - 1 : where.last])


def replace_lines(files: Files, where: LineRange, block: str) -> dict[str, str]:
    """Return the file with these lines replaced by a block that is indented like them."""
    lines = lines_of(files[where.path])
    lines[where.first - 1 : where.last] = [indent_block(block, where.indent)]
    return {where.path: "".join(lines)}


def insert_block(files: Files, where: LineRange, block: str, *, after: bool) -> dict[str, str]:
    """Return the file with a block, indented like these lines, put after or before them."""
    lines = lines_of(files[where.path])
    at = where.last if after else where.first - 1
    lines[at:at] = [indent_block(block, where.indent)]
    return {where.path: "".join(lines)}


def indent_block(block: str, indent: str) -> str:
    """Indent the block's lines and end each with a line feed."""
    lines = block.strip("\n").split("\n") if block.strip("\n") else []
    return "".join((indent + line if line.strip() else "") + "\n" for line in lines)


def with_import(text: str, module: str) -> str:
    """Return the file with ``import module`` among its imports, in order."""
    tree = parse(text)
    if tree is None or re.search(rf"^import {re.escape(module)}$", text, re.MULTILINE):
        return text
    lines = lines_of(text)
    plain = [node for node in tree.body if isinstance(node, ast.Import)]
    later = [node for node in plain if node.names[0].name > module]
    if plain:
        at = later[0].lineno - 1 if later else (plain[-1].end_lineno or plain[-1].lineno)
        lines.insert(at, f"import {module}\n")
    else:
        documented = tree.body and isinstance(tree.body[0], ast.Expr)
        at = (tree.body[0].end_lineno or 1) if documented else 0
        lines.insert(at, f"\nimport {module}\n" if documented else f"import {module}\n\n")
    return "".join(lines)


def substitute_match(files: Files, path: str, pattern: str, new: str) -> dict[str, str] | None:
    """Return the file with the one match of a pattern replaced literally, or ``None`` without exactly one."""
    matches = list(re.finditer(pattern, files[path], re.MULTILINE))
    if len(matches) != 1:
        return None
    start, end = matches[0].span()
    return {path: files[path][:start] + new + files[path][end:]}


def chain(files: Files, *steps: Transform) -> dict[str, str] | None:
    """Return the changes of several transformations in a row; ``None`` as soon as one does not apply."""
    now, changed = dict(files), {}
    for step in steps:
        result = step(now)
        if result is None:
            return None
        now.update(result)
        changed.update(result)
    return changed


def edits(before: Files, changed: Files) -> tuple[Edit, ...]:
    """Return the replacements that lead from one text to the other, each unambiguous when its turn comes."""
    found: list[Edit] = []
    for path in sorted(changed):
        old, new = lines_of(before[path]), lines_of(changed[path])
        groups = list(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(1))
        current = list(old)
        # Work from the end, so that line numbers of the remaining hunks stay valid.
        for group in reversed(groups):
            first, last = group[0][1], group[-1][2]
            block = new[group[0][3] : group[-1][4]]
            found.append(_unique(path, current, first, last, block))
            current[first:last] = block
    return tuple(found)


def _unique(path: str, current: list[str], first: int, last: int, block: list[str]) -> Edit:
    """Return the hunk with enough surrounding lines to make its old text occur once."""
    low, high = first, last
    text = "".join(current)
    while (low > 0 or high < len(current)) and text.count("".join(current[low:high])) != 1:
        low, high = max(0, low - 1), min(len(current), high + 1)
    head, tail = current[low:first], current[last:high]
    return Edit(path, "".join(current[low:high]), "".join([*head, *block, *tail]))


def number(name: str, factor: float, least: float, most: float) -> Transform:
    """Multiply a module's number, as long as the result stays within bounds."""

    def transform(files: Files) -> dict[str, str] | None:
        found = constant(files, name, (int, float))
        if found is None or isinstance(found.value, bool):
            return None
        old = found.value
        assert isinstance(old, int | float)
        new = min(most, max(least, old * factor))
        if (new - old) * (factor - 1) <= 0:
            return None
        text = text_at(files, found.place)
        shown = str(int(new)) if isinstance(old, int) else f"{new:g}"
        return replace_lines(files, found.place, re.sub(r"(=\s*)[\d_.]+", rf"\g<1>{shown}", text, count=1))

    return transform
