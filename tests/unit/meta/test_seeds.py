"""Which agent a search starts from."""

import pytest

from dgm.config import Settings, resolve
from dgm.errors import UserError
from dgm.meta.contract import read_contract
from dgm.meta.seeds import read_seed, seed_of
from dgm.paths import SEEDS


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
    assert seed_of(Settings.model_validate(settings)) == name


@pytest.mark.parametrize("name", SEEDS)
def test_a_shipped_agent_is_read_by_its_name(name):
    assert read_contract(read_seed(name)).actions == "auto"


def test_shipped_names_win_over_folders_of_the_same_name(tmp_path):
    (tmp_path / "solid").mkdir()
    (tmp_path / "mine.toml").write_text('seed_agent = "solid"\n')
    assert resolve(tmp_path / "mine.toml", [], {}).seed_agent == "solid"


@pytest.mark.starts_processes
def test_a_wrong_name_lists_the_shipped_agents():
    with pytest.raises(UserError, match=r"solit: neither a folder nor a git repository .*plain and solid"):
        read_seed("solit")
