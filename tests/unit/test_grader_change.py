"""A run whose verdicts are of one grader goes on with another: asked, recorded, and told in its report."""

import json
from types import SimpleNamespace

import pytest

from dgm.archive.run import Run
from dgm.assemble import RunParts, check_benchmark, describe_grader_change, record_resume
from dgm.benchmarks.grader_version import GRADER_VERSION, data_of, differ_in_grader, stamp_version
from dgm.cli.watching import TerminalWatcher
from dgm.domain import Budget
from dgm.errors import UserError
from dgm.views.report import grader_notes
from tests.support.runs.made import make_run

pytestmark = pytest.mark.starts_processes

DATA, OTHER = "a" * 64, "b" * 64
NOW = stamp_version(DATA)
BEFORE = f"{GRADER_VERSION - 1}-{DATA}"


@pytest.mark.parametrize(
    ("before", "now", "differ"),
    [
        (NOW, NOW, False),
        (BEFORE, NOW, True),
        (f"{GRADER_VERSION - 1}-{OTHER}", NOW, False),
        (stamp_version(OTHER), NOW, False),
        (OTHER, NOW, True),  # of dgm 0.1, which made it of data and program
        (OTHER, DATA, False),  # a plug-in's own versions
        ("1", "2", False),
    ],
)
def test_only_versions_of_the_same_data_differ_in_their_grader(before, now, differ):
    assert differ_in_grader(before, now) is differ


def test_the_data_of_a_version_are_those_of_every_grader():
    assert data_of(NOW) == data_of(BEFORE) == DATA
    assert data_of("of a plug-in") == "of a plug-in"


@pytest.fixture
def run(tmp_path):
    make_run(tmp_path / "run")
    frozen = json.loads((tmp_path / "run" / "run.json").read_text())
    frozen["config"]["versions"]["benchmark"] = BEFORE
    (tmp_path / "run" / "run.json").write_text(json.dumps(frozen))
    with Run.open(tmp_path / "run", write=True) as opened:
        yield opened


def parts(version):
    benchmark = SimpleNamespace(name="tiny", version=version, tasks=lambda split: ())
    return RunParts(SimpleNamespace(name="bubblewrap"), benchmark)


def test_a_session_under_another_grader_is_recorded_and_asked_for_once(run):
    assert describe_grader_change(run, parts(NOW))
    assert grader_notes(run) == []
    record_resume(run, Budget(), parts(NOW))
    assert run.benchmarks() == [BEFORE, NOW]
    assert describe_grader_change(run, parts(NOW)) == ""
    (note,) = grader_notes(run)
    assert f"grader {GRADER_VERSION - 1} and grader {GRADER_VERSION}" in note


def test_a_session_under_the_same_grader_records_nothing(run):
    record_resume(run, Budget(), parts(BEFORE))
    assert run.benchmarks() == [BEFORE]


@pytest.mark.parametrize("version", [stamp_version(OTHER), OTHER, "2"])
def test_other_tasks_are_refused(run, version):
    record_resume(run, Budget(), parts(NOW))
    with pytest.raises(UserError, match="benchmark tiny has changed since the run began"):
        check_benchmark(run, parts(version))


def test_another_grader_only_warns_where_nothing_is_recorded(run, caplog):
    check_benchmark(run, parts(NOW))
    assert "its verdicts are of grader" in caplog.text


def test_without_a_terminal_only_yes_goes_on(capsys):
    with pytest.raises(UserError, match="add --yes to go on"):
        TerminalWatcher().confirm_grader("other verdicts")
    TerminalWatcher(yes=True).confirm_grader("other verdicts")
    assert capsys.readouterr().err == "other verdicts\n"
