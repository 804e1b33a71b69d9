"""What the problem of an ``improve`` job asks for beyond "improve this agent", in ordinary words.

* ``Proposal: `` and a sentence: a change that was thought of elsewhere; the kinds that speak of the same come first.
* ``Change only `` a part, with ``May change:`` and a list of definitions: no other may be changed, and a line
  ``General: `` is to say why the change has nothing to do with any particular problem.
* ``These places are open:`` and a list of files: what a merge left between markers is to be made one.
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
"""The least share of a kind's words that a sentence must have to mean it."""
TOP = "(statements)"
"""How statements at the top of a file that define nothing are called in a list of what may change."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was found."""

    proposed: str = ""
    """A change that is wanted; empty: none in particular."""
    allowed: frozenset[str] | None = None
    """``agent/loop.py::work`` or ``agent/notes.md``; None: everything may change."""
    open: tuple[str, ...] = ()
    """Files that a merge left with places in conflict."""
    broken: bool = False
    """What a merge gave does not start."""


def read(problem: str) -> Wishes:
    """The wishes in a problem's text."""
    proposed, allowed, places = (found.search(problem) for found in (_PROPOSED, _ALLOWED, _OPEN))
    return Wishes(
        proposed=" ".join(proposed[1].split()) if proposed else "",
        allowed=frozenset(_QUOTED.findall(allowed[1])) if allowed else None,
        open=_marked(places[1]) if places else (),
        broken=bool(re.search(r"\bthe merged agent's check\b", problem)),
    )


def _marked(listed: str) -> tuple[str, ...]:
    """The files of a list that hold markers, not those about which there is nothing to write."""
    lines = [line for line in listed.splitlines() if " between lines " in line]
    return tuple(_QUOTED.findall("\n".join(lines)))


def wanted(kinds: Sequence[Kind], wishes: Wishes, files: Files) -> list[Kind]:
    """Of kinds that apply, in order, those that may be made; what was proposed comes first, the rest as it was."""
    possible = list(kinds)
    if wishes.allowed is not None:
        possible = list(_permitted(tuple(kinds), tuple(files.items()), wishes.allowed))
    if not wishes.proposed:
        return possible
    return sorted(possible, key=lambda kind: -fit(kind.rationale, wishes.proposed))


def fit(sentence: str, proposed: str) -> float:
    """The share of a sentence's words that a text has, 0 where it is too small to mean anything."""
    mine, theirs = _said(sentence), _said(proposed)
    share = len(mine & theirs) / len(mine) if mine else 0.0
    return share if share >= _FITS else 0.0


def _said(text: str) -> set[str]:
    """The words that carry the meaning, without their endings."""
    words = (word for word in _WORD.findall(text.lower()) if word not in _PLAIN)
    return {re.sub(r"(?:ing|ed|es|s)$", "", word) for word in words}


@functools.lru_cache(maxsize=8)
def _permitted(
    kinds: tuple[Kind, ...], source: tuple[tuple[str, str], ...], allowed: frozenset[str]
) -> tuple[Kind, ...]:
    """The kinds that change nothing else: each step of a conversation asks about the same source again."""
    files = dict(source)
    return tuple(kind for kind in kinds if changes(files, kind.transform(files) or {}) <= allowed)


def changes(before: Files, after: Files) -> set[str]:
    """The definitions of ``before`` that the files in ``after`` change or lack, and other files as a whole."""
    found: set[str] = set()
    for path, text in after.items():
        if path not in before or before[path] == text:
            continue
        old, new = parse(before[path]), parse(text)
        if old is None or new is None:
            found |= {f"{path}::{name}" for name in _defined(old)} if old else {path}
            continue
        was, now = _defined(old), _defined(new)
        found |= {f"{path}::{name}" for name in was if was[name] != now.get(name)}
        if now.get(TOP, []) != was.get(TOP, []):
            found.add(f"{path}::{TOP}")
    return found


def _defined(module: ast.Module) -> Mapping[str, list[str]]:
    """What gives each name at the top of a file, and each method, its meaning."""
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
