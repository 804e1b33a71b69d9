"""The next files to read: results of the search for names, places in tracebacks, parts that were cut."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dgm.offline import localise, statement
from dgm.offline.knowledge import Conversation, view_fully
from dgm.offline.localise import Evidence
from dgm.offline.moves import RunCommand, View
from dgm.offline.statement import Statement

LIST = "find . -type f -not -path '*/.*' -not -name '*.pyc' | sort | head -300"
_HIT = re.compile(r"^(?:\./)?([\w./-]+\.py):(\d+):\s*(?:async +)?(def|class) +(\w+)", re.M)
_WINDOW = 60


@dataclass(frozen=True, slots=True)
class DefinitionHit:
    """A definition that a search found."""

    path: str
    line: int
    name: str


def search_command(problem: Statement, extra: frozenset[str] = frozenset()) -> str:
    """Return the command that finds the definitions of names in the problem, or of ``extra`` names."""
    names = sorted(extra) if extra else [n for n in problem.names if re.fullmatch(r"\w+", n)][:12]
    parts = [re.escape(name) for name in names]
    if not extra:
        parts += [f"\\w*{word}\\w*" for word in sorted(problem.words) if len(word) >= 4 and word.isascii()][
            :30
        ]
    pattern = "|".join(dict.fromkeys(parts)) or "\\w+"
    flag = "" if extra else "i"
    return (
        f"grep -rn{flag}E '^ *(async +)?(def|class) +({pattern})\\b' --include='*.py' --exclude-dir=tests ."
    )


def find_hits(conversation: Conversation) -> tuple[DefinitionHit, ...]:
    """Return every definition that the model's searches showed."""
    found: list[DefinitionHit] = []
    for step in conversation.steps:
        if isinstance(step.move, RunCommand) and step.move.command.startswith("grep -rn") and step.result:
            found += [DefinitionHit(m[1], int(m[2]), m[4]) for m in _HIT.finditer(step.result)]
    return tuple(dict.fromkeys(found))


def file_order(conversation: Conversation, problem: Statement, evidence: Evidence) -> list[str]:
    """Return the library's files, most suspicious first."""
    scores: dict[str, float] = {
        path: 0.0 for path in conversation.listing if path.endswith(".py") and not localise.is_test(path)
    }
    for hit in find_hits(conversation):
        scores[hit.path] = scores.get(hit.path, 0.0) + hit_weight(hit, problem, evidence)
    for frame in evidence.frames:
        scores[frame.path] = scores.get(frame.path, 0.0) + 3.0
    if evidence.trace is not None:
        for path in evidence.trace.suspicion:
            scores[path] = scores.get(path, 0.0) + 1.0 + 4.0 * evidence.trace.highest(path)
    for path, _ in evidence.ran or ():
        scores[path] = scores.get(path, 0.0) + 0.8
    for path in scores:
        name = path.rsplit("/", 1)[-1].removesuffix(".py")
        if statement.stem(name) in problem.words or name in problem.names:
            scores[path] += 1.5
        if name in ("__init__", "__main__", "setup", "conftest", "errors", "exceptions"):
            scores[path] -= 3.0
    for path in conversation.files:
        if not localise.is_test(path) and path.endswith(".py"):
            scores.setdefault(path, 0.0)
    return sorted(scores, key=lambda path: (-scores[path], path))


def hit_weight(hit: DefinitionHit, problem: Statement, evidence: Evidence) -> float:
    """Return the weight of a found definition as evidence for its file."""
    weight = 0.4
    if hit.name.endswith(("Error", "Exception")):
        return 0.3
    if hit.name in problem.names:
        weight += 3.0
    if hit.name in problem.called:
        weight += 1.0
    if hit.name in evidence.tested:
        weight += 3.0
    return weight


def next_window(conversation: Conversation, path: str, problem: Statement, evidence: Evidence) -> View | None:
    """Return the next part to view of a file not wholly seen, or ``None``.

    It surrounds the most suspicious line whose function was not seen to its end.
    """
    view = conversation.view(path)
    if view.complete:
        return None
    asked = [
        step.move for step in conversation.steps if isinstance(step.move, View) and step.move.path == path
    ]
    wanted = sorted(
        (hit for hit in find_hits(conversation) if hit.path == path),
        key=lambda hit: (-hit_weight(hit, problem, evidence), hit.line),
    )
    lines = [(frame.line, 0) for frame in reversed(evidence.frames) if frame.path == path]
    lines += [(hit.line, 3) for hit in wanted if hit_weight(hit, problem, evidence) >= 3.0]
    if evidence.trace is not None:
        lines[:0] = [(line, 0) for line in evidence.trace.suspects(path)]
    for line, _ in lines:
        if _is_block_seen(view.base, line):
            continue
        window = View(path, max(1, line - 12), line - 12 + _WINDOW)
        if window not in asked:
            return window
    return None


def _is_block_seen(lines: Mapping[int, str], line: int) -> bool:
    """Return whether the function around a line was seen to its end."""
    if line not in lines:
        return False
    start = line
    while start in lines and not re.match(r"\s*(?:async +)?def \w", lines[start]):
        start -= 1
    if start not in lines:
        return False
    depth = len(lines[start]) - len(lines[start].lstrip())
    row = start + 1
    while row in lines:
        text = lines[row]
        if text.strip() and len(text) - len(text.lstrip()) <= depth and not text.lstrip().startswith(")"):
            return True
        row += 1
    return False


def next_piece(conversation: Conversation, path: str) -> View | None:
    """Return the next unseen window of a file, in order."""
    return view_fully(conversation, path)


def test_modules(
    conversation: Conversation, problem: Statement, evidence: Evidence, edited: Sequence[str]
) -> list[str]:
    """Return the dotted names of test modules, the most fitting first."""
    paths = [path for path in conversation.listing if re.search(r"(?:^|/)test_\w+\.py$", path)]
    failing = {name.rsplit(".", 2)[0] for name in evidence.failing}

    def fit(path: str) -> tuple[int, float, str]:
        dotted = path.removesuffix(".py").replace("/", ".")
        words = {statement.stem(word) for word in statement.words(path)}
        near = any(path.rsplit("test_", 1)[-1] == name.rsplit("/", 1)[-1] for name in edited)
        return (-(dotted in failing), -(len(words & problem.words) + 2.0 * near), path)

    return [path.removesuffix(".py").replace("/", ".") for path in sorted(paths, key=fit)]
