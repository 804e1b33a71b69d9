"""Words of tasks and of agents: ids and paths that make a proposal specific, and an agent's statement on its work."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote

from dgm.domain import Prediction, TaskId, Verdict
from dgm.messages import Message, Role
from dgm.meta.answers import MalformedAnswer, drop_thinking
from dgm.protocols import Brief, Case, Member

MAX_PREDICTIONS = 20
_MAX_LINES, _REASON_CHARS = 200, 200
"""Maximum numbers of lines that are searched for predictions, and of characters of a reason."""
_NAME_END = re.compile(
    r"(?:-\d+)?/?[\])*`\"']*_*(?=[\s:,\uff1a\u2013\u2014]|$)\s*(?:[:,\uff1a\u2013\u2014]|-(?= ))?(.*)"
)
"""Pattern of what follows a task's name: the attempt of a case's folder, marks of layout, and the reason."""
_FEW = 0.34
"""Maximum share of the tasks that have a path by which one of them is told."""
_ID = re.compile(r"(?=.*[^a-zA-Z]).{4,}")
"""Pattern of task ids that are distinguishable from an ordinary word."""
_PATH = re.compile(r"(?<![\w./-])((?:[\w.+-]+/)+[\w+-][\w.+-]*\.[A-Za-z]{1,5})(?![\w/])")
_PATCHED = re.compile(r"^(?:\+\+\+ b|--- a)/(\S+/\S+)", re.M)
_MARKED = (
    r"(?:^(?:[^\w\"\n]|_)*(?:\d{{1,2}}[.)][ \t*_]*)?(?i:{0})|(?<=[.!?;] )[*_]*{0})"
    r"[*_`]*[ \t]*(?:[:\uff1a]|[-\u2013\u2014](?=\s)|$)(.*)|\"(?i:{0})\"\s*:\s*(\"(?:[^\"\\]|\\.)*\")"
)
"""Pattern of a marked line, a heading, or a member of a JSON object."""
_MARKUP = " \t\r*_`\"'>#:\uff1a"
_PLACEHOLDER = re.compile(r"<[^>]*>|[.\u2026\s]*|\[[^\]]*\]|[A-Z][a-z]+[:\uff1a].*")
_HANDS_IN = re.compile(r"(?i)submit|finish|done|complete|final")
"""Names of tools by which an agent hands in its work."""
_FENCE = re.compile(r"\s*(?:```|~~~)")
_SAYS_NOTHING = re.compile(r"(?i)\W*(?:done|finished|ok(?:ay)?|rationale\W*(?:<[^>]*>|\[[^\]]*\])?)?\W*")


@dataclass(frozen=True, slots=True)
class TaskWords:
    """Words of the tasks that an operator was shown; a proposal that holds one of them is not general."""

    ids: Collection[TaskId]
    paths: Collection[str]
    """Paths of files that few of the tasks and none of the agents have."""

    @classmethod
    def of(cls, brief: Brief) -> "TaskWords":
        """Return the words of all tasks in a brief."""
        return cls.gather(brief.cases, (*brief.parents, *brief.members))

    @classmethod
    def gather(cls, cases: Sequence[Case], agents: Sequence[Member]) -> "TaskWords":
        """Return the words of the cases' tasks, and the ids of all tasks that the agents tried."""
        ids = {case.evaluation.task for case in cases}.union(*(agent.verdicts for agent in agents))
        paths: dict[TaskId, set[str]] = {}
        for case in cases:
            patch = case.traces.get("patch", b"").decode("utf-8", "replace")
            paths.setdefault(case.evaluation.task, set()).update(
                _PATH.findall(case.problem), _PATCHED.findall(patch)
            )
        tasks = Counter(path for listed in paths.values() for path in listed)
        source = "\n".join(
            f"{path}\n{entry.data.decode('utf-8', 'replace')}"
            for agent in agents
            for path, entry in agent.source.items()
        )
        few = max(1, int(len(paths) * _FEW))
        return cls(
            frozenset(ids), frozenset(path for path, n in tasks.items() if n <= few and path not in source)
        )

    def find_mention(self, text: str) -> str:
        """Return a word of the tasks that a text holds; empty if there is none."""
        for task in sorted(self.ids):
            for name in (task, task.rpartition("__")[2], task.rpartition("/")[2]):
                pattern = r"[-_]".join(map(re.escape, re.split(r"[-_]", name)))
                if _ID.fullmatch(name) and _holds(text, pattern):
                    return task
        return next((path for path in sorted(self.paths) if _holds(text, re.escape(path))), "")

    def check_general(self, text: str, what: str) -> None:
        """Check that a text is about no particular task.

        Raises:
            MalformedAnswer: it holds a word of one.
        """
        if word := self.find_mention(text):
            raise MalformedAnswer(
                f"{what} names {word[:100]!r}, which belongs to one of the tasks: it is not general. It must be about"
                " the agent alone"
            )


def _holds(text: str, pattern: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){pattern}(?![\w-])", text, re.I))


def find_statement(conversation: Sequence[Message], mark: str) -> str:
    """Return the text after the last ``mark`` and a colon in the model's own words, in one line; empty without one.

    The mark may be bold, a heading, a key of JSON or in other case, and the text may stand in the next line. Thinking
    and a placeholder are no statement.
    """
    statement = ""
    for text in _list_texts(conversation):
        for match in re.finditer(_MARKED.format(re.escape(mark)), text, re.M):
            words = _clean(match[2] or match[1] or "")
            if not words and not match[2]:
                words = next(filter(None, map(_clean, text[match.end() :].splitlines())), "")
            if words and not _PLACEHOLDER.fullmatch(words):
                statement = words
    return statement


def find_lines(conversation: Sequence[Message], mark: str) -> Sequence[str]:
    """Return what stands behind ``mark`` and a colon in each such line of the last of the model's texts with one."""
    line = re.compile(rf"^(?:[^\w\"\n]|_)*(?i:{re.escape(mark)})[*_`]*[ \t]*[:\uff1a][*_`]*(.*)", re.M)
    return next(filter(None, map(line.findall, reversed([*_list_texts(conversation)]))), ())


def promisable_tasks(brief: Brief) -> Sequence[TaskId]:
    """Return the tasks that a child may be expected to resolve: those that the first parent failed, sorted."""
    verdicts = brief.parents[0].verdicts
    return sorted(task for task, verdict in verdicts.items() if verdict is Verdict.UNRESOLVED)


def read_predictions(lines: Iterable[str], tasks: Sequence[TaskId]) -> tuple[Prediction, ...]:
    """Return the predictions in lines ``TASK: reason``; a case's folder also names its task.

    Lines about other tasks than ``tasks`` are ignored, and so is what follows the first 200 lines or
    ``MAX_PREDICTIONS`` predictions. A task counts once.
    """
    names = {name: task for task in tasks for name in (quote(task, safe=""), task)}
    longest_first = sorted(names, key=len, reverse=True)
    predictions: dict[TaskId, Prediction] = {}
    for line in islice(lines, _MAX_LINES):
        words = " ".join(line.split()).lstrip(_MARKUP + "[(")
        for name in longest_first:
            if words.startswith(name) and (end := _NAME_END.match(words, len(name))):
                prediction = Prediction(names[name], _clean(end[1])[:_REASON_CHARS])
                predictions.setdefault(prediction.task, prediction)
                break
    return tuple(predictions.values())[:MAX_PREDICTIONS]


def find_last_words(conversation: Sequence[Message]) -> str:
    """Return the first line of the model's last message that says something; empty if there is none."""
    for text in [*_list_texts(conversation)][-1:]:
        for line in text.splitlines():
            if not _FENCE.match(line) and not _SAYS_NOTHING.fullmatch(line):
                return " ".join(line.split())
    return ""


def _list_texts(conversation: Sequence[Message]) -> Iterator[str]:
    """Yield the texts of the model without thinking, and those with which it hands in its work by a call."""
    for message in conversation:
        if message.role is not Role.ASSISTANT:
            continue
        if message.text.strip():
            yield drop_thinking(message.text.replace("\r\n", "\n"))
        for call in message.calls:
            arguments: object = None
            with suppress(ValueError):
                arguments = json.loads(call.arguments) if _HANDS_IN.search(call.name) else None
            for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
                if isinstance(value, str) and value.strip():
                    yield (
                        f"{name.capitalize()}: {value}" if name.lower() in ("rationale", "general") else value
                    )


def _clean(text: str) -> str:
    """Return a text in one line without marks of layout around it; a fence is none."""
    if _FENCE.match(text):
        return ""
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        with suppress(ValueError):
            text = str(json.loads(text))
    return " ".join(text.split()).lstrip(_MARKUP).rstrip(_MARKUP.replace(">", ""))
