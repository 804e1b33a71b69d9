"""The normalised syntax of an agent's source: equal for sources that differ only in notation."""

import ast
import os
import sys
from collections.abc import Mapping
from hashlib import sha256

from dgm.archive.snapshots import LINK, storable
from dgm.bounded_reading import parse_python
from dgm.domain import Entry, Snapshot

VERSION = "2:"
"""Prefix of every key; keys of different versions are not comparable."""
_MAX_BYTES = 400_000
"""Maximum bytes of a file parsed as Python; a syntax tree takes a few hundred times the memory of its text."""
_MAX_DEPTH = 100
"""Maximum depth of a syntax tree. Python's own limit is no rule, because it depends on the caller's stack depth."""
_READERS = frozenset({"__doc__", "doctest", "getdoc", "inspect", "pydoc"})
"""Names by which a program reads its own docstrings."""


def syntax_key(source: Snapshot) -> str:
    """Return ``VERSION`` and 64 hexadecimal digits: SHA-256 of all paths and modes, and of what each file says.

    Python counts as ``ast.unparse`` writes it, so comments, layout, quotes and parentheses do not count. Docstrings
    count only if the agent names a way to read them, or imports a package that is neither Python's own nor its own:
    such packages make descriptions of tools out of them. Other files, and Python that cannot be parsed, count by their
    content. Files that ``storable`` drops do not count.
    """
    files = storable(source)
    trees = {path: tree for path, entry in files.items() if (tree := _parse(path, entry))}
    keeps_docstrings = _reads_docstrings(trees)
    total = sha256()
    for path in sorted(files):
        entry, tree = files[path], trees.get(path)
        data = entry.data
        if tree:
            if not keeps_docstrings:
                _drop_docstrings(tree)
            data = ast.unparse(tree).encode("utf-8", "surrogatepass")
        kind = "py" if tree else ""
        total.update(
            sha256(os.fsencode(path)).digest() + f"{entry.mode:o} {kind} ".encode() + sha256(data).digest()
        )
    return VERSION + total.hexdigest()


def _parse(path: str, entry: Entry) -> ast.Module | None:
    if not path.endswith(".py") or entry.mode == LINK or len(entry.data) > _MAX_BYTES:
        return None
    try:
        tree = parse_python(entry.data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    level: list[ast.AST] = [tree]
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return None if level else tree


def _drop_docstrings(tree: ast.Module) -> None:
    """Remove docstrings, ``pass`` and other constants that stand alone in modules, classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [
                item
                for item in node.body
                if not isinstance(item, ast.Pass)
                and not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
            ] or [ast.Pass()]


def _reads_docstrings(trees: Mapping[str, ast.Module]) -> bool:
    known = {part.removesuffix(".py") for path in trees for part in path.split("/")} | sys.stdlib_module_names
    for node in (node for tree in trees.values() for node in ast.walk(tree)):
        names: set[str] = set()
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                names = {name}
            case ast.Import(names=aliases):
                names = {alias.name.partition(".")[0] for alias in aliases}
                if names - known:
                    return True
            case ast.ImportFrom(module=module, names=aliases, level=level):
                names = {(module or "").partition(".")[0], *(alias.name for alias in aliases)}
                if level == 0 and (module or "").partition(".")[0] not in known:
                    return True
        if names & _READERS:
            return True
    return False
