"""The exported repository: a branch per agent, the best checked out byte for byte, nothing of this machine in it."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from dgm.archive.run import Run
from dgm.archive.snapshots import from_folder
from dgm.domain import AgentId
from dgm.errors import ArchiveCorrupt, UserError
from dgm.export.branches import write_repository
from dgm.export.home import write_home

pytestmark = pytest.mark.starts_processes


def git(folder, *words):
    """What git prints, with the settings of whoever runs the tests out of the way."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout


def test_it_has_a_branch_for_each_agent_and_is_sound(run, tmp_path) -> None:
    target = tmp_path / "clone"
    best = write_repository(run, target)
    listed = git(target, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    assert sorted(listed) == sorted(
        f"refs/heads/agents/{agent.id} {agent.commit}" for agent in run.tree.agents
    )
    assert len(git(target, "branch", "--list", "agents/*").splitlines()) == len(run.tree.agents)
    git(
        target,
        "-c",
        "fsck.gitmodulesUrl=ignore",
        "-c",
        "fsck.gitmodulesName=ignore",
        "fsck",
        "--full",
        "--strict",
    )
    assert git(target, "symbolic-ref", "HEAD").strip() == f"refs/heads/agents/{best}"
    for agent in run.tree.agents:
        parents = git(target, "log", "-1", "--format=%P", f"agents/{agent.id}").split()
        assert parents == [run.tree.agents[parent].commit for parent in agent.parents]


def test_what_is_checked_out_is_the_source_itself(run, tmp_path) -> None:
    best = write_repository(run, tmp_path / "clone")
    assert from_folder(tmp_path / "clone") == run.source(best)
    assert git(tmp_path / "clone", "status", "--porcelain") == ""


def other_disk(tmp_path):
    """Return a new folder on another file system than ``tmp_path``."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    return Path(tempfile.mkdtemp(prefix="dgm-test-", dir=shared))


@pytest.mark.parametrize(
    "write", [write_repository, lambda run, to: write_home(run, run.tree.agents[-1], to)]
)
def test_it_may_lie_on_another_disk_and_leaves_nothing_in_the_run(run, tmp_path, write):
    there = other_disk(tmp_path)
    objects = run.folder / "agents.git" / "objects"
    before = sorted(objects.rglob("*"))
    try:
        write(run, there / "clone")
        assert git(there / "clone", "log", "--format=%H", "HEAD").split()
    finally:
        shutil.rmtree(there)
    assert sorted(objects.rglob("*")) == before


def test_another_agent_can_be_checked_out(run, tmp_path) -> None:
    write_repository(run, tmp_path / "clone")
    git(tmp_path / "clone", "checkout", "-q", "agents/1")
    assert from_folder(tmp_path / "clone") == run.source(AgentId(1))


def test_no_remote_no_hook_and_no_path_of_this_machine_is_in_it(run, tmp_path) -> None:
    write_repository(run, tmp_path / "clone")
    assert git(tmp_path / "clone", "remote") == ""
    inside = tmp_path / "clone" / ".git"
    assert not (inside / "hooks").exists()
    assert not (inside / "objects" / "info" / "alternates").exists()
    small = [path for path in inside.rglob("*") if path.is_file() and "objects" not in path.parts]
    assert not any(str(run.folder.parent).encode() in path.read_bytes() for path in small)


def test_nothing_is_written_over(run, tmp_path) -> None:
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "mine").write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        write_repository(run, tmp_path / "clone")
    assert [path.name for path in tmp_path.rglob("*")] == ["clone", "mine"]
    (tmp_path / "clone" / "mine").unlink()
    write_repository(run, tmp_path / "clone")


def test_a_missing_object_is_named_and_leaves_nothing(paid_folder, tmp_path) -> None:
    import shutil

    shutil.copytree(paid_folder, tmp_path / "run")
    for path in (tmp_path / "run" / "agents.git" / "objects").glob("??/*"):
        path.unlink()
    with Run.open(tmp_path / "run") as run, pytest.raises(ArchiveCorrupt, match="pack-objects"):
        write_repository(run, tmp_path / "clone")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
