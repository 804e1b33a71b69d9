"""All facts of a report, gathered once and as plain values; the other modules decide how they are shown."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.analysis.accounts import Purpose
from dgm.analysis.failures import FailureCounts, count_failures, count_unresolved
from dgm.analysis.given_up import count_given_up
from dgm.analysis.operator_accounts import OperatorLine
from dgm.analysis.summary import corrected_rate_record, run_facts
from dgm.archive.run import Run
from dgm.benchmarks.grader_version import name_grader
from dgm.domain import ActionId, Agent, AgentId, Tally, Usage
from dgm.evaluation.exam import FOLDER
from dgm.models.pricing import Prices
from dgm.report.curve import CurvePoint, compute_curve
from dgm.report.groups import TaskGroups, find_groups
from dgm.report.headline import ExamFindings, HoldoutVerdict, exam_exists, make_verdict, trust_note
from dgm.report.layout import TreeLayout, place_tree
from dgm.report.matrix import TaskMatrix, build_matrix
from dgm.report.reproduce import Reproduction, read_reproduction
from dgm.report.steps import LineagePath, read_lineage
from dgm.search.run_settings import settings_of
from dgm.show.events import time_text
from dgm.simulation import PLAN as SIMULATION

_STARTS = """
SELECT DISTINCT action, json_extract(body, '$.task') IS NULL
FROM events WHERE kind = 'action_started' AND seq <= ?
"""
_NAMED = """
SELECT DISTINCT trace.value FROM events, json_each(events.body, '$.traces') AS trace
WHERE kind IN ('task_graded', 'agent_born', 'agent_stillborn', 'child_proposed') AND seq <= ?
"""
_FIRST_AND_LAST = "SELECT min(at), max(at) FROM events WHERE seq <= ?"


@dataclass(frozen=True, slots=True)
class ReportLimits:
    """The largest sizes of a report's parts; a report leaves out the rest."""

    points: int = 400
    """Maximum points of the curve."""
    nodes: int = 2_000
    """Maximum nodes of the tree."""
    steps: int = 60
    """Maximum steps of the best agent's line."""
    tasks: int = 200
    agents: int = 24
    """Maximum agents of the matrix."""


@dataclass(frozen=True, slots=True)
class ReportAgent:
    """An agent with the tree's facts about it."""

    agent: Agent
    own: Tally
    clade: Tally
    children: int
    aim: str
    given_up: int
    """Tasks without a verdict, which no tally counts."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The facts of a report."""

    run: Mapping[str, Any]
    """The record of ``run_facts``."""
    began: str
    """Time of the first event, and then of the last, as ``2026-11-22 10:43`` in UTC."""
    ended: str
    tasks: int
    """Number of search tasks."""
    members: Sequence[ReportAgent]
    """All agents."""
    best: AgentId
    chosen: Mapping[str, Any] | None
    """The record of ``corrected_rate_record``."""
    found: ExamFindings | None
    verdict: HoldoutVerdict
    curve: Sequence[CurvePoint]
    tree: TreeLayout
    operators: Sequence[OperatorLine]
    line: LineagePath
    matrix: TaskMatrix
    groups: TaskGroups
    spend: Usage
    saved_usd: float
    """USD that the providers' caches saved."""
    by: Mapping[tuple[str, str], Usage]
    """Usage by role and model."""
    purposes: Mapping[Purpose, Usage]
    failures: FailureCounts
    unresolved: Sequence[tuple[str, int]]
    """Verdicts by kind of reason."""
    reproduction: Reproduction
    note: str
    damage: Sequence[str]
    """Missing or damaged parts of the run, a sentence each."""


def gather_report(
    run: Run,
    best: AgentId,
    found: ExamFindings | None,
    operators: Sequence[OperatorLine],
    limits: ReportLimits = ReportLimits(),
) -> RunReport:
    """Read the facts for a report from a run that has an agent.

    Args:
        run: as far as its tree has read the log.
        best: the agent that it recommends.
        found: the result of its examination.
        operators: the results of its operators.
        limits: the largest sizes of the report's parts.

    Raises:
        ArchiveCorrupt: the log is damaged.
    """
    tree = run.tree
    path = read_lineage(run, best, limits.steps)
    first, last = run.store.query(_FIRST_AND_LAST, (tree.seq,))[0]
    return RunReport(
        run=run_facts(run, best),
        began=time_text(first)[:-3],
        ended=time_text(last)[:-3],
        tasks=len(tree.tasks),
        members=[_make_report_agent(run, agent) for agent in tree.agents],
        best=best,
        chosen=corrected_rate_record(run, best),
        found=found,
        verdict=make_verdict(found, best, run.name, simulated=SIMULATION in run.config),
        curve=compute_curve(run, limits.points),
        tree=place_tree(tree, best, limits.nodes),
        operators=operators,
        line=path,
        matrix=build_matrix(tree, path.agents, limits.tasks, limits.agents),
        groups=find_groups(run, best),
        spend=tree.spend,
        saved_usd=compute_cache_saving(run),
        by=dict(tree.spend_by),
        purposes=_sum_by_purpose(run),
        failures=count_failures(run),
        unresolved=count_unresolved(run),
        reproduction=read_reproduction(run, best),
        note=trust_note(run),
        damage=[*grader_notes(run), *missing_traces(run), *_missing_diff_notes(path)],
    )


def compute_cache_saving(run: Run) -> float:
    """Return the USD that cached input saved, over all models whose price is known; 0 if nothing was cached.

    The sum of many calls is priced like one call, at the rates of short calls.
    """
    cached = {model: usage for (_, model), usage in run.tree.spend_by.items() if usage.cached_tokens}
    if not cached:
        return 0.0
    settings = settings_of(run)
    prices = Prices.load(settings)
    return sum(
        prices.of(model).saved(usage)
        for (_, model), usage in run.tree.spend_by.items()
        if model in cached and prices.knows(model)
    )


def grader_notes(run: Run) -> Sequence[str]:
    """Return a sentence if verdicts of several graders stand side by side."""
    versions = [*run.benchmarks()]
    if exam_exists(run):
        with Run.open(run.folder / FOLDER) as exam:
            versions += exam.benchmarks()
    graders = dict.fromkeys(map(name_grader, versions))
    if len(graders) < 2:
        return []
    return [
        f"verdicts of {' and '.join(graders)} stand side by side, which may judge the same patch otherwise"
    ]


def missing_traces(run: Run) -> Sequence[str]:
    """Return a sentence if traces are missing; their content is not read."""
    named = {digest for (digest,) in run.store.query(_NAMED, (run.tree.seq,))}
    there = len(named & _list_traces(run.folder / "traces"))
    if there == len(named):
        return []
    return [f"not there: traces of evaluations and of agents' making ({there:,} of {len(named):,} are)"]


def _list_traces(folder: Path) -> set[str]:
    """Return the digests of the traces in the folder.

    One look at each folder is cheaper than one at each trace.
    """
    found: set[str] = set()
    try:
        parts = [part for part in os.scandir(folder) if part.is_dir()]
    except OSError:
        return found
    for part in parts:
        with os.scandir(part.path) as files:
            found.update(part.name + file.name.removesuffix(".z") for file in files)
    return found


def is_going_on(report: RunReport) -> bool:
    """Return whether a process still writes the run."""
    return report.run["state"] in ("running", "paused")


def _make_report_agent(run: Run, agent: Agent) -> ReportAgent:
    tree = run.tree
    own, clade = tree.own(agent.id), tree.clade(agent.id)
    given_up = count_given_up(tree, agent.id)
    return ReportAgent(agent, own, clade, len(tree.children(agent.id)), tree.aim(agent.id), given_up)


def _sum_by_purpose(run: Run) -> Mapping[Purpose, Usage]:
    """Return the usage by purpose as ``Accounts`` has it, over all agents."""
    tree = run.tree
    births = {agent.action for agent in tree.agents}
    open_yet = {*tree.waiting, *tree.pending, *tree.to_redo()}
    found: dict[Purpose, Usage] = {}
    for number, expands in run.store.query(_STARTS, (tree.seq,)):
        action = ActionId(number)
        purpose = (
            Purpose.EVALUATING
            if not expands
            else Purpose.MAKING
            if action in births
            else Purpose.UNFINISHED
            if action in open_yet
            else Purpose.STILLBORN
        )
        found[purpose] = found.get(purpose, Usage()) + tree.spend_of(action)
    return {purpose: found[purpose] for purpose in Purpose if purpose in found}


def _missing_diff_notes(path: LineagePath) -> list[str]:
    damaged = [step for step in path.steps if step.damage]
    if not damaged:
        return []
    return [f"not there: {len(damaged)} of {len(path.steps) - 1} diffs ({damaged[0].damage})"]
