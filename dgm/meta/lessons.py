"""An agent's lessons in its own source: ``memory/lessons.md``, and what evaluations say of each.

A lesson stands with the attempts from which it was drawn. Agents may have written anything into the file, so it is read
with bounds, and what does not have its form is left out.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

import msgspec

from dgm.archive.snapshots import LINK
from dgm.domain import ActionNumber, AgentNumber, Snapshot, Tally, TaskId, Verdict
from dgm.protocols import Brief

PATH = "memory/lessons.md"
"""File of an agent's source with its lessons: lines that begin with ``- ``, each above its evidence in JSON."""
MAX_LESSONS = 8
"""Maximum number of lessons of an agent."""
MAX_CHARS = 300
"""Maximum length of one lesson."""
TRIED = 2
"""Minimum evaluations of a lesson's tasks by agents that carry it, before it can be contradicted."""
_MAX_EVIDENCE, _FILE_BYTES = 16, 64_000
"""Maximum numbers of attempts behind a lesson, and of bytes that are read."""
_HEAD = b"""# Lessons

Each line that begins with a dash is a lesson for the model. The comment below it is its evidence; a lesson without
evidence is dropped when lessons are distilled the next time.
"""
_LESSON = re.compile(rf"^- ([^\n]{{1,{MAX_CHARS}}})\n<!-- evidence: (\[[^\n]*\]) -->$", re.M)


class Attempt(msgspec.Struct, frozen=True):
    """An evaluation from which a lesson was drawn."""

    evaluation: ActionNumber
    agent: AgentNumber
    task: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z")]
    """``task_digest`` of its task: a source that names tasks would count as one that has special cases."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson of an agent."""

    text: str
    """One line for the agent's model."""
    evidence: tuple[Attempt, ...]
    """The attempts from which it was drawn; their tasks are the lesson's tasks."""

    @property
    def key(self) -> str:
        """The text without case and layout: lessons with the same key are one."""
        return " ".join(self.text.casefold().split())


@dataclass(frozen=True, slots=True)
class Record:
    """The verdicts on a lesson's tasks."""

    carriers: Tally
    """First attempts of all shown agents that carry the lesson."""
    before: Tally
    """First attempts of the parent's shown ancestors that do not carry it."""

    @property
    def gain(self) -> float:
        """Difference of the two rates, from -1.0 to 1.0; 0.0 where one of them is unknown."""
        return self.carriers.rate - self.before.rate if self.carriers.n and self.before.n else 0.0

    @property
    def is_contradicted(self) -> bool:
        """True if agents with the lesson solve its tasks less often than their ancestors without it did."""
        return self.carriers.n >= TRIED and self.gain < 0

    def __str__(self) -> str:
        carriers, before = self.carriers, self.before
        return (
            f"its tasks: solved {carriers.resolved} of {carriers.n} with it,"
            f" {before.resolved} of {before.n} by ancestors without it"
        )


def task_digest(task: TaskId) -> str:
    """Return what stands for a task in an agent's source: 16 hexadecimal digits of the SHA-256 of its id."""
    return sha256(task.encode()).hexdigest()[:16]


def read_lessons(source: Snapshot) -> Sequence[Lesson]:
    """Return the lessons of an agent that have evidence, each once."""
    entry = source.get(PATH)
    if entry is None or entry.mode == LINK:
        return []
    lessons: dict[str, Lesson] = {}
    for text, evidence in _LESSON.findall(entry.data[:_FILE_BYTES].decode("utf-8", "replace")):
        with suppress(msgspec.DecodeError):
            attempts = msgspec.json.decode(evidence, type=tuple[Attempt, ...])
            lesson = Lesson(text, attempts[:_MAX_EVIDENCE])
            lessons.setdefault(lesson.key, lesson)
    return [*lessons.values()][:MAX_LESSONS]


def format_lessons(lessons: Sequence[Lesson]) -> bytes:
    """Return the file that ``read_lessons`` reads."""
    rows = (
        b"\n- %s\n<!-- evidence: %s -->\n"
        % (
            lesson.text.encode("utf-8", "replace"),
            msgspec.json.encode(lesson.evidence),
        )
        for lesson in lessons
    )
    return b"".join((_HEAD, *rows))


def reads_lessons(source: Snapshot) -> bool:
    """Return whether a file of an agent names the file of lessons."""
    name = PATH.rpartition("/")[2].encode()
    return any(name in entry.data for path, entry in source.items() if path != PATH)


def record_of(lesson: Lesson, brief: Brief) -> Record:
    """Return what the evaluations say of a lesson; verdicts are those of first attempts."""
    tasks = {attempt.task for attempt in lesson.evidence}
    line, carriers, before = {brief.parents[0].agent.id}, Tally(), Tally()
    for member in sorted((*brief.parents, *brief.members), key=lambda member: -member.agent.id):
        if member.agent.id in line:  # an ancestor, whose parents have smaller ids
            line.update(member.agent.parents)
        verdicts = [verdict for task, verdict in member.verdicts.items() if task_digest(task) in tasks]
        tally = Tally(verdicts.count(Verdict.RESOLVED), verdicts.count(Verdict.UNRESOLVED))
        if any(other.key == lesson.key for other in read_lessons(member.source)):
            carriers += tally
        elif member.agent.id in line:
            before += tally
    return Record(carriers, before)
