"""The line from the seed to the best agent: its steps, the tasks that it resolved, and the kinds of these tasks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dgm.analysis.agents import trace_lineage
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.config.toml_files import LIMIT_BYTES
from dgm.domain import SEED, Agent, AgentId, Tally, TaskId, Verdict
from dgm.errors import DgmError
from dgm.evaluation.schedule import compare_verdicts
from dgm.folders import read_file
from dgm.paths import asset
from dgm.views.agents import AgentRow, decode
from dgm.views.values import TallyView, View

if TYPE_CHECKING:
    from dgm.benchmarks.task_facts import TaskFacts
    from dgm.protocols import Benchmark

STEPS, TASKS, AGENTS, MODULES = 60, 200, 24, 12
"""Maximum number of steps, of tasks and agents in the matrix, and of modules."""


class ReportStep(AgentRow):
    """A step from the seed to the best agent."""

    gained: tuple[str, ...]
    """Search tasks that the agent resolved and its first parent did not; both have a verdict on them."""
    lost: tuple[str, ...]
    """Search tasks that the first parent resolved and the agent did not."""
    patch: str | None
    """The patch against the first parent; None if it cannot be read."""
    damage: str
    """Why the patch cannot be read; else empty."""


class ReportLineage(View):
    """The line of the best agent."""

    agents: tuple[int, ...]
    """All agents of the line, the seed first."""
    steps: tuple[ReportStep, ...]
    """The seed and the last steps."""
    left_out: int
    """Number of steps left out after the seed."""


class MatrixRow(View):
    """A search task."""

    task: str
    verdicts: tuple[Verdict | None, ...]
    """First verdicts by agent; None: no verdict."""
    resolved: int
    """Agents of the whole archive that resolved the task at the first attempt."""
    tried: int
    """Agents with a verdict on the task."""


class LeftOut(View):
    """What does not fit into the matrix."""

    agents: int
    tasks: int


class MatrixView(View):
    """Tasks × agents of the line."""

    agents: tuple[int, ...]
    tasks: tuple[MatrixRow, ...]
    """In the order in which the line first resolves them; tasks that nobody tried come last."""
    left_out: LeftOut


class TaskGroup(View):
    """The results on tasks that have a kind or a module in common."""

    name: str
    tasks: int
    seed_agent: TallyView
    best: TallyView


class TaskGroups(View):
    """The results by origin of the tasks; empty if the suite has no provenance."""

    kinds: tuple[TaskGroup, ...] = ()
    modules: tuple[TaskGroup, ...] = ()
    """The largest first."""
    modules_left_out: int = 0


def read_lineage(run: Run, best: AgentId, most: int = STEPS) -> ReportLineage:
    """Return the line of ``best``: the seed, and the last of the others, at most ``most`` in all."""
    members = trace_lineage(run.tree, best)
    shown = members if len(members) <= most else (members[0], *members[len(members) - most + 1 :])
    return ReportLineage(
        agents=tuple(agent.id for agent in members),
        steps=tuple(_read_step(run, agent, best) for agent in shown),
        left_out=len(members) - len(shown),
    )


def _read_step(run: Run, agent: Agent, best: AgentId) -> ReportStep:
    tree = run.tree
    if not agent.parents:
        return ReportStep.of(tree, agent, best, gained=(), lost=(), patch="", damage="")
    parent = agent.parents[0]
    before, after = tree.verdicts(parent), tree.verdicts(agent.id)
    pairs = compare_verdicts((task, before.get(task), verdict) for task, verdict in after.items())
    try:
        patch, damage = decode(run.repository.diff(tree.agents[parent].commit, agent.commit)), ""
    except DgmError as error:
        # The report may be published: it does not name the run's folder.
        patch, damage = None, str(error).replace(f"{run.folder}/", "")
    return ReportStep.of(tree, agent, best, gained=pairs.gained, lost=pairs.lost, patch=patch, damage=damage)


def build_matrix(tree: Tree, line: Sequence[AgentId], tasks: int = TASKS, agents: int = AGENTS) -> MatrixView:
    """Return at most ``tasks`` tasks × ``agents`` agents of ``line``; a longer line is cut to its seed and its end."""
    columns = list(line) if len(line) <= agents else [line[0], *line[len(line) - agents + 1 :]]
    resolved: dict[TaskId, int] = {}
    tried: dict[TaskId, int] = {}
    for agent in tree.agents:
        for task, verdict in tree.verdicts(agent.id).items():
            if verdict in (Verdict.RESOLVED, Verdict.UNRESOLVED):
                tried[task] = tried.get(task, 0) + 1
                resolved[task] = resolved.get(task, 0) + (verdict is Verdict.RESOLVED)
    rows = [
        MatrixRow(
            task=task,
            verdicts=tuple(_graded(tree.verdict(agent, task)) for agent in columns),
            resolved=resolved.get(task, 0),
            tried=tried.get(task, 0),
        )
        for task in tree.tasks
    ]
    rows.sort(key=lambda row: _first_resolved(row, len(columns)))
    return MatrixView(
        agents=tuple(columns),
        tasks=tuple(rows[:tasks]),
        left_out=LeftOut(agents=len(line) - len(columns), tasks=max(0, len(rows) - tasks)),
    )


def _graded(verdict: Verdict | None) -> Verdict | None:
    return None if verdict is Verdict.INVALID else verdict


def _first_resolved(row: MatrixRow, columns: int) -> tuple[int, int]:
    first = next((n for n, verdict in enumerate(row.verdicts) if verdict is Verdict.RESOLVED), None)
    if first is not None:
        return first, -row.resolved
    return columns + all(verdict is None for verdict in row.verdicts), -row.resolved


def read_groups(run: Run, best: AgentId) -> TaskGroups:
    """Return the results by origin of the search tasks; reads the suite, if this machine has the run's version."""
    benchmark, version = str(run.settings()["benchmark"]), run.config.get("versions", {}).get("benchmark", "")
    names = [name for name in {benchmark, *benchmark.split("+")} if name]
    folders = [folder for name in names for folder in (asset("benchmarks", name), Path(name).expanduser())]
    try:
        files = (file for folder in folders for file in sorted(folder.glob("tasks/*/task.toml")))
        if not version or not any(b"[provenance]" in read_file(file, LIMIT_BYTES) for file in files):
            return TaskGroups()
        # Opening suites takes long to import.
        from dgm.benchmarks.grader_version import differ_in_grader
        from dgm.benchmarks.opening import NoSandboxEngine, open_suite
        from dgm.search.start import settings_of

        suite = open_suite(benchmark, NoSandboxEngine(), settings_of(run).benchmarks)
        same = suite.version == version or differ_in_grader(version, suite.version)
        return group_tasks(run.tree, best, dict(_task_facts(suite)) if same else {})
    except (DgmError, OSError, ValueError):
        # The suite is gone, or is no suite any more.
        return TaskGroups()


def group_tasks(tree: Tree, best: AgentId, facts: "Mapping[TaskId, TaskFacts]") -> TaskGroups:
    """Return the results by origin of the search tasks; ``facts`` are the suite's facts of tasks."""
    known = [(task, facts[task]) for task in tree.tasks if task in facts and facts[task].provenance]
    kinds = _group(tree, best, known, lambda task: [task.kind])
    modules = _group(tree, best, known, lambda task: task.modules)
    modules.sort(key=lambda group: (-group.tasks, group.name))
    return TaskGroups(
        kinds=tuple(kinds),
        modules=tuple(modules[:MODULES]),
        modules_left_out=max(0, len(modules) - MODULES),
    )


def _task_facts(suite: "Benchmark") -> "Iterator[tuple[TaskId, TaskFacts]]":
    from dgm.benchmarks.mixed import MixedBenchmark
    from dgm.benchmarks.suites import SuiteBenchmark
    from dgm.benchmarks.task_facts import list_facts

    match suite:
        case MixedBenchmark():
            for name, part in suite.parts.items():
                yield from ((TaskId(f"{name}/{task}"), facts) for task, facts in _task_facts(part))
        case SuiteBenchmark():
            yield from ((facts.id, facts) for facts in list_facts(suite))


def _group(
    tree: Tree,
    best: AgentId,
    tasks: "Sequence[tuple[TaskId, TaskFacts]]",
    names_of: "Callable[[TaskFacts], Sequence[str]]",
) -> list[TaskGroup]:
    members: dict[str, list[TaskId]] = {}
    for task, facts in tasks:
        for name in names_of(facts):
            members.setdefault(name, []).append(task)
    return [
        TaskGroup(
            name=name, tasks=len(group), seed_agent=_tally(tree, SEED, group), best=_tally(tree, best, group)
        )
        for name, group in sorted(members.items())
    ]


def _tally(tree: Tree, agent: AgentId, tasks: Sequence[TaskId]) -> TallyView:
    verdicts = [tree.verdict(agent, task) for task in tasks]
    return TallyView.of(Tally(verdicts.count(Verdict.RESOLVED), verdicts.count(Verdict.UNRESOLVED)))
