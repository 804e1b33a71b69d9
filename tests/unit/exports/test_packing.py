import contextlib
import json
import lzma
import shutil
import sqlite3
import tarfile
from pathlib import Path

import pytest

from dgm.archive.adopt import verify
from dgm.archive.events import ActionStarted, ModelCalled, encode
from dgm.archive.finding import find_run
from dgm.archive.journal import CallReader
from dgm.archive.packed import unpack
from dgm.archive.run import INNER_RUNS, Run
from dgm.domain import SEED, ActionId, Evaluate, TaskId
from dgm.errors import ArchiveCorrupt, UserError
from dgm.exports.pack import pack
from tests.support.runs.packable import ALICE, KEY, begin, child, evaluate

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with begin(tmp_path / "archive" / "small") as run:
        child(run)
        evaluate(run, "nothing of note")
    return tmp_path / "archive" / "small"


def names(file: Path) -> list[str]:
    with lzma.open(file) as stream, tarfile.open(fileobj=stream) as tar:
        return tar.getnames()


def everything(folder: Path) -> bytes:
    """All that a run says, traces uncompressed."""
    with Run.open(folder) as run:
        bodies = [encode(item.event) for item in run.store.read()]
        stored = [run.traces.get(name) for (name,) in run.store.query("SELECT sha256 FROM blobs")]
    return b"\n".join([(folder / "run.json").read_bytes(), *bodies, *stored])


def test_a_run_comes_back_as_it_was(folder: Path, tmp_path: Path) -> None:
    manifest = pack(folder, tmp_path / "a.dgm", ALICE)
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    with Run.open(folder) as before, Run.open(tmp_path / "back") as after:
        assert list(after.store.read()) == list(before.store.read())
        assert after.config == before.config
        assert [after.source(a.id) for a in after.tree.agents] == [
            before.source(a.id) for a in before.tree.agents
        ]
    assert everything(tmp_path / "back") == everything(folder)
    assert not manifest.replaced
    assert manifest.counts == {"events": 9, "agents": 2, "traces": 1}
    assert verify(tmp_path / "back") == verify(folder)


def test_the_same_run_gives_the_same_bytes_wherever_it_lies(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "a.dgm", ALICE)
    shutil.copytree(folder, tmp_path / "elsewhere" / "small")
    pack(tmp_path / "elsewhere" / "small", tmp_path / "b.dgm", ALICE)
    assert (tmp_path / "a.dgm").read_bytes() == (tmp_path / "b.dgm").read_bytes()


def test_packing_what_was_unpacked_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "a.dgm", ALICE)
    unpack(tmp_path / "a.dgm", tmp_path / "elsewhere" / "small")
    pack(tmp_path / "elsewhere" / "small", tmp_path / "b.dgm", ALICE)
    assert (tmp_path / "a.dgm").read_bytes() == (tmp_path / "b.dgm").read_bytes()


def test_nothing_but_the_run_is_in_it(folder: Path, tmp_path: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    with Run.open(folder, write=True) as run:
        run.traces.put(b"never named by an event")
        pack(folder, tmp_path / "a.dgm", ALICE)
    manifest, pack_file, *rest = names(tmp_path / "a.dgm")
    assert (manifest, rest) == ("manifest.json", ["run.db", "run.json"])
    assert pack_file.startswith("agents.git/objects/pack/pack-")


def test_a_run_is_packed_while_it_is_written(folder: Path, tmp_path: Path) -> None:
    with Run.open(folder, write=True) as run:
        run.append(ActionStarted(ActionId(3), Evaluate(SEED, TaskId("b"))))
        orphan = run.repository.commit({}, ())
        run.repository.name(2, orphan)
        pack(folder, tmp_path / "a.dgm", ALICE)
        run.append(ActionStarted(ActionId(4), Evaluate(SEED, TaskId("a"), 1)))
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    with Run.open(tmp_path / "back", write=True) as back:
        assert set(back.tree.pending) == {3}
        assert set(back.repository.refs()) == {0, 1}
        child(back)
        assert set(back.repository.refs()) == {0, 1, 2}
    verify(tmp_path / "back")


@pytest.mark.parametrize("inner", INNER_RUNS)
def test_inner_runs_come_along(folder: Path, tmp_path: Path, inner: str) -> None:
    with begin(folder / inner) as exam:
        evaluate(exam, f"exam with {KEY}")
    manifest = pack(folder, tmp_path / "a.dgm", ALICE)
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    assert manifest.counts[f"{inner}_events"] == 7
    assert verify(tmp_path / "back")[f"{inner}_exchanges"] == 3
    assert KEY.encode() not in everything(tmp_path / "back" / inner)


def test_keys_and_personal_paths_are_replaced_wherever_data_holds_them(tmp_path: Path) -> None:
    folder = tmp_path / "archive" / "small"
    said = f"{KEY} /home/alice/x.py /srv/alice/y on atlas-7\nsk-ant-api03-abcdefghijklmnop {folder}/traces"
    settings = {"benchmark": "/opt/suites/own", "base_url": "https://bob:hunter2@models.example/v1"}
    with begin(folder, settings) as run:
        evaluate(run, said)
        evaluate(run, "nothing", "b")
    manifest = pack(folder, tmp_path / "a.dgm", ALICE)
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    text = everything(tmp_path / "back")
    for secret in (KEY, "alice", "atlas-7", "sk-ant", str(tmp_path), "hunter2", "/opt/suites"):
        assert secret.encode() not in text, secret
    assert "<key> <home>/x.py /srv/<user>/y on <host>\\n<key> <run>/traces" in text.decode()
    config = json.loads((tmp_path / "back" / "run.json").read_bytes())["config"]["settings"]
    assert config == {"benchmark": "<folder>/own", "base_url": "https://<key>@models.example/v1"}
    assert set(manifest.replaced) == {"<key>", "<home>", "<user>", "<host>", "<run>", "<folder>"}
    assert manifest.replaced["<host>"] == 3 + 3 + 2


def test_a_long_conversation_comes_along(tmp_path: Path) -> None:
    folder = tmp_path / "archive" / "small"
    with begin(folder) as run:
        evaluate(run, f"with {KEY}", calls=40)
    pack(folder, tmp_path / "a.dgm", ALICE)
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    assert verify(tmp_path / "back")["exchanges"] == 40
    with Run.open(tmp_path / "back") as back:
        calls = [item.event for item in back.store.read() if isinstance(item.event, ModelCalled)]
        request, reply = CallReader(back.store).exchange(calls[-1])
        assert len(request.messages) == 79
        assert request.messages[0].text == "mend a: with <key>"
        assert reply.text == "39: with <key>"


def test_an_agent_whose_source_is_personal_is_refused_by_name_file_and_line(tmp_path: Path) -> None:
    folder = tmp_path / "archive" / "small"
    with begin(folder) as run:
        child(run, b"loop\nopen('/home/alice/notes')\n")
    with pytest.raises(UserError, match=r"small: agent 1: agent/loop.py: line 2 holds the home folder"):
        pack(folder, tmp_path / "a.dgm", ALICE)
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]
    pack(folder, tmp_path / "a.dgm", ALICE, force_agents=True)
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    with Run.open(folder) as before, Run.open(tmp_path / "back") as after:
        assert after.source(1) == before.source(1)


def test_an_agent_that_holds_a_secret_is_never_published(tmp_path: Path) -> None:
    with begin(tmp_path / "small", source=f"key = '{KEY}'\n".encode()):
        pass
    with pytest.raises(UserError, match=r"agent 0: agent\.toml: line 1 holds a secret of this env") as caught:
        pack(tmp_path / "small", tmp_path / "a.dgm", ALICE, force_agents=True)
    assert KEY not in str(caught.value)


def test_a_file_that_exists_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.dgm").write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        pack(folder, tmp_path / "a.dgm", ALICE)
    with pytest.raises(UserError, match=r"ends in \.dgm"):
        pack(folder, tmp_path / "a.tar", ALICE)
    with pytest.raises(UserError, match="there is no folder"):
        pack(folder, tmp_path / "nowhere" / "a.dgm", ALICE)
    assert (tmp_path / "a.dgm").read_text() == "mine"


def test_a_missing_trace_is_named(folder: Path, tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "run.db")) as log:
        ((lost,),) = log.execute("DELETE FROM blobs RETURNING sha256").fetchall()
        log.commit()
    with pytest.raises(ArchiveCorrupt, match=f"{lost} is missing"):
        pack(folder, tmp_path / "a.dgm", ALICE)
    with pytest.raises(ArchiveCorrupt, match=r"is missing \(.*event \d"):
        verify(folder)


def test_verify_names_a_ref_that_lies(folder: Path) -> None:
    with Run.open(folder) as run:
        run.repository.name(1, run.tree.agents[0].commit)
    with pytest.raises(ArchiveCorrupt, match="agent 1: its ref is"):
        verify(folder)


def test_a_packed_run_is_found_to_read_and_not_to_write(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pack(folder, tmp_path / "a.dgm", ALICE)
    found = find_run("a.dgm", here=tmp_path, environment={})
    assert found.name == "small"
    assert find_run(str(tmp_path / "a.dgm"), here=folder, environment={}) == found
    assert find_run("a.dgm", here=folder, environment={"DGM_ARCHIVE": str(tmp_path)}) == found
    with Run.open(found) as run:
        assert run.tree.seq == 9
    with pytest.raises(UserError, match=r"a\.dgm is packed and can only be read"):
        find_run("a.dgm", write=True, here=tmp_path, environment={})
    with pytest.raises(UserError, match=r"no run 'b\.dgm'"):
        find_run("b.dgm", here=tmp_path, environment={})


def test_a_run_of_its_own_wins_over_the_shipped_example(tmp_path: Path) -> None:
    with begin(tmp_path / "archive" / "example"):
        pass
    assert find_run("example", here=tmp_path, environment={}) == tmp_path / "archive" / "example"
