"""``dgm run`` and ``dgm resume``: a search from the command line."""

import asyncio
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dgm import assemble
from dgm.archive.events import Recorded, RunChanged
from dgm.archive.finding import archive_folders, find_run
from dgm.archive.run import Run
from dgm.cli.arguments import Amount, Share, as_json, run_argument
from dgm.cli.complaint import FAILED, INTERRUPTED, LIMIT, USAGE
from dgm.cli.consent import ask_to_spend
from dgm.cli.evaluation import placed
from dgm.cli.model_check import check_and_tell, check_run
from dgm.cli.output import emit_json
from dgm.cli.progress import Progress, listen_for_signals, progress
from dgm.cli.spending import FirstCosts, confirm_spending, tell_prices, yes_option
from dgm.config import Settings, resolve
from dgm.domain import SEED, Budget
from dgm.errors import Infrastructure, UserError
from dgm.models.auto import settle
from dgm.models.choose import AUTO, all_names
from dgm.protocols import Checked
from dgm.search.budgets import Ending, Reason
from dgm.search.endless import refuse_endless
from dgm.search.evaluating import PLAN as EVALUATION
from dgm.search.evaluating import changed
from dgm.search.mending import SETTABLE, change, graded_after_refusals
from dgm.search.model_checks import note_checks
from dgm.search.rehearsal import rehearse
from dgm.search.summary import run_summary
from dgm.show.safe import one_line
from dgm.show.status import status_lines
from dgm.show.terminal import write
from dgm.show.words import counted
from dgm.simulate import PLAN as SIMULATION

RESERVED = ("seed", "example")
EXIT = {
    Reason.LIMIT: LIMIT,
    Reason.OUTAGE: FAILED,
    Reason.CANNOT_GO_ON: FAILED,
    Reason.REFUSED: USAGE,
    Reason.ENDLESS: USAGE,
}


def budget_options(command: Any) -> Any:
    """The limits that ``run`` and ``resume`` both take."""
    for option in (
        click.option(
            "--patience",
            type=click.IntRange(min=1),
            help="End when no better agent was recommended in this many evaluations.",
        ),
        click.option(
            "--until-score",
            type=Share(),
            help="End when the lower bound of the best agent's rate on the search tasks reaches this (0.6 or 60%).",
        ),
        click.option("--max-hours", type=Amount(), help="Wall time, over all sessions of the run."),
        click.option(
            "--max-usd",
            type=Amount(),
            help="Money for all model calls; only a provider that bills more than it was asked for can cross it.",
        ),
        click.option("--max-tokens", type=int, help="Tokens of all model calls."),
        click.option("--max-agents", type=int, help="Members of the archive, the seed included."),
        click.option("--max-evaluations", type=int, help="Graded evaluations (160 where no limit is given)."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--benchmark", help="Name or folder of a task suite (default starter).")
@click.option(
    "--model", help="openai/…, anthropic/…, openai-compatible/…, offline (default auto: says what and why)."
)
@click.option("--policy", help="Which step comes next (default lineage).")
@click.option("--operator", help="How a child is made; several joined by + (default self-edit).")
@click.option("--workers", type=int, help="Steps at once (default 2).")
@click.option("--sandbox", help="auto, docker or bubblewrap (default auto).")
@click.option("--seed", type=int, help="Number that all decisions follow from (default 0).")
@click.option("--seed-agent", help="Folder or git repository of the agent to start from.")
@click.option("--name", help="Name of the run, a folder under ./archive or $DGM_ARCHIVE.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Any setting, by dotted name.")
@budget_options
@yes_option
@as_json
def run(
    config: Path | None,
    name: str | None,
    assignments: tuple[str, ...],
    yes: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Start a search for better agents. CONFIG is a TOML file of settings."""
    settings = placed(resolve(config, assignments, _dotted(flags)))
    chosen = time.strftime("run-%Y%m%d-%H%M%S") if name is None else name
    folder = next(archive_folders()) / _checked(chosen)
    if folder.exists():
        raise UserError(
            f"{folder}: already exists; go on with 'dgm resume {folder.name}' or choose another --name"
        )
    parts = assemble.parts_of(settings)
    assemble.check_settings(settings)
    assemble.check_goals(settings.budget.budget(), settings, parts)
    settings = _with_models(settings)
    refuse_endless(settings.budget.budget(), settings)
    confirm_spending(settings, settings.budget.budget(), 0.0, yes=yes)
    _rehearse_seed(settings, parts)
    checks = check_and_tell(settings)
    tell_prices(settings)
    with assemble.create(folder, settings, parts) as made:
        if name is None:
            sys.stderr.write(f"name: {chosen} (in {folder.parent})\n")
        note_checks(made, settings, checks)
        return _go(made, settings, parts, as_json)


@click.command()
@run_argument
@click.option("--workers", type=click.IntRange(1, 256), help="Steps at once, for this session.")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting from here on: models.*, limits.*, workers or sandbox.",
)
@click.option("--benchmark", help="Where the run's benchmark lies now; its content must be the same.")
@click.option(
    "--regrade",
    type=click.Choice(["refused"]),
    help="'refused': perform again what was graded unresolved after the model had been refused to the agent.",
)
@budget_options
@yes_option
@as_json
def resume(
    run_name: str,
    workers: int | None,
    assignments: tuple[str, ...],
    benchmark: str | None,
    regrade: str | None,
    yes: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Go on with a search, after a stop or a crash; nothing that was paid for is lost.

    Steps that were under way are performed first, even where a smaller --max-evaluations has no room for them. What
    --set, --benchmark and --regrade change is recorded, and holds for all later sessions.
    """
    folder = find_run(run_name, write=True)
    with Run.open(folder, write=True) as opened:
        if EVALUATION in opened.config:
            raise UserError(
                f"{opened.name}: is an evaluation, not a search; to go on, repeat its dgm evaluate command"
            )
        if SIMULATION in opened.config:
            raise UserError(
                f"{opened.name}: is simulated; to go on, repeat its dgm simulate --record command"
            )
        settings = _mended(opened, assignments, benchmark)
        event = change(assemble.settings_of(opened), settings)
        budget = _budget(assemble.budget_of(opened, settings), flags)
        refuse_endless(budget, settings)
        parts = _parts_again(opened, settings, event)
        assemble.check_goals(budget, settings, parts)
        confirm_spending(settings, budget, opened.tree.spend.usd, yes=yes)
        checks = _check_again(settings, opened)
        withdrawn = graded_after_refusals(opened) if regrade else ()
        assemble.reopen(opened, budget, parts, [*([event] if event else ()), *withdrawn])
        note_checks(opened, settings, checks)
        if regrade:
            sys.stderr.write(f"to be performed again: {counted(len(withdrawn), 'evaluation')}\n")
        if workers is not None:
            settings = settings.model_copy(update={"workers": workers})
        return _go(opened, settings, parts, as_json)


def _mended(opened: Run, assignments: Sequence[str], benchmark: str | None) -> Settings:
    """The settings of a run with what a person changes; ``auto`` becomes a model again."""
    before = assemble.settings_of(opened)
    after = (
        changed(before.model_dump(mode="json"), assignments, SETTABLE, "dgm resume")
        if assignments
        else before
    )
    if benchmark:
        after = placed(after.model_copy(update={"benchmark": benchmark}))
    return _with_models(after)


def _parts_again(opened: Run, settings: Settings, event: RunChanged | None) -> assemble.Parts:
    """What the run is performed with from here on; in another kind of sandbox the seed must show that it can start.

    Raises:
        UserError: no sandbox, no such benchmark or one of another content, or the seed cannot start.
    """
    elsewhere = event is not None and "sandbox" in event.settings
    sandbox = settings.sandbox if elsewhere else opened.sandbox()
    try:
        parts = assemble.parts_of(settings.model_copy(update={"sandbox": sandbox}))
    except UserError as error:
        if not Path(settings.benchmark).is_absolute() or Path(settings.benchmark).exists():
            raise
        hint = f"if it was moved, say where it is: dgm resume {opened.name} --benchmark PATH"
        raise UserError(f"{error}; {hint}") from error
    assemble.check_benchmark(opened, parts)
    if elsewhere and opened.tree.agents:
        asyncio.run(rehearse("the seed", opened.source(SEED), parts.engine, settings.limits))
    return parts


def _rehearse_seed(settings: Settings, parts: assemble.Parts) -> None:
    """Find out whether the seed can start, before anything is asked of a provider; raises as ``rehearse``."""
    name = settings.seed_agent or "the shipped seed"
    source = assemble.seed_source(settings.seed_agent)
    asyncio.run(rehearse(name, source, parts.engine, settings.limits))


def _with_models(settings: Settings) -> Settings:
    """The settings with ``auto`` replaced by a model; says which and why."""
    if AUTO not in all_names(settings):
        return settings
    settled, why = settle(settings, ask_to_spend)
    sys.stderr.write(f"model: {why}\n")
    return settled


def _check_again(settings: Settings, run: Run) -> Sequence[Checked]:
    """Check the models: a wrong key is found at once, a provider that is away is waited for by the search itself."""
    try:
        return check_run(settings, run)
    except Infrastructure as error:
        sys.stderr.write(f"{error}; the search will wait for it\n")
        return ()


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name) or name in RESERVED:
        raise UserError(
            f"--name '{name}': a run's name is made of letters, digits, '.', '_' and '-' (not {RESERVED})"
        )
    return name


def _dotted(flags: dict[str, Any]) -> dict[str, Any]:
    names = {"policy": "policy.name", "until_score": "budget.until_score", "patience": "budget.patience"} | {
        f"max_{limit}": f"budget.{limit}" for limit in ("evaluations", "agents", "usd", "tokens", "hours")
    }
    return {names.get(key, key): value for key, value in flags.items()}


def _budget(before: Budget, flags: dict[str, Any]) -> Budget:
    """The old budget with what the flags change."""
    given = {key.removeprefix("max_"): value for key, value in flags.items() if value is not None}
    for key, value in given.items():
        if value <= 0:
            raise UserError(f"--max-{key} {value}: a budget must be above 0")
    seconds = given["hours"] * 3600 if "hours" in given else before.seconds
    return Budget(
        given.get("evaluations", before.evaluations),
        given.get("agents", before.agents),
        given.get("usd", before.usd),
        given.get("tokens", before.tokens),
        seconds,
        before.expansion_cost,
        given.get("until_score", before.score),
        given.get("patience", before.patience),
    )


def _go(made: Run, settings: Settings, parts: assemble.Parts, as_json: bool) -> int:
    with progress(made, quiet=as_json) as shown:
        try:
            over = asyncio.run(_search(made, settings, parts, shown))
        except asyncio.CancelledError:
            sys.stderr.write(
                f"stopped at once; nothing recorded is lost; resume with: dgm resume {made.name}\n"
            )
            return INTERRUPTED
    if as_json:
        emit_json({**run_summary(made), "ended": over.reason.value})
    else:
        write(status_lines(made))
    _say_next(made, over)
    return EXIT.get(over.reason, 0)


def _say_next(made: Run, over: Ending) -> None:
    next_step = (
        f"look with: dgm tree {made.name}"
        if over.reason in (Reason.GOAL, Reason.STANDSTILL)
        else f"resume with: dgm resume {made.name}"
    )
    # The words of a provider or an agent may stand in the message.
    sys.stderr.write(f"{one_line(over.message + _childless(made, over), 1_000)}; {next_step}\n")


def _childless(made: Run, over: Ending) -> str:
    """That no child was born, where the search ended for another reason than that."""
    tree = made.tree
    if over.reason is Reason.CANNOT_GO_ON or len(tree.agents) > 1 or not tree.stillborn:
        return ""
    stages = ", ".join(f"{count} {stage}" for stage, count in sorted(tree.stillborn.items()))
    return f"; no child was born: {sum(tree.stillborn.values()):,} stillborn ({stages})"


async def _search(made: Run, settings: Settings, parts: assemble.Parts, shown: Progress) -> Ending:
    costs = FirstCosts(made, settings, shown.announce)

    def hear(recorded: Recorded) -> None:
        shown.event(recorded)
        costs.event(recorded)

    async with assemble.search(made, settings, parts, hear) as search:
        shown.attach(search)
        listen_for_signals(search, shown)
        return await search.go()
