"""The report of one run: is the best agent better than the seed, by how much, at what cost, and how it came about."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from dgm.analysis.accounts import Accounts, OperatorLine, Purpose, operators_of
from dgm.analysis.agents import best_of, trace_lineage
from dgm.archive.events import ActionStarted, traces_of
from dgm.archive.run import Run, RunKind, format_assignments, identity_of, state
from dgm.archive.tree import Tree
from dgm.benchmarks.grader_version import name_grader
from dgm.config import Settings, read_frozen
from dgm.config.resolving import leaves
from dgm.config.toml_files import format_key, format_value
from dgm.domain import SEED, AgentId, Evaluate, Usage
from dgm.errors import ArchiveCorrupt, UserError
from dgm.evaluation.control import FOLDER
from dgm.meta.seeds import name_of_root
from dgm.stats import best_of_many, lower_bound
from dgm.views.agents import AgentRow
from dgm.views.best_line import (
    MatrixView,
    ReportLineage,
    TaskGroups,
    build_matrix,
    read_groups,
    read_lineage,
)
from dgm.views.conduct import DriftView
from dgm.views.curve import CurvePoint, compute_curve
from dgm.views.holdout import Answer, HoldoutView, holdout_exists, read_holdout
from dgm.views.objective import CheapestView, ObjectiveView
from dgm.views.probes import AgentProbesView
from dgm.views.promotion import PromotionsView
from dgm.views.run import (
    CurriculumView,
    DeadEndView,
    FailuresView,
    changes_of,
    find_highest,
    models_of,
    models_text,
    view_dead_end,
)
from dgm.views.values import RoleUsage, TallyView, UsageView, View, role_usages

REPEATING = ("offline", "recorded")
"""Models that give equal answers to equal requests."""
NODES, POINTS = 2_000, 400
"""Maximum number of agents in the tree, and of points of the curve."""

FLAGS: Mapping[str, str] = {
    "benchmark": "--benchmark",
    "model": "--model",
    "policy.name": "--policy",
    "workers": "--workers",
    "seed": "--seed",
    "seed_agent": "--agent",
    "budget.evaluations": "--max-evaluations",
    "budget.usd": "--max-usd",
}
"""Settings with an option of their own; all others are given by ``--set``."""
ALWAYS = ("benchmark", "model", "seed")
"""Settings that are given even at their defaults, because a default may change."""
_SESSIONS = "SELECT count(*) FROM events WHERE kind = 'run_started' AND seq <= ?"


class ChosenView(View):
    """The best agent's rate, corrected for the choice by this rate."""

    agent: int
    evaluated: int
    """Agents with a verdict, among which it was chosen."""
    rate: float
    """Its rate on the search tasks, which flatters."""
    corrected_rate: float


class GainView(View):
    """The mean gain of an operator's judged children."""

    mean: float
    """Own rate minus the better parent's, from -1 to 1."""
    interval: tuple[float, float] | None
    """95 % bootstrap interval; None with fewer than two children."""


class OperatorView(View):
    """The results and the cost of one operator."""

    operator: str
    tried: int
    """Expansions that were started."""
    born: int
    waiting: int
    """Children that wait for approval."""
    unfinished: int
    stillborn: dict[str, int]
    """Expansions without a child, by the stage that failed."""
    aims: dict[str, int]
    """Expansions by aim, if the operator has aims."""
    judged: int
    """Children with enough verdicts for a comparison with their parents."""
    better: int
    """Judged children with a higher rate than the better of their parents."""
    gain: GainView | None
    """None without a judged child."""
    kept: int = 0
    """Predictions of its children that were kept; ``PredictionView.state`` says when one is."""
    tested: int = 0
    """Predictions of its children that were kept or broken."""
    spend: UsageView
    seconds: float
    """Wall time of the ended expansions."""
    vetting: dict[str, dict[str, float]]
    """Stage of vetting → ``runs`` and ``seconds``."""


class ReportTree(View):
    """The archive as far as it can be drawn."""

    agents: tuple[AgentRow, ...]
    """All agents; of a very large archive the best agent's line and the agents of the largest clades."""
    left_out: int
    """Number of agents left out."""


class RootView(View):
    """One of several roots of a search, and its clade; a crossover's child is in both parents' clades."""

    agent: int
    name: str
    """Last part of the name by which the settings give it; empty if they do not."""
    own: TallyView
    clade: TallyView
    agents: int
    """Agents of the clade, the root included."""
    children: int
    best: AgentRow
    """The agent of the clade with the highest lower bound."""
    spend: UsageView
    """Usage of all agents of the clade and of their children, stillborn ones included."""


class SearchSpend(UsageView):
    """Usage of the search, failed and stillborn work included."""

    by: tuple[RoleUsage, ...]
    purposes: dict[Purpose, UsageView]
    saved_usd: float
    """USD that reading from the providers' caches saved; negative if writing to them cost more."""


class ReproductionView(View):
    """Commands, versions and seed with which a run is repeated."""

    command: str | None
    """The command; None if the run is no search of its own."""
    replays: tuple[str, ...]
    """Commands that check the record without paying for models."""
    versions: dict[str, str]
    seed: int
    """The random seed."""
    commits: dict[int, str]
    """Commits of the seed and the best agent."""
    sandbox: str
    sessions: int
    """Number of times a process began to write the run; more than one if it was resumed."""
    changed: tuple[str, ...]
    """Settings that were changed at a resume, at their present values; the command gives the earlier ones."""


class EndingView(View):
    """How the holdout evaluations of this call ended, if they are not complete."""

    reason: str
    """``budget spent``, ``infrastructure failed``, ``stopped`` …"""
    message: str


class ReportView(View):
    """The report of a run."""

    run: str
    policy: str
    seed: int
    """The random seed."""
    state: str
    benchmark: str
    models: dict[str, str]
    """Role → model."""
    simulated: bool
    """Whether the run is a simulation, without agents and tasks."""
    repeats: bool
    """Whether the model gives equal answers to equal requests."""
    began_unix_s: float
    """Time of the first event."""
    ended_unix_s: float
    """Time of the last event."""
    seconds: float
    """Wall time of the sessions."""
    workers: int
    agents: int
    stillborn: int
    evaluations: int
    """Graded evaluations."""
    resolved: int
    tasks: int
    """Number of search tasks."""
    curriculum: CurriculumView | None = None
    """The search tasks by their state; None without a curriculum."""
    running: int
    """Actions under way, or cut off if no process writes the run."""
    budget_usd: float | None
    answer: Answer
    headline: str
    """The answer in one sentence."""
    note: str
    """How far the results can be trusted."""
    seed_agent: AgentRow
    best: AgentRow
    highest: AgentRow | None
    """The agent with the highest plain rate; None if that is the best agent."""
    chosen: ChosenView | None
    """None if there was no choice, or the rates do not compare because a curriculum changed the tasks."""
    holdout: HoldoutView | None
    """None if the best agent was not evaluated on the holdout tasks."""
    promotions: PromotionsView | None
    """None before the first round of promotion."""
    cheapest: CheapestView
    objective: ObjectiveView | None
    """None where agents are compared by resolved tasks alone."""
    probes: AgentProbesView
    """State of the best agent's probes."""
    ending: EndingView | None = None
    roots: tuple[RootView, ...]
    """The agents that the search started from, if there are several; else empty."""
    spend: SearchSpend
    operators: tuple[OperatorView, ...]
    curve: tuple[CurvePoint, ...]
    """The agent with the highest lower bound over time."""
    tree: ReportTree
    lineage: ReportLineage
    drift: DriftView
    """The agents of ``lineage.steps``."""
    matrix: MatrixView
    groups: TaskGroups
    failures: FailuresView
    dead_end: DeadEndView | None
    """Why the search could not go on; None for any other search."""
    reproduce: ReproductionView
    warnings: tuple[str, ...]
    """Missing or damaged parts of the run."""
    files: tuple[Path, ...] = Field(default=(), exclude=True)
    """Files that this call wrote."""

    @property
    def exit_code(self) -> int:
        """0, 3 if the money for the holdout evaluations was spent, 1 if they failed."""
        if self.ending is None:
            return 0
        return 3 if self.ending.reason == "budget spent" else 1

    @classmethod
    def load(cls, run: Run, best: AgentId | None = None) -> Self:
        """Read the report of a run.

        Args:
            run: as far as its tree has read the log.
            best: the agent to report on; None: the one that the policy recommends.

        Raises:
            UserError: the run has no agent yet.
            ArchiveCorrupt: the log is damaged.
        """
        tree = run.tree
        if not tree.agents:
            raise UserError(f"run {run.name} has no agent yet; wait until its seed is born")
        best = best_of(run) if best is None else best
        models = models_of(run)
        repeats = models["solve"] in REPEATING
        holdout = read_holdout(run, tree.agents[best])
        lineage, settings, identity = read_lineage(run, best), run.settings(), identity_of(run)
        simulated = run.kind is RunKind.SIMULATION
        highest = find_highest(tree, best)
        began, ended = run.store.query("SELECT min(at), max(at) FROM events WHERE seq <= ?", (tree.seq,))[0]
        return cls(
            run=identity.run,
            policy=identity.policy,
            seed=identity.seed,
            state=state(run),
            benchmark=settings["benchmark"],
            models=models,
            simulated=simulated,
            repeats=repeats,
            began_unix_s=began,
            ended_unix_s=ended,
            seconds=tree.wall_seconds,
            workers=settings["workers"],
            agents=len(tree.agents),
            stillborn=sum(tree.stillborn.values()),
            evaluations=tree.evaluations,
            resolved=int(tree.own_resolved.sum()),
            tasks=len(tree.tasks),
            curriculum=CurriculumView.load(tree),
            running=len(tree.pending),
            budget_usd=tree.budget.usd,
            answer=holdout.answer if holdout else Answer.NOT_EXAMINED,
            headline=make_headline(holdout, best, simulated=simulated),
            note=_trust_note(models, settings["benchmark"], simulated=simulated),
            seed_agent=AgentRow.of(tree, tree.agents[SEED], best),
            best=AgentRow.of(tree, tree.agents[best], best),
            highest=None if highest is None else AgentRow.of(tree, tree.agents[highest], best),
            chosen=_correct_rate(tree, best),
            holdout=holdout,
            promotions=PromotionsView.load(run),
            cheapest=CheapestView.load(run, best),
            objective=ObjectiveView.load(run),
            probes=AgentProbesView.load(run, tree.agents[best]),
            roots=_compare_roots(run, best),
            spend=read_spend(run),
            operators=read_operators(run),
            curve=tuple(compute_curve(run, POINTS)),
            tree=view_tree(tree, best),
            lineage=lineage,
            drift=DriftView.load(run, [AgentId(step.agent) for step in lineage.steps]),
            matrix=build_matrix(tree, [AgentId(agent) for agent in lineage.agents]),
            groups=read_groups(run, best),
            failures=FailuresView.load(run),
            dead_end=view_dead_end(run),
            reproduce=read_reproduction(run, best),
            warnings=(*grader_notes(run), *_missing_traces(run), *_missing_diffs(lineage)),
        )


def make_headline(holdout: HoldoutView | None, best: AgentId, *, simulated: bool) -> str:
    """Return the answer in one sentence."""
    if best == SEED:
        return "no agent is better: the policy recommends the seed itself"
    if simulated:
        return "not known: a simulated search has no holdout tasks"
    if holdout is None or not holdout.tasks:
        return "not known: the best agent was not evaluated on the holdout tasks"
    seed, second = holdout.seed_agent, holdout.best
    if holdout.missing:
        return f"not known: {seed.n} of {holdout.tasks} holdout tasks have verdicts on the seed and the best agent"
    answer = {Answer.BETTER: "yes, better", Answer.WORSE: "no, worse"}.get(holdout.answer, holdout.answer)
    return f"{answer}: {second.resolved} of {second.n} holdout tasks, the seed {seed.resolved}"


def _trust_note(models: Mapping[str, str], benchmark: str, *, simulated: bool) -> str:
    if simulated:
        return "simulated search: no agent ran, and every verdict was drawn from a model of agents and tasks"
    if "offline" in models.values():
        return (
            "offline model: a repair program, not a language model; tasks and edits have the same authors, "
            "so improvement is expected, not a finding"
        )
    return (
        f"this is one search with {models_text(models)} on {benchmark}; models answer differently from call to call, "
        "so repeat it with other seeds before you rely on it"
    )


def _correct_rate(tree: Tree, best: AgentId) -> ChosenView | None:
    """Correct the rate for the choice; ``dgm.stats.best_of_many`` states the assumptions."""
    tallies = [tree.own(agent.id) for agent in tree.agents]
    evaluated = sum(tally.n > 0 for tally in tallies)
    if not tallies[best].n or evaluated < 2 or tree.curriculum.changes > 1:
        return None
    corrected = best_of_many(tallies[best], tallies)
    return ChosenView(agent=best, evaluated=evaluated, rate=tallies[best].rate, corrected_rate=corrected)


def _compare_roots(run: Run, best: AgentId) -> tuple[RootView, ...]:
    tree = run.tree
    if len(tree.roots) < 2:
        return ()
    accounts, rows = Accounts(run), list[RootView]()
    for root in tree.roots:
        members = tree.clade_members(root)
        leader = max(members, key=lambda member: (lower_bound(tree.own(member)), -member))
        rows.append(
            RootView(
                agent=root,
                name=Path(name_of_root(run.config, root)).name,
                own=TallyView.of(tree.own(root)),
                clade=TallyView.of(tree.clade(root)),
                agents=len(members),
                children=len(tree.children(root)),
                best=AgentRow.of(tree, tree.agents[leader], best),
                spend=UsageView.of(accounts.clade(root)),
            )
        )
    return tuple(rows)


def view_tree(tree: Tree, best: AgentId, most: int = NODES) -> ReportTree:
    """Return at most ``most`` agents with all their ancestors.

    A clade holds the clades of its agents' children, and a parent is older, so no agent is chosen without its parents.
    """
    agents = [agent.id for agent in tree.agents]
    if len(agents) > most:
        sizes = [tree.clade(agent).n for agent in agents]
        line = [agent.id for agent in trace_lineage(tree, best)]
        agents.sort(key=lambda agent: (-sizes[agent], agent))
        agents = sorted({*line, *agents[: max(0, most - len(line))]})
    return ReportTree(
        agents=tuple(AgentRow.of(tree, tree.agents[agent], best) for agent in agents),
        left_out=len(tree.agents) - len(agents),
    )


def read_operators(run: Run) -> tuple[OperatorView, ...]:
    """Return the operators of a run; without the time of vetting if its traces are lost."""
    try:
        lines = operators_of(run)
    except ArchiveCorrupt:
        lines = operators_of(run, timed=False)
    return tuple(map(_view_operator, lines))


def _view_operator(line: OperatorLine) -> OperatorView:
    gain = line.gain
    interval = None if gain is None or gain.low is None or gain.high is None else (gain.low, gain.high)
    return OperatorView(
        operator=line.operator,
        tried=line.tried,
        born=line.born,
        waiting=line.waiting,
        unfinished=line.unfinished,
        stillborn=_by_count(line.stillborn),
        aims=_by_count(line.aims),
        judged=line.judged,
        better=line.better,
        gain=GainView(mean=gain.mean, interval=interval) if gain else None,
        kept=line.promises.resolved,
        tested=line.promises.n,
        spend=UsageView.of(line.spend),
        seconds=line.seconds,
        vetting={stage: {"runs": took.runs, "seconds": took.seconds} for stage, took in line.vetting.items()},
    )


def _by_count(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def read_spend(run: Run) -> SearchSpend:
    """Return the usage of a search by role, model and purpose."""
    tree = run.tree
    births = {agent.action for agent in tree.agents}
    unfinished = {*tree.waiting, *tree.pending, *tree.to_redo()}
    purposes: dict[Purpose, Usage] = {}
    starts = {event.id: event.action for event in run.store.events(ActionStarted, until=tree.seq)}
    for action, what in starts.items():
        if isinstance(what, Evaluate):
            purpose = Purpose.EVALUATING
        elif action in births:
            purpose = Purpose.MAKING
        else:
            purpose = Purpose.UNFINISHED if action in unfinished else Purpose.STILLBORN
        purposes[purpose] = purposes.get(purpose, Usage()) + tree.spend_of(action)
    return SearchSpend.of(
        tree.spend,
        by=role_usages(tree.spend_by),
        purposes={purpose: UsageView.of(purposes[purpose]) for purpose in Purpose if purpose in purposes},
        saved_usd=compute_cache_saving(run),
    )


def compute_cache_saving(run: Run) -> float:
    """Return the USD that cached input saved over all models with a known price, at the rates of short calls."""
    cached = {model: usage for (_, model), usage in run.tree.spend_by.items() if usage.cached_tokens}
    if not cached:
        return 0.0
    from dgm.models.pricing import Prices
    from dgm.search.start import settings_of

    prices = Prices.load(settings_of(run))
    return sum(
        prices.of(model).saved(usage)
        for (_, model), usage in run.tree.spend_by.items()
        if model in cached and prices.knows(model)
    )


def grader_notes(run: Run) -> Sequence[str]:
    """Return a sentence if verdicts of several graders stand side by side."""
    versions = [*run.benchmarks()]
    if holdout_exists(run):
        with Run.open(run.folder / FOLDER) as exam:
            versions += exam.benchmarks()
    graders = dict.fromkeys(map(name_grader, versions))
    if len(graders) < 2:
        return []
    return [
        f"verdicts of {' and '.join(graders)} stand side by side, which may judge the same patch differently"
    ]


def _missing_traces(run: Run) -> Sequence[str]:
    """Return a sentence if traces are missing; their content is not read."""
    named = {digest for item in run.store.read(0, run.tree.seq) for digest in traces_of(item.event)}
    present = {digest for (digest,) in run.store.query("SELECT sha256 FROM blobs")}
    count = len(named & present)
    if count == len(named):
        return []
    return [f"missing: traces of evaluations and expansions ({count:,} of {len(named):,} are there)"]


def _missing_diffs(lineage: ReportLineage) -> Sequence[str]:
    damaged = [step for step in lineage.steps if step.damage]
    if not damaged:
        return []
    return [f"missing: {len(damaged)} of {len(lineage.steps) - 1} diffs ({damaged[0].damage})"]


def read_reproduction(run: Run, best: AgentId) -> ReproductionView:
    """Return what is needed to repeat a run.

    Raises:
        UserError: its settings are not in the form that dgm writes.
    """
    config, name, agents = run.config, shlex.quote(run.name), run.tree.agents
    replays = (
        f"dgm replay {name}",
        f"dgm replay {name} {best} --what lineage",
        f"dgm replay {name} {best} --what evaluations",
    )
    is_search = run.kind in (RunKind.SEARCH, RunKind.REPLAY)
    return ReproductionView(
        command=run_command_text(config) if is_search else None,
        replays=replays if is_search else (),
        versions={part: str(version) for part, version in config.get("versions", {}).items()},
        seed=config["settings"]["seed"],
        commits={agent: agents[agent].commit for agent in dict.fromkeys((agents[0].id, best))},
        sandbox=str(config.get("sandbox", "")),
        sessions=run.store.query(_SESSIONS, (run.tree.seq,))[0][0],
        changed=tuple(format_assignments(changes_of(run))),
    )


def run_command_text(config: Mapping[str, Any]) -> str:
    """Return the ``dgm run`` that gives the frozen settings of ``config`` again, as one line of a shell.

    Raises:
        UserError: the settings are not in the form that dgm writes.
    """
    frozen = read_frozen(config["settings"], "run.json")
    usual = Settings().model_dump(mode="json")
    words = ["dgm", "run"]
    for path, value in leaves(frozen.model_dump(mode="json")):
        key = ".".join(path)
        # TOML has no null. It needs none: every setting that can be None is None by default.
        if value is None or (value == _value_at(usual, path) and key not in ALWAYS):
            continue
        if key in FLAGS:
            for each in value if isinstance(value, list) else [value]:
                words += [FLAGS[key], str(each)]
        else:
            words += ["--set", f"{format_key(path)}={format_value(value)}"]
    return shlex.join(words)


def _value_at(table: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401  (any value of a settings file)
    for name in path:
        table = table.get(name) if isinstance(table, dict) else None
    return table
