"""Runs as files from a program: packed, unpacked, verified, exported, cleaned, removed; agents as documents."""

import pytest

import dgm
from dgm.errors import ArchiveCorrupt, UserError
from tests.support.runs.made import make_run
from tests.support.runs.paid import small

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An archive with one run."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return make_run(tmp_path / "archive" / "made", verdicts=["+-", "++"])


def test_a_run_is_packed_verified_and_unpacked(folder, tmp_path):
    with dgm.open("made") as run:
        assert run.pack("made.dgm").counts["agents"] == 2
        checked = run.verify()
        with pytest.raises(UserError, match="already exists"):
            run.pack("made.dgm")
    assert dgm.verify(tmp_path / "made.dgm").items() >= checked.items()
    with dgm.unpack("made.dgm", "again") as again:
        assert (again.folder, len(again.agents), again.addresses) == (tmp_path / "again", 2, [])
    with pytest.raises(UserError, match="is a run, not a packed one"):
        dgm.unpack("made")
    (tmp_path / "again" / "run.json").write_text("{")
    with pytest.raises(ArchiveCorrupt):
        dgm.verify("again")


def test_a_run_is_exported_for_other_programs(folder, tmp_path):
    with dgm.open("made") as run:
        written = run.export(tree="tree.dot", evaluations="verdicts.csv", repository="branches")
        assert written == {"tree": 2, "evaluations": 4, "repository": 2}
        assert len((tmp_path / "verdicts.csv").read_text().splitlines()) == 5
        with pytest.raises(UserError, match="already exists"):
            run.export(tree="tree.dot")
        with pytest.raises(UserError, match=r"^evaluation none: no such evaluation"):
            run.best.export_predictions("patches.jsonl", "none")
        assert run.best.export_predictions("patches.jsonl") == 2
    assert len((tmp_path / "patches.jsonl").read_text().splitlines()) == 2


def test_an_agent_is_a_document(folder):
    with dgm.open("made") as run:
        view = run.agents[1].view
        assert (view.agent, view.parents, len(view.evaluations)) == (1, (0,), 2)
        (attempt,) = run.agents[1].attempts("task-0").attempts
        assert (attempt.verdict, attempt.attempt, attempt.transcript.threads) == ("resolved", 1, ())
        with pytest.raises(UserError, match=r"^task 'task-9': agent 1 has no verdict"):
            run.agents[1].attempts("task-9")


def test_runs_are_cleaned_and_removed(folder, tmp_path):
    small(tmp_path / "archive" / "paid").run.close()
    assert [run["run"] for run in dgm.clean("made")["runs"]] == ["made"]
    assert dgm.clean()["deleted"] is False
    (row,) = dgm.remove("made", dry_run=True)
    assert row["bytes"] > 0 and folder.exists()
    with pytest.raises(UserError, match="no run 'mad'"):
        dgm.remove("made", "mad")
    assert folder.exists()
    (folder / "mine.txt").write_text("")
    assert [row["kept"] for row in dgm.remove("made", "paid")] == [["mine.txt"], []]
    assert dgm.runs().runs == ()
