"""Findings against agents, and the drift of a lineage: misconduct, size, cost, calls and refusals."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from dgm.archive.events import CallRefused
from dgm.archive.run import Run, evaluations_of
from dgm.domain import ActionId, AgentId, Finding, Usage
from dgm.errors import DgmError
from dgm.views.values import View


class FindingView(View):
    """One thing that counts against an agent."""

    kind: str
    """``tests-tampered``, ``special-case``, ``checks-evaded``, ``protected-file``, ``hidden-tests-searched``,
    ``other-model``, ``network-asked``, ``foreign-data``, ``socket-opened``, ``canary-taken`` or ``insecure-code``."""
    detail: str
    location: str
    """``file:line`` or file of the patch or the agent's source; empty for what is no part of one."""

    @classmethod
    def all_of(cls, findings: Iterable[Finding]) -> tuple[Self, ...]:
        """Return the views of findings."""
        return tuple(
            cls(kind=finding.kind.value, detail=finding.detail, location=finding.location)
            for finding in findings
        )


class DriftStep(View):
    """One agent of a lineage in figures."""

    agent: int
    findings: int
    """Findings against it; see ``AgentRow``."""
    source_bytes: int | None
    """Size of its source; None if it cannot be read."""
    evaluations: int
    """Its evaluations with a verdict."""
    usd_per_task: float
    tokens_per_task: float
    calls_per_task: float
    refusals: int
    """Refused or changed requests in its evaluations."""


class DriftView(View):
    """Differences in conduct and cost between the agents from the seed to one agent."""

    steps: tuple[DriftStep, ...]
    """The seed comes first."""

    @classmethod
    def load(cls, run: Run, agents: Sequence[AgentId]) -> Self:
        """Read the agents of a lineage, the seed first."""
        refused = Counter(event.action for event in run.store.events(CallRefused, until=run.tree.seq))
        return cls(steps=tuple(_read_step(run, refused, agent) for agent in agents))


def _read_step(run: Run, refused: Mapping[ActionId, int], agent: AgentId) -> DriftStep:
    evaluations = evaluations_of(run, agent)
    usage = sum((run.tree.spend_of(action) for action in evaluations), Usage())
    count = max(1, len(evaluations))
    try:
        source = run.source(agent) if run.tree.agents[agent].commit else {}
        size: int | None = sum(len(entry.data) for entry in source.values())
    except DgmError:
        size = None
    return DriftStep(
        agent=agent,
        findings=int(run.tree.own_findings[agent]),
        source_bytes=size,
        evaluations=len(evaluations),
        usd_per_task=usage.usd / count,
        tokens_per_task=usage.tokens / count,
        calls_per_task=usage.calls / count,
        refusals=sum(refused.get(action, 0) for action in evaluations),
    )
