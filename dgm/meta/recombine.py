"""The operator ``recombine``: a procedure from the best steps of several attempts, built into the agent.

Source: arXiv:2508.02085 (SE-Agent), which revises, recombines and refines trajectories of a task while it is worked on.
Here the result is no further trajectory but an edit of the agent: what the attempts teach is part of its source, and
its descendants inherit it.
"""

from collections.abc import Sequence

from dgm.domain import TaskId
from dgm.errors import AgentFault
from dgm.messages import Request
from dgm.meta.evidence import fit_to_budget
from dgm.meta.issue import RELATIVES, IssueOperator, Part, case_parts, describe_last_change, source_part
from dgm.protocols import Brief, Case, Needs, Proposal, Workbench

TASKS = 2
"""Maximum number of tasks whose attempts are shown."""
ATTEMPTS = 3
"""Maximum number of attempts at a task that are shown side by side."""


class Recombine(IssueOperator):
    """An operator with one parent and one child: attempts side by side, a revised procedure, an edit by the parent."""

    name = "recombine"
    needs = Needs(failures=1, relatives=RELATIVES, attempts=TASKS)

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Ask for a revised procedure, then let the agent build it into itself.

        Raises:
            AgentFault: stage ``evidence``: there is no attempt of the parent; or as ``Diagnose.make``.
        """
        parent = brief.parents[0]
        groups = choose_attempts(brief)
        if not groups:
            raise AgentFault("evidence", "there is no attempt of the parent to learn from")
        parts = [*attempt_parts(groups), source_part(parent)]
        values: dict[str, object] = {
            "agent": parent.agent.id,
            "last": describe_last_change(parent.agent),
            "attempts": sum(map(len, groups)),
            "tasks": len(groups),
        }

        def build(chars: int) -> Request:
            return self._question("recombine", brief, {**values, "parts": fit_to_budget(parts, chars)})

        return await self._make(brief, bench, build)


def choose_attempts(brief: Brief) -> Sequence[Sequence[Case]]:
    """Return the attempts to show, by task: of each the parent's first one, then those that ended otherwise.

    Tasks that were solved in one attempt and not in another come first. Tasks with one attempt are shown only if
    there is no other: there is nothing to recombine, but one attempt can still be revised.
    """
    parent = brief.parents[0].agent.id
    by_task: dict[TaskId, list[Case]] = {}
    for case in sorted(brief.cases, key=lambda case: case.evaluation.agent != parent):
        by_task.setdefault(case.evaluation.task, []).append(case)
    groups = [cases for cases in by_task.values() if cases[0].evaluation.agent == parent]
    several = [cases for cases in groups if len(cases) > 1] or groups
    for cases in several:
        first = cases[0].evaluation.verdict
        cases[1:] = sorted(cases[1:], key=lambda case: case.evaluation.verdict is first)
    several.sort(key=lambda cases: len({case.evaluation.verdict for case in cases}) < 2)
    return [cases[:ATTEMPTS] for cases in several[:TASKS]]


def attempt_parts(groups: Sequence[Sequence[Case]]) -> Sequence[Part]:
    """Return each task's problem once, then conversation, patch and failed tests of each attempt at it."""
    parts: list[Part] = []
    for number, cases in enumerate(groups, 1):
        parts.append((f"problem {number}", cases[0].problem.encode()))
        for attempt, case in enumerate(cases, 1):
            evaluation = case.evaluation
            whose = f"problem {number}, attempt {attempt} (agent {evaluation.agent}, {evaluation.verdict}): "
            parts += case_parts(case, whose)[1:]
    return parts
