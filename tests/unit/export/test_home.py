"""An agent taken home: a repository of its lineage, a patch that applies to the seed, and a text for a pull request."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dgm.analysis.lineage import Lineage
from dgm.archive.objects import object_id
from dgm.archive.run import Run
from dgm.archive.snapshots import from_folder
from dgm.errors import ArchiveCorrupt, UserError
from dgm.export.home import changed_files, commit_message, write_home, write_patch, write_request
from dgm.meta.seed_origin import KEY, SeedOrigin, freeze_origin

pytestmark = pytest.mark.starts_processes


def git(folder, *words):
    """What git prints, with the settings of whoever runs the tests out of the way."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def agent(run):
    """The youngest agent."""
    return run.tree.agents[-1]


def test_it_has_a_branch_for_each_step_and_the_files_of_the_agent(run, agent, tmp_path):
    home = tmp_path / "home"
    write_home(run, agent, home)
    assert from_folder(home) == run.source(agent.id)
    line = [one.id for one in Lineage(run.tree, agent.id).agents]
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
        write_home(run, agent, tmp_path / "home")
        titles = git(tmp_path / "home", "log", "--reverse", "--format=%s").splitlines()
        assert titles[0] == f"Agent 0, from which the run {run.name} started"
        assert titles[-1] == agent.rationale[:72]
        body = git(tmp_path / "home", "log", "-1", "--format=%b")
        assert f"Commit {agent.commit} of the archive." in body


def test_a_step_whose_maker_said_nothing_names_its_files(paid_folder):
    with Run.open(paid_folder) as run:
        step = list(Lineage(run.tree, run.tree.agents[-1].id).steps(run))[-1]
        silent = replace(step, agent=replace(step.agent, rationale=" "))
        first, *others = changed_files(step.patch)
        more = f" and {len(others)} more" if others else ""
        assert commit_message(run, silent).splitlines()[0] == f"Change {first}{more}"


def test_no_title_is_long_and_no_text_breaks_a_message(run, agent, tmp_path):
    write_home(run, agent, tmp_path / "home")
    for title in git(tmp_path / "home", "log", "--format=%s").splitlines():
        assert len(title) <= 72
    assert "\x1b" not in git(tmp_path / "home", "log", "--format=%B")


def test_the_patch_makes_the_agent_of_the_seed(run, agent, tmp_path):
    seed = tmp_path / "seed"
    run.checkout(run.tree.agents[0].id, seed)
    write_patch(run, agent, tmp_path / "change.patch")
    if (tmp_path / "change.patch").read_bytes():
        git(seed, "init", "-q")
        git(seed, "apply", "--whitespace=nowarn", str(tmp_path / "change.patch"))
    assert from_folder(seed) == run.source(agent.id)


def test_the_text_names_each_step_and_its_files(paid_folder, tmp_path):
    with Run.open(paid_folder) as run:
        agent = run.tree.agents[-1]
        write_request(run, agent, tmp_path / "pr.md")
        text = (tmp_path / "pr.md").read_text()
        for one in Lineage(run.tree, agent.id).agents[1:]:
            assert f"- {one.rationale} (`" in text
        assert "they flatter it" in text


def test_no_markup_of_an_agent_is_in_the_text(hostile_folder, tmp_path):
    with Run.open(hostile_folder) as run:
        write_request(run, run.tree.agents[-1], tmp_path / "pr.md")
    text = (tmp_path / "pr.md").read_text()
    assert "\x1b" not in text
    assert "<" not in re.sub("`[^`\n]*`", "", text)


def test_the_seed_itself_has_nothing_to_propose(run, tmp_path):
    write_request(run, run.tree.agents[0], tmp_path / "pr.md")
    assert "Nothing: this is the agent from which the run started." in (tmp_path / "pr.md").read_text()


@pytest.mark.parametrize("write", [write_home, write_patch, write_request])
def test_nothing_is_written_over(run, agent, tmp_path, write):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("")
    with pytest.raises(UserError, match="already exists"):
        write(run, agent, tmp_path / "there")


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
        write_home(run, run.tree.agents[-1], tmp_path / "home")
        assert git(tmp_path / "home", "rev-parse", "agents/0").strip() == commit
    assert git(tmp_path / "home", "log", "--reverse", "--format=%s").splitlines()[0] == "The original"
    assert git(tmp_path / "home", "status", "--porcelain") == ""
    git(tmp_path / "home", "fsck", "--full")


def test_a_seed_that_was_changed_since_its_commit_follows_it(own_folder, tmp_path):
    commit = name_origin(own_folder, "2" * 40)
    with Run.open(own_folder) as run:
        write_home(run, run.tree.agents[-1], tmp_path / "home")
    first = git(tmp_path / "home", "cat-file", "commit", "agents/0")
    assert f"\nparent {commit}\n" in first
    assert "from which the run" in git(tmp_path / "home", "log", "--reverse", "--format=%s").splitlines()[0]
    git(tmp_path / "home", "fsck", "--full")


def test_an_origin_that_was_changed_is_refused(own_folder, tmp_path):
    name_origin(own_folder, "2" * 40)
    change_config(own_folder, {KEY: {"id": "3" * 40, "object": ""}})
    with Run.open(own_folder) as run, pytest.raises(ArchiveCorrupt, match="its seed_commit is no commit"):
        write_home(run, run.tree.agents[-1], tmp_path / "home")
