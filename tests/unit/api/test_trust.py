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
    models = {"prices": {"openai-compatible/m": {"input": 1, "output": 1}}}
    providers = {"openai-compatible": COMPATIBLE}
    settings = Settings.model_validate(
        {"model": "openai-compatible/m", "models": models, "providers": providers, "sandbox": "bubblewrap"}
    )
    return make_run(tmp_path / "archive" / "foreign", settings, ["+-", "++"], reason="")


def calls():
    """Ways to let the run's model be asked."""
    return {
        "resume": lambda run: run.resume(max_evaluations=9),
        "evaluate": lambda run: dgm.evaluate(run.agents[0], split="search"),
        "solve": lambda run: dgm.solve(run.agents[0], ".", "mend it"),
        "half": lambda run: run.resume(
            settings={"providers.openai-compatible.base_url": "http://127.0.0.1:9/mine"}
        ),
    }


@pytest.mark.parametrize("call", calls())
def test_a_strangers_run_is_not_used_unasked(foreign, call):
    with dgm.open("foreign") as run, pytest.raises(ConsentNeeded) as told:
        calls()[call](run)
    assert "key_env = WALLS_TOKEN" in str(told.value)
    assert "call agree() of this error" in str(told.value)
    assert "\n" not in str(told.value)


def test_what_an_error_asks_for_is_given_by_it(foreign):
    with dgm.open("foreign") as run:
        with pytest.raises(ConsentNeeded) as told:
            run.resume(max_evaluations=9)
        told.value.agree()
        with pytest.raises(DgmError) as after:
            run.resume(max_evaluations=9)
    assert not isinstance(after.value, ConsentNeeded)


@pytest.mark.parametrize("call", ["resume", "evaluate", "solve"])
def test_a_yes_holds_until_the_run_names_something_else(foreign, call):
    assert len(dgm.trust("foreign")) == 2
    with dgm.open("foreign") as run, pytest.raises(DgmError) as told:
        calls()[call](run)
    assert not isinstance(told.value, ConsentNeeded)
    file = foreign / "run.json"
    changed = json.loads(file.read_text())
    changed["config"]["settings"]["providers"]["openai-compatible"]["key_env"] = "HOME"
    file.write_text(json.dumps(changed))
    with dgm.open("foreign") as run, pytest.raises(ConsentNeeded, match="key_env = HOME"):
        calls()[call](run)


@pytest.mark.parametrize(
    "words",
    [
        ("resume", "foreign"),
        ("evaluate", "foreign:0", "--split", "search"),
        ("solve", "foreign:0", ".", "mend it"),
        ("replay", "foreign", "--what", "evaluations", "--live", "openai-compatible/m"),
    ],
)
def test_off_a_terminal_a_command_ends_with_the_one_that_says_yes(foreign, capsys, words):
    with pytest.raises(SystemExit) as ended:
        main([*words])
    told = capsys.readouterr().err
    assert (ended.value.code, told.count("\n")) == (2, 1)
    assert told.endswith("if you agree, add --trust\n")


def test_names_of_neither_are_told(foreign):
    with pytest.raises(DgmError, match="no run 'nothing'"):
        dgm.trust("nothing")
    with pytest.raises(DgmError, match="there is no suite 'foreign'"):
        dgm.trust("foreign", network=True)
    assert dgm.trust("starter") == []


SETTINGS = """model = "openai-compatible/m"
benchmark = "nothing"
[providers.openai-compatible]
{lines}
[models.prices."openai-compatible/m"]
input = 1
output = 1
"""
SENDS = 'base_url = "http://127.0.0.1:9/v1"\nkey_env = "WALLS_TOKEN"'


@pytest.fixture
def settings_files(tmp_path, monkeypatch):
    """A writer of a file of settings in a folder of another person's."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("WALLS_TOKEN", "canary")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)

    def write(lines):
        (tmp_path / "theirs.toml").write_text(SETTINGS.format(lines=lines))

    return write


USES = [
    ("run", "theirs.toml"),
    ("run", "theirs.toml", "--set", "providers.openai-compatible.tries=2"),
    ("run", "theirs.toml", "--seeds", "1:3"),
]


def end_of(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*words])
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize("words", USES)
def test_a_file_that_sends_a_key_to_its_address_is_asked_about_once(settings_files, capsys, words):
    settings_files(SENDS)
    code, told = end_of(words, capsys)
    assert (code, told.count("\n")) == (2, 1)
    assert told.startswith(f"dgm: {words[1]}: would send a key to an address of its own: ")
    assert told.endswith("if you agree, add --trust\n")
    assert "nothing" in end_of([*words, "--trust"], capsys)[1]
    assert "nothing" in end_of(words, capsys)[1]
    settings_files(SENDS.replace(":9/", ":9/more/"))
    assert "--trust" in end_of(words, capsys)[1]


def test_a_program_that_names_the_file_is_told_too(settings_files):
    settings_files(SENDS)
    with pytest.raises(ConsentNeeded, match=r"call agree\(\)"):
        dgm.evolve("theirs.toml")
    with pytest.raises(DgmError) as told:
        dgm.evolve("theirs.toml", settings={"providers.openai-compatible.base_url": "http://127.0.0.1:9/mine",
                                                   "providers.openai-compatible.key_env": "MINE"})  # fmt: skip
    assert not isinstance(told.value, ConsentNeeded)
