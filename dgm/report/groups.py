"""Results by kind of task and by module, for runs on suites whose tasks have an origin (``[provenance]``).

A run does not record origins. They are read from the suite, if it is on this machine in the version of the run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dgm.analysis.summary import tally_record
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.benchmarks.grader_version import differ_in_grader
from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.opening import NoSandboxEngine, find_suite_folder, is_local, open_suite, parts
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.task_facts import TaskFacts, list_facts
from dgm.domain import SEED, AgentId, Tally, TaskId, Verdict
from dgm.errors import DgmError
from dgm.folders import read_file
from dgm.protocols import Benchmark
from dgm.report.section import PageSection, html_table, interval_bar, lead_paragraph
from dgm.search.run_settings import settings_of
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import count_text, tally_text
from dgm.toml_files import LIMIT_BYTES

MODULES = 12
"""Maximum number of modules that are listed."""
LEAD = (
    "First attempts at the search tasks, by what the suite says of their origin. A task that changes several modules"
    " counts for each of them."
)


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """The results on tasks that have something in common."""

    name: str
    tasks: int
    """Number of search tasks."""
    seed: Tally
    best: Tally


@dataclass(frozen=True, slots=True)
class TaskGroups:
    """The groups of a run's search tasks; none where its suite tells no origins."""

    kinds: Sequence[TaskGroup] = ()
    modules: Sequence[TaskGroup] = ()
    """Those of most tasks first."""
    modules_left_out: int = 0

    def record(self) -> dict[str, object]:
        """Return them as JSON."""
        return {"kinds": list(map(_record, self.kinds)), "modules": list(map(_record, self.modules))}


def find_groups(run: Run, best: AgentId) -> TaskGroups:
    """Return the groups of a run's search tasks; read its suite."""
    settings, version = settings_of(run), run.config.get("versions", {}).get("benchmark", "")
    try:
        if not version or not _tells_origins(settings.benchmark):
            return TaskGroups()
        opened = open_suite(settings.benchmark, NoSandboxEngine(), settings.benchmarks)
        same = opened.version == version or differ_in_grader(version, opened.version)
        facts = dict(_facts(opened)) if same else {}
    except (DgmError, OSError, ValueError):
        # The suite is gone, or has changed into none.
        return TaskGroups()
    return group_tasks(run.tree, best, facts)


def group_tasks(tree: Tree, best: AgentId, facts: Mapping[TaskId, TaskFacts]) -> TaskGroups:
    """Return the groups of search tasks that have an origin.

    Args:
        tree: the run's.
        best: the agent that it recommends.
        facts: of tasks by id.
    """
    known = [(task, facts[task]) for task in tree.tasks if task in facts and facts[task].provenance]
    kinds = _group(tree, best, known, lambda each: [each.kind])
    modules = sorted(
        _group(tree, best, known, lambda each: each.modules), key=lambda group: (-group.tasks, group.name)
    )
    return TaskGroups(tuple(kinds), tuple(modules[:MODULES]), max(0, len(modules) - MODULES))


def group_lines(groups: TaskGroups, best: AgentId) -> Iterator[Line]:
    """Yield the groups as lines for a terminal; none where there are no groups."""
    left_out = f"; {groups.modules_left_out} more are left out" if groups.modules_left_out else ""
    for title, rows in (("by kind of task:", groups.kinds), (f"by module{left_out}:", groups.modules)):
        if rows:
            yield make_line(Span(title, Tone.STRONG))
        width = max((len(one_line(group.name, 60)) for group in rows), default=0)
        for group in rows:
            seed = f"seed {tally_text(group.seed):<12}"
            told = "" if best == SEED else f"  best {tally_text(group.best)}"
            yield make_line(
                f"  {one_line(group.name, 60):<{width}}  {count_text(group.tasks, 'task'):>10}  {seed}{told}".rstrip()
            )


def build_groups(groups: TaskGroups, best: AgentId) -> PageSection | None:
    """Return the section of the page; None where there are no groups."""
    if not groups.kinds:
        return None
    left_out = groups.modules_left_out
    more = f" {count_text(left_out, 'module')} with fewer tasks are left out." if left_out else ""
    pieces = [lead_paragraph(LEAD + more)]
    for head, rows in (("kind", groups.kinds), ("module", groups.modules)):
        names = [head, "tasks", "seed", "", *([] if best == SEED else ["best", ""])]
        cells = [
            [
                one_line(group.name, 100),
                f"{group.tasks:,}",
                tally_text(group.seed),
                interval_bar(group.seed),
                *([] if best == SEED else [tally_text(group.best), interval_bar(group.best)]),
            ]
            for group in rows
        ]
        pieces.append(html_table(names, cells, numbers=(1, 2, 4)))
    return PageSection("groups", "By kind and module", pieces)


def _tells_origins(benchmark: str) -> bool:
    """Return whether any task of the benchmark may have an origin, without opening its suites."""
    folders = [find_suite_folder(name) for name in parts(benchmark)] if is_local(benchmark) else []
    files = (file for folder in folders if folder for file in sorted((folder / "tasks").glob("*/task.toml")))
    return any(b"[provenance]" in read_file(file, LIMIT_BYTES) for file in files)


def _facts(opened: Benchmark) -> Iterator[tuple[TaskId, TaskFacts]]:
    match opened:
        case MixedBenchmark():
            for name, part in opened.parts.items():
                yield from ((TaskId(f"{name}/{task}"), facts) for task, facts in _facts(part))
        case SuiteBenchmark():
            yield from ((facts.id, facts) for facts in list_facts(opened))


def _group(
    tree: Tree,
    best: AgentId,
    tasks: Sequence[tuple[TaskId, TaskFacts]],
    names_of: Callable[[TaskFacts], Sequence[str]],
) -> list[TaskGroup]:
    members: dict[str, list[TaskId]] = {}
    for task, facts in tasks:
        for name in names_of(facts):
            members.setdefault(name, []).append(task)
    return [
        TaskGroup(name, len(own), _tally(tree, SEED, own), _tally(tree, best, own))
        for name, own in sorted(members.items())
    ]


def _tally(tree: Tree, agent: AgentId, tasks: Sequence[TaskId]) -> Tally:
    verdicts = [tree.verdict(agent, task) for task in tasks]
    return Tally(verdicts.count(Verdict.RESOLVED), verdicts.count(Verdict.UNRESOLVED))


def _record(group: TaskGroup) -> dict[str, object]:
    return {
        "name": group.name,
        "tasks": group.tasks,
        "seed": tally_record(group.seed),
        "best": tally_record(group.best),
    }
