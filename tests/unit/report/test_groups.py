"""Results by kind and by module, of a run on tasks that tell where they come from."""

import pytest

from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.task_facts import TaskFacts
from dgm.benchmarks.test_spec import Provenance
from dgm.config import Settings
from dgm.domain import SEED, AgentId, Budget, Entry, Evaluate, Split, Tally, TaskId, Verdict
from dgm.report.facts import gather_report
from dgm.report.groups import TaskGroups, build_groups, find_groups, group_lines, group_tasks
from dgm.report.page import render_page
from dgm.show.spans import plain_text
from tests.support.named_suite import TASK, make_named_suite
from tests.support.runs.builder import RunBuilder, create_run, make_config
from tests.support.suite_on_disk import NoEngine

BEST = AgentId(1)
A, B, C = map(TaskId, "abc")
R, U = Verdict.RESOLVED, Verdict.UNRESOLVED


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


def test_tasks_are_counted_by_kind_and_by_each_of_their_modules(run):
    found = group_tasks(run.tree, BEST, FACTS)
    assert [(group.name, group.tasks, group.seed, group.best) for group in found.kinds] == [
        ("bug", 2, Tally(0, 1), Tally(1, 1)),
        ("history", 1, Tally(1, 0), Tally(1, 0)),
    ]
    assert [(group.name, group.tasks) for group in found.modules] == [("x.py", 2), ("<z>.py", 1), ("y.py", 1)]


def test_tasks_without_an_origin_are_in_no_group(run):
    assert group_tasks(run.tree, BEST, {}) == TaskGroups()
    assert list(group_lines(TaskGroups(), BEST)) == []
    assert build_groups(TaskGroups(), BEST) is None


def test_groups_are_lines_and_a_section_without_markup_of_the_suite(run):
    found = group_tasks(run.tree, BEST, FACTS)
    lines = [plain_text(line) for line in group_lines(found, BEST)]
    assert lines[:3] == [
        "by kind of task:",
        "  bug         2 tasks  seed 0/1 0%        best 1/2 50%",
        "  history      1 task  seed 1/1 100%      best 1/1 100%",
    ]
    page = build_groups(found, BEST).html()
    assert "&lt;z&gt;.py" in page and "<z>" not in page
    assert "best" not in build_groups(found, SEED).html()


def test_modules_are_bounded(run):
    many = {A: facts(A, "bug", *(f"m{n:02}.py" for n in range(20)))}
    found = group_tasks(run.tree, BEST, many)
    assert (len(found.modules), found.modules_left_out) == (12, 8)
    assert "8 modules with fewer tasks are left out." in build_groups(found, BEST).html()


@pytest.mark.starts_processes
def test_a_report_reads_the_origins_from_the_suite_in_the_version_of_the_run(tmp_path):
    suite = make_named_suite(tmp_path / "mined")
    version = SuiteBenchmark(suite, NoEngine()).version
    settings = Settings(benchmark=str(suite))
    verdicts = {(SEED, TASK): U, (BEST, TASK): R}
    with begin(tmp_path / "run", make_config(settings, version), (TASK,), verdicts) as run:
        report = gather_report(run, BEST, None, [])
        assert [group["name"] for group in report.groups.record()["kinds"]] == ["history"]
        assert report.groups.modules[0].name == "src/sums.py"
        assert b"By kind and module" in render_page(report)
    with begin(tmp_path / "other", make_config(settings, "other"), (TASK,), verdicts) as run:
        assert find_groups(run, BEST) == TaskGroups()
    (suite / "suite.toml").unlink()
    with begin(tmp_path / "gone", make_config(settings, version), (TASK,), verdicts) as run:
        assert find_groups(run, BEST) == TaskGroups()
