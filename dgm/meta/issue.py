"""The operators ``diagnose`` and ``compare``: a model writes an issue about the agent, which the agent implements.

``diagnose`` shows one failure: arXiv:2505.22954 (the Darwin Gödel Machine), section 3. ``compare`` shows where the same
agent does well and badly, and where a relative solves a task that it does not: the reaction norm of arXiv:2608.07645, a
program as its response over many conditions.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from dgm.domain import Agent, TaskId, Verdict
from dgm.errors import AgentFault
from dgm.messages import Message, Request, Role
from dgm.meta.answers import (
    Answer,
    Flag,
    MalformedAnswer,
    Text,
    ask_shortened,
    ask_until_readable,
    read_answer,
)
from dgm.meta.evidence import fit_to_budget, plain
from dgm.meta.operators import OperatorContext
from dgm.meta.self_edit import edit_source, problem_values, propose_child
from dgm.meta.task_words import TaskWords
from dgm.protocols import Brief, Case, Member, Needs, Proposal, Workbench

UNRESOLVED = "unresolved"
"""One task that the agent did not solve."""
EMPTY = "empty"
"""Tasks on which the agent left an empty patch."""
STOCHASTIC = "stochastic"
"""The agent's varying success on the same task."""
CONTEXT = "context"
"""Tasks on which the agent's conversation exceeded its model's context."""
ENTRIES = (UNRESOLVED, EMPTY, STOCHASTIC, CONTEXT)
"""Kinds of entry of ``diagnose``; ``choose_selfimproves`` of github.com/jennyzzt/dgm calls them a random unresolved
task, ``solve_empty_patches``, ``solve_stochasticity`` and ``solve_contextlength``."""
EMPTY_SHARE = 0.1
"""Minimum share of an agent's tasks with empty patches; below it they are no entry."""
SHARE = 0.25
"""Probability of each kind but the first, where it is possible, tried in the order empty, stochastic, context."""

SKELETON = '{"log_summary": "...", "problem": "...", "proposal": "...", "general": true or false}'
"""The form of an issue in words."""
RELATIVES = 3
ROWS = 60
"""Maximum rows of the task table; tasks on which agents differ come first."""

_NOTES_CHARS = 8_000
"""Maximum characters of people's notes in a question."""

Part = tuple[str, bytes]
"""Title and content of a quoted text in a question."""


class Issue(Answer):
    """A problem of an agent, with a proposed remedy."""

    log_summary: Text
    problem: Text
    proposal: Text
    general: Flag


def read_issue(text: str, tasks: TaskWords) -> Issue:
    """Return the issue in a model's answer.

    Raises:
        MalformedAnswer: it is none, or not general: it must name none of ``tasks``.
    """
    issue = read_answer(Issue, text)
    if not issue.general:
        raise MalformedAnswer("the proposal is not general; find one that helps on other problems, too")
    tasks.check_general(issue.problem, "the problem")
    tasks.check_general(issue.proposal, "the proposal")
    return issue


class IssueOperator:
    """An operator with one parent and one child, made by way of an issue."""

    def __init__(self, making: OperatorContext) -> None:
        self.making = making

    async def _make(self, brief: Brief, bench: Workbench, build: Callable[[int], Request]) -> Proposal:
        """Ask for an issue by ``build``, a question with about so many characters; let the parent implement it."""
        making, tasks = self.making, TaskWords.of(brief)

        async def ask(question: Request) -> Issue:
            return await ask_until_readable(
                bench,
                question,
                lambda text: read_issue(text, tasks),
                making.settings.retries,
                "diagnose",
                SKELETON,
            )

        issue = await ask_shortened(build, making.evidence.prompt_chars, ask)
        values = {**problem_values(brief), "problem": issue.problem, "proposal": issue.proposal}
        work = await edit_source(making, brief, bench, making.prompts.fill("implement", values))
        text = f"What happened: {issue.log_summary}\n\nProblem: {issue.problem}\n\nProposal: {issue.proposal}\n\n"
        proposal = propose_child(brief, work)
        return replace(proposal, log=text.encode("utf-8", "replace") + proposal.log)

    def _question(self, name: str, brief: Brief, values: dict[str, object]) -> Request:
        prompts = self.making.prompts
        text = prompts.fill(f"{name}-question", {**brief.facts, **values})
        if brief.notes:
            notes = fit_to_budget(
                [("what people say of the agent and its ancestors", brief.notes)], _NOTES_CHARS
            )
            text = f"{text.rstrip()}\n\n{notes}\n"
        messages = Message(Role.SYSTEM, prompts.fill(name, {})), Message(Role.USER, text)
        return Request(messages, form=Issue.form())


class Diagnose(IssueOperator):
    """One failure, by the kind of entry that the brief aims at."""

    name = "diagnose"
    needs = Needs(failures=1, aims=ENTRIES)

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Ask for an issue about the agent, then let the agent implement it.

        Raises:
            AgentFault: stage ``evidence``: the agent has no failure; stage ``answer``: there was no usable issue; or as
                ``bench.work`` raises.
            Infrastructure: the sandbox or a model failed.
        """
        parent, entry = brief.parents[0], brief.aim if brief.aim in ENTRIES else UNRESOLVED
        failed, solved = _cases_by_verdict(brief)
        if not failed:
            raise AgentFault("evidence", "the parent has failed at nothing that could be diagnosed")
        about = next((case for case in failed if case.action == brief.case), failed[0])
        parts = [*case_parts(about)]
        if entry == STOCHASTIC and solved:
            parts += case_parts(solved[0], "for comparison: a solved task's ")
        parts.append(source_part(parent))
        values: dict[str, object] = {
            "last": describe_last_change(parent.agent),
            "entry": self.making.prompts.fill(f"diagnose-{entry}", brief.facts).strip(),
        }

        def build(chars: int) -> Request:
            return self._question("diagnose", brief, {**values, "parts": fit_to_budget(parts, chars)})

        return await self._make(brief, bench, build)


class Compare(IssueOperator):
    """The agent's verdicts beside those of others, one failure and one success of it, and how others solved it."""

    name = "compare"
    needs = Needs(failures=1, relatives=RELATIVES)

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Ask for an issue about the agent, then let the agent implement it; raise as ``Diagnose.make``."""
        agent = brief.parents[0].agent
        parts = compare_parts(brief)
        if not parts:
            raise AgentFault("evidence", "the parent has failed at nothing that could be compared")
        values: dict[str, object] = {"agent": agent.id, "last": describe_last_change(agent)}

        def build(chars: int) -> Request:
            return self._question("compare", brief, {**values, "parts": fit_to_budget(parts, chars)})

        return await self._make(brief, bench, build)


def compare_parts(brief: Brief) -> Sequence[Part]:
    """Return the table of verdicts, two cases of the first parent, and others' solutions of tasks that it failed.

    Empty if it has failed at nothing.
    """
    me, others = brief.parents[0], [*brief.parents[1:], *brief.members]
    missed = {task for task, verdict in me.verdicts.items() if verdict is Verdict.UNRESOLVED}
    solutions = [
        case
        for case in brief.cases
        if case.evaluation.agent != me.agent.id
        and case.evaluation.verdict is Verdict.RESOLVED
        and case.evaluation.task in missed
    ]
    failed, solved = _cases_by_verdict(brief)
    solvable = {case.evaluation.task for case in solutions}
    failure = next((case for case in failed if case.evaluation.task in solvable), next(iter(failed), None))
    if failure is None:
        return []
    parts: list[Part] = [
        ("who solves what", verdict_table(me, others)),
        *case_parts(failure, "failed: the agent's "),
    ]
    if solved:
        parts += [part for part in case_parts(solved[0], "solved: the agent's ") if part[1]]
    gains = {
        n: sum(other.verdicts.get(task) is Verdict.RESOLVED for task in missed)
        for n, other in enumerate(others)
    }
    best = sorted((n for n in gains if gains[n]), key=lambda n: (-gains[n], others[n].agent.id))
    for n in best[:RELATIVES]:
        agent, change = others[n].agent, others[n].change
        parts.append(
            (f"agent {agent.id}: what was changed and why", f"{agent.rationale or 'not said'}\n".encode())
        )
        if change:
            parts.append((f"agent {agent.id}: the change", change))
        by_agent = [case for case in solutions if case.evaluation.agent == agent.id]
        by_agent.sort(key=lambda case: case.evaluation.task != failure.evaluation.task)
        for case in by_agent[:1]:
            task = case.evaluation.task
            parts.append((f"agent {agent.id}: how it solved {task}", case.traces["conversation"]))
            parts.append((f"agent {agent.id}: its patch for {task}", case.traces["patch"]))
    return [*parts, source_part(me)]


def verdict_table(me: Member, others: Sequence[Member]) -> bytes:
    """Return a row for each task with every agent's verdict, tasks that others solve and ``me`` does not first."""
    agents = (me, *others)

    def key(task: TaskId) -> tuple[bool, bool, TaskId]:
        mine = me.verdicts.get(task)
        theirs = [other.verdicts.get(task) for other in others]
        return not (mine is Verdict.UNRESOLVED and Verdict.RESOLVED in theirs), mine is None, task

    tasks = sorted(set().union(*(agent.verdicts for agent in agents)), key=key)
    head = "problem | " + " | ".join(f"agent {agent.agent.id}" for agent in agents)
    rows = [
        f"{task} | " + " | ".join(agent.verdicts.get(task) or "-" for agent in agents)
        for task in tasks[:ROWS]
    ]
    more = [f"({len(tasks) - ROWS} more)"] if len(tasks) > ROWS else []
    return ("\n".join([head, *rows, *more]) + "\n").encode()


def _cases_by_verdict(brief: Brief) -> tuple[Sequence[Case], Sequence[Case]]:
    """Return the first parent's failed and solved cases."""
    cases = [case for case in brief.cases if case.evaluation.agent == brief.parents[0].agent.id]
    failed = [case for case in cases if case.evaluation.verdict is Verdict.UNRESOLVED]
    return failed, [case for case in cases if case.evaluation.verdict is Verdict.RESOLVED]


def describe_last_change(agent: Agent) -> str:
    """Return what an agent's last change was, for the middle of a sentence."""
    return agent.rationale.rstrip(".") or (
        "not said" if agent.parents else "none, the search started from it"
    )


def case_parts(case: Case, whose: str = "the agent's ") -> Sequence[Part]:
    """Return a case's problem and traces; ``whose`` begins each title."""
    evaluation, traces = case.evaluation, case.traces
    tests = f"{evaluation.verdict}: {evaluation.reason}\n".encode() + traces["failures"]
    return (
        (f"{whose}problem", case.problem.encode()),
        (f"{whose}conversation", traces["conversation"]),
        (f"{whose}patch", traces["patch"]),
        (f"{whose}failed tests", tests),
        (f"{whose}printed output", traces["log"]),
    )


def source_part(member: Member) -> Part:
    """Return an agent's text files, each below its path."""
    files = [
        f"--- {path}\n".encode() + data for path, data in plain(member.source).items() if b"\0" not in data
    ]
    return "the agent's source", b"\n".join(files)
