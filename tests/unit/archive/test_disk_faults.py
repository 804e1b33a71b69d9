"""What a run does on a disk that is full or may not be written."""

import os
from pathlib import Path
from random import Random

import pytest

from dgm.archive.events import ActionStarted, TaskGraded
from dgm.archive.run import Run
from dgm.domain import SEED, ActionId, Born, Cost, Entry, Evaluate, Evaluation, TaskId, Verdict
from dgm.errors import Infrastructure, UserError
from tests.support.mounts import mounted, read_only

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Run.create(tmp_path / "archive" / "run", {"seed": 1}) as run:
        seed = run.repository.commit({"a": Entry(b"1")}, ())
        run.append(run.birth(Born((), "seed", seed, "seed"), ActionId(0)))
    return tmp_path / "archive" / "run"


def test_read_only_run_can_be_looked_at_in_every_way(folder: Path) -> None:
    with read_only(folder), Run.open(folder) as run:
        assert run.source(SEED) == {"a": Entry(b"1")}
        assert run.repository.diff(run.tree.agents[0].commit, run.tree.agents[0].commit) == b""
        assert list(run.follow()) == []
        assert run.traces.get(run.traces.put(b"not durable")) == b"not durable"


def test_run_cannot_be_made_in_a_read_only_folder(folder: Path) -> None:
    with read_only(folder.parent), pytest.raises(UserError, match="read-only"):
        Run.create(folder.parent / "another", {})


def test_full_disk_keeps_what_was_there_and_takes_the_rest_later(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    large, noise_bytes = bytes(range(256)) * 4000, Random(0).randbytes(100_000)
    noise = {f"f{n}": Entry(b"%d" % n * 3000 + large[n:]) for n in range(30)}
    with mounted(disk, "-t", "tmpfs", "-o", "size=600k", "tmpfs"), Run.create(disk / "run", {}) as run:
        seed = run.repository.commit({"a": Entry(b"1")}, ())
        run.append(run.birth(Born((), "seed", seed, "seed"), ActionId(0)))
        (disk / "ballast").write_bytes(b"x" * _room(disk))
        with pytest.raises(Infrastructure):
            run.repository.commit(noise, (seed,))
        graded = Evaluation(
            SEED, TaskId("a"), 0, Verdict.RESOLVED, "", 1.0, Cost(traces={"log": run.traces.put(noise_bytes)})
        )
        with pytest.raises(Infrastructure, match="full"):
            run.append(TaskGraded(ActionId(1), graded))
        run.repository.fsck()
        assert run.source(SEED) == {"a": Entry(b"1")}
        (disk / "ballast").unlink()
        run.append(ActionStarted(ActionId(1), Evaluate(SEED, TaskId("a"))))
        recorded = run.append(TaskGraded(ActionId(1), graded))
        assert list(run.store.read(recorded.seq - 1)) == [recorded]
        assert run.traces.get(graded.cost.traces["log"]) == noise_bytes


def _room(disk: Path) -> int:
    room = os.statvfs(disk)
    return max(0, (room.f_bavail - 1) * room.f_frsize)
