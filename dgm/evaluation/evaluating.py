"""Evaluations of agents on every task of a split, outside of a search: what is wanted, and the results.

The loop of a search does the work, in a run of its own. The wanted evaluations may grow from session to session
(further agents, tasks or attempts). Finished evaluations are never repeated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from dgm.analysis.accounts import Accounts
from dgm.archive.changes import merge_tables
from dgm.archive.events import ActionLost, ActionStarted, Recorded, TaskGraded, VerdictWithdrawn
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.config import Settings, resolve, validate_settings
from dgm.domain import Action, ActionId, AgentId, Evaluate, Evaluation, Tally, Task, TaskId, Usage, Verdict
from dgm.errors import UserError
from dgm.evaluation.exam import Comparison, compare_verdicts

PLAN = "evaluation"
"""Key of an evaluation's configuration that names its tasks and its means."""
_STEPS = "kind IN ('action_started', 'action_lost', 'task_graded', 'verdict_withdrawn')"


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """Every agent on every task, ``attempts`` times."""

    agents: tuple[AgentId, ...]
    """Their numbers in the evaluation."""
    tasks: tuple[TaskId, ...]
    attempts: int = 1

    def all(self) -> list[Evaluate]:
        """Return all evaluations in the order of trial: first attempts of all tasks first, agents side by side."""
        return [
            Evaluate(agent, task, attempt)
            for attempt in range(self.attempts)
            for task in self.tasks
            for agent in self.agents
        ]


class Schedule:
    """The policy of an evaluation: start the wanted evaluations in order, once each; never expand."""

    name = "schedule"
    keeps_state = True

    def __init__(self, wanted: EvaluationPlan) -> None:
        self._waiting = list(reversed(wanted.all()))
        self._started: set[Evaluate] = set()

    def next(self, tree: Tree, rng: Random) -> Action | None:  # noqa: ARG002  (nothing is left to chance)
        """Return the first evaluation that was not started; None when all were."""
        while self._waiting and self._waiting[-1] in self._started:
            self._waiting.pop()
        return self._waiting[-1] if self._waiting else None

    def observe(self, event: Recorded) -> None:
        """Record the started evaluation."""
        if isinstance(event.event, ActionStarted) and isinstance(event.event.action, Evaluate):
            self._started.add(event.event.action)


class EvaluationProgress:
    """Progress of an evaluation, read from its log once."""

    def __init__(self, run: Run) -> None:
        self.graded: dict[Evaluate, Evaluation] = {}
        self.given_up: dict[Evaluate, str] = {}
        """Evaluations that the infrastructure failed too often → why."""
        self.actions: dict[ActionId, Evaluate] = {}
        for recorded in run.store.select(_STEPS):
            self._note(recorded)

    def _note(self, recorded: Recorded) -> None:
        match recorded.event:
            case ActionStarted(action, Evaluate() as what):
                self.actions[action] = what
            case TaskGraded(action, outcome) if outcome.verdict is not Verdict.INVALID:
                self.graded[self.actions[action]] = outcome
            case VerdictWithdrawn(what=what):
                self.graded.pop(what, None)
            case ActionLost(action, reason, True) if action in self.actions:
                self.given_up[self.actions[action]] = reason

    def missing(self, wanted: EvaluationPlan) -> list[Evaluate]:
        """Return the wanted evaluations that are neither graded nor given up."""
        return [what for what in wanted.all() if what not in self.graded and what not in self.given_up]


@dataclass(frozen=True, slots=True)
class AgentResult:
    """One agent's wanted evaluations."""

    agent: AgentId
    graded: Sequence[Evaluation]
    given_up: Mapping[TaskId, str]
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
        tried = {done.task for done in self.graded}
        return Tally(len(resolved), len(tried - resolved))

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
        mixed = len({task.benchmark for task in tasks}) > 1
        found: dict[str, Tally] = {}
        for task in tasks:
            if task.id in first:
                for tag in {task.benchmark, *task.tags} if mixed else set(task.tags):
                    found[tag] = found.get(tag, Tally()) + first[task.id].tally
        return dict(sorted(found.items()))


def sum_tallies(evaluations: Iterable[Evaluation]) -> Tally:
    """Return the tally of the evaluations."""
    return sum((evaluation.tally for evaluation in evaluations), Tally())


def collect_results(run: Run, wanted: EvaluationPlan) -> Sequence[AgentResult]:
    """Return the results of the wanted evaluations so far, agent by agent."""
    standing, accounts = EvaluationProgress(run), Accounts(run)
    chosen = set(wanted.all())
    missing = standing.missing(wanted)
    return [
        AgentResult(
            agent=agent,
            graded=[
                standing.graded[what]
                for what in wanted.all()
                if what.agent == agent and what in standing.graded
            ],
            given_up={
                what.task: why
                for what, why in standing.given_up.items()
                if what in chosen and what.agent == agent and what.attempt == 0
            },
            missing=sum(what.agent == agent for what in missing),
            spend=sum(
                (
                    line.usage
                    for line in accounts.of(agent).lines
                    if standing.actions.get(line.action) in chosen
                ),
                Usage(),
            ),
        )
        for agent in wanted.agents
    ]


def compare_first_attempts(one: AgentResult, two: AgentResult) -> Comparison:
    """Compare two agents' first attempts, task by task."""
    tasks = [task for task in one.first if task in two.first]
    return compare_verdicts((task, one.first[task].verdict, two.first[task].verdict) for task in tasks)


def count_expected(run: Run, missing: Sequence[Evaluate]) -> int:
    """Return the number of evaluations in the run when nothing is missing; actions begun before are ended too."""
    begun = [*run.tree.pending.values(), *run.tree.to_redo().values()]
    return run.tree.evaluations + len({*missing, *(what for what in begun if isinstance(what, Evaluate))})


def apply_assignments(
    base: Mapping[str, Any], assignments: Iterable[str] | Mapping[str, Any], allowed: Sequence[str], who: str
) -> Settings:
    """Return settings with some of them replaced, of which only some are allowed.

    Args:
        base: the settings to start from, as JSON.
        assignments: as ``dgm.config.resolve`` takes them.
        allowed: top-level names of settings that may be set.
        who: the subject of the message, for example "a live replay".

    Raises:
        UserError: a setting is unknown, does not fit or may not be set here.
    """
    changes = resolve(None, assignments, {}).model_dump(mode="json", exclude_unset=True)
    other = sorted(set(changes) - set(allowed))
    if other:
        names = [name if name in ("workers", "sandbox") else f"{name}.*" for name in allowed]
        raise UserError(
            f"{other[0]}: {who} sets {', '.join(names[:-1])} and {names[-1]} only", argument="settings"
        )
    return validate_settings(merge_tables(base, changes), {"": "settings"})
