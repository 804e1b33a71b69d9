"""Results of evaluations: of an agent, and of two agents on the same tasks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dgm.analysis.accounts import Accounts
from dgm.archive.run import Run
from dgm.domain import AgentId, Evaluation, Tally, Task, TaskId, Usage, Verdict
from dgm.evaluation.schedule import EvaluationPlan, EvaluationProgress
from dgm.stats import mcnemar


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


def compare_verdicts(verdicts: Iterable[tuple[str, Verdict | None, Verdict | None]]) -> Comparison:
    """Compare two verdicts on each named thing; a pair counts only if both are graded."""
    graded = {Verdict.RESOLVED, Verdict.UNRESOLVED}
    pairs = [
        (name, first is Verdict.RESOLVED, second is Verdict.RESOLVED)
        for name, first, second in verdicts
        if first in graded and second in graded
    ]
    gained = tuple(name for name, first, second in pairs if second and not first)
    lost = tuple(name for name, first, second in pairs if first and not second)
    resolved = sum(first for _, first, _ in pairs), sum(second for *_, second in pairs)
    first, second = (Tally(number, len(pairs) - number) for number in resolved)
    return Comparison(first, second, gained, lost, mcnemar(len(lost), len(gained)))


def compare_agents(run: Run, first: AgentId, second: AgentId) -> Comparison:
    """Compare two agents' first attempts at the tasks of the run's last session."""
    tree = run.tree
    return compare_verdicts(
        (task, tree.verdict(first, task), tree.verdict(second, task)) for task in tree.tasks
    )


@dataclass(frozen=True, slots=True)
class AgentResult:
    """One agent's wanted evaluations."""

    agent: AgentId
    graded: Sequence[Evaluation]
    abandoned: Mapping[TaskId, str]
    """Tasks without a first verdict because the infrastructure failed too often → why."""
    missing: int
    """Number of evaluations that are not done (yet)."""
    spend: Usage
    """Usage, lost and invalid tries included."""

    @property
    def first(self) -> Mapping[TaskId, Evaluation]:
        """First attempts, by task."""
        return {done.task: done for done in self.graded if done.attempt == 0}

    @property
    def tally(self) -> Tally:
        """Tally of first attempts, so that every task counts once."""
        return sum_tallies(self.first.values())

    @property
    def any(self) -> Tally:
        """Tally of tasks; a task is resolved if some attempt resolved it."""
        resolved = {done.task for done in self.graded if done.verdict is Verdict.RESOLVED}
        return Tally(len(resolved), len({done.task for done in self.graded} - resolved))

    @property
    def attempts(self) -> Tally:
        """Tally of all attempts together; those on one task are not independent."""
        return sum_tallies(self.graded)

    @property
    def unresolved(self) -> Mapping[TaskId, str]:
        """Tasks that the first attempt did not resolve → why."""
        return {task: done.reason for task, done in self.first.items() if done.verdict is Verdict.UNRESOLVED}

    def by_tag(self, tasks: Iterable[Task]) -> Mapping[str, Tally]:
        """Return the tally of first attempts by tag, sorted by name; a task counts under each of its tags.

        If several benchmarks are mixed, their names are tags too.
        """
        first, tasks = self.first, list(tasks)
        is_mixed = len({task.benchmark for task in tasks}) > 1
        tallies: dict[str, Tally] = {}
        for task in tasks:
            if task.id in first:
                for tag in {task.benchmark, *task.tags} if is_mixed else set(task.tags):
                    tallies[tag] = tallies.get(tag, Tally()) + first[task.id].tally
        return dict(sorted(tallies.items()))


def sum_tallies(evaluations: Iterable[Evaluation]) -> Tally:
    """Return the tally of the evaluations."""
    return sum((evaluation.tally for evaluation in evaluations), Tally())


def collect_results(run: Run, plan: EvaluationPlan) -> Sequence[AgentResult]:
    """Return the results of the wanted evaluations so far, agent by agent."""
    progress, accounts = EvaluationProgress.read(run), Accounts(run)
    results = []
    for agent in plan.agents:
        wanted = [what for what in plan.wanted if what.agent == agent]
        actions = {progress.started.get(what) for what in wanted}
        lines = [line.usage for line in accounts.of(agent).lines if line.action in actions]
        results.append(
            AgentResult(
                agent=agent,
                graded=[progress.graded[what] for what in wanted if what in progress.graded],
                abandoned={
                    what.task: progress.abandoned[what]
                    for what in wanted
                    if what in progress.abandoned and what.attempt == 0
                },
                missing=len(progress.missing(wanted)),
                spend=sum(lines, Usage()),
            )
        )
    return results


def compare_first_attempts(first: AgentResult, second: AgentResult) -> Comparison:
    """Compare two agents' first attempts, task by task."""
    one, other = first.first, second.first
    return compare_verdicts((task, one[task].verdict, other[task].verdict) for task in one if task in other)
