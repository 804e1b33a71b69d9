import os
import subprocess
from pathlib import Path

import pytest

from dgm.archive.objects import storable
from dgm.archive.repository import AgentRepository, patch, tree_id
from dgm.archive.snapshots import from_folder, write_folder
from dgm.domain import AgentId, CommitId, Entry, Snapshot
from dgm.errors import ArchiveCorrupt, UserError

BEFORE: Snapshot = {
    "agent.toml": Entry(b"[agent]\n"),
    "pkg/loop.py": Entry(b"one\ntwo\n"),
    "pkg/tools.py": Entry(b"bash\n"),
    "gone.txt": Entry(b"gone\n"),
}
AFTER: Snapshot = {
    "agent.toml": Entry(b"[agent]\n"),
    "pkg/loop.py": Entry(b"one\nthree\n"),
    "pkg/tools.py": Entry(b"bash\n", 0o100755),
    "pkg/new\nline \x1b[31m": Entry(b"no newline at the end"),
    "\udcff": Entry(bytes(range(256)) * 20),
    "link": Entry(b"/etc/passwd", 0o120000),
    ".gitattributes": Entry(b"* binary diff=evil filter=evil\n"),
    ".gitmodules": Entry(b'[submodule "-x"]\n\tpath = -x\n\turl = -u\n'),
}


@pytest.fixture
def repository(tmp_path: Path) -> AgentRepository:
    return AgentRepository.create(tmp_path / "agents.git")


@pytest.mark.starts_processes
def test_source_comes_back_byte_for_byte(repository: AgentRepository) -> None:
    for files in (BEFORE, AFTER, {}):
        assert repository.source(repository.commit(files, ())) == files


def test_commit_id_is_a_function_of_content_and_lineage(repository: AgentRepository, tmp_path: Path) -> None:
    other = AgentRepository.create(tmp_path / "other.git")
    seed = repository.commit(BEFORE, ())
    assert (
        seed == other.commit(dict(reversed(BEFORE.items())), ()) == "201cd5463c024dbc5f6266c9d07cf86f81f41820"
    )
    assert repository.commit(AFTER, (seed,)) != repository.commit(AFTER, ())


@pytest.mark.starts_processes
def test_parents_and_names_are_kept(repository: AgentRepository, tmp_path: Path) -> None:
    seed = repository.commit(BEFORE, ())
    child = repository.commit(AFTER, (seed,))
    cross = repository.commit(BEFORE, (child, seed))
    for agent, commit in enumerate((seed, child, cross)):
        repository.name(AgentId(agent), commit)
    with repository.objects() as objects:
        assert objects.parents_of(cross) == (child, seed)
    assert repository.refs() == {0: seed, 1: child, 2: cross}


@pytest.mark.starts_processes
def test_identical_content_has_one_tree(repository: AgentRepository) -> None:
    seed = repository.commit(BEFORE, ())
    copy = repository.commit(BEFORE, (seed,))
    assert repository.tree_of(seed) == repository.tree_of(copy) == tree_id(BEFORE)
    assert repository.tree_of(seed) != tree_id(AFTER)


@pytest.mark.starts_processes
def test_git_itself_finds_nothing_wrong(repository: AgentRepository, tmp_path: Path) -> None:
    seed = repository.commit(BEFORE, ())
    repository.name(AgentId(0), seed)
    repository.name(AgentId(1), repository.commit(AFTER, (seed,)))
    repository.fsck()
    git = ["git", f"--git-dir={tmp_path / 'agents.git'}", "fsck", "--full"]
    done = subprocess.run(git, capture_output=True, check=True)
    assert b"error" not in done.stderr + done.stdout


@pytest.mark.starts_processes
def test_damaged_object_is_named(repository: AgentRepository, tmp_path: Path) -> None:
    seed = repository.commit(BEFORE, ())
    tree = repository.tree_of(seed)
    path = tmp_path / "agents.git" / "objects" / tree[:2] / tree[2:]
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ArchiveCorrupt, match=r"agents\.git"):
        repository.source(seed)
    with pytest.raises(ArchiveCorrupt, match=r"agents\.git"):
        repository.fsck()


@pytest.mark.starts_processes
def test_missing_commit_is_named(repository: AgentRepository) -> None:
    with pytest.raises(ArchiveCorrupt, match="commit 0000000"):
        repository.source(CommitId("0" * 40))


@pytest.mark.parametrize(
    "name",
    [
        ".git/config",
        ".GIT/hooks/x",
        "sub/.git",
        ".git /x",
        "git~1/x",
        ".g\u200cit/x",
        ".git::$INDEX/x",
        "a\\.git\\x",
    ],
)
def test_whatever_is_a_git_folder_somewhere_is_dropped(name: str) -> None:
    assert storable({name: Entry(b""), "kept": Entry(b"")}) == {"kept": Entry(b"")}


@pytest.mark.parametrize("name", [".gitignore", ".github/x", "git", "x.git", "digit~1"])
def test_what_only_looks_like_one_is_kept(name: str) -> None:
    assert name in storable({name: Entry(b"")})


@pytest.mark.starts_processes
def test_patch_applies_with_git(tmp_path: Path) -> None:
    work = tmp_path / "work"
    write_folder(BEFORE, work)
    subprocess.run(["git", "apply", "-p1"], cwd=work, input=patch(BEFORE, AFTER), check=True)
    assert from_folder(work) == AFTER


@pytest.mark.starts_processes
def test_patch_is_what_the_repository_shows(repository: AgentRepository) -> None:
    seed, child = repository.commit(BEFORE, ()), repository.commit(AFTER, ())
    assert repository.diff(seed, child) == patch(BEFORE, AFTER)


def test_patch_of_equal_snapshots_is_empty() -> None:
    assert patch(BEFORE, {**BEFORE, ".git/HEAD": Entry(b"evil")}) == b""


def test_name_that_is_file_and_folder_is_refused() -> None:
    with pytest.raises(UserError, match="both a file and a folder"):
        patch({}, {"a": Entry(b""), "a/b": Entry(b"")})


@pytest.mark.starts_processes
def test_configuration_of_user_and_environment_changes_no_patch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = patch(BEFORE, AFTER)
    marker = tmp_path / "ran"
    config = tmp_path / ".gitconfig"
    config.write_text(
        f"[diff]\n\texternal = touch {marker}\n\tnoprefix = true\n"
        f'[diff "evil"]\n\ttextconv = touch {marker};\n[core]\n\tfsmonitor = touch {marker}\n'
        "\tattributesFile = /dev/stdin\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {marker}")
    monkeypatch.setenv("GIT_DIFF_OPTS", "-u0")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert patch(BEFORE, AFTER) == expected
    assert not marker.exists()


@pytest.mark.starts_processes
def test_hooks_in_the_repository_do_not_run(repository: AgentRepository, tmp_path: Path) -> None:
    hooks = tmp_path / "agents.git" / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "reference-transaction", "post-commit", "fsmonitor-watchman"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
        (hooks / hook).chmod(0o755)
    seed = repository.commit(BEFORE, ())
    repository.name(AgentId(0), seed)
    repository.diff(seed, repository.commit(AFTER, (seed,)))
    repository.fsck()
    assert not (tmp_path / "ran").exists()


@pytest.mark.starts_processes
def test_left_overs_of_a_killed_writer_do_no_harm(repository: AgentRepository, tmp_path: Path) -> None:
    seed = repository.commit(BEFORE, ())
    repository.name(AgentId(0), seed)
    (tmp_path / "agents.git" / "objects" / seed[:2] / "tmp_obj_0123").write_bytes(b"half")
    (tmp_path / "agents.git" / "refs" / "heads" / "agents" / ".0123").write_bytes(b"half")
    repository.fsck()
    assert repository.refs() == {0: seed}


@pytest.mark.starts_processes
def test_repository_may_belong_to_someone_else(repository: AgentRepository, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    seed = repository.commit(BEFORE, ())
    os.chown(tmp_path / "agents.git", 12345, 12345)
    assert repository.diff(seed, seed) == b""
