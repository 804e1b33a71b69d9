"""Similarity of agents: sources that differ only in notation, and edits that are near copies of earlier ones.

Of edits, either the words alone decide, by Broder's resemblance ("On the resemblance and containment of documents",
1997), or a model that is shown the edit and the most alike one. Asking a model whether a proposal is new enough:
arXiv:2509.19349 (ShinkaEvolve), where it follows a similarity of embeddings.
"""

import ast
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

from pydantic import AfterValidator, Field

from dgm.archive.snapshots import LINK, storable
from dgm.bounded_reading import parse_python
from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault
from dgm.messages import Message, Request, Role
from dgm.meta.answers import Answer, CanAsk, Flag, Text, ask_shortened, ask_until_readable, read_answer
from dgm.meta.evidence import cut_middle
from dgm.meta.lessons import PATH as LESSONS
from dgm.meta.prompts import Prompts

SKELETON = '{"copy": true or false, "why": "one sentence"}'
"""The form of the judge's answer in words."""
SYSTEM = "You judge whether two edits of a coding agent are near copies of each other."
_SHINGLE = 4
"""Tokens in a shingle."""
_PATCH_BYTES = 400_000
"""Bytes of one patch that are examined; the rest is ignored."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
VERSION = "2:"
"""Prefix of every key; keys of different versions are not comparable."""
_PYTHON_BYTES = 400_000
"""Maximum bytes of a file parsed as Python; a syntax tree takes a few hundred times the memory of its text."""
_MAX_DEPTH = 100
"""Maximum depth of a syntax tree. Python's own limit is no rule, because it depends on the caller's stack depth."""
_READERS = frozenset({"__doc__", "doctest", "getdoc", "inspect", "pydoc"})
"""Names by which a program reads its own docstrings."""

Shingles = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AgentEdit:
    """An agent's change of its source, and a name for the agent."""

    name: str
    patch: bytes


class Judgement(Answer):
    """A model's verdict on two edits."""

    is_copy: Flag = Field(alias="copy")
    why: Annotated[Text, AfterValidator(lambda text: " ".join(text.split())[:300])]


@dataclass(frozen=True, slots=True)
class Judge:
    """The model that decides."""

    bench: CanAsk
    prompts: Prompts
    retries: int
    """Further questions after an unreadable answer."""
    prompt_chars: int
    """Maximum characters of both edits together; each is cut in its middle."""

    async def judge(self, edit: bytes, other: bytes) -> Judgement:
        """Return whether one edit is a near copy of the other.

        Raises:
            AgentFault: stage ``answer``: no answer could be read.
            Infrastructure: the model failed.
        """

        def build(chars: int) -> Request:
            cut = (cut_middle(patch, chars // 2).decode("utf-8", "replace") for patch in (edit, other))
            texts = dict(zip(("edit", "other"), cut, strict=True))
            messages = Message(Role.SYSTEM, SYSTEM), Message(Role.USER, self.prompts.fill("novelty", texts))
            return Request(messages, form=Judgement.form())

        async def ask(request: Request) -> Judgement:
            return await ask_until_readable(
                self.bench,
                request,
                lambda text: read_answer(Judgement, text),
                self.retries,
                "diagnose",
                SKELETON,
            )

        return await ask_shortened(build, self.prompt_chars, ask)


async def check_novel(edit: bytes, others: Sequence[AgentEdit], threshold: float, judge: Judge | None) -> str:
    """Compare an edit with the existing ones.

    Args:
        edit: the patch from parent to child.
        others: of siblings, and of the agents that the operator was shown.
        threshold: the resemblance from which on an edit is a copy.
        judge: decides instead of the threshold, unless no answer of the judge can be read.

    Returns:
        A note on the most alike edit; empty if none has anything in common with it.

    Raises:
        AgentFault: stage ``novelty``: it is a near copy.
        Infrastructure: the model failed.
    """
    at, alike = nearest(edit, [other.patch for other in others])
    if at < 0:
        return ""
    other = others[at]
    note = f"{alike:.2f} like the edit of {other.name}"
    is_copy, why = alike >= threshold, f"from {threshold:g} on it counts as a copy"
    if judge:
        try:
            judgement = await judge.judge(edit, other.patch)
            is_copy, why = judgement.is_copy, judgement.why
        except AgentFault as fault:
            note += f"; by that alone, as the model did not say: {fault}"
            why += "; the model did not say"
    if is_copy:
        raise AgentFault("novelty", f"a near copy of the edit of {other.name} ({alike:.2f} alike): {why}")
    return note


def nearest(edit: bytes, edits: Sequence[bytes]) -> tuple[int, float]:
    """Return the index of the most alike patch in ``edits`` (the first of equals), and the resemblance, up to 1.0.

    The resemblance is |S(A) ∩ S(B)| / |S(A) ∪ S(B)|. The result is ``(-1, 0.0)`` if none has anything in common with
    ``edit``. Patches are as ``repository.patch`` gives them.
    """
    mine = shingles(edit)
    best, most_alike = -1, 0.0
    for n, theirs in enumerate(map(shingles, edits)):
        alike = len(mine & theirs) / max(1, len(mine | theirs))
        if alike > most_alike:
            best, most_alike = n, alike
    return best, most_alike


def shingles(patch: bytes) -> Shingles:
    """Return every run of four tokens in a patch's added lines, and in its removed lines, kept apart.

    Each shingle begins with ``+`` or ``-``. Consecutive lines are one text; a text of fewer than four tokens gives one
    short shingle. Paths, places, white space and binary files do not count.
    """
    runs: list[tuple[str, list[bytes]]] = [("", [])]
    for line in _changed_lines(patch[:_PATCH_BYTES]):
        sign = line[:1].decode("latin-1")
        if sign != runs[-1][0]:
            runs.append((sign, []))
        runs[-1][1].append(line[1:])
    shingles: set[tuple[str, ...]] = set()
    for sign, lines in runs:
        tokens = _TOKEN.findall(b"\n".join(lines).decode("utf-8", "replace")) if sign in ("+", "-") else []
        last = max(len(tokens) - _SHINGLE, 0)
        shingles.update((sign, *tokens[n : n + _SHINGLE]) for n in range(last + 1) if tokens)
    return frozenset(shingles)


def _changed_lines(patch: bytes) -> Iterator[bytes]:
    """Yield the lines inside hunks by the counts in their headers: a removed ``-- x`` looks like a header itself."""
    old = new = 0
    for line in patch.split(b"\n"):
        if old > 0 or new > 0:
            old -= line[:1] in b" -"
            new -= line[:1] in b" +"
            yield line or b" "
        elif header := _HUNK.match(line):
            old, new = (int(count) if count is not None else 1 for count in header.groups())
            yield b" "


def syntax_key(source: Snapshot) -> str:
    """Return ``VERSION`` and 64 hexadecimal digits: SHA-256 of all paths and modes, and of what each file says.

    Python counts as ``ast.unparse`` writes it, so comments, layout, quotes and parentheses do not count. Docstrings
    count only if the agent names a way to read them, or imports a package that is neither Python's own nor its own:
    such packages make descriptions of tools out of them. In ``memory/lessons.md`` lessons count, not their evidence.
    Other files, and Python that cannot be parsed, count by their content. Files that ``storable`` drops do not count.
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
        elif path == LESSONS and entry.mode != LINK:
            data = b"\n".join(line for line in data.splitlines() if line.startswith(b"- "))
        kind = "py" if tree else ""
        total.update(
            sha256(os.fsencode(path)).digest() + f"{entry.mode:o} {kind} ".encode() + sha256(data).digest()
        )
    return VERSION + total.hexdigest()


def _parse(path: str, entry: Entry) -> ast.Module | None:
    if not path.endswith(".py") or entry.mode == LINK or len(entry.data) > _PYTHON_BYTES:
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
