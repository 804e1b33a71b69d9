"""Former commands and options: named in one line, or translated with a note."""

import pytest

from dgm.cli.commands import COMMANDS, MOVED, RENAMED, SETTINGS
from dgm.cli.main import _find_command, _translate
from dgm.errors import UserError


def test_former_options_become_settings(capsys):
    words = ["my.toml", "--sandbox", "docker", "--max-hours=8", "--", "--sandbox"]
    assert _translate("run", words) == [
        "my.toml", "--set", "sandbox=docker", "--set", "budget.hours=8", "--", "--sandbox",
    ]  # fmt: skip
    assert capsys.readouterr().err.splitlines() == [
        "note: --sandbox is now --set sandbox=…",
        "note: --max-hours is now --set budget.hours=…",
    ]


def test_words_of_other_commands_stay(capsys):
    assert _translate("status", ["--sandbox", "docker"]) == ["--sandbox", "docker"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", [name for name in MOVED if "--" not in name])
def test_former_commands_name_their_new_form(name):
    with pytest.raises(UserError, match="is now") as caught:
        _find_command(name.split())
    assert MOVED[name] in str(caught.value)


def test_tables_name_commands_of_today():
    assert {*SETTINGS, *RENAMED} <= COMMANDS.keys()
    assert all(key.split(" --")[0] in COMMANDS for key in MOVED if "--" in key)
