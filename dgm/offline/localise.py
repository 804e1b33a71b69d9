"""Suspicion of units and lines: evidence from tracebacks, the example's run, and the words of the problem."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dgm.offline import results, statement, tracing
from dgm.offline.files import FileView
from dgm.offline.knowledge import Conversation
from dgm.offline.moves import View
from dgm.offline.mutations.code import Unit
from dgm.offline.results import Frame
from dgm.offline.statement import Statement
from dgm.offline.tracing import Trace

_UNTRACED = 0.05
"""Factor for the suspicion of a place that the failing run did not reach."""
_RAN = re.compile(r"^ran ([\w./-]+\.py):(\d+) (\w+)$", re.M)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence from runs so far.

    Attributes:
        frames: traceback frames outside the tests, deepest last, path relative to the repository.
        tested: names that failing tests call.
        failing: ids of failing tests.
        test_places: file and line of frames inside tests.
        messages: last lines of tracebacks.
        trace: the lines that the failing runs went through; ``None`` if they were not traced.
        ran: first line of each function that the example ran, by file; ``None`` if it was not traced.
    """

    frames: tuple[Frame, ...] = ()
    tested: frozenset[str] = frozenset()
    failing: tuple[str, ...] = ()
    test_places: tuple[tuple[str, int], ...] = ()
    messages: tuple[str, ...] = ()
    ran: frozenset[tuple[str, int]] | None = None
    trace: Trace | None = None


def is_test(path: str) -> bool:
    """Return whether a path is that of a test."""
    return bool(re.search(r"(?:^|/)tests?/|(?:^|/)test_\w+\.py$|_test\.py$", path))


def gather(conversation: Conversation) -> Evidence:
    """Collect the evidence in all results except views of files.

    Failures that a failed candidate caused count no more than others.
    """
    gathered = _EvidenceGatherer(conversation)
    for step in conversation.steps:
        gathered.edited = gathered.edited or step.done
        if step.result is None or (isinstance(step.move, View)):
            continue
        gathered.take(step.result)
    gathered.settle()
    for place in gathered.places:
        gathered.read_test(conversation.view(place[0]), place[1])
    return Evidence(
        frames=tuple(dict.fromkeys(gathered.frames)),
        tested=frozenset(gathered.tested),
        failing=tuple(dict.fromkeys(gathered.failing)),
        test_places=tuple(dict.fromkeys(gathered.places)),
        messages=tuple(dict.fromkeys(gathered.messages)),
        ran=frozenset(gathered.ran) if gathered.ran else None,
        trace=gathered.trace,
    )


@dataclass
class _EvidenceGatherer:
    conversation: Conversation
    frames: list[Frame] = field(default_factory=list)
    tested: set[str] = field(default_factory=set)
    failing: list[str] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    ran: set[tuple[str, int]] = field(default_factory=set)
    trace: Trace | None = None
    edited: bool = False
    blamed: bool = False
    """Whether the known failures existed before any edit."""
    sound: bool = False
    """Whether the tests passed before any edit: a candidate then caused any later failure."""
    always: frozenset[str] | None = None
    """Tests that failed in every run after an edit."""

    def take(self, text: str) -> None:
        self.trace = self.trace or tracing.parse_trace(text)
        run = results.test_run(text)
        self.ran |= {(match[1], int(match[2])) for match in _RAN.finditer(text)}
        if run is not None and run.passed is True and not self.edited:
            self.sound = True
        if run is not None and run.passed is False and run.failing and self.edited and not self.blamed:
            seen = frozenset(run.failing)
            self.always = seen if self.always is None else self.always & seen
        if run is not None and run.passed is False and not self.failing and not self.sound:
            self.blamed = not self.edited
            self.failing += run.failing
            self.messages += run.messages
            for frame in run.frames:
                self.frame(frame)
        elif run is None and "REPRO" in text:
            self.messages += results.parse_error_lines(text)
            for frame in results.parse_frames(text):
                self.frame(frame)

    def settle(self) -> None:
        """Forget failures if no test failed in every run after an edit: candidates caused them."""
        if self.always is not None and not self.always and not self.blamed:
            self.failing, self.messages, self.frames, self.places = [], [], [], []
            self.tested = set()

    def frame(self, frame: Frame) -> None:
        path = relative(frame.path, self.conversation)
        if path is None:
            return
        if is_test(path):
            self.places.append((path, frame.line))
            self.tested |= statement.names_called(frame.source)
        else:
            self.frames.append(Frame(path, frame.line, frame.function, frame.source))

    def read_test(self, view: FileView, line: int) -> None:
        """Add the names that the test around a line calls, if its lines were seen."""
        row = line
        while row in view.lines and not re.match(r"\s*def \w", view.lines[row]):
            row -= 1
        if row in view.lines:
            text = "\n".join(
                view.lines[number] for number in range(row + 1, line + 1) if number in view.lines
            )
            self.tested |= statement.names_called(text)


def relative(path: str, conversation: Conversation) -> str | None:
    """Return a traceback's path relative to the repository; ``None`` for one outside it."""
    known = [*conversation.listing, *conversation.files]
    root = conversation.root
    if root and path.startswith(root + "/"):
        return path[len(root) + 1 :]
    return next((name for name in known if path == name or path.endswith("/" + name)), None)


def score_units(units: Sequence[Unit], problem: Statement, evidence: Evidence) -> Mapping[Unit, float]:
    """Return the suspicion of each unit: a score of its names and words against the problem and the evidence.

    A unit gains from suspicious units that call it. A trace, or the example's run, scales the result.
    """
    scores = {unit: _own_score(unit, problem, evidence) for unit in units}
    called = {unit: statement.names_called("\n".join(unit.lines[1:]), special=False) for unit in units}
    spread = dict(scores)
    for weight in (0.4, 0.16):
        for unit, score in scores.items():
            if score < 2:
                continue
            names = called[unit]
            for other in units:
                if other is not unit and other.name in names and spread[other] < score:
                    spread[other] += weight * score
        scores, spread = spread, dict(spread)
    if evidence.trace is not None:
        return {unit: score * _score_by_trace(unit, evidence.trace) for unit, score in scores.items()}
    if evidence.ran is not None:
        ran = evidence.ran
        for unit in units:
            inside = any(
                path == unit.path and unit.first - 3 <= row <= unit.first + len(unit.lines)
                for path, row in ran
            )
            function = unit.lines[0].lstrip().startswith(("def ", "async "))
            scores[unit] *= (1.6 if inside else 0.12) if function else 0.6
    return scores


def _score_by_trace(unit: Unit, trace: Trace) -> float:
    """Return the factor of a trace for a unit: small if no line of it ran, else rising with its suspicion."""
    if not unit.lines[0].lstrip().startswith(("def ", "async ", "@")):
        return 0.6
    share = trace.highest(unit.path, unit.first, unit.first + len(unit.lines) - 1)
    if not share:
        return _UNTRACED if trace.complete else 0.3
    return 0.7 + 1.3 * float(share**0.5)


def _score_line_by_trace(unit: Unit, line: int, trace: Trace) -> float:
    """Return the factor of a trace for one line of a unit.

    A function's head runs when the function is defined, which no trace shows.
    """
    share = trace.highest(unit.path, line, line)
    if not share and line == unit.first:
        share = 0.7 * trace.highest(unit.path, line, line + len(unit.lines) - 1)
    if not share:
        return _UNTRACED if trace.complete else 0.3
    return 0.4 + 1.2 * float(share**0.5)


def _own_score(unit: Unit, problem: Statement, evidence: Evidence) -> float:
    score = 0.2
    if unit.name in problem.names:
        score += 2.5 if unit.name in problem.names[:3] else 1.8
    elif statement.stem(unit.name) in problem.words:
        score += 1.2
    if unit.name in problem.called:
        score += 1.2
    if unit.name in evidence.tested:
        score += 2.5
    if unit.owner.endswith(("Error", "Exception")):
        return 0.2
    if unit.owner and unit.owner in problem.names:
        score += 0.5
    last = unit.first + len(unit.lines)
    frames = [
        frame for frame in evidence.frames if frame.path == unit.path and unit.first <= frame.line < last
    ]
    if frames:
        score += 3.0 + (1.5 if evidence.frames and evidence.frames[-1] in frames else 0)
    name_words = {statement.stem(word) for word in statement.words(unit.name + " " + unit.owner)}
    score += 0.8 * len(name_words & problem.words)
    body = {statement.stem(word) for row in unit.lines for word in statement.words(row)}
    shared = len(body & problem.words)
    score += min(2.0, 0.25 * shared)
    if not unit.lines[0].lstrip().startswith(("def ", "async ")):
        score *= 0.5
    return score


def line_weight(unit: Unit, line: int, problem: Statement, evidence: Evidence) -> float:
    """Return the suspicion of a line relative to the rest of its unit."""
    weight = 1.0
    if evidence.trace is not None:
        weight *= _score_line_by_trace(unit, line, evidence.trace)
    if any(frame.path == unit.path and frame.line == line for frame in evidence.frames):
        weight *= 2.0
    row = unit.lines[min(max(line - unit.first, 0), len(unit.lines) - 1)]
    shared = {statement.stem(word) for word in statement.words(row)} & problem.words
    weight *= 1.0 + 0.25 * min(len(shared), 3)
    stripped = row.strip()
    if re.match(r"(?:log|logger|logging|print|warnings)\b", stripped):
        weight *= 0.1
    if stripped.startswith("raise ") and not re.search(r"Error|rais|refus|reject|exception", problem.text):
        weight *= 0.3
    return weight
