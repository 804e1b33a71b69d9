"""The operator ``compare``: a comparison of agents across tasks becomes an issue about one agent.

It shows where the same agent does well and badly, and where a relative solves a task that it does not. This is the
reaction-norm idea of arXiv:2608.07645: a program is characterised by its response over many conditions, not by one.
"""

from collections.abc import Sequence

from dgm.domain import TaskId, Verdict
from dgm.errors import AgentFault
from dgm.messages import Message, Request, Role
from dgm.meta.context import OperatorContext
from dgm.meta.evidence import fit_to_budget
from dgm.meta.implementing import (
    FORM,
    Part,
    ask_for_issue,
    case_parts,
    describe_last_change,
    implement,
    source_part,
)
from dgm.protocols import Brief, Case, Member, Needs, Proposal, Workbench

ROLE = "diagnose"
RELATIVES = 3
ROWS = 60
"""Maximum rows of the task table; tasks on which agents differ come first."""


class Compare:
    """An operator with one parent and one child."""

    name = "compare"
    needs = Needs(failures=1, relatives=RELATIVES)

    def __init__(self, making: OperatorContext) -> None:
        self.making = making

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Ask for an issue about the agent, then let the agent implement it.

        Raises:
            AgentFault: stage ``evidence``: the agent has no failure; stage ``answer``: there was no usable issue; or as
                ``bench.work`` raises.
            Infrastructure: the sandbox or a model failed.
        """
        compared = _Comparison(brief)
        if compared.failure is None:
            raise AgentFault("evidence", "the parent has failed at nothing that could be compared")
        issue = await ask_for_issue(
            lambda chars: self._question(brief, fit_to_budget(compared.parts(), chars)),
            brief,
            bench,
            self.making,
            ROLE,
        )
        return await implement(issue, brief, bench, self.making)

    def _question(self, brief: Brief, parts: str) -> Request:
        agent, prompts = brief.parents[0].agent, self.making.prompts
        values = {
            **brief.facts,
            "agent": agent.id,
            "last": describe_last_change(agent),
            "parts": parts,
        }
        said = prompts.fill("compare-question", values)
        return Request(
            (Message(Role.SYSTEM, prompts.fill("compare", {})), Message(Role.USER, said)), form=FORM
        )


class _Comparison:
    """A comparison of one agent with others."""

    def __init__(self, brief: Brief) -> None:
        self._me = brief.parents[0]
        self._others = [*brief.parents[1:], *brief.members]
        self._cases = brief.cases
        self.agents: Sequence[Member] = (self._me, *self._others)
        own = [case for case in brief.cases if case.evaluation.agent == self._me.agent.id]
        failed = [case for case in own if case.evaluation.verdict is Verdict.UNRESOLVED]
        solved = [case for case in own if case.evaluation.verdict is Verdict.RESOLVED]
        taken = {case.evaluation.task for case in brief.cases if self._solves_failure(case)}
        by_others = [case for case in failed if case.evaluation.task in taken]
        self.failure = next(iter([*by_others, *failed]), None)
        self._success = next(iter(solved), None)

    def _solves_failure(self, case: Case) -> bool:
        """Return whether the case shows another agent solving a task that this one has failed."""
        evaluation = case.evaluation
        mine = self._me.verdicts.get(evaluation.task)
        return (
            evaluation.agent != self._me.agent.id
            and evaluation.verdict is Verdict.RESOLVED
            and mine is Verdict.UNRESOLVED
        )

    def parts(self) -> list[Part]:
        """Return the parts to show: the result table, two cases of the agent, and others' solutions of its failures."""
        assert self.failure is not None
        parts: list[Part] = [
            ("who solves what", self._verdict_table()),
            *case_parts(self.failure, "failed: the agent's "),
        ]
        if self._success:
            parts += [part for part in case_parts(self._success, "solved: the agent's ") if part[1]]
        for relative in self._find_solvers():
            parts += self._relative_parts(relative)
        return [*parts, source_part(self._me.source)]

    def _find_solvers(self) -> list[Member]:
        """Return other agents that solve this one's failures, the most such solutions first."""
        missed = [task for task, verdict in self._me.verdicts.items() if verdict is Verdict.UNRESOLVED]

        def gained(one: Member) -> int:
            return sum(one.verdicts.get(task) is Verdict.RESOLVED for task in missed)

        found = sorted(
            (one for one in self._others if gained(one)), key=lambda one: (-gained(one), one.agent.id)
        )
        return found[:RELATIVES]

    def _relative_parts(self, one: Member) -> list[Part]:
        number, failure = one.agent.id, self.failure
        assert failure is not None
        said = f"{one.agent.rationale or 'not said'}\n".encode()
        parts: list[Part] = [(f"agent {number}: what was changed and why", said)]
        if one.change:
            parts.append((f"agent {number}: the change", one.change))
        telling = [
            case for case in self._cases if case.evaluation.agent == number and self._solves_failure(case)
        ]
        telling.sort(key=lambda case: case.evaluation.task != failure.evaluation.task)
        for case in telling[:1]:
            task = case.evaluation.task
            parts.append((f"agent {number}: how it solved {task}", case.traces["conversation"]))
            parts.append((f"agent {number}: its patch for {task}", case.traces["patch"]))
        return parts

    def _verdict_table(self) -> bytes:
        tasks: set[TaskId] = set().union(*(one.verdicts for one in self.agents))

        def key(task: TaskId) -> tuple[bool, bool, TaskId]:
            mine = self._me.verdicts.get(task)
            theirs = [one.verdicts.get(task) for one in self._others]
            return not (mine is Verdict.UNRESOLVED and Verdict.RESOLVED in theirs), mine is None, task

        head = "problem | " + " | ".join(f"agent {one.agent.id}" for one in self.agents)
        shown = sorted(tasks, key=key)
        rows = [
            f"{task} | " + " | ".join(one.verdicts.get(task) or "-" for one in self.agents)
            for task in shown[:ROWS]
        ]
        more = [f"({len(shown) - ROWS} more)"] if len(shown) > ROWS else []
        return ("\n".join([head, *rows, *more]) + "\n").encode()
