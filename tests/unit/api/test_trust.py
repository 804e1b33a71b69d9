"""A run that names addresses of its own is used after a yes; whoever made it here has given one."""

import json

import pytest

import dgm
from dgm.cli.main import main
from dgm.config import Settings
from dgm.consents import ConsentNeeded
from dgm.errors import DgmError
from tests.support.runs.made import make_run

pytestmark = pytest.mark.starts_processes
COMPATIBLE = {"base_url": "http://127.0.0.1:9/v1", "key_env": "WALLS_TOKEN", "tries": 1}


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """A run of another person's."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("WALLS_TOKEN", "canary")
    monkeypatch.chdir(tmp_path)
    models = {"compatible": COMPATIBLE, "prices": {"openai-compatible/m": {"input": 1, "output": 1}}}
    settings = Settings.model_validate(
        {"model": "openai-compatible/m", "models": models, "sandbox": "bubblewrap"}
    )
    return make_run(tmp_path / "archive" / "foreign", settings, ["+-", "++"], reason="")


def calls():
    """Ways to let the run's model be asked."""
    return {
        "resume": lambda run: run.resume(budget=dgm.Budget(evaluations=9)),
        "evaluate": lambda run: dgm.evaluate(run.agents[0], split="search"),
        "solve": lambda run: dgm.solve(run.agents[0], ".", "mend it"),
        "half": lambda run: run.resume(settings={"models.compatible.base_url": "http://127.0.0.1:9/mine"}),
    }


@pytest.mark.parametrize("call", calls())
def test_a_strangers_run_is_not_used_unasked(foreign, call):
    with dgm.open("foreign") as run, pytest.raises(ConsentNeeded) as told:
        calls()[call](run)
    assert "key_env = WALLS_TOKEN" in str(told.value)
    assert str(told.value).endswith(f'say: dgm.trust("{foreign}")')
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("call", ["resume", "evaluate", "solve"])
def test_a_yes_holds_until_the_run_names_something_else(foreign, call):
    assert len(dgm.trust("foreign")) == 2
    with dgm.open("foreign") as run, pytest.raises(DgmError) as told:
        calls()[call](run)
    assert not isinstance(told.value, ConsentNeeded)
    file = foreign / "run.json"
    changed = json.loads(file.read_text())
    changed["config"]["settings"]["models"]["compatible"]["key_env"] = "HOME"
    file.write_text(json.dumps(changed))
    with dgm.open("foreign") as run, pytest.raises(ConsentNeeded, match="key_env = HOME"):
        calls()[call](run)


@pytest.mark.parametrize(
    "words",
    [
        ("resume", "foreign"),
        ("evaluate", "foreign", "0", "--split", "search"),
        ("solve", "--agent", "foreign:0", "--repo", ".", "mend it"),
        ("replay", "foreign", "evaluations", "--live", "openai-compatible/m"),
    ],
)
def test_off_a_terminal_a_command_ends_with_the_one_that_says_yes(foreign, capsys, words):
    with pytest.raises(SystemExit) as ended:
        main([*words])
    told = capsys.readouterr().err
    assert (ended.value.code, told.count("\n")) == (2, 1)
    assert f"if you agree, say: dgm trust {foreign}\n" in told


def test_names_of_neither_are_told(foreign):
    with pytest.raises(DgmError, match="no run 'nothing'"):
        dgm.trust("nothing")
    with pytest.raises(DgmError, match="there is no suite 'foreign'"):
        dgm.trust("foreign", network=True)
    assert dgm.trust("starter") == []
