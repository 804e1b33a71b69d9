"""An examination on tasks that the search never saw: a small run of its own inside the run's folder.

It is performed by the same loop, worker and journal as a search, so that it resumes, keeps what was paid for and
replays in the same way; but its log is another, so that nothing of it can reach a policy or an operator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.archive.run import Run
from dgm.domain import ActionId, Agent, AgentId, Born, Tally, Verdict
from dgm.stats import mcnemar_p

FOLDER = "holdout"
OPERATOR = "candidate"


def enter(exam: Run, search: Run, agent: Agent) -> AgentId:
    """The candidate in the examination that stands for an agent of the search; entered if it was not yet."""
    entered = candidate(exam, agent)
    if entered is not None:
        return entered
    commit = exam.repository.commit(search.repository.source(agent.commit), ())
    event = exam.birth(Born((), OPERATOR, commit, agent.commit), ActionId(0))
    exam.append(event)
    return event.id


def candidate(exam: Run, agent: Agent) -> AgentId | None:
    """The candidate that stands for an agent of the search, if it was entered."""
    return next((entry.id for entry in exam.tree.agents if entry.rationale == agent.commit), None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two agents on the same tasks; a pair counts where both have a verdict."""

    first: Tally
    second: Tally
    gained: tuple[str, ...]
    """Tasks that only the second resolved."""
    lost: tuple[str, ...]
    """Tasks that only the first resolved."""
    p: float
    """Exact two-sided McNemar over the pairs."""


def compare(exam: Run, first: AgentId, second: AgentId) -> Comparison:
    """Compares two candidates task by task."""
    one, two = exam.tree.verdicts(first), exam.tree.verdicts(second)
    graded = {Verdict.RESOLVED, Verdict.UNRESOLVED}
    pairs = [task for task in exam.tree.tasks if one.get(task) in graded and two.get(task) in graded]
    gained = tuple(t for t in pairs if two[t] is Verdict.RESOLVED and one[t] is not Verdict.RESOLVED)
    lost = tuple(t for t in pairs if one[t] is Verdict.RESOLVED and two[t] is not Verdict.RESOLVED)
    return Comparison(
        _tally([one[t] for t in pairs]),
        _tally([two[t] for t in pairs]),
        gained,
        lost,
        mcnemar_p(len(gained), len(lost)),
    )


def _tally(verdicts: Sequence[Verdict | None]) -> Tally:
    resolved = sum(verdict is Verdict.RESOLVED for verdict in verdicts)
    return Tally(resolved, len(verdicts) - resolved)
