"""``--engine`` names the engine for one command."""

import os

import click
import pytest

from dgm.cli.arguments import engine_option
from dgm.cli.invoking import invoke_command
from dgm.errors import UserError


@click.command()
@engine_option
def look() -> int:
    """End with 0 if the address is the one that the tests give."""
    return 0 if os.environ.get("DGM_ENGINE") == "ssh://me@far" else 1


@pytest.mark.parametrize("before", [None, "unix:///before.sock"])
def test_the_address_holds_until_the_command_ends(before, monkeypatch):
    monkeypatch.delenv("DGM_ENGINE", raising=False)
    if before:
        monkeypatch.setenv("DGM_ENGINE", before)
    assert invoke_command(look, ["--engine", "ssh://me@far"], "dgm look") == 0
    assert os.environ.get("DGM_ENGINE") == before
    assert invoke_command(look, [], "dgm look") == 1


def test_what_is_no_address_is_refused_by_the_name_of_the_option():
    with pytest.raises(UserError, match=r"^--engine=far: begin with unix://"):
        invoke_command(look, ["--engine", "far"], "dgm look")
