"""Answers to a shell that completes a command line: a row per candidate, ``kind TAB value TAB help``; never an error.

click finds out which word is asked for (options, their values, arguments, commands). The words themselves come from
``find_candidates``. Kinds: ``plain``, ``part`` (more follows without a blank), ``file`` and ``dir`` (the shell's own).
"""

import contextlib
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from dgm.cli.candidates import CompletionQuery, find_candidates, parameter_kind
from dgm.cli.invoking import HELP_NAMES
from dgm.cli.outline import Outline, read_outline

SHELL, LINE, BREAKS = "_DGM_COMPLETE", "DGM_LINE", "DGM_BREAKS"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_UNFIT = re.compile(r"[\x00-\x1f\x7f]")


def answer_completion(environment: Mapping[str, str] = os.environ) -> int:
    """Print the candidates for the line in the environment; on any error, print none."""
    # An interrupt counts as an error too: a shell may end a completion that it no longer wants.
    with contextlib.suppress(BaseException), open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
        with contextlib.redirect_stderr(nowhere):
            rows = complete_line(environment.get(LINE, ""), read_outline())
        breaks = environment.get(BREAKS, "") if environment.get(SHELL) == "bash" else ""
        cut = _count_split_off(_last_word(environment.get(LINE, "")), breaks)
        for kind, value, words in rows:
            shown = value[cut:] if kind in ("plain", "part") else value
            sys.stdout.write(f"{kind}\t{shown}\t{words}\n")
        sys.stdout.flush()
    return 0


def complete_line(line: str, outline: Outline) -> list[tuple[str, str, str]]:
    """Return kind, whole word and help of every candidate.

    Args:
        line: the typed text, up to the cursor.
        outline: the outline of the commands.
    """
    words = _split_words(line)
    last = words.pop() if words else ""
    command = next((word for word in words[1:] if not word.startswith("-")), None)
    if command is not None and command not in outline["commands"]:
        return []
    before = ""
    option, equals, value = last.partition("=")
    if equals and option.startswith("--"):
        # The word completes an option's value; the shell replaces the whole word.
        words, last, before = [*words, option], value, f"{option}="
    items = ShellComplete(
        _build_program(outline), {"help_option_names": HELP_NAMES}, "dgm", SHELL
    ).get_completions(words[1:], last)
    rows = [(item.type, before + str(item.value or ""), _shorten_help(item.help)) for item in items]
    return [row for row in rows if not _UNFIT.search(row[1])]


def _split_words(line: str) -> list[str]:
    """Return the words of the line; the last one, which may be empty, is being typed."""
    words = split_arg_string(line)
    while words and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    return [*words, ""] if not line or (line[-1].isspace() and not line.endswith("\\ ")) else words


def _last_word(line: str) -> str:
    words = _split_words(line)
    return words[-1] if words else ""


def _count_split_off(word: str, breaks: str) -> int:
    """Return how many leading characters bash splits off as words of their own, because of ``=`` and ``:``."""
    return max((word.rfind(sign) + 1 for sign in "=:" if sign in breaks), default=0)


def _shorten_help(text: str | None) -> str:
    return _UNFIT.sub(" ", (text or "").strip())[:100]


def _build_program(outline: Outline) -> click.Group:
    program = click.Group(
        "dgm", params=[click.Option(["--version"], is_flag=True, help="Print the version.")]
    )
    for name, described in outline["commands"].items():
        program.add_command(_build_command(name, described, outline))
    return program


def _build_command(name: str, described: Mapping[str, Any], outline: Outline) -> click.Command:
    params = [_build_parameter(each, outline) for each in described["params"]]
    if not described["commands"]:
        return click.Command(name, params=params, short_help=described["help"])
    group = click.Group(name, params=params, short_help=described["help"])
    for inner, each in described["commands"].items():
        group.add_command(_build_command(inner, each, outline))
    return group


def _build_parameter(described: Mapping[str, Any], outline: Outline) -> click.Parameter:
    kind = parameter_kind(described)

    def offer(context: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem[str]]:
        given = _collect_arguments(context)
        found = find_candidates(kind, CompletionQuery(typed, given, outline))
        return [CompletionItem(each.value, each.kind, each.help) for each in found]

    decls, many = [described["name"], *described["decls"]], described["many"]
    given: dict[str, Any] = {"required": False, "shell_complete": offer if kind else None}
    if described["choices"]:
        given["type"] = click.Choice(described["choices"])
        given["shell_complete"] = None
    elif described["path"] and not kind:
        given["type"] = click.Path(file_okay=described["path"] == "file")
    if not described["option"]:
        return click.Argument([described["name"]], nargs=-1 if many else 1, **given)
    if described["flag"]:
        return click.Option(decls, is_flag=True, help=described["help"])
    return click.Option(decls, multiple=many, help=described["help"], **given)


def _collect_arguments(context: click.Context | None) -> Mapping[str, Any]:
    """Return the arguments that the line gives so far, including those of parent commands."""
    given: dict[str, Any] = {}
    while context is not None:
        given = {**context.params, **given}
        context = context.parent
    return given
