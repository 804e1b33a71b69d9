"""Make the reference pages from the code: ``docs/settings.md`` and ``docs/command-reference.md``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from dgm.archive.durable import write_durably
from dgm.cli.commands import COMMANDS
from dgm.config.listing import ListedSetting, list_sections
from dgm.models.providers import all_variables

DOCS = Path(__file__).parent.parent
WIDTH = 100
"""Columns of the help texts."""


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        write_durably(DOCS / name, text.encode())


def pages() -> Mapping[str, str]:
    """Return the text of each page by its file's name."""
    return {"settings.md": "\n".join(_settings()), "command-reference.md": "\n".join(_commands())}


def _settings() -> Iterator[str]:
    yield "# All settings"
    yield ""
    yield "A setting stands in a TOML file under its section, or on the command line as `--set NAME=VALUE`."
    yield 'In Python it is an entry of `settings={"NAME": VALUE}`. `dgm settings PATTERN` prints the same for'
    yield "a part. This page is made by `docs/reference/make_pages.py`."
    for section in list_sections():
        yield ""
        yield f"## `[{section.name}]`" if section.name else "## At the top"
        if section.meaning:
            yield ""
            yield _cell(section.meaning)
        yield ""
        yield from _table(
            ("name", "type", "default", "meaning"),
            [(f"`{one.name}`", one.type, _default(one), one.meaning) for one in section.settings],
        )
    yield ""
    yield "## Environment variables"
    yield ""
    yield from _table(("name", "meaning"), [(f"`{one.name}`", one.meaning) for one in all_variables()])
    yield ""


def _default(setting: ListedSetting) -> str:
    if setting.required:
        return "must be given"
    if setting.default is None:
        return "not set"
    return f"`{json.dumps(setting.default, ensure_ascii=False)}`"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def _commands() -> Iterator[str]:
    yield "# All commands"
    yield ""
    yield "What `--help` prints, command by command; [commands](commands.md) says what each is for."
    yield "This page is made by `docs/reference/make_pages.py`."
    for name, command in COMMANDS.items():
        module, _, attribute = command.target.partition(":")
        yield from _help(getattr(import_module(module), attribute), f"dgm {name}")


def _help(command: click.Command, path: str) -> Iterator[str]:
    settings: dict[str, Any] = {"terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, info_name=path, **settings)
    yield ""
    yield f"## `{path}`"
    yield ""
    yield "```text"
    yield command.get_help(context).rstrip()
    yield "```"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            if part is not None:
                yield from _help(part, f"{path} {name}")


if __name__ == "__main__":
    main()
