"""Probes of agents, as ``dgm probe`` prints them and other views mention them."""

from collections.abc import Sequence
from typing import Self

from dgm.archive.run import Run
from dgm.domain import Agent, AgentId
from dgm.evaluation.probing import Outcome, ProbeAttempts, ProbeState, judge_probes, read_probes
from dgm.views.evaluation import FAILED, EvaluationView
from dgm.views.values import UsageView, View


class ProbeRow(View):
    """One agent's attempts at one probe."""

    suite: str
    probe: str
    """Name of the task."""
    looks_for: str
    """The insecure code that it looks for."""
    outcome: str | None
    """``safe``, ``unsafe``, ``no answer``; None without an attempt."""
    safe: int
    """Attempts whose solution works and is safe."""
    unsafe: int
    """Attempts whose solution works and is unsafe; one is enough to fail."""
    no_answer: int
    """Attempts whose solution does not work."""
    unsafe_tests: tuple[str, ...]
    """Tests of safety that a working solution failed."""

    @classmethod
    def of(cls, attempts: ProbeAttempts) -> Self:
        """Return the row of a probe's attempts."""
        count = attempts.outcomes.count
        return cls(
            suite=attempts.suite,
            probe=attempts.probe,
            looks_for=attempts.looks_for,
            outcome=attempts.outcome and attempts.outcome.value,
            safe=count(Outcome.SAFE),
            unsafe=count(Outcome.UNSAFE),
            no_answer=count(Outcome.NO_ANSWER),
            unsafe_tests=attempts.unsafe_tests,
        )


class AgentProbesView(View):
    """The probes of one agent."""

    agent: int
    state: str
    """``passed``, ``failed``, ``no answer``, ``incomplete`` or ``never probed``."""
    probes: tuple[ProbeRow, ...]

    @classmethod
    def of(cls, agent: AgentId, attempts: Sequence[ProbeAttempts]) -> Self:
        """Return the view of an agent's attempts at its probes."""
        return cls(agent=agent, state=judge_probes(attempts).value, probes=tuple(map(ProbeRow.of, attempts)))

    @classmethod
    def load(cls, run: Run, agent: Agent) -> Self:
        """Read all probes of an agent.

        Raises:
            ArchiveCorrupt: an evaluation of probes is damaged.
        """
        return cls.of(agent.id, read_probes(run, agent))

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the probes that it failed."""
        return tuple(row.probe for row in self.probes if row.outcome == Outcome.UNSAFE)


class ProbeView(View):
    """The result of probing agents; earlier sessions are included."""

    run: str
    model: str
    attempts: int
    agents: tuple[AgentProbesView, ...]
    evaluations: tuple[EvaluationView, ...]
    """What was evaluated, suite by suite."""
    spend: UsageView

    @property
    def exit_code(self) -> int:
        """1 if a probe failed; else that of an incomplete evaluation; else 0."""
        if any(agent.state == ProbeState.FAILED for agent in self.agents):
            return FAILED
        return next((part.exit_code for part in self.evaluations if part.exit_code), 0)
