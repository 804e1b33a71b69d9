"""The line of the best agent: its steps, the tasks that it resolved, and the kinds of these tasks."""

from random import Random

import pytest

from dgm.analysis.agents import trace_lineage
from dgm.archive.events import AgentBorn, Recorded, RunStarted
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.task_facts import TaskFacts
from dgm.benchmarks.test_spec import Provenance
from dgm.config import Settings
from dgm.domain import (
    SEED,
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Entry,
    Evaluate,
    Split,
    TaskId,
    Verdict,
)
from dgm.views.best_line import TaskGroups, build_matrix, group_tasks, read_groups, read_lineage
from tests.support.named_suite import TASK, make_named_suite
from tests.support.runs.builder import RunBuilder, create_run, make_config
from tests.support.runs.hostile import TASKS
from tests.support.suite_on_disk import NoEngine

BEST = AgentId(1)
A, B, C = map(TaskId, "abc")
R, U = Verdict.RESOLVED, Verdict.UNRESOLVED


@pytest.mark.starts_processes
def test_a_step_is_compared_on_the_tasks_that_both_tried(hostile_folder) -> None:
    with Run.open(hostile_folder) as run:
        step = next(step for step in read_lineage(run, AgentId(1)).steps if step.agent == 1)
    # Agent 0 resolves tasks 1 and 3 of five, agent 1 resolves 0, 2 and 4.
    assert (step.gained, step.lost) == ((TASKS[0], TASKS[2], TASKS[4]), (TASKS[1], TASKS[3]))
    assert (step.delta.tasks, step.delta.difference, step.delta.few) == (5, pytest.approx(0.2), False)


@pytest.mark.starts_processes
def test_a_long_line_keeps_its_seed_and_its_end(hostile_folder) -> None:
    with Run.open(hostile_folder) as run:
        last = AgentId(len(run.tree.agents) - 1)
        members = [agent.id for agent in trace_lineage(run.tree, last)]
        lineage = read_lineage(run, last, most=3)
    assert list(lineage.agents) == members
    assert [step.agent for step in lineage.steps] == [members[0], *members[-2:]]
    assert lineage.left_out == len(members) - 3


@pytest.mark.starts_processes
def test_the_matrix_counts_all_agents_and_sorts_by_the_first_that_resolves(hostile_folder) -> None:
    with Run.open(hostile_folder) as run:
        matrix = build_matrix(run.tree, [AgentId(0), AgentId(1), AgentId(2)])
        for row in matrix.tasks:
            verdicts = [run.tree.verdict(agent.id, row.task) for agent in run.tree.agents]
            assert row.resolved == verdicts.count(R)
            assert row.tried == row.resolved + verdicts.count(U)
    firsts = [next((n for n, verdict in enumerate(row.verdicts) if verdict is R), 9) for row in matrix.tasks]
    assert firsts == sorted(firsts)
    assert {row.task for row in matrix.tasks} == set(TASKS)
    assert matrix.tasks[-1].task == TASKS[5]


def test_a_large_matrix_says_what_it_leaves_out() -> None:
    tree, rng = Tree(), Random(1)
    tree.apply(Recorded(1, 1.0, RunStarted(Budget(), tuple(TaskId(f"t{n}") for n in range(300)))))
    for agent in range(60):
        parents = (AgentId(rng.randrange(agent)),) if agent else ()
        born = AgentBorn(ActionId(agent), AgentId(agent), Born(parents, "op", CommitId("0" * 40), ""))
        tree.apply(Recorded(2 + agent, 1.0, born))
    matrix = build_matrix(tree, [AgentId(n) for n in range(40)], tasks=200, agents=24)
    assert (len(matrix.tasks), matrix.left_out.tasks, matrix.left_out.agents) == (200, 100, 16)
    assert (matrix.agents[0], matrix.agents[1], matrix.agents[-1]) == (0, 17, 39)


def facts(task, kind, *modules):
    origin = Provenance(kind, "0" * 40, "2026-01-01", modules=modules)
    return TaskFacts(task, Split.SEARCH, kind, "", "", (), (), (), {}, origin)


FACTS = {A: facts(A, "bug", "x.py", "y.py"), B: facts(B, "history", "x.py"), C: facts(C, "bug", "<z>.py")}


def begin(folder, config, tasks, verdicts):
    """A run with a seed, a child, and verdicts: agent, task → verdict."""
    run = create_run(folder, config, Budget(evaluations=9), tasks)
    made = RunBuilder(run)
    made.bear({"agent.toml": Entry(b"[agent]\n")}, rationale="the seed")
    made.bear({"agent.toml": Entry(b"[agent]\nb = 1\n")}, (SEED,), operator="op", rationale="more")
    for (agent, task), verdict in verdicts.items():
        made.record_verdict(made.begin(Evaluate(agent, task)), agent, task, verdict)
    return run


@pytest.fixture
def run(tmp_path):
    verdicts = {(SEED, A): U, (SEED, B): R, (BEST, A): R, (BEST, B): R, (BEST, C): U}
    with begin(tmp_path / "run", make_config(Settings(benchmark="starter")), (A, B, C), verdicts) as run:
        yield run


@pytest.mark.starts_processes
def test_tasks_are_counted_by_kind_and_by_each_of_their_modules(run) -> None:
    groups = group_tasks(run.tree, BEST, FACTS)
    counts = [
        (
            group.name,
            group.tasks,
            group.seed_agent.resolved,
            group.seed_agent.n,
            group.best.resolved,
            group.best.n,
        )
        for group in groups.kinds
    ]
    assert counts == [("bug", 2, 0, 1, 1, 2), ("history", 1, 1, 1, 1, 1)]
    assert [(group.name, group.tasks) for group in groups.modules] == [
        ("x.py", 2),
        ("<z>.py", 1),
        ("y.py", 1),
    ]
    assert group_tasks(run.tree, BEST, {}) == TaskGroups()


@pytest.mark.starts_processes
def test_modules_are_bounded(run) -> None:
    groups = group_tasks(run.tree, BEST, {A: facts(A, "bug", *(f"m{n:02}.py" for n in range(20)))})
    assert (len(groups.modules), groups.modules_left_out) == (12, 8)


@pytest.mark.starts_processes
def test_origins_are_read_from_the_suite_in_the_version_of_the_run(tmp_path) -> None:
    suite = make_named_suite(tmp_path / "mined")
    version = SuiteBenchmark(suite, NoEngine()).version
    settings = Settings(benchmark=str(suite))
    verdicts = {(SEED, TASK): U, (BEST, TASK): R}
    with begin(tmp_path / "run", make_config(settings, version), (TASK,), verdicts) as run:
        groups = read_groups(run, BEST)
        assert [group.name for group in groups.kinds] == ["history"]
        assert groups.modules[0].name == "src/sums.py"
    with begin(tmp_path / "other", make_config(settings, "other"), (TASK,), verdicts) as run:
        assert read_groups(run, BEST) == TaskGroups()
    (suite / "suite.toml").unlink()
    with begin(tmp_path / "gone", make_config(settings, version), (TASK,), verdicts) as run:
        assert read_groups(run, BEST) == TaskGroups()
