"""An ``agents.git`` that nobody should trust: nothing in it but its objects and refs has an effect."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dgm.archive.objects import put_commit, scratch_writer
from dgm.archive.repository import AgentRepository
from dgm.domain import AgentId, CommitId, Entry
from dgm.errors import ArchiveCorrupt

pytestmark = pytest.mark.starts_processes

FILES = {"agent.toml": Entry(b"[agent]\n"), "agent/loop.py": Entry(b"loop\n")}


@pytest.fixture
def repository(tmp_path: Path) -> AgentRepository:
    made = AgentRepository.create(tmp_path / "agents.git")
    made.name(AgentId(0), made.commit(FILES, ()))
    return made


def reopened(tmp_path: Path) -> AgentRepository:
    return AgentRepository(tmp_path / "agents.git")


def with_lost_blob(tmp_path: Path) -> CommitId:
    """A commit whose only blob is missing."""
    put = scratch_writer(tmp_path / "agents.git" / "objects")
    tree = put("tree", b"100644 lost.txt\0" + bytes.fromhex("1" * 40))
    return put_commit(tree, (), put)


def test_the_configuration_of_the_folder_has_no_effect(repository: AgentRepository, tmp_path: Path) -> None:
    seed, lost, ran = repository.refs()[AgentId(0)], with_lost_blob(tmp_path), tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    (tmp_path / "agents.git" / "config").write_text(
        f"[core]\n\tbare = true\n\trepositoryformatversion = 1\n\tfsmonitor = {script}\n\tsshCommand = {script}\n"
        f'[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\turl = "ext::{script}"\n\tpromisor = true\n'
        f'[protocol "ext"]\n\tallow = always\n[diff]\n\texternal = {script}\n[include]\n\tpath = {tmp_path}/more\n'
    )
    opened = reopened(tmp_path)
    assert opened.source(seed) == FILES
    for use in (
        lambda: opened.source(lost),
        lambda: opened.diff(seed, lost),
        lambda: opened.pack_objects([lost]),
    ):
        with pytest.raises(ArchiveCorrupt):
            use()
    opened.fsck()
    assert not ran.exists()


@pytest.mark.parametrize(
    "name",
    ["shallow", "info/grafts", "commondir", "objects/info/commit-graph", "objects/pack/multi-pack-index"],
)
def test_what_changes_how_git_reads_objects_is_not_read(
    repository: AgentRepository, tmp_path: Path, name: str
) -> None:
    seed = repository.refs()[AgentId(0)]
    child = repository.commit({}, (seed,))
    texts = {"shallow": f"{child}\n", "info/grafts": f"{child}\n", "commondir": "/nowhere\n"}
    (tmp_path / "agents.git" / name).write_text(texts.get(name, "no such format"))
    opened = reopened(tmp_path)
    with opened.objects() as objects:
        assert objects.parents_of(child) == (seed,)
    packed = opened.pack_objects([child])
    assert int.from_bytes(packed[8:12]) == 7  # two commits, three trees, two files


def test_replaced_objects_are_the_original_ones(repository: AgentRepository, tmp_path: Path) -> None:
    seed = repository.refs()[AgentId(0)]
    other = repository.commit({"evil": Entry(b"")}, ())
    (tmp_path / "agents.git" / "refs" / "replace").mkdir()
    (tmp_path / "agents.git" / "refs" / "replace" / seed).write_text(f"{other}\n")
    assert reopened(tmp_path).source(seed) == FILES


@pytest.mark.parametrize(
    "change",
    [
        lambda git, out: (git / "objects" / "info" / "alternates").write_text(f"{out}\n"),
        lambda git, out: (git / "objects" / "info" / "alternates").symlink_to(out),
        lambda git, out: (git / "objects" / "00").symlink_to(out),
        lambda git, out: ((git / "objects" / "00").mkdir(), (git / "objects" / "00" / "1").symlink_to(out)),
        lambda git, out: ((git / "objects" / "00").mkdir(), os.mkfifo(git / "objects" / "00" / ("1" * 38))),
        lambda git, out: (git / "objects" / "pack" / "pack-1.pack").symlink_to(out),
        lambda git, out: (
            (git / "objects").rename(out / "moved"),
            (git / "objects").symlink_to(out / "moved"),
        ),
        lambda git, out: (git.rename(out / "moved"), git.symlink_to(out / "moved")),
    ],
)
def test_what_leads_out_of_the_folder_is_refused(
    repository: AgentRepository, tmp_path: Path, change: Callable[[Path, Path], object]
) -> None:
    seed = repository.refs()[AgentId(0)]
    (tmp_path / "out").mkdir()
    change(tmp_path / "agents.git", tmp_path / "out")
    with pytest.raises(ArchiveCorrupt, match=r"agents\.git"):
        reopened(tmp_path).source(seed)


def test_refs_that_are_links_or_name_others_are_refused(repository: AgentRepository, tmp_path: Path) -> None:
    ref = tmp_path / "agents.git" / "refs" / "heads" / "agents" / "0"
    for text in ("ref: refs/heads/agents/1\n", "--output=x\n", "../../x\n", ""):
        ref.write_text(text)
        with pytest.raises(ArchiveCorrupt, match="is not a commit"):
            repository.refs()
    ref.unlink()
    ref.symlink_to(tmp_path / "agents.git" / "HEAD")
    with pytest.raises(ArchiveCorrupt, match="a link, which is not followed"):
        repository.refs()


@pytest.mark.parametrize("commit", ["--output=file", "HEAD", "0" * 39, f"{'0' * 40}\n{'0' * 40}", "-h"])
def test_what_is_no_commit_never_reaches_git(
    repository: AgentRepository, tmp_path: Path, commit: str
) -> None:
    seed = repository.refs()[AgentId(0)]
    for use in (
        lambda: repository.source(CommitId(commit)),
        lambda: repository.diff(seed, CommitId(commit)),
        lambda: repository.pack_objects([CommitId(commit)]),
    ):
        with pytest.raises(ArchiveCorrupt, match="is not"):
            use()
    assert [path.name for path in tmp_path.iterdir()] == ["agents.git"]


def test_trees_that_name_each_other_many_times_have_an_end(
    repository: AgentRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dgm.archive.repository.MAX_FILES", 1_000)
    put = scratch_writer(tmp_path / "agents.git" / "objects")
    below = put("tree", b"100644 f\0" + bytes.fromhex(put("blob", b"x" * 1000)))
    for _ in range(12):
        below = put("tree", b"".join(b"40000 %d\0" % n + bytes.fromhex(below) for n in range(10)))
    bomb, seed = put_commit(below, (), put), repository.refs()[AgentId(0)]
    with pytest.raises(ArchiveCorrupt, match="holds more than an agent may have"):
        repository.diff(seed, bomb)


@pytest.mark.parametrize(
    "tree", [b"garbage", b"100644 a\0short", b"x a\0" + bytes(20), b"160000 a\0" + bytes(20)]
)
def test_trees_that_git_cannot_have_are_refused(
    repository: AgentRepository, tmp_path: Path, tree: bytes
) -> None:
    put = scratch_writer(tmp_path / "agents.git" / "objects")
    commit = put_commit(put("tree", tree), (), put)
    with pytest.raises(ArchiveCorrupt):
        repository.source(commit)


def test_a_repository_that_borrows_reads_both(repository: AgentRepository, tmp_path: Path) -> None:
    seed = repository.refs()[AgentId(0)]
    AgentRepository.create(tmp_path / "other")
    borrowing = AgentRepository(tmp_path / "other", tmp_path / "agents.git")
    child = borrowing.commit({"new": Entry(b"new\n")}, (seed,))
    assert borrowing.source(seed) == FILES
    assert b"+new" in borrowing.diff(seed, child)


def test_gits_own_maintenance_does_no_harm(repository: AgentRepository, tmp_path: Path) -> None:
    seed, git = repository.refs()[AgentId(0)], ["git", f"--git-dir={tmp_path / 'agents.git'}"]
    for words in (["pack-refs", "--all"], ["gc", "-q"], ["commit-graph", "write", "--reachable", "--split"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    opened = reopened(tmp_path)
    assert opened.refs() == {0: seed}
    assert opened.source(seed) == FILES
    opened.fsck()
