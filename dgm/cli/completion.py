"""``dgm completion``: the shell script that completes commands, options, runs, agents and settings."""

import sys
from pathlib import Path

import click

from dgm.cli.outline import read_outline

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    r"""Print a script that lets SHELL complete commands, options, runs, agents, settings and their values.

    \b
    bash: add to ~/.bashrc                eval "$(dgm completion bash)"
    zsh:  add to ~/.zshrc, after compinit eval "$(dgm completion zsh)"
    fish: dgm completion fish > ~/.config/fish/completions/dgm.fish
    """
    # Do the slow work now, so that the first Tab is fast.
    read_outline()
    script = Path(__file__).with_name("shells") / f"dgm.{shell}"
    sys.stdout.write(script.read_text(encoding="utf-8"))
