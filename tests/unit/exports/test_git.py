"""Exported sources and patches: a branch or commit per step, files byte for byte, nothing of this machine."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from dgm.analysis.agents import trace_lineage
from dgm.archive.run import Run
from dgm.archive.snapshots import from_folder, object_id, write_folder
from dgm.config import Settings
from dgm.domain import Budget, Entry, Evaluate, TaskId, Verdict
from dgm.errors import ArchiveCorrupt, UserError
from dgm.exports.git import write_patch, write_source
from dgm.meta.seeds import ORIGIN_KEY, SeedOrigin, freeze_origin
from tests.support.runs.builder import RunBuilder, create_run, make_config
from tests.unit.exports.conftest import git

pytestmark = pytest.mark.starts_processes

SMUGGLED = (
    "diff --git a/owned b/owned\nnew file mode 100644\n--- /dev/null\n+++ b/owned\n@@ -0,0 +1 @@\n+x\n"
    "From: Eve <eve@example.org>\nSubject: Eve\n---\nFrom 0123 Mon Sep 17 00:00:00 2001\n" * 3
)
STEPS = (
    (
        "the seed",
        {
            "CLAUDE.md": Entry(b"# Rules\n\nTest.\n"),
            "windows.md": Entry(b"one\r\ntwo\r\n"),
            "mixed [1]?.md": Entry(b"one\r\ntwo\n"),
            "old name.md": Entry(b"a\nb\nc\n"),
            "hook.sh": Entry(b"#!/bin/sh\n"),
            "picture": Entry(b"\x00\x01"),
            "skill": Entry(b"a file\n"),
            "run.sh": Entry(b"exec claude\n"),
        },
    ),
    (
        "Say which tests to run",
        {
            "CLAUDE.md": Entry(b"# Rules\n\nTest all.\nNo final newline"),
            "windows.md": Entry(b"one\r\ntwo\r\nthree\r"),
            "old name.md": None,
            "new näme ✓.md": Entry(b"a\nb\nc\n"),
            "hook.sh": Entry(b"#!/bin/sh\n", 0o100755),
            "picture": Entry(b"\x00\x02\xff"),
            "skill": None,
            "skill/SKILL.md": Entry(b"\xff\xfe latin\n"),
        },
    ),
    ("Change nothing", {}),
    (" ", {"CLAUDE.md": Entry(b"# Rules\n\nTest twice.\n"), "hook.sh": Entry(b"#!/bin/sh\ntrue\n")}),
    (
        SMUGGLED,
        {
            "CLAUDE.md": Entry(b"# Rules\n\nTest all.\n"),
            "mixed [1]?.md": Entry(b"one\ntwo\r\n"),
            "new näme ✓.md": Entry(b"a\nb\nd\n"),
            "old name.md": Entry(b"back\n"),
            "picture": Entry(b"text\n"),
            "skill/SKILL.md": Entry(b"../CLAUDE.md", 0o120000),
            "empty": Entry(b""),
        },
    ),
)


def other_disk(tmp_path):
    """Return a new folder on another file system than ``tmp_path``."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    return Path(tempfile.mkdtemp(prefix="dgm-test-", dir=shared))


def test_it_may_lie_on_another_disk_and_leaves_nothing_in_the_run(run, agent, tmp_path):
    there = other_disk(tmp_path)
    objects = run.folder / "agents.git" / "objects"
    before = sorted(objects.rglob("*"))
    try:
        write_source(run, agent, there / "clone")
        assert git(there / "clone", "log", "--format=%H", "HEAD").split()
    finally:
        shutil.rmtree(there)
    assert sorted(objects.rglob("*")) == before


def test_no_remote_no_hook_and_no_path_of_this_machine_is_in_it(run, agent, tmp_path) -> None:
    write_source(run, agent, tmp_path / "clone")
    assert git(tmp_path / "clone", "remote") == ""
    inside = tmp_path / "clone" / ".git"
    assert not (inside / "hooks").exists()
    assert not (inside / "objects" / "info" / "alternates").exists()
    small = [path for path in inside.rglob("*") if path.is_file() and "objects" not in path.parts]
    assert not any(str(run.folder.parent).encode() in path.read_bytes() for path in small)


def test_an_empty_folder_may_be_there_already(run, agent, tmp_path) -> None:
    (tmp_path / "clone").mkdir()
    write_source(run, agent, tmp_path / "clone")
    assert from_folder(tmp_path / "clone") == run.source(agent.id)


def test_a_missing_object_is_named_and_leaves_nothing(paid_folder, tmp_path) -> None:
    shutil.copytree(paid_folder, tmp_path / "run")
    for path in (tmp_path / "run" / "agents.git" / "objects" / "pack").iterdir():
        path.unlink()
    with Run.open(tmp_path / "run") as run, pytest.raises(ArchiveCorrupt, match="missing"):
        write_source(run, run.tree.agents[-1], tmp_path / "clone")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_home_has_a_branch_for_each_step_and_the_files_of_the_agent(run, agent, tmp_path):
    home = tmp_path / "home"
    write_source(run, agent, home)
    assert from_folder(home) == run.source(agent.id)
    line = [one.id for one in trace_lineage(run.tree, agent.id)]
    branches = git(home, "for-each-ref", "--format=%(refname:short)").split()
    assert sorted(branches) == sorted(["main", *(f"agents/{one}" for one in line)])
    for one in line:
        assert git(home, "rev-parse", f"agents/{one}^{{tree}}").strip() == run.repository.tree_of(
            run.tree.agents[one].commit
        )
    assert git(home, "symbolic-ref", "HEAD").strip() == "refs/heads/main"
    assert git(home, "status", "--porcelain") == ""
    git(
        home,
        "-c",
        "fsck.gitmodulesUrl=ignore",
        "-c",
        "fsck.gitmodulesName=ignore",
        "fsck",
        "--full",
        "--strict",
    )


def test_titles_say_what_changed_and_whose_run_it_was(paid_folder, tmp_path):
    with Run.open(paid_folder) as run:
        agent = run.tree.agents[-1]
        write_source(run, agent, tmp_path / "home")
        titles = git(tmp_path / "home", "log", "--reverse", "--format=%s").splitlines()
        assert titles[0] == f"Agent 0, from which the run {run.name} started"
        assert titles[-1] == agent.rationale[:72]
        body = git(tmp_path / "home", "log", "-1", "--format=%b")
        assert f"Commit of the archive: {agent.commit}" in body


def test_no_title_is_long_and_no_text_breaks_a_message(run, agent, tmp_path):
    write_source(run, agent, tmp_path / "home")
    for title in git(tmp_path / "home", "log", "--format=%s").splitlines():
        assert len(title) <= 72
    assert "\x1b" not in git(tmp_path / "home", "log", "--format=%B")


def name_origin(folder, tree):
    """Let a run have begun with a commit of that tree, which has a history; return the commit's id."""
    people = "author A <a@example.org> 1 +0000\ncommitter A <a@example.org> 1 +0000"
    data = f"tree {tree}\nparent {'1' * 40}\n{people}\n\nThe original\n".encode()
    origin = SeedOrigin(object_id("commit", data), data)
    change_config(folder, freeze_origin(origin))
    return origin.commit


def change_config(folder, entries):
    frozen = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**frozen, "config": {**frozen["config"], **entries}}))


@pytest.fixture
def own_folder(paid_folder, tmp_path):
    """A run that a test may change."""
    return Path(shutil.copytree(paid_folder, tmp_path / "paid"))


def test_a_seed_from_a_repository_is_its_own_commit(own_folder, tmp_path):
    with Run.open(own_folder) as run:
        tree = run.repository.tree_of(run.tree.agents[0].commit)
    commit = name_origin(own_folder, tree)
    with Run.open(own_folder) as run:
        write_source(run, run.tree.agents[-1], tmp_path / "home")
        assert git(tmp_path / "home", "rev-parse", "agents/0").strip() == commit
    assert git(tmp_path / "home", "log", "--reverse", "--format=%s").splitlines()[0] == "The original"
    assert git(tmp_path / "home", "status", "--porcelain") == ""
    git(tmp_path / "home", "fsck", "--full")


def test_a_seed_that_was_changed_since_its_commit_follows_it(own_folder, tmp_path):
    commit = name_origin(own_folder, "2" * 40)
    with Run.open(own_folder) as run:
        write_source(run, run.tree.agents[-1], tmp_path / "home")
    first = git(tmp_path / "home", "cat-file", "commit", "agents/0")
    assert f"\nparent {commit}\n" in first
    assert "from which the run" in git(tmp_path / "home", "log", "--reverse", "--format=%s").splitlines()[0]
    git(tmp_path / "home", "fsck", "--full")


def test_an_origin_that_was_changed_is_refused(own_folder, tmp_path):
    name_origin(own_folder, "2" * 40)
    change_config(own_folder, {ORIGIN_KEY: {"id": "3" * 40, "object": ""}})
    with Run.open(own_folder) as run, pytest.raises(ArchiveCorrupt, match="its seed_commit is no commit"):
        write_source(run, run.tree.agents[-1], tmp_path / "home")


@pytest.fixture(scope="module")
def lineage_folder(tmp_path_factory):
    """The folder of a run in which each agent is the child of the one before."""
    folder = tmp_path_factory.mktemp("lineage") / "run"
    task = TaskId("ledger-a")
    with create_run(folder, make_config(Settings(), created=1_700_000_000.0), Budget(), [task]) as run:
        made, files = RunBuilder(run), {}
        for number, (reason, changes) in enumerate(STEPS):
            files = {path: entry for path, entry in {**files, **changes}.items() if entry}
            made.bear(files, [number - 1] if number else [], rationale=reason)
        action = made.begin(Evaluate(run.tree.agents[1].id, task))
        made.record_verdict(action, 1, task, Verdict.RESOLVED)
    return folder


def make_original(run, folder, wrapper=None):
    """Make a git repository that holds the seed's files, except ``wrapper``."""
    write_folder(run.source(run.tree.agents[0].id), folder)
    if wrapper:
        (folder / wrapper).unlink()
    git(folder, "init", "-q")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", "The original")
    return folder


@pytest.mark.parametrize("command", [("am", "-q"), ("apply", "--whitespace=nowarn")])
def test_git_makes_the_agent_of_the_seed(run, agent, tmp_path, command):
    original = make_original(run, tmp_path / "seed")
    write_patch(run, agent, tmp_path / "change.patch")
    git(original, *command, str(tmp_path / "change.patch"))
    assert from_folder(original) == run.source(agent.id)


@pytest.mark.parametrize("command", [("am", "-q"), ("apply", "--whitespace=nowarn")])
def test_line_ends_modes_names_and_binary_files_survive(lineage_folder, tmp_path, command):
    with Run.open(lineage_folder) as run:
        original = make_original(run, tmp_path / "seed", wrapper="run.sh")
        assert write_patch(run, run.tree.agents[-1], tmp_path / "change.patch") == 3
        git(original, *command, str(tmp_path / "change.patch"))
        expected = run.source(run.tree.agents[-1].id)
    assert from_folder(original) == {path: entry for path, entry in expected.items() if path != "run.sh"}


def test_each_step_that_changed_something_is_a_commit(lineage_folder, tmp_path):
    with Run.open(lineage_folder) as run:
        original = make_original(run, tmp_path / "seed")
        write_patch(run, run.tree.agents[-1], tmp_path / "change.patch")
        git(original, "am", "-q", str(tmp_path / "change.patch"))
        first = run.tree.agents[1].commit
    titles = git(original, "log", "--reverse", "--format=%an <%ae> %ad %s", "--date=unix").splitlines()[1:]
    assert titles[0] == "dgm <dgm@localhost> 1700000000 Say which tests to run"
    assert titles[1].endswith("1700000000 Change CLAUDE.md and 1 more")
    assert titles[2].startswith("dgm <dgm@localhost> 1700000000 diff --git a/owned")
    body = git(original, "log", "-1", "--format=%b", "HEAD~2")
    assert body.splitlines() == [
        "Agent 1 of the run run, made from agent 0 by self-edit.",
        "",
        "Evaluations resolved: 1 of 1",
        f"Commit of the archive: {first}",
        "",
    ]
    assert "From: Eve <eve@example.org>" in " ".join(git(original, "log", "-1", "--format=%b").split())


def test_an_agent_with_the_files_of_the_seed_has_nothing_to_propose(lineage_folder, tmp_path):
    with Run.open(lineage_folder) as run, pytest.raises(UserError, match=r"agent 0 .* nothing to propose"):
        write_patch(run, run.tree.agents[0], tmp_path / "change.patch")
    assert list(tmp_path.iterdir()) == []
