"""Several runs on one suite: the results of each, and paired differences over tasks or over random seeds."""

import difflib
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from pydantic import Field

from dgm.analysis.agents import best_of
from dgm.archive.finding import archive_folders, find_run, find_runs_in
from dgm.archive.run import LIVING, Run, RunKind, identity_of, state
from dgm.benchmarks.grader_version import differ_in_grader, name_grader
from dgm.config.resolving import leaves
from dgm.domain import Agent, Tally, TaskId, Verdict
from dgm.errors import UserError
from dgm.evaluation.control import FOLDER
from dgm.evaluation.schedule import compare_verdicts, find_entered
from dgm.stats import paired_bootstrap
from dgm.views.agents import AgentRow
from dgm.views.curve import CurvePoint, list_recommendations
from dgm.views.holdout import PairedView, paired_fields, read_holdout
from dgm.views.run import models_of
from dgm.views.values import OFFLINE_NOTE, TallyView, View

SEED = "seed"
UNFINISHED = (*LIVING, "interrupted", "stopped")
_WILD = frozenset("*?[")
_TEXT = 160
Verdicts = dict[TaskId, Verdict | None]
PairKey = tuple[str, ...]


class ComparedRun(View):
    """A run in a comparison."""

    run: str
    policy: str
    seed: int
    """The random seed."""
    state: str
    agents: int
    evaluations: int
    """Graded evaluations."""
    usd: float
    """Spend of the search."""
    tokens: int
    best: AgentRow
    """The agent that the policy recommends."""
    holdout: TallyView | None
    """The best agent on the holdout tasks; None if these evaluations are not complete."""
    curve: tuple[CurvePoint, ...]
    """The recommended agent over time; empty without a verdict."""
    settings: dict[str, Any] = Field(exclude=True)
    """Present settings by dotted key."""
    version: str = Field(exclude=True)
    """Version of the suite."""
    offline: bool = Field(exclude=True)
    """Whether a model is the offline one."""
    search_verdicts: Verdicts = Field(exclude=True)
    """First verdicts of the best agent."""
    holdout_verdicts: Verdicts | None = Field(exclude=True)
    """None if the holdout evaluations are not complete."""


class TaskPairs(PairedView):
    """The best agents of two runs, compared on the tasks that both have a verdict on."""

    tasks: Literal["search tasks", "holdout tasks"]
    first: str
    """Name of the first run."""
    second: str
    """Name of the other run, whose rate minus the first's is the difference."""
    pairs: int
    """Number of common tasks."""
    first_tally: TallyView
    second_tally: TallyView


class RunPair(View):
    """A run of each group with the same seed."""

    key: dict[str, str]
    """The settings that both runs have in common, the seed first."""
    first: float
    second: float
    difference: float
    """second - first."""


class GroupPairs(View):
    """A measure of two groups of runs, pair by pair."""

    measure: str
    first: str
    """The group whose values are subtracted."""
    second: str
    pairs: tuple[RunPair, ...]
    mean: float | None
    """Mean difference; None without a pair."""
    interval: tuple[float, float] | None
    """95 % bootstrap interval over pairs; None with fewer than two."""


class ComparisonView(View):
    """A comparison of several runs."""

    benchmark: str
    benchmark_version: str
    runs: tuple[ComparedRun, ...]
    group_by: str | None
    """The setting that groups the runs; None: each run is compared with the first, task by task."""
    groups: dict[str, tuple[str, ...]]
    """Value of the setting → names of its runs."""
    paired_by: tuple[str, ...]
    """What the members of a pair have in common: ``task``, or settings, the seed first."""
    pairs_of_runs: tuple[GroupPairs, ...]
    """Each group with the first one."""
    pairs_of_tasks: tuple[TaskPairs, ...]
    """Each run with the first one, without groups."""
    notes: tuple[str, ...]
    """What limits the comparison: unfinished runs, settings that differ."""
    files: tuple[Path, ...] = Field(default=(), exclude=True)
    """Files that this call wrote."""

    @classmethod
    def load(cls, folders: Sequence[Path], group_by: str | None = None) -> "ComparisonView":
        """Compare runs.

        Args:
            folders: of the runs.
            group_by: a setting, such as ``policy``; None: the one that differs, if that gives two pairs or more.

        Raises:
            UserError: a run has no agent, the runs are of different suites, or they cannot be grouped so.
            ArchiveCorrupt: a run is damaged.
        """
        runs = []
        for folder in folders:
            with Run.open(folder) as run:
                runs.append(read_run(run))
        return compare_runs(runs, group_by)


@dataclass(frozen=True, slots=True)
class Grouping:
    """Runs by the value of one setting, in the order in which they were named."""

    by: str
    groups: Mapping[str, Sequence[ComparedRun]]
    paired_by: tuple[str, ...]

    def key_of(self, run: ComparedRun) -> PairKey:
        """Return the run's values of ``paired_by``."""
        return tuple(str(run.settings.get(name)) for name in self.paired_by)

    def find_twins(self) -> tuple[ComparedRun, ComparedRun] | None:
        """Return two runs of a group with the same key."""
        for members in self.groups.values():
            seen: dict[PairKey, ComparedRun] = {}
            for run in members:
                if (other := seen.setdefault(self.key_of(run), run)) is not run:
                    return other, run
        return None


def find_runs(names: Sequence[str]) -> Sequence[Path]:
    """Return the folders of runs: names, paths, or patterns such as ``policies-*``, each run once.

    Raises:
        UserError: a name stands for no run, or two names for the same one.
    """
    folders: dict[Path, Path] = {}
    for name in names:
        matching = _match_runs(name)
        if len(matching) == 1 and matching[0].resolve() in folders and not _WILD & {*name}:
            raise UserError(f"{name} is named twice; name each run once")
        folders |= {folder.resolve(): folder for folder in matching}
    return list(folders.values())


def _match_runs(name: str) -> Sequence[Path]:
    try:
        return [find_run(name)]
    except UserError:
        if not _WILD & {*name}:
            raise
    folders = [folder for archive in archive_folders() for folder in find_runs_in(archive)]
    matching = {folder.name: folder for folder in folders if fnmatchcase(folder.name, name)}
    if not matching:
        raise UserError(f"no run matches {name!r}")
    return [matching[key] for key in sorted(matching)]


def read_run(run: Run) -> ComparedRun:
    """Read a run for a comparison.

    Raises:
        UserError: it is no search, or has no agent yet.
    """
    if run.kind in (RunKind.EVALUATION, RunKind.HOLDOUT):
        raise UserError(f"{run.folder}: not a search, but an evaluation; name the run itself")
    tree = run.tree
    if not tree.agents:
        raise UserError(f"run {run.name} has no agent yet; wait until its seed is born, or leave it out")
    from dgm.search.start import settings_of

    best, identity = tree.agents[best_of(run)], identity_of(run)
    holdout = _read_holdout(run, best)
    verdicts = list((holdout or {}).values())
    tally = Tally(verdicts.count(Verdict.RESOLVED), verdicts.count(Verdict.UNRESOLVED))
    return ComparedRun(
        run=identity.run,
        policy=identity.policy,
        seed=identity.seed,
        state=state(run),
        agents=len(tree.agents),
        evaluations=tree.evaluations,
        usd=tree.spend.usd,
        tokens=tree.spend.tokens,
        best=AgentRow.of(tree, best, best.id),
        holdout=TallyView.of(tally) if tally.n else None,
        curve=tuple(list_recommendations(run)),
        settings={".".join(path): value for path, value in leaves(settings_of(run).model_dump(mode="json"))},
        version=run.config["versions"]["benchmark"],
        offline="offline" in models_of(run).values(),
        search_verdicts=dict(tree.verdicts(best.id)),
        holdout_verdicts=holdout,
    )


def _read_holdout(run: Run, agent: Agent) -> Verdicts | None:
    view = read_holdout(run, agent)
    if view is None or not view.tasks or view.missing:
        return None
    with Run.open(run.folder / FOLDER) as holdout:
        entered = find_entered(holdout, agent.commit)
        return None if entered is None else dict(holdout.tree.verdicts(entered))


def compare_runs(runs: Sequence[ComparedRun], group_by: str | None) -> ComparisonView:
    """Return the comparison of runs that were read; arguments and errors as for ``ComparisonView.load``."""
    notes = check_comparable(runs)
    differing = find_differing_settings(runs)
    if group_by is None and len(differing) == 1:
        values = {(run.seed, str(run.settings.get(differing[0]))) for run in runs}
        common = [seed for seed in {run.seed for run in runs} if sum(key[0] == seed for key in values) > 1]
        group_by = differing[0] if len(common) > 1 else None
    grouping = group_runs(runs, group_by) if group_by else None
    groups = grouping.groups if grouping else {}
    return ComparisonView(
        benchmark=runs[0].settings["benchmark"],
        benchmark_version=runs[0].version,
        runs=tuple(runs),
        group_by=grouping.by if grouping else None,
        groups={name: tuple(run.run for run in members) for name, members in groups.items()},
        paired_by=grouping.paired_by if grouping else ("task",),
        pairs_of_runs=pair_groups(grouping) if grouping else (),
        pairs_of_tasks=() if grouping else pair_tasks(runs),
        notes=(*notes, *_list_notes(runs, [key for key in differing if not grouping or key != grouping.by])),
    )


def check_comparable(runs: Sequence[ComparedRun]) -> Sequence[str]:
    """Check that all runs were judged by the same tasks; return a note for each other grader.

    Raises:
        UserError: two suites differ.
    """
    first, notes = runs[0], []
    for other in runs[1:]:
        one, two = first.version, other.version
        if differ_in_grader(two, one) or differ_in_grader(one, two):
            notes.append(
                f"{first.run} has verdicts of {name_grader(one)}, {other.run} of {name_grader(two)}, "
                "which may judge the same patch differently"
            )
        elif one != two:
            suites = (f"{run.settings['benchmark']} (version {run.version[:12]})" for run in (first, other))
            raise UserError(
                f"{first.run} and {other.run} were judged by different suites, {' and '.join(suites)}; "
                "compare runs on one suite"
            )
    return notes


def _list_notes(runs: Sequence[ComparedRun], differing: Sequence[str]) -> Sequence[str]:
    notes = []
    if unfinished := [run.run for run in runs if run.state in UNFINISHED]:
        notes.append(f"not finished, as they stand now: {', '.join(unfinished)}")
    if bare := [run.run for run in runs if not run.curve]:
        notes.append(f"without a verdict, so in no curve and no pair by score: {', '.join(bare)}")
    if differing:
        values = "; ".join(f"{key} ({_values_text(runs, key)})" for key in differing)
        notes.append(f"settings that differ between these runs: {values}")
    if any(run.offline for run in runs):
        notes.append(OFFLINE_NOTE)
    return notes


def _values_text(runs: Sequence[ComparedRun], key: str) -> str:
    text = ", ".join(dict.fromkeys(str(run.settings.get(key)) for run in runs))
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"


def group_runs(runs: Sequence[ComparedRun], by: str) -> Grouping:
    """Group runs by a setting.

    Two runs of different groups are a pair if they have the same seed. If a group has several runs with one seed, the
    other settings in which the runs differ must be equal as well.

    Raises:
        UserError: there is no such setting, or two runs of a group differ in nothing that could pair them.
    """
    key = _find_setting(runs, by)
    groups: dict[str, list[ComparedRun]] = {}
    for run in runs:
        groups.setdefault(str(run.settings.get(key)), []).append(run)
    grouping = Grouping(key, groups, (SEED,))
    if grouping.find_twins():
        others = [other for other in find_differing_settings(runs) if other != key]
        grouping = Grouping(key, groups, (SEED, *others))
    if twins := grouping.find_twins():
        raise UserError(
            f"{twins[0].run} and {twins[1].run} have the same {key} and the same seed, so that either could be the one "
            "to pair; leave one out"
        )
    return grouping


def find_differing_settings(runs: Sequence[ComparedRun]) -> Sequence[str]:
    """Return the settings, except for the seed, that are not the same in all runs."""
    keys, first = dict.fromkeys(key for run in runs for key in run.settings), runs[0].settings
    return [
        key for key in keys if key != SEED and any(run.settings.get(key) != first.get(key) for run in runs)
    ]


def _find_setting(runs: Sequence[ComparedRun], by: str) -> str:
    """Return the dotted key that ``by`` stands for: itself, or the name in its section."""
    known = dict.fromkeys(key for run in runs for key in run.settings)
    for key in (by, f"{by}.name"):
        if key in known:
            return key
    if inside := [key for key in known if key.startswith(f"{by}.")]:
        problem = f"{by} is a section of the settings; name a setting in it, such as {inside[0]}"
        raise UserError(problem, argument="group_by")
    near = difflib.get_close_matches(by, ["policy", *known], 1, 0.5)
    hint = f" (did you mean '{near[0]}'?)" if near else "; for example policy, or operator"
    raise UserError(f"there is no setting {by}{hint}", argument="group_by")


def pair_tasks(runs: Sequence[ComparedRun]) -> tuple[TaskPairs, ...]:
    """Compare each run with the first, task by task; on the holdout tasks too if both have these verdicts."""
    first, pairs = runs[0], []
    for second in runs[1:]:
        if first.holdout_verdicts is not None and second.holdout_verdicts is not None:
            verdicts = first.holdout_verdicts, second.holdout_verdicts
            pairs.append(_pair_verdicts("holdout tasks", first, second, *verdicts))
        pairs.append(
            _pair_verdicts("search tasks", first, second, first.search_verdicts, second.search_verdicts)
        )
    return tuple(pairs)


def _pair_verdicts(
    tasks: Literal["search tasks", "holdout tasks"],
    first: ComparedRun,
    second: ComparedRun,
    one: Verdicts,
    two: Verdicts,
) -> TaskPairs:
    pairs = compare_verdicts([(task, verdict, two.get(task)) for task, verdict in one.items()])
    return TaskPairs(
        **paired_fields(pairs),
        tasks=tasks,
        first=first.run,
        second=second.run,
        pairs=pairs.first.n,
        first_tally=TallyView.of(pairs.first),
        second_tally=TallyView.of(pairs.second),
    )


def pair_groups(grouping: Grouping) -> tuple[GroupPairs, ...]:
    """Compare each group of runs with the first, pair by pair, in each measure that some pair has.

    Scores are compared at the largest number of evaluations that every run with a verdict has reached.
    """
    names = list(grouping.groups)
    curves = [run.curve for members in grouping.groups.values() for run in members if run.curve]
    common = min((curve[-1].evaluations for curve in curves), default=0)
    measures: dict[str, Callable[[ComparedRun], float | None]] = {
        "holdout rate": lambda run: run.holdout.rate if run.holdout else None
    }
    if common:
        measures |= {
            f"lower bound at {common} evaluations": lambda run: _point_at(run.curve, common).lower_bound,
            f"rate on search tasks at {common} evaluations": lambda run: _point_at(run.curve, common).rate,
        }
    groups = []
    for second in names[1:]:
        for measure, value in measures.items():
            pairs = _pair_values(grouping, names[0], second, value)
            if pairs or measure != "holdout rate":
                differences = [pair.difference for pair in pairs]
                groups.append(
                    GroupPairs(
                        measure=measure,
                        first=names[0],
                        second=second,
                        pairs=pairs,
                        mean=fmean(differences) if differences else None,
                        interval=paired_bootstrap(differences) if len(differences) > 1 else None,
                    )
                )
    return tuple(groups)


def _point_at(curve: Sequence[CurvePoint], evaluations: int) -> CurvePoint:
    """Return the last point at ``evaluations`` or before; the first one if all are later."""
    return curve[max(0, bisect_right(curve, evaluations, key=lambda point: point.evaluations) - 1)]


def _pair_values(
    grouping: Grouping, first: str, second: str, value: Callable[[ComparedRun], float | None]
) -> tuple[RunPair, ...]:
    sides = [
        {
            grouping.key_of(run): number
            for run in grouping.groups[name]
            if run.curve and (number := value(run)) is not None
        }
        for name in (first, second)
    ]
    return tuple(
        RunPair(
            key=dict(zip(grouping.paired_by, key, strict=True)),
            first=one,
            second=sides[1][key],
            difference=sides[1][key] - one,
        )
        for key, one in sides[0].items()
        if key in sides[1]
    )
