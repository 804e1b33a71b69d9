"""Agents as commits: ids, sources and patches; nothing in an ``agents.git`` but its objects and refs has an effect."""

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.archive.git import EMPTY, Objects, read_files
from dgm.archive.repository import AgentRepository, apply_patch, patch
from dgm.archive.snapshots import FILE, LINK, PROGRAM, from_folder, storable, tree_id, write_folder
from dgm.domain import ActionId, AgentId, CommitId, Entry, Snapshot
from dgm.errors import ArchiveCorrupt, UserError

pytestmark = pytest.mark.starts_processes

BEFORE: Snapshot = {
    "agent.toml": Entry(b"[agent]\n"),
    "pkg/loop.py": Entry(b"one\ntwo\n"),
    "pkg/tools.py": Entry(b"bash\n"),
    "gone.txt": Entry(b"gone\n"),
}
AFTER: Snapshot = {
    "agent.toml": Entry(b"[agent]\n"),
    "pkg/loop.py": Entry(b"one\nthree\n"),
    "pkg/tools.py": Entry(b"bash\n", PROGRAM),
    "pkg/new\nline \x1b[31m": Entry(b"no newline at the end"),
    "\udcff": Entry(bytes(range(256)) * 20),
    "link": Entry(b"/etc/passwd", LINK),
    ".gitattributes": Entry(b"* binary diff=evil filter=evil export-ignore ident\n"),
    ".gitmodules": Entry(b'[submodule "-x"]\n\tpath = -x\n\turl = -u\n'),
}
ODD: Snapshot = {
    **{
        name: Entry(name.encode())
        for name in ("a", "a.b", "a0", "a-/x", 'q"uo\\te', " lead", "tab\there/x", "ä/ö")
    },
    "deep/" * 30 + "x": Entry(b"d", PROGRAM),
}


@pytest.fixture
def repository(tmp_path: Path) -> AgentRepository:
    return AgentRepository.create(tmp_path / "agents.git")


@pytest.fixture
def seed(repository: AgentRepository) -> CommitId:
    commit = repository.commit(BEFORE, ())
    repository.name(AgentId(0), commit)
    return commit


def test_ids_are_those_of_earlier_versions_everywhere(repository: AgentRepository, tmp_path: Path) -> None:
    other = AgentRepository.create(tmp_path / "other.git")
    for store in (repository, other):
        seed = store.commit(BEFORE, ())
        child = store.commit({**AFTER, ".git/config": Entry(b"dropped")}, (seed,))
        ids = [store.commit({}, ()), seed, child, store.commit(dict(reversed(ODD.items())), (child, seed))]
        assert ids == [
            "222a9642d769427ea102520ec7cca5eb6bdc414f",
            "201cd5463c024dbc5f6266c9d07cf86f81f41820",
            "576977c9493ffd4294982717368413db15b5e3b5",
            "f0243b43f58ed5a487d49bb9232747cf46635794",
        ]


def test_sources_trees_and_parents_come_back(repository: AgentRepository) -> None:
    seed = repository.commit(BEFORE, ())
    child = repository.commit(AFTER, (seed,))
    cross = repository.commit(ODD, (child, seed))
    sources = {seed: BEFORE, child: AFTER, cross: ODD, repository.commit({}, ()): {}}
    for commit, files in sources.items():
        assert repository.source(commit) == files
        assert repository.tree_of(commit) == tree_id(files)
    assert list(repository.trees_of(sources)) == [tree_id(files) for files in sources.values()]
    with repository.objects() as objects:
        assert objects.parents_of(cross) == (child, seed)


def test_refs_are_kept_apart_and_forgotten(repository: AgentRepository, tmp_path: Path) -> None:
    first, second = repository.commit(BEFORE, ()), repository.commit(AFTER, ())
    repository.name(AgentId(0), first)
    repository.name(AgentId(12), second)
    repository.name_waiting(ActionId(7), second)
    subprocess.run(["git", f"--git-dir={tmp_path / 'agents.git'}", "pack-refs", "--all"], check=True)
    assert (repository.refs(), repository.waiting_refs()) == ({0: first, 12: second}, {7: second})
    repository.name_waiting(ActionId(8), first)
    repository.forget_waiting(ActionId(8))
    repository.forget_waiting(ActionId(8))
    assert repository.waiting_refs() == {7: second}


def test_many_commits_are_few_packs_while_others_read(repository: AgentRepository, tmp_path: Path) -> None:
    def commit_and_read(number: int) -> bytes:
        commit = repository.commit({"n": Entry(b"%d" % number)}, ())
        return AgentRepository(tmp_path / "agents.git").source(commit)["n"].data

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(commit_and_read, range(45))) == [b"%d" % number for number in range(45)]
    assert len(list((tmp_path / "agents.git" / "objects" / "pack").glob("*.pack"))) <= 21


def test_what_nothing_needs_is_found_and_removed(repository: AgentRepository, seed: CommitId) -> None:
    orphan = repository.commit({"agent.toml": Entry(b"nobody's")}, (seed,))
    kept = repository.commit({"a": Entry(b"named by an event alone")}, ())
    assert len(repository.find_unneeded([kept])) == 3
    repository.remove_unneeded([kept])
    assert repository.find_unneeded([kept]) == {}
    assert (repository.source(seed), repository.source(kept)["a"].data) == (
        BEFORE,
        b"named by an event alone",
    )
    with pytest.raises(ArchiveCorrupt):
        repository.source(orphan)


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=4)
trees = st.dictionaries(
    st.lists(names, min_size=1, max_size=3).map("/".join),
    st.builds(Entry, st.binary(max_size=9), st.sampled_from([FILE, PROGRAM, LINK])),
    max_size=6,
)


def is_tree(files: Snapshot) -> bool:
    try:
        return bool(storable(files)) or not files
    except UserError:
        return False


@given(trees.filter(is_tree), trees.filter(is_tree))
@settings(max_examples=20, deadline=None)
def test_any_source_has_gits_id_and_any_patch_applies(before: Snapshot, after: Snapshot) -> None:
    difference = patch(before, after)
    assert tree_id(apply_patch(before, difference) if difference else before) == tree_id(after)


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
    others = {other: Entry(b"") for other in (".gitignore", ".github/x", "git", "x.git", "digit~1")}
    assert storable({name: Entry(b""), **others}) == others


def test_patches_are_gits_and_apply(repository: AgentRepository, seed: CommitId, tmp_path: Path) -> None:
    difference = repository.diff(seed, repository.commit(AFTER, ()))
    assert difference == patch(BEFORE, AFTER)
    write_folder(BEFORE, tmp_path / "work")
    subprocess.run(["git", "apply", "-p1"], cwd=tmp_path / "work", input=difference, check=True)
    assert from_folder(tmp_path / "work") == apply_patch(BEFORE, difference) == AFTER
    assert patch(BEFORE, {**BEFORE, ".git/HEAD": Entry(b"evil")}) == b""
    with pytest.raises(ArchiveCorrupt, match=r"^error: [^\n]+$"):
        apply_patch(AFTER, difference)
    with pytest.raises(UserError, match="both a file and a folder"):
        patch({}, {"a": Entry(b""), "a/b": Entry(b"")})
    with pytest.raises(UserError, match="neither a file nor a link"):
        patch({}, {"a": Entry(b"", 0o160000)})
    assert patch({}, {"a": Entry(b"", 0o100664)}) == patch({}, {"a": Entry(b"")})


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


def test_without_git_the_user_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="git is not installed"):
        patch(BEFORE, AFTER)


def test_git_itself_finds_nothing_wrong(repository: AgentRepository, seed: CommitId, tmp_path: Path) -> None:
    repository.name(AgentId(1), repository.commit(AFTER, (seed,)))
    repository.fsck()
    for words in (["fsck", "--full"], ["gc", "-q"], ["commit-graph", "write", "--reachable", "--split"]):
        git = ["git", f"--git-dir={tmp_path / 'agents.git'}", *words]
        assert b"error" not in subprocess.run(git, capture_output=True, check=True).stderr
    assert repository.source(seed) == BEFORE
    repository.fsck()


def test_damage_is_named(repository: AgentRepository, seed: CommitId, tmp_path: Path) -> None:
    with pytest.raises(ArchiveCorrupt, match="commit 0000000"):
        repository.source(CommitId("0" * 40))
    (pack,) = (tmp_path / "agents.git" / "objects" / "pack").glob("*.pack")
    pack.chmod(0o600)
    data = bytearray(pack.read_bytes())
    data[-30] ^= 255
    pack.write_bytes(data)
    for use in (lambda: repository.source(seed), repository.fsck):
        with pytest.raises(ArchiveCorrupt, match=r"agents\.git"):
            use()


def test_nothing_but_the_objects_has_an_effect(
    repository: AgentRepository, seed: CommitId, tmp_path: Path
) -> None:
    git, script, ran = tmp_path / "agents.git", tmp_path / "script", tmp_path / "ran"
    child = repository.commit({}, (seed,))
    lost = put(git, "commit", b"tree %b\n\n" % put(git, "tree", b"100644 lost\0" + bytes(20)).encode())
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    (git / "hooks").mkdir()
    for hook in ("post-checkout", "reference-transaction", "post-commit", "fsmonitor-watchman"):
        (git / "hooks" / hook).symlink_to(script)
    (git / "config").write_text(
        f"[core]\n\tbare = true\n\trepositoryformatversion = 1\n\tfsmonitor = {script}\n\tsshCommand = {script}\n"
        f'[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\turl = "ext::{script}"\n\tpromisor = true\n'
        f'[protocol "ext"]\n\tallow = always\n[diff]\n\texternal = {script}\n[include]\n\tpath = {tmp_path}/more\n'
    )
    (git / "refs" / "replace").mkdir()
    (git / "refs" / "replace" / seed).write_text(f"{child}\n")
    (git / "info").mkdir()
    for name, text in {"shallow": child, "info/grafts": child, "objects/pack/multi-pack-index": "x"}.items():
        (git / name).write_text(f"{text}\n")
    opened = AgentRepository(git)
    assert (opened.source(seed), opened.source(child), opened.refs()) == (BEFORE, {}, {0: seed})
    with opened.objects() as objects:
        assert objects.parents_of(child) == (seed,)
    assert int.from_bytes(opened.pack_objects([child])[8:12]) == 9  # two commits, three trees, four files
    opened.diff(seed, opened.commit(AFTER, (seed,)))
    for use in (
        opened.source,
        lambda commit: opened.diff(seed, commit),
        lambda commit: opened.pack_objects([commit]),
    ):
        with pytest.raises(ArchiveCorrupt):
            use(CommitId(lost))
    assert not ran.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda git, out: (git / "objects" / "info" / "alternates").write_text(f"{out}\n"),
        lambda git, out: (git / "objects" / "00").symlink_to(out),
        lambda git, out: os.mkfifo(git / "objects" / "info" / "1"),
        lambda git, out: (git / "objects" / "pack" / "pack-1.pack").symlink_to(out),
        lambda git, out: ((git / "objects").rename(out / "x"), (git / "objects").symlink_to(out / "x")),
        lambda git, out: (git.rename(out / "moved"), git.symlink_to(out / "moved")),
    ],
)
def test_what_leads_out_of_the_folder_is_refused(
    repository: AgentRepository, seed: CommitId, tmp_path: Path, change: Callable[[Path, Path], object]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "agents.git" / "objects" / "info").mkdir()
    change(tmp_path / "agents.git", tmp_path / "out")
    with pytest.raises(ArchiveCorrupt, match=r"agents\.git"):
        repository.source(seed)


@pytest.mark.parametrize("commit", ["--output=file", "HEAD", "0" * 39, f"{'0' * 40}\n{'0' * 40}", "-h"])
def test_what_is_no_commit_never_reaches_git(
    repository: AgentRepository, seed: CommitId, tmp_path: Path, commit: str
) -> None:
    for use in (
        repository.source,
        lambda name: repository.diff(seed, name),
        lambda name: repository.pack_objects([name]),
    ):
        with pytest.raises(ArchiveCorrupt, match="is not"):
            use(CommitId(commit))
    (tmp_path / "agents.git" / "refs" / "heads" / "agents" / "1").write_text(f"{commit}\n")
    assert repository.refs() == {0: seed}
    assert [path.name for path in tmp_path.iterdir()] == ["agents.git"]


def put(git: Path, kind: str, data: bytes) -> str:
    return (
        Objects(git)
        .run("hash-object", "-t", kind, "-w", "--stdin", "--literally", data=data)
        .decode()
        .strip()
    )


def test_trees_that_name_each_other_many_times_have_an_end(
    repository: AgentRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dgm.archive.git.MAX_FILES", 100)
    git = tmp_path / "agents.git"
    below = put(git, "tree", b"100644 f\0" + bytes.fromhex(put(git, "blob", b"x" * 1000)))
    for _ in range(12):
        below = put(git, "tree", b"".join(b"40000 %d\0" % n + bytes.fromhex(below) for n in range(10)))
    with pytest.raises(ArchiveCorrupt, match="holds more than"):
        repository.source(CommitId(put(git, "commit", b"tree %b\n\n" % below.encode())))


def test_names_count_towards_the_bytes_of_a_tree(repository: AgentRepository, tmp_path: Path) -> None:
    git = tmp_path / "agents.git"
    file = b"100644 %b\0" % (b"f" * 50) + bytes.fromhex(put(git, "blob", b"1234"))
    root = put(git, "tree", b"40000 folder\0" + bytes.fromhex(put(git, "tree", file)))
    with repository.objects() as objects:
        assert len(dict(read_files(objects, root, limit_bytes=60))) == 1
        with pytest.raises(ArchiveCorrupt, match="or 59 bytes"):
            dict(read_files(objects, root, limit_bytes=59))


@pytest.mark.parametrize("tree", [b"garbage", b"100644 a\0short"])
def test_damaged_trees_are_refused(repository: AgentRepository, tmp_path: Path, tree: bytes) -> None:
    commit = b"tree %b\n\n" % put(tmp_path / "agents.git", "tree", tree).encode()
    with pytest.raises(ArchiveCorrupt):
        repository.source(CommitId(put(tmp_path / "agents.git", "commit", commit)))


def test_a_repository_that_borrows_reads_both(
    repository: AgentRepository, seed: CommitId, tmp_path: Path
) -> None:
    AgentRepository.create(tmp_path / "o:t h\u00e4r")
    borrowing = AgentRepository(tmp_path / "o:t h\u00e4r", tmp_path / "agents.git")
    child = borrowing.commit({"new": Entry(b"new\n")}, (seed,))
    assert borrowing.source(seed) == BEFORE
    assert b"+new" in borrowing.diff(seed, child)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_may_belong_to_someone_else(
    repository: AgentRepository, seed: CommitId, tmp_path: Path
) -> None:
    os.chown(tmp_path / "agents.git", 12345, 12345)
    assert (repository.diff(seed, seed), repository.refs()) == (b"", {0: seed})


def test_nothing_is_written_beside_the_repository(repository: AgentRepository, seed: CommitId) -> None:
    repository.diff(seed, repository.commit(AFTER, (seed,)))
    assert {path.name for path in EMPTY.iterdir()} == {"HEAD", "config", "info", "refs"}
