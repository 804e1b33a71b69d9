"""``dgm benchmark mine``: turn a git repository into a suite of verified tasks, with a panel that shows the funnel."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dgm.cli.arguments import Amount, as_json, config_option, engine_option, sandbox_option, set_option
from dgm.cli.output import emit_json, make_console
from dgm.errors import UserError
from dgm.show.safe import neutralise

if TYPE_CHECKING:
    from dgm.sessions.mined_suite import MiningReport
    from dgm.sessions.mining_options import Funnel

STAGES = {
    "scan": "steps of the history read",
    "environment": "packages installed, and the newest tests run",
    "validate": "changes run with their tests, with and without the fix",
    "bugs": "faults put in, and run",
    "write": "the suite written",
    "verify": "tasks verified",
}
MOST_REASONS = 12
_LINES_MOST, _LINE_EVERY = 10, 10
"""Lines of a stage off a terminal, about, and the fewest units between two of them."""


@click.command()
@click.argument("repo", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="The suite's folder (default REPO's name with -suite)."
)
@click.option(
    "--history", type=click.IntRange(0), default=50, show_default=True, help="Most tasks from its history."
)
@click.option(
    "--bugs", type=click.IntRange(0), help="Most tasks with a fault put in (default 30; Python only)."
)
@click.option("--since", default="", metavar="DATE", help="Leave older commits out, as in 2024-01-31.")
@click.option(
    "--image",
    default="",
    metavar="docker:NAME",
    help="Image of Docker's instead of the language's recipe, as docker:python:3.12.",
)
@click.option(
    "--setup", default="", metavar="CMD", help="Shell command that installs packages into $DGM_PACKAGES."
)
@click.option(
    "--test", default="", metavar="CMD", help="How the tests are called, as in 'pytest -m \"not slow\"'."
)
@click.option(
    "--report",
    multiple=True,
    metavar="GLOB",
    help="JUnit's XML that --test writes (C++ and the JVM only; repeat it for more).",
)
@click.option(
    "--language",
    type=click.Choice(["python", "javascript", "go", "rust", "cpp", "jvm"]),
    help="Language to mine (default: that of most test files).",
)
@click.option(
    "--holdout",
    type=Amount(0.0, 1.0),
    default=0.3,
    show_default=True,
    help="Share of the tasks from its history, the newest, that is kept for reports.",
)
@click.option(
    "--statement-model",
    default="",
    metavar="MODEL",
    help="Model that writes the tasks' statements, and checks that they tell what is graded.",
)
@click.option("--max-usd", type=Amount(), help="Money for --statement-model in one session.")
@click.option(
    "--issues",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Texts of its issues, as gh issue list --json number,title,body writes them.",
)
@click.option(
    "--cpu-hours",
    type=Amount(),
    help="Begin nothing new after this much in one session.",
)
@click.option("--update", is_flag=True, help="Add the tasks of what was committed since.")
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Units at once.")
@sandbox_option("auto")
@engine_option
@config_option
@set_option
@as_json
def mine(
    repo: Path,
    out: Path | None,
    history: int,
    bugs: int | None,
    since: str,
    image: str,
    setup: str,
    test: str,
    report: tuple[str, ...],
    language: str | None,
    holdout: float,
    statement_model: str,
    max_usd: float | None,
    issues: Path | None,
    cpu_hours: float | None,
    update: bool,
    workers: int,
    sandbox: str,
    config: Path | None,
    assignments: tuple[str, ...],
    as_json: bool,
) -> int:
    """Make a suite of tasks out of the git repository REPO: its own changes, and faults put into its code.

    Every task is run before and after its fix, twice, in sandboxes without a network. The same command goes on where
    it was ended; what it keeps for that is in a folder beside the suite. Why each commit became no task is in the
    suite's mined.jsonl.
    """
    from dgm.benchmarks.languages import Language
    from dgm.config import resolve
    from dgm.models.reach import file_models, require_own_file
    from dgm.sandboxes.choose import choose
    from dgm.sandboxes.container import IN_ENGINE
    from dgm.sessions.mined_suite import default_out, mine
    from dgm.sessions.mining_options import MiningOptions
    from dgm.sessions.mining_statements import open_asking

    if max_usd is not None and not statement_model:
        raise UserError("--max-usd: nothing is paid without a model; give --statement-model, too")
    if image and not image.startswith(IN_ENGINE):
        raise UserError(f"--image {image!r}: expected an image of Docker's, as docker:python:3.12")
    settings = resolve(config, assignments, {"models.solve": statement_model or None})
    if config and statement_model:
        require_own_file(config, settings, file_models(config))
    engine = choose(sandbox, settings)
    options = MiningOptions(
        repo=repo,
        out=out or default_out(repo),
        history=history,
        bugs=bugs,
        since=since,
        image=image,
        setup=setup,
        test=test,
        report=report,
        language=Language(language) if language else None,
        holdout=holdout,
        statement_model=statement_model,
        issues=issues,
        processor_hours=cpu_hours,
        update=update,
        workers=workers,
    )

    async def perform(tell: "Callable[[Funnel], None]") -> "MiningReport":
        async with open_asking(statement_model, settings, engine, max_usd) as ask:
            return await mine(options, engine, tell, ask)

    with _show_progress(quiet=as_json) as tell:
        done = asyncio.run(perform(tell))
    if as_json:
        emit_json(done.record())
    else:
        _write_report(done)
        if not statement_model:
            sys.stdout.write(
                "statements show the failing tests; it is recommended to let a model write them as issues: "
                "--statement-model MODEL --max-usd USD --out NAME\n"
            )
    return 0


def _write_report(report: "MiningReport") -> None:
    kinds = ", ".join(f"{count} {kind}" for kind, count in report.tasks.items())
    splits = ", ".join(f"{count} {split}" for split, count in report.splits.items())
    out = sys.stdout
    out.write(f"{report.units} steps of the history, {report.candidates} with code and tests\n")
    for reason, count in [*report.left.items()][:MOST_REASONS]:
        out.write(f"  {count:>6}  {neutralise(reason)}\n")
    if len(report.left) > MOST_REASONS:
        out.write(f"          and {len(report.left) - MOST_REASONS} other reasons (mined.jsonl has all)\n")
    for remark in report.packages[:MOST_REASONS]:
        out.write(f"packages: {neutralise(remark)}\n")
    out.write(f"{sum(report.tasks.values())} verified tasks ({kinds}; {splits}) are in {report.suite}\n")
    out.write(f"{report.processor_s / 60:.1f} minutes of processor time for tests in this session\n")
    out.write(f"now: dgm benchmark show {report.suite}; dgm run --benchmark {report.suite}\n")


def _show_progress(*, quiet: bool) -> "AbstractContextManager[Callable[[Funnel], None]]":
    """Show a panel on a terminal, else lines; nothing when quiet. All goes to stderr."""
    if quiet:
        return nullcontext(lambda _funnel: None)
    return _Panel() if sys.stderr.isatty() else nullcontext(_make_lines())


def _make_lines() -> "Callable[[Funnel], None]":
    shown: tuple[str, int] = ("", -1)

    def tell(funnel: "Funnel") -> None:
        nonlocal shown
        every = max(_LINE_EVERY, funnel.total // _LINES_MOST)
        place = funnel.stage, funnel.done // every if funnel.done < funnel.total else -2
        if place != shown:
            shown = place
            sys.stderr.write(f"{_row(funnel)}\n")

    return tell


def _row(funnel: "Funnel") -> str:
    count = f"{funnel.done} of {funnel.total}" if funnel.total else ""
    kept = f"{funnel.kept} kept" if funnel.kept and funnel.stage != "environment" else ""
    spent = f"{funnel.processor_s / 60:.1f} min of processor" if funnel.processor_s else ""
    return "  ".join(filter(None, [f"{funnel.stage:<12}", f"{STAGES[funnel.stage]}", count, kept, spent]))


class _Panel(AbstractContextManager["Callable[[Funnel], None]"]):
    def __init__(self) -> None:
        from rich.live import Live

        self._found: dict[str, Funnel] = {}
        self._live = Live(console=make_console(stderr=True), refresh_per_second=4)

    def __enter__(self) -> "Callable[[Funnel], None]":
        self._live.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _tell(self, funnel: "Funnel") -> None:
        from rich.table import Table

        self._found[funnel.stage] = funnel
        table = Table.grid(padding=(0, 2))
        for one in self._found.values():
            count = f"{one.done} of {one.total}" if one.total else ""
            kept = f"{one.kept} kept" if one.kept and one.stage not in ("environment", "write") else ""
            table.add_row(one.stage, STAGES[one.stage], count, kept, f"{one.processor_s / 60:.1f} min")
        self._live.update(table)
