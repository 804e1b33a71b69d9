"""Exercises from a git repository: fetched once by commit, whole or not at all."""

import subprocess

import pytest

from dgm.benchmarks.polyglot import exercises_folder, is_address
from dgm.errors import Infrastructure, UserError

pytestmark = pytest.mark.starts_processes


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def upstream(tmp_path):
    """A repository with two commits, and a hook that must not run here."""
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for text in ("old", "new"):
        (folder / "file").write_text(text)
        git(folder, "add", "file")
        git(folder, "commit", "-q", "-m", text)
    git(folder, "tag", "v1", "HEAD~1")
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dgm" / "polyglot"


def test_what_is_an_address(tmp_path):
    assert is_address("https://example.org/a/b.git")
    assert is_address("git@example.org:a/b.git")
    assert is_address("https://example.org/a/b@v1")
    assert not is_address("some/folder")
    assert not is_address(str(tmp_path))
    assert not is_address("~/exercises@home")


def test_default_branch_tag_and_commit(upstream):
    url = upstream.as_uri()
    old = git(upstream, "rev-parse", "HEAD~1")
    assert (exercises_folder(url) / "file").read_text() == "new"
    assert (exercises_folder(f"{url}@v1") / "file").read_text() == "old"
    assert (exercises_folder(f"{url}@{old}") / "file").read_text() == "old"
    assert exercises_folder(f"{url}@v1") == exercises_folder(f"{url}@{old}")


def test_what_was_fetched_needs_nobody_any_more(upstream):
    url = upstream.as_uri()
    first = exercises_folder(url)
    upstream.rename(upstream.with_name("gone"))
    assert exercises_folder(url) == first
    with pytest.raises(Infrastructure, match="polyglot: git: "):
        exercises_folder(f"{url}@{'0' * 40}")


def test_a_fetch_that_was_cut_off_is_done_again(upstream, cache):
    url = upstream.as_uri()
    with pytest.raises(Infrastructure):
        exercises_folder(f"{url}@{'0' * 40}")
    assert not list(cache.glob("*/half-*"))
    half = next(cache.glob("*")) / "half-left"
    half.mkdir()
    assert (exercises_folder(url) / "file").read_text() == "new"


def test_an_unknown_revision_is_told(upstream):
    with pytest.raises(UserError, match="@v9: no such branch or tag"):
        exercises_folder(f"{upstream.as_uri()}@v9")


def test_helpers_of_git_that_run_programs_are_no_address(tmp_path):
    source = f"ext::sh -c touch% {tmp_path}/ran"
    assert not is_address(source)
    exercises_folder(source)
    assert not (tmp_path / "ran").exists()


def test_hooks_of_a_template_do_not_run(upstream, tmp_path, monkeypatch):
    hooks = tmp_path / "template" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (hooks / "post-checkout").chmod(0o755)
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(hooks.parent))
    assert exercises_folder(upstream.as_uri()).is_dir()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "other",
    ["refs/remotes/origin/HEAD", "refs/remotes/origin/v1", "refs/other/refs/tags/v1", "refs/tags/x/v1"],
)
def test_a_revision_is_no_other_name_that_ends_like_it(upstream, other):
    git(upstream, "update-ref", other, git(upstream, "commit-tree", "-m", "stray", "HEAD^{tree}"))
    revision = other.rpartition("/")[2]
    folder = exercises_folder(f"{upstream.as_uri()}@{revision}")
    assert folder.name == git(upstream, "rev-parse", "HEAD" if revision == "HEAD" else "v1")


def test_a_tag_goes_before_a_branch_of_its_name(upstream):
    git(upstream, "branch", "v1")
    git(upstream, "branch", "v2")
    git(upstream, "tag", "-a", "-m", "two", "v2", "HEAD~1")
    old = git(upstream, "rev-parse", "HEAD~1")
    assert exercises_folder(f"{upstream.as_uri()}@v1").name == old
    assert exercises_folder(f"{upstream.as_uri()}@v2").name == old
