"""``dgm settings``: every setting with its type, default and meaning, and the environment variables beside them."""

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json
from dgm.config.listing import ListedSection, ListedSetting, Variable
from dgm.sessions.setting_search import find_matching
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.terminal import write_lines

WIDTH = 100
"""Columns of the text if the output is no terminal."""


@click.command()
@click.argument("pattern", metavar="[PATTERN]", required=False, default="")
@as_json
def settings(pattern: str, as_json: bool) -> None:
    """Print every setting: its name for --set and for a TOML file, type, default and meaning.

    PATTERN is a part of a name, such as limits or usd, or a name with * and ?; where no name has it, the meanings are
    searched. Environment variables that dgm reads are listed below the settings.
    """
    sections, variables = find_matching(pattern)
    if as_json:
        rows = [asdict(setting) for section in sections for setting in section.settings]
        emit_json({"settings": rows, "variables": [variable._asdict() for variable in variables]})
        return
    write_lines(_setting_lines(sections, variables))


def _setting_lines(sections: Sequence[ListedSection], variables: Sequence[Variable]) -> Iterator[Line]:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    for number, section in enumerate(sections):
        if number:
            yield make_line()
        yield make_line(
            Span(f"[{section.name}]" if section.name else "at the top", Tone.STRONG), f"  {section.meaning}"
        )
        for setting in section.settings:
            yield make_line("  ", Span(setting.name, Tone.KEY), f"  {setting.type}, {_default_text(setting)}")
            yield from _wrap_text(setting.meaning, width)
    if variables:
        if sections:
            yield make_line()
        yield make_line(
            Span("environment variables", Tone.STRONG), "  secrets and places; never part of a run's settings"
        )
    for variable in variables:
        yield make_line("  ", Span(variable.name, Tone.KEY))
        yield from _wrap_text(variable.meaning, width)


def _wrap_text(text: str, width: int) -> Iterator[Line]:
    for part in textwrap.wrap(text, max(width - 6, 20), break_on_hyphens=False):
        yield make_line("      ", part)


def _default_text(setting: ListedSetting) -> str:
    if setting.required:
        return "must be given"
    if setting.default is None:
        return "not set"
    if isinstance(setting.default, float):
        return f"default {setting.default:g}"
    return f"default {json.dumps(setting.default, ensure_ascii=False)}"
