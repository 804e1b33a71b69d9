"""Shared part of diagnosing and comparing: an issue about the agent, which its own program then implements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dgm.domain import Agent, Snapshot
from dgm.messages import Request
from dgm.meta.answers import (
    MalformedAnswer,
    ask_shortened,
    ask_until_readable,
    read_flag,
    read_object,
    read_text,
)
from dgm.meta.context import OperatorContext
from dgm.meta.evidence import plain
from dgm.meta.forms import FLAG, TEXT, make_form
from dgm.meta.generality import TaskWords
from dgm.meta.self_edit import edit_source, problem_values, rationale
from dgm.protocols import Brief, Case, Proposal, Workbench

KEYS = ("log_summary", "problem", "proposal", "general")
"""Required keys in the answer to a question about an agent."""
SKELETON = '{"log_summary": "...", "problem": "...", "proposal": "...", "general": true or false}'
"""The form of an answer to such a question."""
FORM = make_form("issue", {"log_summary": TEXT, "problem": TEXT, "proposal": TEXT, "general": FLAG})
SOURCE = "the agent's source"
"""Title of the part of a question with the agent's source."""


@dataclass(frozen=True, slots=True)
class Issue:
    """A problem of an agent, with a proposed remedy."""

    summary: str
    problem: str
    proposal: str

    @property
    def text(self) -> str:
        """The issue as readable text."""
        return f"What happened: {self.summary}\n\nProblem: {self.problem}\n\nProposal: {self.proposal}\n"


def read_issue(text: str, tasks: TaskWords) -> Issue:
    """Return the issue in a model's answer.

    Args:
        text: the answer.
        tasks: words of the tasks that were shown; an issue must not be about any of them.

    Raises:
        MalformedAnswer: it is not JSON with ``KEYS``, or not general.
    """
    answer = read_object(text, KEYS)
    issue = Issue(*(read_text(answer, key) for key in KEYS[:3]))
    if not read_flag(answer, "general"):
        raise MalformedAnswer("the proposal is not general; find one that helps on other problems, too")
    tasks.check_general(issue.problem, "the problem")
    tasks.check_general(issue.proposal, "the proposal")
    return issue


async def ask_for_issue(
    build: Callable[[int], Request], brief: Brief, bench: Workbench, making: OperatorContext, role: str
) -> Issue:
    """Ask a model for an issue about the agent, with less evidence where the question is too long for it.

    Args:
        build: makes the question with about so many characters of evidence.
        brief: the inputs of the operator.
        bench: sends the question.
        making: the operator's settings.
        role: the role that is charged.

    Raises:
        AgentFault: stage ``answer``: there was no usable issue.
        Infrastructure: the model failed.
    """
    tasks, retries = TaskWords.of(brief), making.settings.retries

    async def ask(question: Request) -> Issue:
        return await ask_until_readable(
            bench, question, lambda text: read_issue(text, tasks), retries, role, SKELETON
        )

    return await ask_shortened(build, making.evidence.prompt_chars, ask)


def describe_last_change(agent: Agent) -> str:
    """Return what was changed last in an agent, in words for a question."""
    return agent.rationale.rstrip(".") or (
        "not said" if agent.parents else "none, the search started from it"
    )


async def implement(issue: Issue, brief: Brief, bench: Workbench, making: OperatorContext) -> Proposal:
    """Let the first parent implement an issue on its own source.

    Raises:
        AgentFault: as ``edit_source``.
        Infrastructure: the sandbox or the model failed.
    """
    values = {**problem_values(brief), "problem": issue.problem, "proposal": issue.proposal}
    work = await edit_source(making, brief, bench, making.prompts.fill("implement", values))
    log = f"{issue.text}\n".encode("utf-8", "replace") + work.completed.output
    return Proposal(work.workspace, rationale(work.conversation), log)


Part = tuple[str, bytes]
"""Title and content of a quoted text in a question."""


def case_parts(case: Case, whose: str = "the agent's ") -> Sequence[Part]:
    """Return all traces of an evaluation as parts of a question."""
    evaluation, traces = case.evaluation, case.traces
    return (
        (f"{whose}problem", case.problem.encode()),
        (f"{whose}conversation", traces["conversation"]),
        (f"{whose}patch", traces["patch"]),
        (
            f"{whose}failed tests",
            f"{evaluation.verdict}: {evaluation.reason}\n".encode() + traces["failures"],
        ),
        (f"{whose}printed output", traces["log"]),
    )


def source_part(source: Snapshot) -> Part:
    """Return the agent's text files, one after the other, each below its path."""
    shown = [f"--- {path}\n".encode() + data for path, data in plain(source).items() if b"\0" not in data]
    return SOURCE, b"\n".join(shown)
