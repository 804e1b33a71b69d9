"""The named parts of a scaffold and their definitions: a change of one part may touch only its own definitions.

A definition belongs to at least one part, and possibly to several. Only names decide: the behaviour of a definition is
not examined. ``[agent.parts]`` in an agent's ``agent.toml`` is more precise, where it exists.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from dgm.domain import Entry, Snapshot
from dgm.meta.contract import Contract
from dgm.meta.syntax_key import digest, parse_source

OTHERWISE = "loop"
"""The part of definitions that belong to no other part."""
TOP = "(statements)"
"""Name for the statements at the top of a file that define nothing."""

Declared = Mapping[str, Sequence[str]]
"""Map of part to patterns: of paths as in ``editable``, or of places (``agent/tools.py::trunc*``)."""

_DRIVES = ("act", "chat", "forward", "loop", "run", "solve", "work")
"""Prefixes of the names of definitions that drive an agent: the code that keeps the conversation and ends it."""
_STEMS: Mapping[str, Sequence[str]] = {
    "loop": ("main", "step", "turn", *_DRIVES),
    "tools": ("bash", "command", "edit", "exec", "patch", "shell", "tool"),
    "context": (
        "compact",
        "compress",
        "context",
        "cut",
        "limit",
        "output",
        "token",
        "trim",
        "trunc",
        "window",
    ),
    "prompts": ("instruct", "message", "persona", "prompt", "system", "template"),
    "memory": ("conversation", "evidence", "histor", "memor", "message", "note", "summar", "transcript"),
    "completion": ("complet", "done", "finish", "max", "stop", "submit", "valid", "verif"),
}
"""Map of part to prefixes of words in the names of its files, folders and definitions."""
_METHODS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, slots=True, order=True)
class SourcePlace:
    """A definition of a Python file, or another file as a whole."""

    path: str
    name: str = ""
    """``work``, ``Agent`` (a class without its methods), ``Agent.run``, or ``TOP``; empty: the whole file."""

    def __str__(self) -> str:
        return f"{self.path}::{self.name}" if self.name else self.path


def places(source: Snapshot, part: str, declared: Declared | None = None) -> frozenset[SourcePlace]:
    """Return the places of a source that belong to a part.

    With ``declared``, only its patterns count. Otherwise a place belongs to every part that its own name or its file's
    name mentions. A method whose names mention none belongs to its class's parts. All other places belong to the loop.
    """
    return frozenset(place for place in _all_places(source) if part in parts_of(place, declared))


def parts_of(place: SourcePlace, declared: Declared | None = None) -> frozenset[str]:
    """Return the parts that a place belongs to, at least one."""
    found = _declared_parts(place, declared) if declared else _parts_by_name(place)
    return frozenset(found or {OTHERWISE})


def find_frozen_changes(
    before: Snapshot, after: Snapshot, part: str, declared: Declared | None = None
) -> list[SourcePlace]:
    """Return places of ``before`` outside ``part`` that ``after`` changed or lacks, sorted.

    Python is compared by its syntax (docstrings of definitions count, comments and layout do not), other files by
    content. New files, definitions and imports are free, as long as no existing name changes its meaning; statements at
    the top are not free. A file counts with all its places if its mode changed, it is gone, or it is Python on one side
    only.
    """
    changed = {
        place
        for path, entry in before.items()
        if entry != after.get(path)
        for place in _changed_places(path, entry, after.get(path))
    }
    return sorted(place for place in changed if part not in parts_of(place, declared))


def _all_places(source: Snapshot) -> Iterator[SourcePlace]:
    for path, entry in source.items():
        module = _read(path, entry)
        yield from (SourcePlace(path, name) for name in (module.definitions if module else {}) or [""])


def _changed_places(path: str, before: Entry, after: Entry | None) -> Iterator[SourcePlace]:
    old = _read(path, before)
    new = _read(path, after) if after is not None and after.mode == before.mode else None
    if old is None or new is None:
        yield from (SourcePlace(path, name) for name in (old.definitions if old else {}) or [""])
        return
    names = [*old.definitions, *(name for name in (TOP,) if name in new.definitions)]
    yield from (SourcePlace(path, name) for name in names if old.meaning(name) != new.meaning(name))
    yield from (
        SourcePlace(path, name) for name in old.imports if new.meaning(name) not in ([], old.meaning(name))
    )


@dataclass(slots=True)
class _Module:
    """The top-level statements of a Python file as digests, by the name to which they give a meaning."""

    definitions: dict[str, list[str]] = field(default_factory=dict)
    imports: dict[str, list[str]] = field(default_factory=dict)

    def meaning(self, name: str) -> list[str]:
        """Return all digests that give the name a meaning, in order; empty if there are none."""
        return self.imports.get(name, []) + self.definitions.get(name, [])

    def define(self, name: str, node: ast.AST) -> None:
        """Add one more statement for a name."""
        self.definitions.setdefault(name, []).append(digest(node, words=True))


def _read(path: str, entry: Entry) -> _Module | None:
    tree = parse_source(path, entry)
    if tree is None:
        return None
    module = _Module()
    for node in tree.body:
        match node:
            case ast.Import(names=aliases):
                _import(module, aliases, "")
            case ast.ImportFrom(names=aliases) if aliases[0].name != "*":
                _import(module, aliases, "." * node.level + (node.module or "") + ":")
            case ast.ClassDef():
                _define_class(module, node)
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                for name in _defined_names(node) or [TOP]:
                    module.define(name, node)
    return module


def _import(module: _Module, aliases: Sequence[ast.alias], of: str) -> None:
    for alias in aliases:
        name = alias.asname or alias.name
        module.imports.setdefault(name, []).append(f"import {of}{alias.name}")


def _define_class(module: _Module, node: ast.ClassDef) -> None:
    methods = [item for item in node.body if isinstance(item, _METHODS)]
    rest = copy(node)
    rest.body = [item for item in node.body if not isinstance(item, _METHODS)]
    module.define(node.name, rest)
    for method in methods:
        module.define(f"{node.name}.{method.name}", method)


def _defined_names(node: ast.stmt) -> list[str]:
    """Return the names that a top-level statement defines; none if it also does something else."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            pass
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            targets = [target]
        case _:
            return []
    plain = [
        item for target in targets for item in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]
    names = [item.id for item in plain if isinstance(item, ast.Name)]
    return names if len(names) == len(plain) else []


def _declared_parts(place: SourcePlace, declared: Declared) -> set[str]:
    return {
        part for part, patterns in declared.items() if any(_covers(pattern, place) for pattern in patterns)
    }


def _covers(pattern: str, place: SourcePlace) -> bool:
    if "::" in pattern:
        return any(fnmatchcase(str(place), shape) for shape in (pattern, pattern + ".*"))
    # Match a path as the contract matches editable paths.
    return Contract((), (), editable=(pattern,), protected=()).may_change(place.path)


def _parts_by_name(place: SourcePlace) -> set[str]:
    of_file = _parts_in_words(place.path)
    kind, _, name = place.name.rpartition(".")
    of_name = _parts_in_words(name)
    if not of_file and not of_name:
        name, of_name = kind, _parts_in_words(kind)
    if of_file and "loop" not in of_file:
        # ``run`` in a file of tools runs a tool.
        of_name -= {"loop"}
    found = of_file | of_name
    if "loop" in found and any(word.startswith(_DRIVES) for word in _words(name)):
        found |= {"memory", "completion"}
    return found


def _parts_in_words(name: str) -> set[str]:
    words = _words(name)
    return {part for part, stems in _STEMS.items() if any(word.startswith(tuple(stems)) for word in words)}


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
