"""The commit that a seed came from."""

import os
import subprocess

import pytest

from dgm.meta.seed_origin import freeze_origin, load_origin, read_origin
from dgm.meta.seeds import read_seed_with_origin

AGENT = '[agent]\ncommand = ["a"]\ncheck = ["b"]\n'


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit of an agent."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "agent.toml").write_text(AGENT)
    who = {f"GIT_{one}_{what}": "a@b" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        subprocess.run(["git", *words], cwd=folder, env=env, check=True)
    return folder


def head_of(folder):
    said = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
    )
    return said.stdout.strip()


@pytest.mark.starts_processes
def test_it_is_kept_and_read_back(repository):
    source, origin = read_seed_with_origin(str(repository))
    assert (set(source), origin.commit, origin.has_parents) == ({"agent.toml"}, head_of(repository), False)
    assert load_origin(freeze_origin(origin), "run.json") == origin


@pytest.mark.starts_processes
def test_a_clone_has_it_too(repository):
    assert read_seed_with_origin(f"file://{repository}")[1].commit == head_of(repository)


def test_a_folder_that_is_no_repository_has_none(tmp_path):
    assert read_origin(tmp_path) is None
    assert freeze_origin(None) == {}
    assert load_origin({}, "run.json") is None


@pytest.mark.starts_processes
def test_a_repository_without_a_commit_has_none(tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert read_origin(tmp_path) is None
