"""Commands derived from Python functions by cyclopts: a signature gives the options, a docstring the help.

``derive`` makes a command of a function of the Python API, so that no argument is written twice:

* positional parameters become arguments, keyword-only ones options (``max_usd`` → ``--max-usd``);
* a parameter keeps only the types that a command line can give (``str | Policy`` → ``str``); one without any, and
  the callbacks ``watcher`` and ``on_event``, is left out and has its default;
* ``on_step`` shows the steps of the work on standard error;
* ``confirm`` asks at the terminal, and ``--yes`` answers in advance;
* ``settings`` becomes ``--set KEY=VALUE``, repeatable, and arrives as a list of such texts;
* ``--json`` prints the returned view as JSON; without it, a renderer prints it.

``Command`` (``dgm.cli.commands``) names the function; ``run_function`` parses the words and calls it.
"""

import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    Token,
    UnusedCliTokensError,
)
from cyclopts.help import HelpEntry, HelpPanel
from pydantic import BaseModel

from dgm.cli.steps import StepDisplay
from dgm.consents import ConsentNeeded
from dgm.errors import UserError, option_name
from dgm.render.safe import one_line

T = TypeVar("T")
CALLBACKS = ("watcher", "on_event", "on_step", "confirm")
QUESTION_CELLS = 2_000
WIDTH = 80
"""Columns of help texts."""
LABELS = 24
"""Widest column of option names in a help text."""
KINDS = {int: "a whole number", float: "a number"}
"""Type of an option → what its value has to be."""
SETTINGS = Parameter(name="--set", metavar="KEY=VALUE", negative=())
Show = Callable[[Any], int | None]
"""Print what a function returned; may return the exit code."""


def run_function(function: Callable[..., Any], words: Sequence[str], name: str) -> int:
    """Parse the words after a command's name, call its function and return the exit code.

    Raises:
        UserError: a word does not fit the signature.
    """
    app = App(
        name=name,
        default_command=function,
        usage=_usage(function, name),
        help_format="plaintext",
        help_formatter=_HelpFormatter(),
        version_flags=[],
        default_parameter=Parameter(negative=(), allow_repeating=True),
    )
    try:
        call, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise UserError(f"{_describe_error(error)} (see {name} --help)") from error
    for parameter, value in bound.arguments.items():
        if value == "" or (isinstance(value, tuple) and "" in value):
            is_option = bound.signature.parameters[parameter].kind is inspect.Parameter.KEYWORD_ONLY
            label = option_name(parameter) if is_option else parameter.upper()
            raise UserError(f"{label}: must not be empty")
    result = call(*bound.args, **bound.kwargs)
    return result if isinstance(result, int) else 0


def _describe_error(error: CycloptsError) -> str:
    subject = error.argument.name if error.argument else ""
    match error:
        case UnusedCliTokensError(unused_tokens=[*unused]):
            return f"unexpected {' '.join(map(repr, unused))}"
        case MissingArgumentError():
            return f"{subject} needs a value" if subject.startswith("-") else f"{subject} is missing"
        case CoercionError(target_type=kind) if kind is bool:
            return f"{subject} takes no value"
        case CoercionError(token=Token(value=value), target_type=kind) if kind in KINDS:
            return f"{subject}: {value!r} is not {KINDS[kind]}"
    message = " ".join(str(error).split())
    return f"{message[:1].lower()}{message[1:].rstrip('.')}"


def derive(
    function: Callable[..., Any],
    show: Show,
    *,
    watcher: Callable[[], Any] | None = None,
    trust: bool = False,
    omit: Collection[str] = (),
    names: Mapping[str, str] | None = None,
) -> Callable[..., int]:
    """Return the command of a function of the Python API.

    Args:
        function: its signature and Google docstring say everything about the command; it returns a pydantic view.
        show: prints the view without ``--json``.
        watcher: makes the ``watcher`` argument, for a function that has one; it is ``quiet`` with ``--json``.
        trust: whether the function may need the user's consent (``ConsentNeeded``): adds ``--trust``, which gives it.
        omit: parameters that are no options.
        names: parameter → another option name, such as ``{"tasks": "--task"}``.
    """
    parameters = derive_parameters(function, trust=trust, omit=omit, names=names)
    accepted = inspect.signature(function).parameters

    def command(
        *arguments: Any, json: bool = False, trust: bool = False, yes: bool = False, **options: Any
    ) -> int:
        if watcher and "watcher" in accepted:
            options["watcher"] = watcher()
            options["watcher"].quiet = json

        def call() -> Any:
            with StepDisplay() as display:
                answer = None if "confirm" in omit else yes
                callbacks = {
                    "on_step": display,
                    "confirm": partial(_confirm, yes=answer, pause=display.pause),
                }
                options.update((name, value) for name, value in callbacks.items() if name in accepted)
                return function(*arguments, **options)

        view = call_with_consent(call, agree=trust)
        if json:
            print_json(view)
            return int(getattr(view, "exit_code", 0))
        code = show(view)
        return code if code is not None else int(getattr(view, "exit_code", 0))

    command.__doc__ = function.__doc__
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def derive_parameters(
    function: Callable[..., Any],
    *,
    trust: bool = False,
    omit: Collection[str] = (),
    names: Mapping[str, str] | None = None,
) -> list[inspect.Parameter]:
    """Return the parameters of a function's command, ``--trust`` and ``--json`` last; arguments as in ``derive``."""
    source = inspect.signature(function, eval_str=True)
    parameters = list[inspect.Parameter]()
    for parameter in source.parameters.values():
        kind = _simplify(parameter.annotation)
        if kind is None or parameter.name in {*CALLBACKS, *omit}:
            continue
        position = parameter.kind
        if position is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            position = inspect.Parameter.POSITIONAL_ONLY
        default = parameter.default
        # cyclopts validates defaults, too: ``worlds: int | str = 20`` is a text here.
        if kind is str and isinstance(default, int):
            default = str(default)
        if parameter.name == "settings":
            kind, default = Annotated[list[str] | None, SETTINGS], None
        elif names and parameter.name in names:
            kind = Annotated[kind, Parameter(name=names[parameter.name])]
        parameters.append(parameter.replace(annotation=kind, kind=position, default=default))
    if trust:
        parameters.append(
            make_flag("trust", "Approve the Dockerfiles or endpoints of a third-party suite or run.")
        )
    if "confirm" in source.parameters and "confirm" not in omit:
        parameters.append(make_flag("yes", "Do not ask."))
    return [*parameters, make_flag("json", "Print JSON.")]


def call_with_consent(call: Callable[[], T], *, agree: bool) -> T:
    """Call a function, and again after each consent that the user gives.

    Args:
        call: what may need consent.
        agree: whether the user consents to everything in advance.

    Raises:
        ConsentNeeded: the user does not consent, or there is no terminal to ask on.
    """
    while True:
        try:
            return call()
        except ConsentNeeded as needed:
            if agree and needed.subjects:
                for subject in needed.subjects:
                    subject.agree()
            elif not ask_for_consent(needed):
                raise


def ask_for_consent(needed: ConsentNeeded) -> bool:
    """Ask at the terminal, and remember a yes; return whether the command may be tried again.

    Raises:
        UserError: the answer cannot be remembered.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    if not confirm(f"{one_line(needed.question, QUESTION_CELLS)}?"):
        return False
    for subject in needed.subjects:
        subject.agree()
    return True


def confirm(question: str) -> bool:
    """Ask a question with the answers yes and no (the default) on standard error.

    Raises:
        KeyboardInterrupt: the input ended.
    """
    while True:
        sys.stderr.write(f"{question} [y/N]: ")
        sys.stderr.flush()
        answer = sys.stdin.readline()
        if not answer:
            raise KeyboardInterrupt
        if answer.strip().lower() in ("y", "yes", "n", "no", ""):
            return answer.strip().lower().startswith("y")


def _confirm(question: str, *, yes: bool | None, pause: Callable[[], None]) -> bool:
    """Ask unless ``--yes`` answers; without a terminal, name that option, or say no if there is none (None)."""
    line = one_line(question, QUESTION_CELLS)
    pause()
    if yes:
        sys.stderr.write(f"{line}\n")
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if yes is None:
            return False
        raise UserError(f"{line}; there is no terminal to ask on: add --yes to go on")
    return confirm(f"{line}; go on?")


def print_json(view: BaseModel | Iterable[BaseModel]) -> None:
    """Print a view, or a list of views, as one ASCII JSON document."""
    from json import dumps

    document = (
        view.model_dump(mode="json")
        if isinstance(view, BaseModel)
        else [v.model_dump(mode="json") for v in view]
    )
    sys.stdout.write(dumps(document, indent=2, ensure_ascii=True) + "\n")


def _usage(function: Callable[..., Any], name: str) -> str:
    words = ["Usage:", name]
    for parameter in inspect.signature(function).parameters.values():
        label = parameter.name.upper()
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            words.append(f"[{label}...]")
        elif parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            words.append(label if parameter.default is inspect.Parameter.empty else f"[{label}]")
    return " ".join([*words, "[OPTIONS]"])


def make_flag(name: str, text: str) -> inspect.Parameter:
    """Return the parameter of an option without a value."""
    kind = Annotated[bool, Parameter(help=text)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)


def _simplify(annotation: Any) -> Any:
    """Return the part of a type that a command line can give; None if there is none."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = _simplify(arguments[0])
        return inner and Annotated.__class_getitem__((inner, *arguments[1:]))
    if origin in (Union, types.UnionType):
        members = [kind for kind in map(_simplify, (a for a in arguments if a is not type(None))) if kind]
        if not members:
            return None
        first = str if str in members else members[0]
        return first | None if type(None) in arguments else first
    if origin is Literal or annotation in (str, int, float, bool, Path):
        return annotation
    if origin in (list, tuple, Sequence, Collection, Iterable):
        inner = _simplify(arguments[0])
        return inner and types.GenericAlias(list, (inner,))
    if origin is Mapping:
        return dict[str, str]
    return annotation if isinstance(annotation, type) and issubclass(annotation, str) else None


class _HelpFormatter:
    """Help in aligned columns, without boxes and colours."""

    def __call__(self, console: Any, options: Any, panel: HelpPanel) -> None:  # noqa: ARG002
        entries = [entry for entry in panel.entries if entry.positive_names != ("--help",)]
        if panel.format == "command" or not entries:
            return
        title = "Options" if panel.title == "Parameters" else panel.title
        sys.stdout.write(f"\n{title}:\n")
        labels = [", ".join(entry.display_labels_with_metavar).replace("...", "") for entry in entries]
        width = min(LABELS, max(map(len, labels)))
        for label, entry in zip(labels, entries, strict=True):
            lines = textwrap.wrap(_describe(entry), WIDTH - width - 4) or [""]
            if len(label) > width:
                sys.stdout.write(f"  {label}\n")
                label = ""
            for line in lines:
                sys.stdout.write(f"  {label:<{width}}  {line}".rstrip() + "\n")
                label = ""

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:  # noqa: ARG002
        sys.stdout.write(f"{str(usage).strip()}\n\n")

    def render_description(self, console: Any, options: Any, description: Any) -> None:  # noqa: ARG002
        for number, paragraph in enumerate(_plain(description).split("\n\n")):
            sys.stdout.write("\n" * bool(number) + textwrap.fill(" ".join(paragraph.split()), WIDTH) + "\n")


def _describe(entry: HelpEntry) -> str:
    parts = [_plain(entry.description)]
    if entry.choices:
        parts.append(f"[{', '.join(entry.choices)}]")
    if entry.default not in (None, "False", "()", "[]", "None", '""'):
        parts.append(f"[default: {entry.default}]")
    return " ".join(part for part in parts if part)


def _plain(text: Any) -> str:
    text = getattr(text, "primary_renderable", text)
    return str(getattr(text, "plain", text) or "").strip()
