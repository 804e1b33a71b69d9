"""A patch of a lineage: a commit for each step, which git takes over byte for byte."""

import pytest

from dgm.analysis.best import best_of
from dgm.archive.run import Run
from dgm.archive.snapshots import from_folder
from dgm.config import Settings
from dgm.domain import SEED, Budget, Entry, Evaluate, TaskId, Verdict
from dgm.errors import UserError
from dgm.export.repositories import write_patch
from dgm.meta.contract import read_contract
from dgm.paths import asset
from dgm.publish.unpacking import unpack
from dgm.show.diffs import Patch
from tests.support.runs.builder import RunBuilder, create_run, make_config
from tests.unit.export.conftest import git

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
    run.checkout(run.tree.agents[0].id, folder)
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
        assert write_patch(run, run.tree.agents[-1], tmp_path / "change.patch") == 2
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
    assert titles[1].startswith("dgm <dgm@localhost> 1700000000 diff --git a/owned")
    body = git(original, "log", "-1", "--format=%b", "HEAD~1")
    assert body.splitlines() == [
        "Agent 1 of the run run, made from agent 0 by self-edit.",
        "",
        "Evaluations resolved: 1 of 1 (95 % interval: 21–100%)",
        f"Commit of the archive: {first}",
        "",
    ]
    assert "From: Eve <eve@example.org>" in " ".join(git(original, "log", "-1", "--format=%b").split())


def test_a_patch_of_a_search_holds_no_file_that_an_agent_may_not_change(tmp_path):
    unpack(asset("archive", "example", "example.dgm"), tmp_path / "run")
    with Run.open(tmp_path / "run") as run:
        agent, contract = run.tree.agents[best_of(run)], read_contract(run.source(SEED))
        write_patch(run, agent, tmp_path / "change.patch")
    paths = {file.path for file in Patch((tmp_path / "change.patch").read_bytes()).files}
    assert paths
    assert [path for path in paths if not contract.may_change(path)] == []


def test_an_agent_with_the_files_of_the_seed_has_nothing_to_propose(lineage_folder, tmp_path):
    with Run.open(lineage_folder) as run, pytest.raises(UserError, match=r"agent 0 .* nothing to propose"):
        write_patch(run, run.tree.agents[0], tmp_path / "change.patch")
    assert list(tmp_path.iterdir()) == []
