"""The operator ``distil``: lessons from solved and unsolved attempts, kept in a memory file of the agent itself.

A model contrasts attempts at the same tasks and writes lessons, which the agent shows to its model. A lesson that
later evaluations contradict is dropped at the next distillation. Sources: EvolveR (arXiv:2510.16079), Training-Free
GRPO (arXiv:2510.08191), ReCreate (arXiv:2601.11100). Departure: a lesson's worth is the difference between agents with
and without it, not the success of its uses.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Annotated

from pydantic import AfterValidator, Field

from dgm.domain import Entry, Prediction, Snapshot, Verdict
from dgm.errors import AgentFault
from dgm.messages import Message, Request, Role
from dgm.meta.answers import Answer, MalformedAnswer, Text, ask_shortened, ask_until_readable, read_answer
from dgm.meta.evidence import fit_to_budget
from dgm.meta.issue import Part, case_parts
from dgm.meta.lessons import (
    MAX_CHARS,
    MAX_LESSONS,
    PATH,
    Attempt,
    Lesson,
    Record,
    format_lessons,
    read_lessons,
    reads_lessons,
    record_of,
    task_digest,
)
from dgm.meta.operators import OperatorContext
from dgm.meta.self_edit import edit_source, problem_values
from dgm.meta.task_words import MAX_PREDICTIONS, TaskWords, promisable_tasks
from dgm.protocols import Brief, Case, Needs, Proposal, Workbench

SKELETON = '{"lessons": [{"lesson": "...", "contrasts": [1]}]}'
"""The form of an answer in words."""
_CONTRASTS, _NEW = 4, 3
"""Maximum numbers of contrasts that are shown, and of new lessons."""

Contrast = tuple[Case, Case]
"""An unsolved attempt and a solved one."""


class NewLesson(Answer):
    """A lesson in a model's answer."""

    lesson: Annotated[Text, AfterValidator(lambda text: " ".join(text.split())), Field(max_length=MAX_CHARS)]
    contrasts: Annotated[tuple[int, ...], Field(min_length=1)]
    """Numbers of the contrasts that teach it, from 1."""


class Lessons(Answer):
    """A model's answer; it may hold no lesson."""

    lessons: tuple[NewLesson, ...]


class Distil:
    """An operator with one parent and one child, which differs from it in what it remembers."""

    name = "distil"
    needs = Needs(failures=1, successes=1, relatives=3, attempts=_CONTRASTS, ancestors=8)

    def __init__(self, making: OperatorContext) -> None:
        self.making = making

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Drop contradicted lessons, ask for new ones, and have the parent read them if it does not yet.

        The child is predicted to solve the parent's failures from which the new lessons were drawn. Where there are too
        many lessons, those that gained least make room for new ones, the older of equals first.

        Raises:
            AgentFault: stage ``evidence``: there is nothing to contrast; ``memory``: the edited agent does not read its
                lessons; or as ``ask_until_readable`` and ``bench.work`` raise.
            Infrastructure: the sandbox or a model failed.
        """
        source = brief.parents[0].source
        records = {lesson: record_of(lesson, brief) for lesson in read_lessons(source)}
        lasting = [lesson for lesson, record in records.items() if not record.is_contradicted]
        contrasts = find_contrasts(brief)
        if not contrasts and len(lasting) == len(records):
            raise AgentFault("evidence", "there is no solved attempt to hold against the unsolved ones")
        fresh = await self._ask(brief, bench, records, contrasts) if contrasts else []
        surplus = max(0, len(lasting) + len(fresh) - MAX_LESSONS)
        lasting = sorted(lasting, key=lambda lesson: records[lesson].gain)[surplus:]
        dropped = [lesson for lesson in records if lesson not in lasting]
        lessons = [*(lesson for lesson in records if lesson in lasting), *fresh]
        log = [f"new: {lesson.text}" for lesson in fresh]
        log += [f"dropped ({records[lesson]}): {lesson.text}" for lesson in dropped]
        child: Snapshot = {**source, PATH: Entry(format_lessons(lessons))}
        output = b""
        if not reads_lessons(source):
            problem = self.making.prompts.fill("distil-wire", {**problem_values(brief), "path": PATH})
            work = await edit_source(self.making, brief, bench, problem, child)
            child, output = {**work.workspace, PATH: child[PATH]}, work.completed.output
            if not reads_lessons(child):
                raise AgentFault("memory", f"the agent does not read {PATH} after the edit", output)
        summary = " ".join(
            [f"Lessons: {len(fresh)} new, {len(dropped)} dropped.", *(each.text for each in fresh)]
        )
        promised = {task_digest(task): task for task in promisable_tasks(brief)}
        reasons = {
            promised[attempt.task]: lesson.text
            for lesson in fresh
            for attempt in lesson.evidence
            if attempt.task in promised
        }
        return Proposal(
            child,
            summary[:200],
            "\n".join([*log, ""]).encode("utf-8", "replace") + output,
            predictions=tuple(Prediction(*item) for item in reasons.items())[:MAX_PREDICTIONS],
        )

    async def _ask(
        self,
        brief: Brief,
        bench: Workbench,
        records: Mapping[Lesson, Record],
        contrasts: Sequence[Contrast],
    ) -> Sequence[Lesson]:
        """Return the lessons of the model's answer that are not among ``records``."""
        prompts, tasks = self.making.prompts, TaskWords.of(brief)
        parts = [part for number, each in enumerate(contrasts, 1) for part in _describe(number, each)]
        known = [f"- {lesson.text} ({record})" for lesson, record in records.items()]
        values = {**brief.facts, "lessons": "\n".join(known) or "None yet."}

        def build(chars: int) -> Request:
            text = prompts.fill("distil-question", {**values, "parts": fit_to_budget(parts, chars)})
            messages = Message(Role.SYSTEM, prompts.fill("distil", {})), Message(Role.USER, text)
            return Request(messages, form=Lessons.form())

        def read(text: str) -> Sequence[NewLesson]:
            new = read_answer(Lessons, text).lessons[:_NEW]
            for each in new:
                tasks.check_general(each.lesson, "a lesson")
                if not all(1 <= number <= len(contrasts) for number in each.contrasts):
                    raise MalformedAnswer(f"'contrasts': there are contrasts 1 to {len(contrasts)}")
            return new

        async def ask(question: Request) -> Sequence[NewLesson]:
            retries = self.making.settings.retries
            return await ask_until_readable(bench, question, read, retries, "diagnose", SKELETON)

        new = await ask_shortened(build, self.making.evidence.prompt_chars, ask)
        lessons = {lesson.key: lesson for lesson in (_lesson_of(each, contrasts) for each in new)}
        return [lesson for key, lesson in lessons.items() if all(key != other.key for other in records)]


def find_contrasts(brief: Brief) -> Sequence[Contrast]:
    """Return pairs of an unsolved and a solved attempt at the same task, the parent's own attempts where it has any.

    Where no task has both, they are the parent's failures beside successes at other tasks.
    """
    me = brief.parents[0].agent.id
    failed: dict[str, Case] = {}
    solved: dict[str, Case] = {}
    for case in sorted(brief.cases, key=lambda case: case.evaluation.agent != me):
        by_task = solved if case.evaluation.verdict is Verdict.RESOLVED else failed
        by_task.setdefault(case.evaluation.task, case)
    pairs = [(failed[task], solved[task]) for task in failed if task in solved]
    if not pairs:
        failures = [case for case in failed.values() if case.evaluation.agent == me]
        pairs = [*zip(failures, cycle(solved.values()), strict=False)]
    return pairs[:_CONTRASTS]


def _describe(number: int, contrast: Contrast) -> Iterator[Part]:
    for word, case in zip(("unsolved", "solved"), contrast, strict=True):
        whose = f"contrast {number}, {word}: agent {case.evaluation.agent}'s "
        yield from (part for part in case_parts(case, whose) if part[1])


def _lesson_of(new: NewLesson, contrasts: Sequence[Contrast]) -> Lesson:
    cases = [case for number in dict.fromkeys(new.contrasts) for case in contrasts[number - 1]]
    attempts = (
        Attempt(
            case.action, case.evaluation.agent, task_digest(case.evaluation.task), case.evaluation.verdict
        )
        for case in cases
    )
    return Lesson(new.lesson, tuple(attempts))
