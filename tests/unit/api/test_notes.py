"""Notes about agents: recorded at once or by the running search, shown, and read by editors."""

import json

import pytest

import dgm
from dgm.archive.events import ActionStarted, AgentNoted, RunStarted
from dgm.archive.live import NOTES
from dgm.archive.run import Run
from dgm.cli.main import main
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Born, Budget, Entry, Expand
from dgm.errors import ArchiveCorrupt, UserError
from dgm.search.prepare import RunController, read_brief
from dgm.views.agents import AgentView

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run with the agents 0, its children 1 and 2, and 3 of 1."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    with Run.create(tmp_path / "noted", {}) as run:
        run.append(RunStarted(Budget(), ()))
        for number, parents in enumerate([(), (0,), (0,), (1,)]):
            commits = [run.tree.agents[parent].commit for parent in parents]
            commit = run.repository.commit({"a.py": Entry(b"%d\n" % number)}, commits)
            born = Born(tuple(map(AgentId, parents)), "op", commit, "why")
            run.append(run.birth(born, ActionId(number)))
    return tmp_path / "noted"


def notes(folder):
    with Run.open(folder) as run:
        return [(note.agent, note.text) for note in run.store.events(AgentNoted)]


def test_a_note_is_recorded_at_once_where_nobody_writes_and_shown(folder, capsys):
    with Run.open(folder) as run:
        before = run.tree.wall_seconds
    with pytest.raises(SystemExit) as ended:
        main(["note", "noted", "seed", "it  never\nreads the tests"])
    assert (ended.value.code, capsys.readouterr().out) == (0, "agent 0: noted\n")
    assert notes(folder) == [(0, "it never reads the tests")]
    with Run.open(folder) as run:
        assert [note.text for note in AgentView.load(run, run.tree.agents[0]).notes] == [
            "it never reads the tests"
        ]
        assert AgentView.load(run, run.tree.agents[1]).notes == ()
        assert run.tree.wall_seconds == before


def test_the_process_that_writes_records_a_note_once(folder):
    with Run.open(folder, write=True) as run:
        view = dgm.note(folder, 3, "too slow")
        assert (view.recorded, len([*(folder / NOTES).iterdir()])) == (False, 1)
        (folder / NOTES / "x.json").write_text('{"event": "agent_noted", "agent": 99, "text": "nobody"}')
        (folder / NOTES / "y.json").write_text("no note")
        controller = RunController(run, Settings())
        note = controller.answered(0.0)
        controller.append(note)
        assert (note, controller.answered(0.0)) == (AgentNoted(AgentId(3), "too slow"), None)
    assert notes(folder) == [(3, "too slow")]
    assert [path.name for path in (folder / NOTES).iterdir()] == ["y.json"]


@pytest.mark.parametrize(
    ("agent", "text", "message"),
    [(0, " \n", "not 0"), (0, "x" * 1001, "not 1,001"), (9, "x", "no agent '9'")],
)
def test_what_cannot_be_noted_is_refused(folder, agent, text, message):
    with pytest.raises(UserError, match=message):
        dgm.note(folder, agent, text)
    assert notes(folder) == []


def test_a_log_with_a_note_about_nobody_is_corrupt(folder):
    with Run.open(folder, write=True) as run, pytest.raises(ArchiveCorrupt, match="agent 4"):
        run.append(AgentNoted(AgentId(4), "x"))


def test_editors_read_what_was_said_of_their_agent_and_its_ancestors_before(folder):
    with Run.open(folder, write=True) as run:
        for agent, text in ((0, "first"), (2, "of a cousin"), (1, "second")):
            run.append(AgentNoted(AgentId(agent), text))
        action, what = ActionId(9), Expand((AgentId(3),), "op")
        run.append(ActionStarted(action, what))
        run.append(AgentNoted(AgentId(3), "too late"))
        brief = read_brief(run, None, action, what, Settings().evidence)
    assert brief.notes == b"- agent 0: first\n- agent 1: second\n"
    assert brief.evidence["notes.md"].data == brief.notes
    assert b"`notes.md`" in brief.evidence["README.md"].data


def test_the_view_is_json(folder, capsys):
    with pytest.raises(SystemExit):
        main(["note", "noted", "1", "good", "--json"])
    assert json.loads(capsys.readouterr().out) == {
        "run": "noted",
        "agent": 1,
        "text": "good",
        "recorded": True,
    }
