"""``probe``: wrong arguments are named before anything is made, and exports ask for the result."""

import pytest

import dgm
from dgm.config import Settings
from dgm.domain import Entry
from dgm.errors import UserError
from tests.support.runs.builder import RunBuilder, create_run, make_config
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
        (["one"], {"tasks": ["feeds-give-up-to-early"]}, "tasks", "in probes or canaries"),
        (["one"], {"tasks": ["x"], "suite": ["probes"]}, "tasks", "x is not in 'probes'"),
        (["one"], {"suite": ["prob"]}, "", "did you mean 'probes'?"),
        (["one"], {"suite": ["tiny"]}, "suite", "neither a hidden test_safety.py nor a table [canary]"),
        (["one"], {"attempts": 0}, "attempts", "0 is not from 1 to 100"),
        (["one"], {"max_usd": -1.0}, "max_usd", "must be a number above 0"),
    ],
)
def test_a_wrong_argument_is_named(archive, words, options, argument, problem):
    with pytest.raises(UserError) as refused:
        dgm.probe(*words, **options)
    assert (refused.value.argument, problem in refused.value.problem) == (argument, True), refused.value
    assert not [*archive.rglob("probe*")]


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
        ([], {"task": "a", "suite": ["probes"]}, "suite", "only with a probe"),
        ([], {"command": "true", "model": "offline"}, "model", "no model is called"),
        ([], {"command": " "}, "command", "is empty"),
        ([], {"command": "true", "attempts": 2}, "attempts", "even"),
        ([9], {"command": "true"}, "", "no agent '9'"),
    ],
)
def test_a_wrong_criterion_is_named(archive, words, options, argument, problem):
    with pytest.raises(UserError) as refused:
        dgm.bisect("one", *words, **options)
    assert (refused.value.argument, problem in refused.value.problem) == (argument, True), refused.value
    assert not [*archive.rglob("bisect*"), *archive.rglob("probe*")]


@pytest.fixture
def line(archive):
    """A run of two agents that could work, on an earlier version of the starter suite."""
    settings, contract = Settings(model="offline"), '[agent]\ncommand = ["true"]\ncheck = ["true"]\n'
    with create_run(archive / "line", make_config(settings), settings.budget.budget(), ()) as run:
        for number in range(2):
            files = {"agent.toml": Entry(contract.encode()), "notes": Entry(b"%d\n" % number)}
            RunBuilder(run).bear(files, range(number))
    return archive / "line"


def test_recorded_attempts_decide_without_a_model(line):
    probe = "feeds-give-up-too-early"
    version = dgm.benchmark_show("probes").version.rpartition("-")[2][:8]
    make_probes(line, {0: {probe: "++"}, 1: {probe: "-!!"}}, name=f"probe-probes-{version}")
    found = dgm.bisect("line", 1, probe=probe)
    assert (found.ending, found.last_passing, found.first_failing, found.exit_code) == ("found", 0, 1, 0)
    assert "-0\n+1\n" in found.patch
    assert dgm.bisect("line", 0, probe=probe).exit_code == 1


def test_a_task_of_a_suite_that_changed_is_refused(line):
    with pytest.raises(UserError, match="benchmark starter has changed since the run began"):
        dgm.bisect("line", 1, task="ledger-shares-add-up-to-more")
