"""Arguments that several commands share."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.errors import UserError
from dgm.sandboxes.engine_address import OPTION, find_given_engine, use_engine

FC = TypeVar("FC", bound=Callable[..., Any] | click.Command)


class Amount(click.FloatRange):
    """A number above 0, or from ``least`` on, up to ``most``; ``nan`` and ``inf`` are none, and would be no limits."""

    name = "number"

    def __init__(self, least: float | None = None, most: float | None = None) -> None:
        super().__init__(min=least or 0.0, min_open=least is None, max=most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no amount", param, ctx)
        return number


class ScoreShare(click.FloatRange):
    """A number above 0 and below 1, or a percentage such as ``60%``."""

    name = "share"

    def __init__(self) -> None:
        super().__init__(min=0.0, min_open=True, max=1.0, max_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"'{text}' is no number; write 0.6 or 60%", param, ctx)
        if not 0 < number < 1:
            hint = f"; {number:g}% is {number / 100:g}" if 1 < number < 100 and "%" not in text else ""
            self.fail(f"'{text}' is not between 0 and 1{hint}", param, ctx)
        return number


yes_option = click.option(
    "--yes", is_flag=True, help="Do not ask, also where more may be spent than budget.confirm_above_usd."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
set_option = click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A setting.")
config_option = click.option("--config", type=click.Path(path_type=Path), help="TOML file of settings.")
run_argument = click.argument("run_name", metavar="RUN")
agent_argument = click.argument("agent_name", metavar="AGENT")


def _use_engine(context: click.Context, _: click.Parameter, addresses: tuple[str, ...]) -> None:
    """Let the addresses name the engines until the command ends."""
    context.with_resource(use_engine(addresses, OPTION))


engine_option = click.option(
    OPTION,
    metavar="ADDRESS",
    multiple=True,
    callback=_use_engine,
    expose_value=False,
    help="The Docker engine: unix://…, tcp://host:port or ssh://user@host (default: as the Docker CLI); several "
    "times: sandboxes are divided between them; or a Ray cluster: ray or ray://host:port.",
)


def sandbox_option(default: str | None = None) -> Callable[[FC], FC]:
    """Return the option ``--sandbox``; without a default, that of the run holds."""
    said = "(default auto)" if default else "(default: as in the run)"
    return click.option(
        "--sandbox", default=default, help=f"auto, docker, bubblewrap, ray, or a plug-in {said}."
    )


def evaluation_options(attempts: int) -> Callable[[FC], FC]:
    """Return the options of a command that lets agents try tasks, as fields of ``EvaluationChoice``.

    Args:
        attempts: the default of ``--attempts``.
    """
    options = (
        click.option("--model", help="The model that works (default: the run's, or auto)."),
        click.option(
            "--attempts",
            type=click.IntRange(1, 100),
            default=attempts,
            show_default=True,
            help="Times that each task is tried.",
        ),
        click.option(
            "--task",
            "--tasks",
            "tasks",
            multiple=True,
            metavar="TASK",
            help="Only this task; may be repeated.",
        ),
        click.option("--max-usd", type=Amount(), help="Money for all of it, earlier sessions included."),
        click.option("--workers", type=click.IntRange(1, 4096), help="Tasks at once."),
        sandbox_option(),
        engine_option,
        click.option("--into", type=click.Path(path_type=Path), help="Folder to record it in."),
        click.option(
            "--set",
            "assignments",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting, such as limits.calls.",
        ),
    )

    def add(command: FC) -> FC:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def refuse_engine(purpose: str) -> None:
    """Refuse ``--engine`` where a command opens no sandbox.

    Args:
        purpose: what the option is about, for the message.

    Raises:
        UserError: it was given.
    """
    if find_given_engine():
        raise UserError(f"{OPTION} is about {purpose}; give that too")


def open_run(name: str) -> Run:
    """Open a run by name or path for reading.

    Raises:
        UserError: there is none.
    """
    return Run.open(find_run(name))
