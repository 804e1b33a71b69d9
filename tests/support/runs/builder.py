"""One builder for runs that tests make by hand: it appends the steps of a search, and nothing is performed.

The modules beside this one decide which steps a run has and what stands in them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from dgm.archive.events import ActionStarted, ModelCalled, RunStarted, TaskGraded
from dgm.archive.journal import AnyReply, AnyRequest, CallWriter
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import (
    Action,
    ActionId,
    AgentId,
    Born,
    Budget,
    Cost,
    Entry,
    Evaluation,
    Expand,
    Findings,
    TaskId,
    Usage,
    Verdict,
)

"""A trace that is not there."""


def make_config(
    settings: Settings, benchmark: str = "1", sandbox: str = "bubblewrap", **more: object
) -> dict[str, object]:
    """Return what ``run.json`` holds, with ``benchmark`` as the version of the benchmark; ``more`` wins."""
    return {
        "id": "f" * 16,
        "settings": settings.model_dump(mode="json"),
        "sandbox": sandbox,
        "versions": {"benchmark": benchmark},
        **more,
    }


def create_run(folder: Path, config: Mapping[str, object], budget: Budget, tasks: Sequence[TaskId]) -> Run:
    """Create a run in a folder that does not exist, and start it; it has no seed yet."""
    run = Run.create(folder, dict(config))
    run.append(RunStarted(budget, tuple(tasks)))
    return run


class RunBuilder:
    """Appends whole steps to a run; ``run`` is open to write and is the caller's to close."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls = CallWriter()

    def begin(self, what: Action) -> ActionId:
        """Start an action."""
        action = self.run.tree.next_action
        self.run.append(ActionStarted(action, what))
        return action

    def record_call(
        self,
        action: ActionId,
        number: int,
        model: str,
        role: str = "solve",
        usage: Usage = Usage(),  # noqa: B008  (frozen)
        seconds: float = 0.0,
    ) -> None:
        """Record an answered model call without what was asked and answered."""
        self.run.append(ModelCalled(action, number, model, role, usage, seconds))

    def record_exchange(
        self,
        action: ActionId,
        number: int,
        request: AnyRequest,
        reply: AnyReply,
        model: str = "offline",
        role: str = "solve",
        usage: Usage = Usage(),  # noqa: B008  (frozen)
        seconds: float = 0.0,
    ) -> None:
        """Record an answered model call with what was asked and answered."""
        called = ModelCalled(action, number, model, role, usage=usage, seconds=seconds)
        self.run.commit([called], lambda log: self.calls.answer(log, action, number, request, reply))
        self.run.fold_committed()

    def commit(self, files: Mapping[str, Entry], parents: Sequence[int] = ()) -> str:
        """Commit the source of a child of agents."""
        return self.run.repository.commit(dict(files), [self.run.tree.agents[p].commit for p in parents])

    def bear(
        self,
        files: Mapping[str, Entry],
        parents: Sequence[int] = (),
        *,
        operator: str = "self-edit",
        rationale: str = "made",
        action: ActionId | None = None,
        cost: Cost | None = None,
        syntax: str = "",
        decided: str = "",
    ) -> AgentId:
        """Record the birth of an agent: the seed if it has no parents, else the child of an expansion.

        Without ``action``, an expansion is begun for it.
        """
        who = tuple(map(AgentId, parents))
        if action is None:
            action = self.begin(Expand(who, operator)) if who else ActionId(0)
        made = Born(
            who,
            operator if who else "seed",
            self.commit(files, parents),
            rationale,
            cost or Cost(),
            syntax,
        )
        recorded = self.run.birth(made, action, decided=decided)
        self.run.append(recorded)
        return recorded.id

    def record_verdict(
        self,
        action: ActionId,
        agent: int,
        task: TaskId,
        verdict: Verdict,
        reason: str = "made",
        *,
        attempt: int = 0,
        score: float = 0.0,
        cost: Cost | None = None,
        findings: Findings = (),
    ) -> None:
        """Record the verdict that ends an evaluation."""
        graded = Evaluation(AgentId(agent), task, attempt, verdict, reason, score, cost or Cost(), findings)
        self.run.append(TaskGraded(action, graded))
