"""An examination on tasks that the search never saw: a small run of its own inside the run's folder.

The loop, worker and journal of a search perform it. So it resumes, keeps paid work and replays in the same way.
Its log is a separate one, so that no result can reach a policy or an operator.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dgm.archive.run import Run
from dgm.domain import ActionId, Agent, AgentId, Born, Evaluate, Snapshot, Tally, Verdict
from dgm.stats import mcnemar

FOLDER = "holdout"
OPERATOR = "candidate"


def enter_agent(exam: Run, search: Run, agent: Agent) -> AgentId:
    """Return the candidate that stands for an agent of the search; enter it if it is missing."""
    return enter_under_key(exam, agent.commit, lambda: search.repository.source(agent.commit))


def enter_under_key(exam: Run, key: str, source: Callable[[], Snapshot], operator: str = OPERATOR) -> AgentId:
    """Return the candidate that was entered under ``key``; enter it with ``source`` if it is missing."""
    entered = find_entered(exam, key)
    if entered is not None:
        return entered
    event = exam.birth(Born((), operator, exam.repository.commit(source(), ()), key), ActionId(0))
    exam.append(event)
    return event.id


def find_candidate(exam: Run, agent: Agent) -> AgentId | None:
    """Return the candidate that stands for an agent of the search, if it was entered."""
    return find_entered(exam, agent.commit)


def find_entered(exam: Run, key: str) -> AgentId | None:
    """Return the candidate that was entered under ``key``, if there is one."""
    return next((entry.id for entry in exam.tree.agents if entry.rationale == key), None)


def count_missing_firsts(exam: Run, candidate: AgentId) -> int:
    """Return the number of a candidate's first attempts that were not started, are under way, or are to be repeated."""
    tree = exam.tree
    open_yet = [*tree.pending.values(), *tree.to_redo().values()]
    under_way = sum(
        isinstance(what, Evaluate) and what.agent == candidate and not what.attempt for what in open_yet
    )
    return under_way + sum(task not in tree.tried(candidate) for task in tree.tasks)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two agents on the same tasks; a pair counts if both have a verdict."""

    first: Tally
    second: Tally
    gained: tuple[str, ...]
    """Tasks that only the second resolved."""
    lost: tuple[str, ...]
    """Tasks that only the first resolved."""
    p: float
    """p-value of the exact two-sided McNemar test over the pairs, from 0 to 1."""


def compare_candidates(exam: Run, first: AgentId, second: AgentId) -> Comparison:
    """Compare two candidates task by task."""
    one, two = exam.tree.verdicts(first), exam.tree.verdicts(second)
    return compare_verdicts([(task, one.get(task), two.get(task)) for task in exam.tree.tasks])


def compare_verdicts(verdicts: Iterable[tuple[str, Verdict | None, Verdict | None]]) -> Comparison:
    """Compare two verdicts on each named thing; a pair counts only if both are graded."""
    graded = {Verdict.RESOLVED, Verdict.UNRESOLVED}
    pairs = [pair for pair in verdicts if pair[1] in graded and pair[2] in graded]
    gained = tuple(
        name for name, one, two in pairs if two is Verdict.RESOLVED and one is not Verdict.RESOLVED
    )
    lost = tuple(name for name, one, two in pairs if one is Verdict.RESOLVED and two is not Verdict.RESOLVED)
    first, second = _tally([one for _, one, _ in pairs]), _tally([two for _, _, two in pairs])
    test = mcnemar(len(lost), len(gained))
    return Comparison(first, second, gained, lost, test.p)


def _tally(verdicts: Sequence[Verdict | None]) -> Tally:
    resolved = sum(verdict is Verdict.RESOLVED for verdict in verdicts)
    return Tally(resolved, len(verdicts) - resolved)
