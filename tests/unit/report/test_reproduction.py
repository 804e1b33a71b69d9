"""The command that a report prints gives the same settings again."""

import shlex

import pytest
from cyclopts import App, Parameter
from hypothesis import given
from hypothesis import strategies as st

from dgm.api.search import settings_of_arguments
from dgm.cli.run import run
from dgm.config import Settings, resolve
from dgm.domain import AgentId
from dgm.views.report import read_reproduction, run_command_text


def resolved(line: str) -> Settings:
    """The settings that ``dgm run`` would take from a command, by its own parser."""
    program, name, *words = shlex.split(line)
    assert (program, name) == ("dgm", "run")
    app = App(default_command=run, version_flags=[], default_parameter=Parameter(negative=()))
    _, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    options = {key: value for key, value in bound.arguments.items() if value is not None}
    assignments = options.pop("settings", None) or []
    return resolve(None, assignments, settings_of_arguments(**options))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"model": "openai/x", "seed": 7, "workers": 9, "budget": {"usd": 2.5, "hours": 1.5, "agents": 8}},
        {
            "benchmark": "./my suite's",
            "seed_agent": "/a b/$c",
            "sandbox": "docker",
            "operator": "self-edit+module",
        },
        {"seed_agent": ["plain", "/a b/$c"]},
        {"policy": {"name": "lineage", "alpha": 0.7, "gate": "hgm"}},
        {"budget": {"until_score": 0.62, "patience": 40, "confirm_above_usd": 5.0}},
        {"operator": "self-edit+module", "operators": {"weights": {"self-edit": 2.0, "module": 0.5}}},
        {
            "models": {"solve": 'a "quoted" \\ name'},
            "providers": {"mine": {"kind": "openai", "base_url": "http://h/v1", "stream": False}},
        },
        {"models": {"prices": {"openai/gpt 1.5": {"input": 1.0, "output": 2.0, "cached_input": 0.1}}}},
        {"models": {"improve": [{"model": "openai/a", "weight": 2.0}, {"model": "b", "weight": 1.0}]}},
        {"benchmarks": {"polyglot": {"languages": ["go", "rust"], "attempts": 2}}},
        {"benchmarks": {"swebench": {"images": {"*": "img:1", "a/b.c": "x"}}}},
        {"vetting": {"probes": 0, "syntax": False}, "gates": {"approve": True, "approve_s": 60.0}},
    ],
)
def test_the_command_gives_the_settings_again(given) -> None:
    settings = Settings.model_validate(given)
    assert resolved(run_command_text({"settings": settings.model_dump(mode="json")})) == settings


@pytest.mark.slow
@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(lambda text: text[0] != "-")
)
def test_any_name_is_quoted(name: str) -> None:
    settings = Settings.model_validate({"benchmark": name, "models": {"solve": name}})
    assert resolved(run_command_text({"settings": settings.model_dump(mode="json")})) == settings


def test_what_is_as_by_default_is_left_out_but_for_what_may_change() -> None:
    settings = Settings(model="offline", providers={"openai": {"tries": 3}})
    words = run_command_text({"settings": settings.model_dump(mode="json")})
    assert words == "dgm run --benchmark starter --model offline --seed 0 --set providers.openai.tries=3"


@pytest.mark.starts_processes
def test_commits_versions_and_sessions_stand_beside_it(paid) -> None:
    found = read_reproduction(paid.run, AgentId(2))
    agents = paid.run.tree.agents
    assert found.commits == {0: agents[0].commit, 2: agents[2].commit}
    assert (found.sessions, found.seed, found.sandbox) == (1, 0, "bubblewrap")
    assert found.versions == {"benchmark": "1"}
    assert found.replays[1] == "dgm replay paid 2 --what lineage"
