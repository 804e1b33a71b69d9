"""Make the reference pages from the code: settings, commands and calls."""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import dgm
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
    return {
        "settings.md": "\n".join(_settings()),
        "command-reference.md": "\n".join(_commands()),
        "python-reference.md": "\n".join(_calls()),
    }


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


MODULES = (
    "search",
    "evaluating",
    "solving",
    "runs",
    "comparing",
    "sweeping",
    "studies",
    "archive",
    "suites",
    "calibrating",
    "trusting",
    "seeds",
    "ablating",
    "sandboxes",
    "machine",
)
"""Modules of ``dgm.api`` in the order of the page."""
VALUES = (
    "results:Results",
    "results:ReportView",
    "agents:AgentView",
    "replaying:RunReplay",
    "records:Records",
)
"""What calls return that has no public name of its own."""


def _calls() -> Iterator[str]:
    yield "# All calls from Python"
    yield ""
    yield "`import dgm`, and what it holds; [use dgm from a program](library.md) shows it at work and has the call of"
    yield "each command. Errors are classes of `dgm.errors`. This page is made by `docs/reference/make_pages.py`"
    yield "from the docstrings."
    for module in MODULES:
        code = import_module(f"dgm.api.{module}")
        told = {*vars(code).get("__all__", ())}
        names = [name for name in dgm.__all__ if name in told or _module_of(name) == f"dgm.api.{module}"]
        about = inspect.getdoc(code) or ""
        yield ""
        yield f"## {_cell(about.partition(chr(10))[0]).rstrip('.')}"
        for name in sorted(names, key=lambda name: (name[0].isupper(), name)):
            yield from _entry(f"dgm.{name}", getattr(dgm, name))
    yield ""
    yield "## Values that calls return"
    for place in VALUES:
        module, _, name = place.partition(":")
        yield from _entry(name, getattr(import_module(f"dgm.api.{module}"), name))


def _module_of(name: str) -> str:
    """The module that a public name is defined in; empty for one that is no class and no function."""
    return str(getattr(getattr(dgm, name), "__module__", ""))


def _entry(name: str, value: type | Callable[..., object]) -> Iterator[str]:
    """A function, or a class with its fields, properties and methods."""
    node = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    yield ""
    if isinstance(node, ast.ClassDef):
        bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id == "Results"]
        yield f"### `{name}`"
        yield from _text(ast.get_docstring(node))
        yield from (f"It has all that `{base}` has." for base in bases)
        yield ""
        yield from _members(node)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield f"### `{name}`"
        yield ""
        yield "```text"
        yield from _signature(name, node)
        yield "```"
        yield from _text(ast.get_docstring(node))


def _members(node: ast.ClassDef) -> Iterator[str]:
    for member, after in zip(node.body, [*node.body[1:], None], strict=True):
        match member, after:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind), _ if not name.startswith("_"):
                meaning = ""
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                    meaning = f": {_cell(str(after.value.value))}"
                yield f"* `{name}: {ast.unparse(kind)}`{meaning}"
            case ((ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name)), _) if not name.startswith(
                "_"
            ):
                assert isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
                yield from _member(name, member)
            case _:
                pass


def _member(name: str, member: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    decorators = {ast.unparse(each) for each in member.decorator_list}
    text = list(_text(ast.get_docstring(member)))
    if "property" in decorators:
        kind = ast.unparse(member.returns) if member.returns else ""
        head = f"`{name}: {kind}`"
    else:
        head = f"`{' '.join(' '.join(_signature(name, member)).split())}`"
    yield f"* {head}: {' '.join(line for line in text[:1] if line)}{text[1] if len(text) > 1 else ''}"
    yield from (f"    {line}" if line else "" for line in text[2:])


def _signature(name: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    arguments = node.args
    for listed in (arguments.posonlyargs, arguments.args):
        if listed and listed[0].arg in ("self", "cls"):
            del listed[0]
    before = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    returns = f" -> {ast.unparse(node.returns)}".replace("'", "") if node.returns else ""
    yield from textwrap.wrap(
        f"{before}{name}({ast.unparse(arguments)}){returns}", WIDTH, subsequent_indent="    "
    )


def _text(docstring: str | None) -> Iterator[str]:
    """A docstring as Markdown: an empty line, its paragraphs, and its arguments and errors as lists."""
    listing = False
    yield ""
    for line in (docstring or "").replace("``", "`").split("\n"):
        if re.fullmatch(r"(Args|Raises|Returns):", line):
            yield f"{line}"
            yield ""
            listing = True
        elif listing and re.match(r"    \w+: ", line):
            name, _, meaning = line.strip().partition(": ")
            yield f"* `{name}`: {meaning}"
        elif listing and line.strip():
            yield f"{'  ' if line.startswith('        ') else ''}{line.strip()}"
        else:
            yield line


if __name__ == "__main__":
    main()
