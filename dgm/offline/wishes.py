"""Requests in the problem of an ``improve`` job beyond "improve this agent", in ordinary words.

* ``Proposal: `` and a sentence: a change that was thought of elsewhere; kinds of a similar rationale come first.
* ``Change only `` a part, with ``May change:`` and a list of definitions: no other may be changed, and a line
  ``General: `` must say why the change has nothing to do with any particular problem.
* ``These places are open:`` and a list of files: text that a merge left between markers must be settled.
* ``the merged agent's check``: nothing is between markers, but the two halves do not go together.
"""

import ast
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dgm.offline.edits.kind import Kind
from dgm.offline.edits.source import Files, parse

_PROPOSED = re.compile(r"^Proposal: *(\S.*(?:\n(?!\s*\n).+)*)", re.M)
_ALLOWED = re.compile(r"^May change:\n((?:- .+\n?)+)", re.M)
_OPEN = re.compile(r"^These places are open:\n((?:- .+\n?)+)", re.M)
_QUOTED = re.compile(r"^- `?([^`\n:]+(?:::[^`\n:]+)?)`?", re.M)
_WORD = re.compile(r"[a-z]{3,}")
_PLAIN = frozenset(
    re.findall(
        r"\w+",
        "the and are for that this with not its has was but can does should would agent agents model more than into "
        "from what when which them they only one all out before after",
    )
)
_FITS = 0.34
"""Least share of a kind's words that a sentence must contain to mean that kind."""
TOP = "(statements)"
"""Name of a file's top-level statements that define nothing, in a list of definitions that may change."""


@dataclass(frozen=True, slots=True)
class EditRequest:
    """The wishes found in a problem."""

    proposed: str = ""
    """A change that is wanted; empty for none in particular."""
    allowed: frozenset[str] | None = None
    """Definitions or files that may change: ``agent/loop.py::work``, ``agent/notes.md``; None for everything."""
    open: tuple[str, ...] = ()
    """Files that a merge left with conflicts."""
    broken: bool = False
    """Whether the result of a merge does not start."""


def parse_edit_request(problem: str) -> EditRequest:
    """Return the wishes in a problem's text."""
    proposed, allowed, places = (found.search(problem) for found in (_PROPOSED, _ALLOWED, _OPEN))
    return EditRequest(
        proposed=" ".join(proposed[1].split()) if proposed else "",
        allowed=frozenset(_QUOTED.findall(allowed[1])) if allowed else None,
        open=_parse_conflict_files(places[1]) if places else (),
        broken=bool(re.search(r"\bthe merged agent's check\b", problem)),
    )


def _parse_conflict_files(listed: str) -> tuple[str, ...]:
    """Return the files of a list that hold markers; other entries need no writing."""
    lines = [line for line in listed.splitlines() if " between lines " in line]
    return tuple(_QUOTED.findall("\n".join(lines)))


def select_kinds(kinds: Sequence[Kind], wishes: EditRequest, files: Files) -> list[Kind]:
    """Return the permitted kinds in their given order; kinds that fit a proposal come first."""
    possible = list(kinds)
    if wishes.allowed is not None:
        possible = list(_filter_allowed(tuple(kinds), tuple(files.items()), wishes.allowed))
    if not wishes.proposed:
        return possible
    return sorted(possible, key=lambda kind: -fit(kind.rationale, wishes.proposed))


def fit(sentence: str, proposed: str) -> float:
    """Return the share of a sentence's words that a text contains; 0 if it is below ``_FITS``."""
    mine, theirs = _word_stems(sentence), _word_stems(proposed)
    share = len(mine & theirs) / len(mine) if mine else 0.0
    return share if share >= _FITS else 0.0


def _word_stems(text: str) -> set[str]:
    """Return the words that carry the meaning, without their endings."""
    words = (word for word in _WORD.findall(text.lower()) if word not in _PLAIN)
    return {re.sub(r"(?:ing|ed|es|s)$", "", word) for word in words}


@functools.lru_cache(maxsize=8)
def _filter_allowed(
    kinds: tuple[Kind, ...], source: tuple[tuple[str, str], ...], allowed: frozenset[str]
) -> tuple[Kind, ...]:
    """Return the kinds that change only allowed definitions.

    The result is cached: each step of a conversation asks about the same source again.
    """
    files = dict(source)
    return tuple(kind for kind in kinds if changed_definitions(files, kind.transform(files) or {}) <= allowed)


def changed_definitions(before: Files, after: Files) -> set[str]:
    """Return the definitions of ``before`` that ``after`` changes or lacks; a path if the old file does not parse."""
    found: set[str] = set()
    for path, text in after.items():
        if path not in before or before[path] == text:
            continue
        old, new = parse(before[path]), parse(text)
        if old is None or new is None:
            found |= {f"{path}::{name}" for name in _dump_definitions(old)} if old else {path}
            continue
        was, now = _dump_definitions(old), _dump_definitions(new)
        found |= {f"{path}::{name}" for name in was if was[name] != now.get(name)}
        if now.get(TOP, []) != was.get(TOP, []):
            found.add(f"{path}::{TOP}")
    return found


def _dump_definitions(module: ast.Module) -> Mapping[str, list[str]]:
    """Return, for each top-level name and each method, the dumped nodes that define it."""
    found: dict[str, list[str]] = {}
    for node in module.body:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case ast.ClassDef():
                rest = [item for item in node.body if not isinstance(item, ast.FunctionDef)]
                found[node.name] = [ast.dump(item) for item in (*node.bases, *rest)]
                for item in node.body:
                    if isinstance(item, ast.FunctionDef):
                        found[f"{node.name}.{item.name}"] = [ast.dump(item)]
                continue
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                names = [node.name]
            case ast.Assign(targets=targets) if all(isinstance(each, ast.Name) for each in targets):
                names = [each.id for each in targets if isinstance(each, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = [TOP]
        for name in names:
            found.setdefault(name, []).append(ast.dump(node))
    return found
