"""The plan of a search: what its budget buys and which gains its tasks can show, before anything is paid.

Costs, the seed's results and their noise come from the runs in the same archive. Where there are none, the plan says so
and gives bounds only.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import combinations
from pathlib import Path
from typing import Literal, Self

from dgm.archive.events import AgentBorn, AgentStillborn, TaskGraded
from dgm.archive.finding import archive_folders, find_runs_in
from dgm.archive.log import FILE
from dgm.archive.run import Run, RunKind
from dgm.archive.snapshots import tree_id
from dgm.assemble import RunParts
from dgm.config import Settings
from dgm.domain import Split, Tally, TaskId, Usage, Verdict
from dgm.errors import DgmError
from dgm.evaluation.control import FOLDER
from dgm.meta.seeds import read_seed, seeds_of
from dgm.models.choose import names_by_role
from dgm.models.pricing import Price
from dgm.policies.registry import POLICIES
from dgm.search.start import max_evaluation_usd, prices_of, settings_of
from dgm.simulation.families import GROUPS
from dgm.simulation.trial import Trial, perform
from dgm.stats import promotion_level, smallest_gain, tasks_needed
from dgm.views.values import SIGNIFICANT, TallyView, View

POWER = 0.80
"""Power at which the smallest detectable gain is stated."""
LOST_BY_CHANCE = 0.10
"""Share of tasks that a better agent loses by chance, where identical runs of the seed have not been compared."""
MOST_RUNS = 40
"""Maximum number of runs that are read, the newest first."""
FEWEST = 2
"""Number of evaluations from which their mean cost is an estimate."""
FEWEST_PAIRS = 10
"""Number of pairs of the seed's attempts from which their noise is an estimate."""
SIMULATED = 400
"""Maximum number of evaluations of the simulated search that gives the number of children."""
_UNREADABLE = (DgmError, OSError, ValueError, KeyError, TypeError, AttributeError)


class Basis(IntEnum):
    """The runs that an estimate comes from, the best first."""

    SAME = 0
    """The same model on the same suite."""
    OTHER_MODEL = 1
    """Another model on the same suite; its tokens are priced as the new model's."""
    OTHER_SUITE = 2
    """The same model on another suite."""


class CostEstimate(View):
    """The mean cost of one action by those of earlier runs."""

    usd: float
    usd_range: tuple[float, float]
    """10th and 90th percentile: a few actions often cost a multiple of the mean."""
    tokens: float
    seconds: float
    actions: int
    """Number of actions that the mean is over."""
    basis: Basis


class TestPlan(View):
    """Gains that the tasks of a split can show."""

    tasks: int
    level: float
    """Two-sided level of the test."""
    lost: float
    """Assumed share of tasks that only the seed resolves."""
    smallest_gain: float | None
    """True gain in pass rate that is shown with a probability of 80 %; None if no gain is."""
    tasks_for_half: int | None
    """Number of tasks that would show half of this gain; None without ``smallest_gain``."""


class NoiseView(View):
    """Differences between identical runs of the seed."""

    pairs: int
    """Pairs of verdicts of the seed on one task."""
    differing: int
    rate_spread: float
    """Standard deviation of the difference between two identical runs' pass rates over the active tasks."""


class PlanView(View):
    """A search before it begins."""

    benchmark: str
    version: str
    model: str
    """The model that works on tasks."""
    search_tasks: int
    active_tasks: int
    """Search tasks that the run begins with; fewer than ``search_tasks`` with a curriculum."""
    evaluation: CostEstimate | None
    """None if no earlier run tells."""
    expansion: CostEstimate | None
    evaluation_at_most_usd: float
    """By the limits of the run."""
    budget_usd: float | None
    evaluations: int | None
    """Evaluations that the budget buys; None if nothing known limits them."""
    children: int | None
    """Children that they come with; None if the policy is not one of dgm's and was never used here."""
    limited_by: Literal["usd", "evaluations"] | None
    usd: float | None
    """Expected cost, with all new candidates that a round of promotion may have; None without an estimate."""
    seconds: float | None
    """Expected time with all workers at work; None without an estimate."""
    workers: int
    seed: TallyView | None
    """The seed's first attempts at the search tasks in earlier runs, each task once; None if there are none."""
    noise: NoiseView | None
    """None with fewer than ``FEWEST_PAIRS`` pairs of attempts at one task."""
    promotion: TestPlan | None
    """The first round; None if the suite has no promotion tasks."""
    holdout: TestPlan | None

    @classmethod
    def load(cls, settings: Settings, parts: RunParts) -> Self:
        """Return the plan of a new search.

        Args:
            settings: with every ``auto`` replaced by a model.
            parts: of the search.

        Raises:
            UserError: a model has no known price, or the seed agent cannot be read.
        """
        roles, prices, budget = names_by_role(settings), prices_of(settings), settings.budget.budget()
        past = _Past(settings, parts)
        evaluation = past.evaluations.estimate(prices[roles["solve"]])
        expansion = past.expansions.estimate(prices[roles["improve"]])
        at_most = max_evaluation_usd(settings, prices[roles["solve"]])
        ratio, births = past.children_per_evaluation()
        limits: dict[Literal["usd", "evaluations"], float] = {}
        rules, promotion_tasks = settings.promotion, len(parts.benchmark.tasks(Split.PROMOTION))
        # Each round may have new candidates.
        attempts = 1 + (rules.candidates * promotion_tasks / rules.every if rules.every else 0.0)
        each_usd = evaluation.usd * attempts if evaluation else 0.0
        if ratio is not None:
            each_usd += ratio * (expansion.usd if expansion else evaluation.usd if evaluation else 0.0)
        if budget.evaluations is not None:
            limits["evaluations"] = budget.evaluations / (1 + (ratio or 0.0) * budget.expansion_cost)
        if budget.usd is not None and each_usd:
            limits["usd"] = budget.usd / each_usd
        by = min(limits, key=limits.__getitem__, default=None)
        number = int(limits[by]) if by else None
        seconds = (
            evaluation.seconds * attempts + (ratio or 0.0) * (expansion.seconds if expansion else 0.0)
            if evaluation
            else 0.0
        )
        tasks = [task.id for task in parts.benchmark.tasks(Split.SEARCH)]
        active = settings.curriculum.start or len(tasks)
        noise = past.noise(active)
        first_level = promotion_level(rules.alpha, 1, 0, rules.candidates)
        lost = noise.differing / noise.pairs / 2 if noise else LOST_BY_CHANCE
        return cls(
            benchmark=parts.benchmark.name,
            version=parts.benchmark.version,
            model=roles["solve"],
            search_tasks=len(tasks),
            active_tasks=active,
            evaluation=evaluation,
            expansion=expansion,
            evaluation_at_most_usd=at_most,
            budget_usd=budget.usd,
            evaluations=number,
            children=None if number is None or births is None else int(number * births),
            limited_by=by,
            usd=number * each_usd if evaluation and number is not None else None,
            seconds=number * seconds / settings.workers if evaluation and number is not None else None,
            workers=settings.workers,
            seed=past.seed_tally(tasks),
            noise=noise,
            promotion=_plan_test(promotion_tasks, lost, 2 * first_level),
            holdout=_plan_test(len(parts.benchmark.tasks(Split.HOLDOUT)), lost, SIGNIFICANT),
        )


def _plan_test(tasks: int, lost: float, level: float) -> TestPlan | None:
    if not tasks:
        return None
    gain = smallest_gain(tasks, lost, POWER, level)
    half = None if gain is None else tasks_needed(lost + gain / 2, lost, POWER, level)
    return TestPlan(tasks=tasks, level=level, lost=lost, smallest_gain=gain, tasks_for_half=half)


@dataclass
class _Costs:
    """Usage and seconds of actions, by the runs that they come from."""

    by: dict[Basis, list[tuple[Usage, float]]] = field(default_factory=lambda: defaultdict(list))

    def estimate(self, price: Price) -> CostEstimate | None:
        """Return the mean cost by the best basis with enough actions; None if there is none."""
        for basis in Basis:
            actions = self.by.get(basis, [])
            if len(actions) >= FEWEST:
                usd = sorted(
                    price.cost(usage) if basis is Basis.OTHER_MODEL else usage.usd for usage, _ in actions
                )
                return CostEstimate(
                    usd=_mean(usd),
                    usd_range=(usd[len(usd) // 10], usd[-1 - len(usd) // 10]),
                    tokens=_mean([float(usage.tokens) for usage, _ in actions]),
                    seconds=_mean([seconds for _, seconds in actions]),
                    actions=len(actions),
                    basis=basis,
                )
        return None


class _Past:
    """Costs and results of earlier runs that bear on the new one."""

    def __init__(self, settings: Settings, parts: RunParts) -> None:
        self._settings, self._version = settings, parts.benchmark.version
        self.evaluations, self.expansions = _Costs(), _Costs()
        self._seed_tree = tree_id(read_seed(seeds_of(settings)[0]))
        self._seed_verdicts = defaultdict[TaskId, list[Verdict]](list)
        """Verdicts of agents with the seed's source, run by the same model on the same suite, the newest run first."""
        self._evaluations = self._expansions = self._births = 0
        for folder in _newest_runs():
            try:
                with Run.open(folder) as run:
                    self._read(run)
            except _UNREADABLE:
                continue

    def _read(self, run: Run) -> None:
        if run.kind is RunKind.SIMULATION:
            return
        then = settings_of(run)
        models, wanted = names_by_role(then), names_by_role(self._settings)
        same_suite = run.benchmarks()[-1] == self._version
        for event in run.store.events(TaskGraded, AgentBorn, AgentStillborn, until=run.tree.seq):
            is_evaluation = isinstance(event, TaskGraded)
            role = "solve" if is_evaluation else "improve"
            same_model = models[role] == wanted[role]
            counts = (
                event.outcome.verdict is not Verdict.INVALID
                if isinstance(event, TaskGraded)
                else event.action
            )
            if not counts or not (same_suite or same_model):
                continue
            basis = Basis.OTHER_SUITE if not same_suite else Basis.SAME if same_model else Basis.OTHER_MODEL
            costs = self.evaluations if is_evaluation else self.expansions
            costs.by[basis].append((run.tree.spend_of(event.action), event.outcome.cost.seconds))
        if run.kind is RunKind.SEARCH and then.policy.name == self._settings.policy.name:
            self._evaluations += run.tree.evaluations
            self._expansions += run.tree.expansions_begun
            self._births += len(run.tree.agents) - len(run.tree.roots)
        if same_suite and models["solve"] == wanted["solve"]:
            self._read_seed(run)

    def _read_seed(self, run: Run) -> None:
        agents = run.tree.agents[:1] if run.kind is RunKind.SEARCH else run.tree.agents
        same = {agent.id for agent in agents if tree_id(run.source(agent.id)) == self._seed_tree}
        for event in run.store.events(TaskGraded, until=run.tree.seq):
            if event.outcome.agent in same and event.outcome.verdict is not Verdict.INVALID:
                self._seed_verdicts[event.outcome.task].append(event.outcome.verdict)

    def children_per_evaluation(self) -> tuple[float | None, float | None]:
        """Return the expansions and the births per evaluation; None if nothing tells."""
        evaluations, expansions, births = self._evaluations, self._expansions, self._births
        if evaluations < SIMULATED // 10:
            policy, budget = self._settings.policy.name, self._settings.budget.budget()
            if policy not in POLICIES:
                return None, None
            result = perform(
                Trial(
                    policy,
                    GROUPS["reported"][0],
                    self._settings.seed,
                    min(budget.evaluations or SIMULATED, SIMULATED),
                    budget.expansion_cost,
                    self._settings.workers,
                )
            )
            evaluations, expansions, births = result.evaluations, result.expansions, result.agents - 1
        return (expansions / evaluations, births / evaluations) if evaluations else (None, None)

    def seed_tally(self, tasks: Sequence[TaskId]) -> TallyView | None:
        """Return the seed's newest verdict on each task; None if there is none."""
        newest = [self._seed_verdicts[task][0] for task in tasks if task in self._seed_verdicts]
        resolved = newest.count(Verdict.RESOLVED)
        return TallyView.of(Tally(resolved, len(newest) - resolved)) if newest else None

    def noise(self, tasks: int) -> NoiseView | None:
        """Return how often two attempts of the seed at one task differ; None if there are too few.

        Runs are independent, so the difference between two pass rates over n tasks with a share d of differing pairs
        has the standard deviation √(d / n).
        """
        pairs = [pair for verdicts in self._seed_verdicts.values() for pair in combinations(verdicts[:5], 2)]
        if len(pairs) < FEWEST_PAIRS:
            return None
        differing = sum(first is not second for first, second in pairs)
        spread = (differing / len(pairs) / tasks) ** 0.5 if tasks else 0.0
        return NoiseView(pairs=len(pairs), differing=differing, rate_spread=spread)


def _newest_runs() -> Iterator[Path]:
    folders = [
        folder
        for archive in archive_folders()
        for run in find_runs_in(archive)
        for folder in (run, run / FOLDER, *run.glob("evaluate-*"))
        if (folder / FILE).is_file()
    ]
    times: Mapping[Path, float] = {folder.resolve(): (folder / FILE).stat().st_mtime for folder in folders}
    yield from sorted(times, key=times.__getitem__, reverse=True)[:MOST_RUNS]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
