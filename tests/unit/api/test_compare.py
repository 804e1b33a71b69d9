"""``dgm.compare``: runs by name, opened or by pattern; a record, a picture, a table."""

import pytest

import dgm
from dgm.config import Settings
from dgm.errors import UserError
from tests.support.runs.made import make_run


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """An archive with two runs of two policies."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name, policy in (("one", "hgm"), ("two", "greedy")):
        settings = Settings(model="offline", policy={"name": policy})
        make_run(tmp_path / name, settings, verdicts=["+-+-", "++-+"])
    return tmp_path


@pytest.mark.starts_processes
def test_runs_are_compared_by_name_and_opened(archive):
    with dgm.open("two") as two:
        found = dgm.compare(["one", two])
    assert [run["run"] for run in found.record["runs"]] == ["one", "two"]
    assert found.record["group_by"] is None
    assert dgm.compare("*", group_by="policy.name").record["groups"] == {"hgm": ["one"], "greedy": ["two"]}
    assert any("policy.name (hgm, greedy)" in note for note in found.notes)


@pytest.mark.starts_processes
def test_curves_are_written_as_picture_and_table(archive, tmp_path):
    found = dgm.compare(["one", "two"])
    assert found.save("curves.svg").read_text().startswith("<svg")
    assert len(found.save(tmp_path / "curves.csv").read_text().splitlines()) > 2
    with pytest.raises(UserError, match=r"written as \.svg or \.csv"):
        found.save("curves.png")
    with pytest.raises(UserError, match=r"^file no-folder/curves\.svg: there is no folder"):
        found.save("no-folder/curves.svg")
    with pytest.raises(UserError, match="no run 'three'"):
        dgm.compare("three")
