"""What a run does on a disk that is full or may not be written."""

import os
from pathlib import Path

import pytest

from dgm.archive.events import ActionStarted
from dgm.archive.run import Run
from dgm.archive.traces import Traces
from dgm.domain import SEED, ActionId, Born, Entry, Evaluate, TaskId
from dgm.errors import Infrastructure, UserError
from tests.support.mounts import mounted, read_only

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Run.create(tmp_path / "archive" / "run", {"seed": 1}) as run:
        seed = run.repository.commit({"a": Entry(b"1")}, ())
        run.append(run.birth(Born((), "seed", seed, "seed"), ActionId(0)))
        run.traces.put(b"said")
    return tmp_path / "archive" / "run"


def test_read_only_run_can_be_looked_at_in_every_way(folder: Path) -> None:
    with read_only(folder), Run.open(folder) as run:
        assert run.source(SEED) == {"a": Entry(b"1")}
        assert run.repository.diff(run.tree.agents[0].commit, run.tree.agents[0].commit) == b""
        assert list(run.follow()) == []
        assert run.traces.get(Traces(folder.parent / "other").put(b"said")) == b"said"


def test_read_only_run_refuses_a_writer(folder: Path) -> None:
    with read_only(folder), pytest.raises(UserError, match="read-only"):
        Run.open(folder, write=True)


def test_run_cannot_be_made_in_a_read_only_folder(folder: Path) -> None:
    with read_only(folder.parent), pytest.raises(UserError, match="read-only"):
        Run.create(folder.parent / "another", {})


def test_full_disk_keeps_what_was_there_and_takes_the_rest_later(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    large = bytes(range(256)) * 4000
    noise = {f"f{n}": Entry(b"%d" % n * 3000 + large[n:]) for n in range(30)}
    with mounted(disk, "-t", "tmpfs", "-o", "size=600k", "tmpfs"), Run.create(disk / "run", {}) as run:
        seed = run.repository.commit({"a": Entry(b"1")}, ())
        run.append(run.birth(Born((), "seed", seed, "seed"), ActionId(0)))
        (disk / "ballast").write_bytes(b"x" * _room(disk))
        with pytest.raises(Infrastructure, match="cannot write"):
            run.repository.commit(noise, (seed,))
        with pytest.raises(Infrastructure, match="cannot write"):
            run.traces.put(large)
        run.repository.fsck()
        assert run.source(SEED) == {"a": Entry(b"1")}
        (disk / "ballast").unlink()
        assert run.traces.get(run.traces.put(large, limit=None)) == large
        recorded = run.append(ActionStarted(ActionId(1), Evaluate(SEED, TaskId("a"))))
        assert list(run.store.read(recorded.seq - 1)) == [recorded]


def _room(disk: Path) -> int:
    room = os.statvfs(disk)
    return max(0, (room.f_bavail - 1) * room.f_frsize)
