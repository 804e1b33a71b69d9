"""The agent that a search starts from: its name, folder or repository, and the commit that it came from."""

import os
import re
import subprocess

import pytest

from dgm.config import Settings, resolve
from dgm.errors import UserError
from dgm.meta.contract import read_contract
from dgm.meta.seeds import (
    freeze_origin,
    load_origin,
    name_of_root,
    read_origin,
    read_seed,
    read_seed_with_origin,
    read_seeds,
    seeds_of,
)
from dgm.paths import seed_names

AGENT = b'[agent]\ncommand = ["a"]\ncheck = ["b"]\n'


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"model": "offline"}, "plain"),
        ({"model": "openai/gpt-6.2-sol"}, "solid"),
        ({"model": "offline", "models": {"solve": "openai/gpt-6.2-sol"}}, "solid"),
        ({"model": "openai/gpt-6.2-sol", "models": {"solve": "offline"}}, "plain"),
        ({"model": "offline", "seed_agent": "solid"}, "solid"),
        ({"model": "openai/gpt-6.2-sol", "seed_agent": "/my/agent"}, "/my/agent"),
    ],
)
def test_the_solve_model_decides_unless_an_agent_is_named(settings, name):
    assert seeds_of(Settings.model_validate(settings)) == (name,)


def test_a_shipped_agent_is_read_by_its_name(tmp_path):
    assert [read_contract(read_seed(name)).actions for name in seed_names()] == ["auto"] * len(seed_names())
    (tmp_path / "solid").mkdir()
    (tmp_path / "mine.toml").write_text('seed_agent = "solid"\n')
    assert resolve(tmp_path / "mine.toml", [], {}).seed_agent == "solid"


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    "where",
    [
        *("ext::sh -c true", "ext::sh -c 'touch {0}/canary'", "fd::17", "EXT::sh", "file::/tmp", "ext://x"),
        *("http://localhost/agent", "ftp://localhost/agent", "solit", "{0}/nowhere", "{0}/inner"),
        *("--upload-pack=touch {0}/canary", "-u touch {0}/canary"),
    ],
)
def test_no_other_address_is_taken_and_none_is_an_option(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "HEAD").write_text("x")
    where = where.format(tmp_path)
    with pytest.raises(
        UserError, match=rf"^{re.escape(where)}: neither a folder nor .*shipped agents: .*plain, .*solid.*$"
    ):
        read_seed(where)
    assert not (tmp_path / "canary").exists()


@pytest.mark.starts_processes
def test_what_is_no_address_is_one_line():
    for where, message in (("a\0b", "null"), ("", "not an agent")):
        with pytest.raises(UserError, match=message):
            read_seed(where)


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit of an agent."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "agent.toml").write_bytes(AGENT)
    (folder / "link").symlink_to("/etc/hostname")
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["commit", "-q", "-m", "one"],
        ["clone", "-q", "--bare", ".", "../bare"],
    ):
        subprocess.run(["git", *words], cwd=folder, env=env, check=True)
    return folder


@pytest.mark.starts_processes
@pytest.mark.parametrize("form", ["{}/mine", "file://{}/mine", "{}/bare", "file://{}/bare"])
def test_a_repository_gives_its_files_and_its_commit(repository, tmp_path, form):
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True
    )
    source, origin = read_seed_with_origin(form.format(tmp_path))
    assert {name: entry.data for name, entry in source.items()} == {
        "agent.toml": AGENT,
        "link": b"/etc/hostname",
    }
    assert (origin.commit, origin.has_parents) == (head.stdout.strip(), False)
    assert load_origin(freeze_origin(origin), "run.json") == origin


@pytest.mark.starts_processes
def test_a_folder_without_a_commit_has_none(tmp_path):
    assert read_origin(tmp_path) is None
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert read_origin(tmp_path) is None
    assert freeze_origin(None) == {}
    assert load_origin({}, "run.json") is None


def make_agents(folder, **contracts):
    for name, more in contracts.items():
        (folder / name).mkdir()
        (folder / name / "agent.toml").write_bytes(AGENT + more.encode())
    return Settings(model="offline", seed_agent=[str(folder / name) for name in contracts])


def test_a_search_may_start_from_several_agents(tmp_path):
    settings = make_agents(tmp_path, a="", b='editor = "solid"\n')
    assert seeds_of(settings) == (str(tmp_path / "a"), str(tmp_path / "b"))
    seeds = read_seeds(settings)
    assert [(name, source["agent.toml"].data, origin) for name, source, origin in seeds] == [
        (str(tmp_path / "a"), AGENT, None),
        (str(tmp_path / "b"), AGENT + b'editor = "solid"\n', None),
    ]
    config = {"settings": settings.model_dump(mode="json"), "seed_agent": str(tmp_path / "a")}
    assert [name_of_root(config, root) for root in range(3)] == [*seeds_of(settings), ""]
    assert name_of_root({"seed_agent": "solid"}, 0) == "solid"


@pytest.mark.parametrize(
    ("contracts", "words"),
    [
        ({"a": "", "b": ""}, "a and .*b are the same agent"),
        ({"a": "", "b": 'requires = ["six"]\n'}, "a and .*b differ in requires, image or npm packages"),
        ({"a": "", "b": 'image = "python"\n'}, "a and .*b differ in requires, image or npm packages"),
        ({"a": 'editor = "solid"\n', "b": 'editor = "plain"\n'}, r"several editors \(plain, solid\)"),
        ({"a": "", "b": "nonsense = 1\n"}, "b: not an agent: .*unknown key 'agent.nonsense'"),
    ],
)
def test_agents_that_cannot_share_a_search_are_refused(tmp_path, contracts, words):
    with pytest.raises(UserError, match=words):
        read_seeds(make_agents(tmp_path, **contracts))
    with pytest.raises(UserError, match="solid and solid are the same agent"):
        read_seeds(Settings(seed_agent=("solid", "solid")))
