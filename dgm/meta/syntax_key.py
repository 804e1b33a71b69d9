"""The normalised syntax of an agent's source: equal for sources that differ only in notation.

Comments, layout, quotes, parentheses, ``pass`` and constants that stand alone never count. Docstrings and the
annotations of functions and variables count only if the agent may read them at run time. ``repository.tree_id``
compares contents; ``similarity`` compares edits.
"""

import ast
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from dgm.archive.snapshots import LINK, storable
from dgm.bounded_reading import parse_python
from dgm.domain import Entry, Snapshot

VERSION = "1:"
"""Prefix of every key; keys of different versions are not comparable."""
MAX_BYTES = 400_000
"""Maximum bytes of a file parsed as Python; a syntax tree takes a few hundred times the memory of its text."""
MAX_DEPTH = 800
"""Maximum depth of a syntax tree. The parser's own limit is no rule, because it depends on the caller's stack depth."""

_READERS = frozenset(
    {
        "__doc__",
        "__annotations__",
        "doctest",
        "get_type_hints",
        "getdoc",
        "inspect",
        "pydoc",
        "singledispatch",
        "singledispatchmethod",
    }
)
"""Names by which a program reads its own docstrings and annotations."""
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LEFT_OUT = frozenset(["ctx", "kind", "type_comment", "type_ignores"])
_ANNOTATIONS = frozenset(["annotation", "returns"])


def syntax_key(source: Snapshot) -> str:
    """Return ``1:`` and 64 hexadecimal digits; equal keys mean the same behaviour, as far as this examines it.

    Files that do not end in ``.py``, links, and unparsable files (no Python, over ``MAX_BYTES``, deeper than
    ``MAX_DEPTH``) count by their content. All files count by their path and mode. Files that ``storable`` drops do not
    count. Class bodies keep their annotations, which make the fields of dataclasses and the like.

    Docstrings and annotations count in all files if one file meets one of these conditions:

    - It names a way to read them (``__doc__``, ``inspect`` …).
    - It imports a package that is neither Python's own nor the agent's: such packages make descriptions of tools out of
      them.

    An agent that reads its own files as text is not detected.
    """
    files = storable(source)
    modules = {path: tree for path, entry in files.items() if (tree := parse_source(path, entry)) is not None}
    words = _reads_words(modules)
    total = sha256()
    for path in sorted(files):
        entry, tree = files[path], modules.get(path)
        what = sha256(entry.data).hexdigest() if tree is None else "py " + digest(tree, words=words)
        total.update(sha256(os.fsencode(path)).digest() + f"{entry.mode:o} {what}\n".encode())
    return VERSION + total.hexdigest()


def parse_source(path: str, entry: Entry) -> ast.Module | None:
    """Return the syntax tree of an agent's Python file; ``None`` for other files and for too large or deep ones."""
    if not path.endswith(".py") or entry.mode == LINK or len(entry.data) > MAX_BYTES:
        return None
    try:
        tree = parse_python(entry.data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree if _depth(tree) <= MAX_DEPTH else None


def digest(tree: ast.AST, *, words: bool) -> str:
    """Return the SHA-256 in hex of a tree's normal form.

    It leaves out positions, empty fields, ``pass``, and expressions that are a constant without effect. The same Python
    text gives the same digest under every version of Python that has the same nodes for it.

    Args:
        tree: a module, or any node of one.
        words: whether docstrings count, and the annotations of functions and variables.
    """
    return sha256("".join(_spell_tree(tree, words=words)).encode()).hexdigest()


def _spell_tree(tree: ast.AST, *, words: bool) -> Iterator[str]:
    """Yield the pieces of the normal form; a loop, because a deep tree must not depend on the caller's stack depth."""
    waiting: list[tuple[object, bool]] = [(tree, False)]
    while waiting:
        item, in_class = waiting.pop()
        if isinstance(item, _Text):
            yield item
        elif isinstance(item, ast.AST):
            name, fields = _fields(item, words=words, in_class=in_class)
            inside = isinstance(item, ast.ClassDef) or (in_class and not isinstance(item, _FUNCTIONS))
            yield f"{name}("
            waiting.append((_Text(")"), False))
            for field, value in reversed(fields):
                waiting += [(_Text(","), False), (value, inside), (_Text(f"{field}="), False)]
        elif isinstance(item, list):
            yield "["
            waiting.append((_Text("]"), False))
            for value in reversed(item):
                waiting += [(_Text(","), False), (value, in_class)]
        else:
            yield _constant(item)


class _Text(str):
    """A finished piece of text among unprocessed values."""

    __slots__ = ()


def _fields(node: ast.AST, *, words: bool, in_class: bool) -> tuple[str, list[tuple[str, object]]]:
    name, without = type(node).__name__, _LEFT_OUT
    pairs = list(ast.iter_fields(node))
    if not (words or (in_class and isinstance(node, ast.AnnAssign))):
        without = _LEFT_OUT | _ANNOTATIONS
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            name, pairs = "Assign", [("targets", [node.target]), ("value", node.value)]
    if isinstance(node, ast.JoinedStr):
        # Python 3.12.0 and 3.12.1 end a format with an empty text.
        pairs = [("values", [part for part in node.values if not _is_empty(part)])]
    fields = []
    for field, value in pairs:
        if isinstance(value, list):
            value = _effective_statements(
                value, first=words and field == "body" and isinstance(node, _DOCUMENTED)
            )
        if field not in without and not (value is None and field != "value") and value != []:
            fields.append((field, value))
    return name, fields


def _is_empty(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == ""


def _effective_statements(nodes: Sequence[object], *, first: bool) -> list[object]:
    """Return the statements that have an effect; ``first``: keep the first one if it is a docstring."""
    return [
        node
        for n, node in enumerate(nodes)
        if not isinstance(node, ast.Pass)
        and not (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and not (first and n == 0 and isinstance(node.value.value, str))
        )
    ]


def _constant(value: object) -> str:
    # Python refuses to print the decimal digits of a long number, but not its hexadecimal ones.
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value)
    return ascii(value)


def _reads_words(modules: Mapping[str, ast.Module]) -> bool:
    own = {part.removesuffix(".py") for path in modules for part in path.split("/")}
    known = own | sys.stdlib_module_names
    return any(_reads_here(node, known) for tree in modules.values() for node in ast.walk(tree))


def _reads_here(node: ast.AST, known: set[str]) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return name in _READERS
        case ast.Import(names=names):
            roots = {alias.name.partition(".")[0] for alias in names}
            return bool(roots - known or roots & _READERS)
        case ast.ImportFrom(module=module, names=names, level=level):
            root = (module or "").partition(".")[0]
            outside = level == 0 and root not in known
            return outside or root in _READERS or any(alias.name in _READERS for alias in names)
    return False


def _depth(tree: ast.AST) -> int:
    """Return the number of nodes on the longest path down."""
    depth, level = 0, [tree]
    while level and depth <= MAX_DEPTH:
        depth, level = depth + 1, [child for node in level for child in ast.iter_child_nodes(node)]
    return depth
