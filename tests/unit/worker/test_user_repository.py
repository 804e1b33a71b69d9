"""A person's repository and its settings: what an agent sees of it, and what is written back."""

import os
import shutil
import stat
import subprocess

import pytest

from dgm.archive.repository import patch
from dgm.domain import Entry
from dgm.errors import UserError
from dgm.worker.solving import apply_command, find_ignored_around, user_files, write_back
from tests.unit.worker.test_leaving import git, write

pytestmark = pytest.mark.starts_processes

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 5\n"


@pytest.fixture
def repo(tmp_path, monkeypatch):
    """A repository of somebody who has settings of their own."""
    folder, home = tmp_path / "mine", tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    write(
        folder, {"dos.txt": b"one\r\ntwo\r\nthree\r\n", "unix.txt": b"one\ntwo\nthree\n", "big.bin": POINTER}
    )
    git(tmp_path, "init", "-q", str(folder))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


def settings(repo, **values):
    """The person's own settings."""
    lines = [f"[core]\n\t{key} = {value}\n" for key, value in values.items()]
    (repo.parent / "home" / ".gitconfig").write_text("".join(lines))


def change(repo, **files):
    """Lets an agent change files, and brings that back."""
    before = user_files(repo).files
    after = {name: entry for name, entry in {**before, **files}.items() if entry is not None}
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    write_back(repo, patch(before, after), changed)


def test_line_ends_stay_whatever_autocrlf_says(repo):
    for autocrlf in ("true", "input", "false"):
        settings(repo, autocrlf=autocrlf, safecrlf="true")
        dos, unix = Entry(b"one\r\nTWO %b\r\n" % autocrlf.encode()), Entry(b"one\n%b\n" % autocrlf.encode())
        change(repo, **{"dos.txt": dos, "unix.txt": unix})
        assert (repo / "dos.txt").read_bytes() == dos.data
        assert (repo / "unix.txt").read_bytes() == unix.data


def test_attributes_and_filters_do_nothing(repo):
    write(repo, {".gitattributes": b"*.txt text eol=crlf filter=break ident\n*.bin filter=lfs\n"})
    (repo.parent / "home" / ".gitconfig").write_text(
        '[filter "break"]\n\tclean = false\n\tsmudge = false\n\trequired = true\n'
        '[filter "lfs"]\n\tclean = false\n\tsmudge = false\n\trequired = true\n'
    )
    change(repo, **{"unix.txt": Entry(b"one\n$Id$\nthree\n"), "new.txt": Entry(b"new\n")})
    assert (repo / "unix.txt").read_bytes() == b"one\n$Id$\nthree\n"
    assert (repo / "new.txt").read_bytes() == b"new\n"
    assert (repo / "big.bin").read_bytes() == POINTER


@pytest.mark.parametrize("file_mode", ["true", "false"])
def test_modes_stay_but_for_what_was_changed(repo, file_mode):
    settings(repo, fileMode=file_mode)
    (repo / "unix.txt").chmod(0o640)
    (repo / "dos.txt").chmod(0o755)
    change(repo, **{"unix.txt": Entry(b"1\n"), "dos.txt": Entry(b"1\r\n", 0o100755)})
    modes = [stat.S_IMODE((repo / name).stat().st_mode) for name in ("unix.txt", "dos.txt")]
    assert modes == [0o640, 0o755]
    change(repo, **{"unix.txt": Entry(b"1\n", 0o100755)})
    assert (repo / "unix.txt").stat().st_mode & 0o100


def test_files_are_made_removed_and_become_folders(repo):
    change(
        repo, **{"dos.txt": None, "unix.txt": None, "unix.txt/inner": Entry(b"x\n"), "a/b/c": Entry(b"y\n")}
    )
    assert not (repo / "dos.txt").exists()
    assert (repo / "unix.txt" / "inner").read_bytes() == b"x\n"
    change(repo, **{"a/b/c": None})
    assert not (repo / "a").exists()


def test_a_change_is_made_whole_or_not_at_all_where_the_file_changed_meanwhile(repo):
    before = user_files(repo).files
    new = {"dos.txt": Entry(b"1\n"), "unix.txt": Entry(b"ONE\ntwo\nthree\n"), "new": Entry(b"n\n")}
    (repo / "unix.txt").write_bytes(b"other\n")
    with pytest.raises(UserError, match="does not apply any more"):
        write_back(repo, patch(before, {**before, **new}), new)
    assert user_files(repo).files == {**before, "unix.txt": Entry(b"other\n")}
    (repo / "unix.txt").write_bytes(b"one\ntwo\nthree\nfour\nfive\n")
    write_back(repo, patch(before, {**before, **new}), new)
    assert (repo / "unix.txt").read_bytes() == b"ONE\ntwo\nthree\nfour\nfive\n"


def test_submodules_are_there_and_what_is_absent_is_said(repo, tmp_path):
    other = tmp_path / "other"
    write(other, {"lib.py": b"x = 1\n"})
    git(tmp_path, "init", "-q", str(other))
    git(other, "add", "-A")
    git(other, "commit", "-qm", "start")
    for name in ("here", "gone"):
        git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), name)
    git(repo, "commit", "-qm", "modules")
    git(repo, "submodule", "--quiet", "deinit", "-f", "gone")
    git(repo, "init", "-q", "nested")
    write(repo / "nested", {"x": b"x"})
    found = user_files(repo)
    assert found.files["here/lib.py"] == Entry(b"x = 1\n")
    assert found.absent == (
        "nested/ is a repository of its own: the agent does not see it",
        "the submodule gone is not checked out: the agent does not see it",
    )
    change(repo, **{"here/lib.py": Entry(b"x = 2\n")})
    assert (repo / "here" / "lib.py").read_bytes() == b"x = 2\n"
    assert find_ignored_around(repo, ["here/new.py"]) == frozenset()


def test_what_only_the_person_ignores_is_ignored(repo):
    settings(repo, excludesFile="~/.mine")
    (repo.parent / "home" / ".mine").write_text("*.swp\n")
    (repo / ".git" / "info" / "exclude").write_text("todo.txt\n")
    write(repo, {".gitignore": b"*.log\n!kept.swp\n", "sub/.gitignore": b"y\n", "sub/x": b""})
    asked = ["a.swp", "kept.swp", "todo.txt", "a.log", "b.py", "sub/y"]
    assert find_ignored_around(repo, asked) == {"a.swp", "todo.txt"}
    (repo / ".gitignore").write_text("y\n")
    assert find_ignored_around(repo / "sub", ["z.swp", "y", "w"]) == {"z.swp"}
    (repo / "sub" / ".gitignore").unlink()
    assert find_ignored_around(repo / "sub", ["y", "w"]) == {"y"}


def test_a_repository_that_git_refuses_is_not_taken_whole(repo):
    hidden(repo)
    assert "secret" not in user_files(repo).files
    (repo / ".git" / "index").write_bytes(b"no index")
    with pytest.raises(UserError, match=r"git cannot read this repository: (?:error|fatal): "):
        user_files(repo)


def test_ignore_rules_that_the_repository_names_hold(repo):
    hidden(repo)
    write(repo.parent, {"rules": b"notes\n"})
    write(repo, {"notes": b"mine"})
    git(repo, "config", "core.excludesFile", str(repo.parent / "rules"))
    assert not {"secret", "notes"} & user_files(repo).files.keys()


def test_a_folder_that_is_no_repository_is_taken_whole(repo, tmp_path, monkeypatch):
    write(tmp_path / "plain", {"x": b"1"})
    assert user_files(tmp_path / "plain").files == {"x": Entry(b"1")}
    write(repo, {".gitignore": b"/project/\n", "project/x": b"1"})
    assert user_files(repo / "project").files == {"x": Entry(b"1")}
    # As in a hook of another repository.
    monkeypatch.setenv("GIT_DIR", str(repo / ".git"))
    assert user_files(tmp_path / "plain").files == {"x": Entry(b"1")}


@pytest.mark.parametrize("below", ["", "sub"])
def test_the_command_that_is_said_applies_the_kept_change(repo, tmp_path, below):
    write(repo, {"sub/x": b"1\n"})
    git(repo, "add", "-A")
    before = user_files(repo / below).files
    file = tmp_path / "the change.patch"
    file.write_bytes(patch(before, {**before, "new": Entry(b"n\n")}))
    subprocess.run(apply_command(repo / below, file), shell=True, check=True)
    assert (repo / below / "new").read_bytes() == b"n\n"


def hidden(repo):
    """An ignored file, which only a whole copy of the folder would hold."""
    write(repo, {".gitignore": b"secret\n", "secret": b"key"})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_owner_is_listed_by_git(repo):
    hidden(repo)
    for path in [repo, *repo.rglob("*")]:
        os.chown(path, 12345, 12345)
    assert "secret" not in user_files(repo).files
    assert "secret" not in user_files(repo).files.keys() | find_ignored_around(repo, ["x"])


@pytest.mark.parametrize(
    "damage",
    [
        lambda dot: (dot / "HEAD").unlink(),
        lambda dot: (dot / "HEAD").write_text("nothing"),
        lambda dot: (dot.rename(dot.parent.parent / "away"), dot.write_text("gitdir: /nowhere\n")),
        lambda dot: (dot.rename(dot.parent.parent / "away"), dot.symlink_to("nowhere")),
    ],
)
def test_whatever_git_refuses_is_not_taken_whole(repo, damage):
    hidden(repo)
    damage(repo / ".git")
    with pytest.raises(UserError, match="git cannot read this repository"):
        user_files(repo)


@pytest.mark.parametrize("line", ["bare = true", "worktree = ..", "worktree = /"])
def test_settings_of_the_repository_change_no_list(repo, line):
    hidden(repo)
    before = user_files(repo).files
    (repo / ".git" / "config").write_text(f"[core]\n{line}\n")
    assert user_files(repo).files == before
    git(repo, "--git-dir=.git", "--work-tree=.", "rm", "-qr", "--cached", ".")
    (repo / ".git" / "info" / "exclude").write_text("*\n")
    assert user_files(repo).files == {}


def test_settings_of_a_repository_run_nothing(repo, tmp_path):
    hidden(repo)
    canary = tmp_path / "canary"
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "filter.x.process", "filter.x.clean"):
        git(repo, "config", key, f"touch {canary} #")
    git(repo, "config", "extensions.partialClone", "origin")
    git(repo, "config", "remote.origin.url", f"ext::touch {canary}")
    git(repo, "config", "remote.origin.promisor", "true")
    write(repo, {".gitattributes": b"* filter=x\n"})
    for hook in ("post-index-change", "post-checkout", "fsmonitor-watchman"):
        write(repo, {f".git/hooks/{hook}": f"#!/bin/sh\ntouch {canary}\n".encode()})
        (repo / ".git" / "hooks" / hook).chmod(0o755)
    assert "secret" not in user_files(repo).files
    assert find_ignored_around(repo, ["new"]) == frozenset()
    assert not canary.exists()


def test_files_behind_a_link_are_no_files_of_the_repository(repo, tmp_path):
    write(repo, {"folder/passwd": b"mine\n", "module/x": b"1"})
    git(repo, "add", "-A")
    write(tmp_path / "host", {"passwd": b"of the host\n", "x": b"2"})
    for name in ("folder", "module"):
        shutil.rmtree(repo / name)
        (repo / name).symlink_to(tmp_path / "host")
    assert not {"folder/passwd", "module/x"} & user_files(repo).files.keys()
