"""``probe``: wrong arguments are named before anything is made, and exports ask for the result."""

import pytest

import dgm
from dgm.analysis.agents import trace_lineage
from dgm.api.evaluation_session import DONE
from dgm.api.probing import LineageTrial, judge_probe, read_earlier
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import AgentId, TaskId
from dgm.errors import UserError
from dgm.evaluation.bisecting import Vote, bisect
from dgm.evaluation.schedule import EvaluationProgress
from dgm.views.bisection import BisectionView
from tests.support.runs.made import make_run
from tests.support.runs.probed import make_probes
from tests.support.suite_on_disk import make_suite

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """An archive with a run of two agents, and a suite without probes."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "archive" / "one", verdicts=["+-", "++"])
    make_suite(tmp_path / "tiny")
    return tmp_path / "archive"


@pytest.mark.parametrize(
    ("words", "options", "argument", "problem"),
    [
        (["one", 7], {}, "", "no agent '7'"),
        (["oen"], {}, "", "did you mean 'one'?"),
        (["one"], {"tasks": ["feeds-give-up-to-early"]}, "tasks", "did you mean 'feeds-give-up-too-early'?"),
        (["one"], {"suite": "prob"}, "", "did you mean 'probes'?"),
        (["one"], {"suite": "tiny"}, "suite", "has no table [canary]"),
        (["one"], {"attempts": 0}, "attempts", "0 is not from 1 to 100"),
        (["one"], {"max_usd": -1.0}, "max_usd", "must be a number above 0"),
    ],
)
def test_a_wrong_argument_is_named(archive, words, options, argument, problem):
    with pytest.raises(UserError) as refused:
        dgm.probe(*words, **options)
    assert (refused.value.argument, problem in refused.value.problem) == (argument, True), refused.value
    assert not [*archive.rglob("probe*")]


def test_agents_of_a_search_are_probed_and_not_those_of_its_promotion_evaluations(archive):
    make_run(archive / "one" / "promotion", verdicts=["+"])
    with pytest.raises(UserError, match="promotion evaluations of a search; name the search"):
        dgm.probe(archive / "one" / "promotion")


def test_a_bisection_counts_the_verdicts_of_the_search_unless_another_model_works_now(archive):
    with Run.open(archive / "one") as run:
        lineage = trace_lineage(run.tree, AgentId(1))

        def read(task, **models):
            return [
                [*votes] for votes in read_earlier(run, Settings(model="offline", **models), lineage, task)
            ]

        assert read("task-1") == [[Vote.BAD], [Vote.GOOD]]
        assert read("task-7") == [[], []]
        assert read("task-1", models={"solve": "openai/other"}) == [[], []]


def test_an_agent_that_failed_is_exported_only_on_request(archive, tmp_path):
    assert dgm.export("one", 1, tmp_path / "never").probes == "never probed"
    make_probes(archive / "one", {0: {"a": "+"}, 1: {"a": "!"}})
    assert dgm.export("one", 0, tmp_path / "passed").probes == "passed"
    with pytest.raises(UserError, match="agent 1 of one failed the probes a") as refused:
        dgm.export("one", 1, tmp_path / "failed")
    assert refused.value.argument == "allow_failed_probes"
    assert not (tmp_path / "failed").exists()
    assert dgm.export("one", 1, tmp_path / "failed", allow_failed_probes=True).probes == "failed"


@pytest.mark.parametrize(
    ("words", "options", "argument", "problem"),
    [
        ([], {}, "", "none is given"),
        ([], {"probe": "a", "command": "true"}, "command", "only one"),
        ([], {"probe": "feeds"}, "probe", "feeds"),
        ([], {"task": "ledger"}, "task", "ledger is not in 'starter'"),
        ([], {"task": "a", "suite": "probes"}, "suite", "no effect on a task"),
        ([], {"command": "true", "model": "offline"}, "model", "no effect on a command"),
        ([], {"command": "true", "attempts": 2}, "attempts", "2 is no odd number below 50"),
        ([], {"command": "true", "attempts": 51}, "attempts", "51 is no odd number below 50"),
        ([], {"command": "true", "attempts": -1}, "attempts", "-1 is no odd number"),
        ([9], {"command": "true"}, "", "no agent '9'"),
    ],
)
def test_a_wrong_criterion_is_named(archive, words, options, argument, problem):
    with pytest.raises(UserError) as refused:
        dgm.bisect("one", *words, **options)
    assert (refused.value.argument, problem in refused.value.problem) == (argument, True), refused.value
    assert not [*archive.rglob("bisect*"), *archive.rglob("probe*")]


def test_attempts_of_the_search_and_of_probes_are_votes(archive):
    folder = archive / "one"
    make_probes(folder, {0: {"a": "++", "b": "!"}, 1: {"a": "-!!"}})
    with Run.open(folder) as run, Run.open(folder / "probe-made") as probe_run:
        lineage = trace_lineage(run.tree, AgentId(1))
        trial = LineageTrial(lineage, TaskId("a"), 3, judge_probe, [[Vote.GOOD], []])
        votes = trial.read_votes(probe_run, EvaluationProgress.read(probe_run))
        state = bisect(votes, 3)
        spend = probe_run.tree.spend
        view = BisectionView.of(run, lineage, "probe a", votes, state, DONE, probe_run.folder, spend)
    assert votes == [[Vote.GOOD] * 3, [Vote.NONE, Vote.BAD, Vote.BAD]]
    assert (view.ending, view.last_passing, view.first_failing, view.exit_code) == ("found", 0, 1, 0)
    assert view.patch
