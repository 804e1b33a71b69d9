"""``--engine`` names the engine for one command."""

import os
from collections.abc import Iterator
from importlib import import_module

import click
import pytest

from dgm.cli.arguments import engine_option
from dgm.cli.commands import COMMANDS
from dgm.cli.invoking import invoke_command
from dgm.errors import UserError
from dgm.sandboxes.engine_address import resolve_address, resolve_addresses


@click.command()
@engine_option
def look() -> int:
    """End with 0 if the address is the one that the tests give."""
    return 0 if str(resolve_address()) == "ssh://me@far (--engine)" else 1


@pytest.mark.parametrize("before", [None, "unix:///before.sock"])
def test_the_address_holds_until_the_command_ends(before, monkeypatch):
    monkeypatch.delenv("DGM_ENGINE", raising=False)
    if before:
        monkeypatch.setenv("DGM_ENGINE", before)
    assert invoke_command(look, ["--engine", "ssh://me@far"], "dgm look") == 0
    assert os.environ.get("DGM_ENGINE") == before
    assert invoke_command(look, [], "dgm look") == 1


@pytest.mark.parametrize("address", ["far", ""])
def test_what_is_no_address_is_refused_by_the_name_of_the_option(address):
    with pytest.raises(UserError, match=rf"^--engine={address}: begin with unix://"):
        invoke_command(look, ["--engine", address], "dgm look")


def test_the_option_may_be_given_several_times():
    seen = []

    @click.command()
    @engine_option
    def note() -> None:
        seen.append([address.url for address in resolve_addresses()])

    words = ["--engine", "ssh://a,ssh://b", "--engine", "tcp://c:1"]
    assert not invoke_command(note, words, "dgm look")
    assert seen == [["ssh://a", "ssh://b", "tcp://c:1"]]


def commands_below(command: click.Command) -> Iterator[click.Command]:
    if not isinstance(command, click.Command):
        return  # derived from a function
    yield command
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from commands_below(inner)


def test_every_command_that_takes_a_sandbox_takes_an_engine():
    found = []
    for spec in COMMANDS.values():
        module, _, name = spec.target.partition(":")
        target = getattr(import_module(module), name)
        for command in commands_below(target) if isinstance(target, click.Command) else ():
            flags = {flag for parameter in command.params for flag in parameter.opts}
            if "--sandbox" in flags:
                found.append(command.name)
                assert "--engine" in flags, command.name
    assert {"run", "evaluate", "solve", "verify", "lineage"} <= set(found)
