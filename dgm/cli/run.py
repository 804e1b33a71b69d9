"""``dgm run`` and ``dgm resume``: a search from the command line."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dgm import assemble, launch
from dgm.analysis.budgets import Ending, Reason
from dgm.analysis.summary import run_summary
from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.benchmarks.opening import make_paths_absolute
from dgm.cli.arguments import Amount, ScoreShare, as_json, engine_option, run_argument
from dgm.cli.complaint import FAILED, INTERRUPTED, LIMIT, USAGE
from dgm.cli.output import emit_json
from dgm.cli.progress import RunProgress, show_progress
from dgm.cli.spending import FirstCosts, confirm_grader, confirm_spending, tell_prices, yes_option
from dgm.cli.watching import TerminalWatcher
from dgm.config import Settings, resolve
from dgm.domain import Budget
from dgm.errors import Infrastructure
from dgm.evaluation.evaluating import apply_assignments
from dgm.models.reach import file_models, require_own_file
from dgm.search.mending import SETTABLE
from dgm.search.stopping import AT_ONCE
from dgm.show.safe import one_line
from dgm.show.status import status_lines
from dgm.show.terminal import write_lines
from dgm.show.words import count_text

EXIT = {
    Reason.LIMIT: LIMIT,
    Reason.OUTAGE: FAILED,
    Reason.CANNOT_GO_ON: FAILED,
    Reason.REFUSED: USAGE,
    Reason.ENDLESS: USAGE,
}


def budget_options(command: Any) -> Any:
    """Add the limits that ``run`` and ``resume`` share."""
    for option in (
        click.option(
            "--patience",
            type=click.IntRange(min=1),
            help="End when no better agent was recommended in this many evaluations.",
        ),
        click.option(
            "--until-score",
            type=ScoreShare(),
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
    "--model",
    help="openai/…, anthropic/…, openai-compatible/…, offline, scripted:FILE (default auto: says why).",
)
@click.option("--policy", help="Which step comes next (default lineage).")
@click.option("--operator", help="How a child is made; several joined by + (default self-edit).")
@click.option("--workers", type=int, help="Steps at once (default 2).")
@click.option("--sandbox", help="auto, docker, bubblewrap, ray, or a plug-in (default auto).")
@click.option("--seed", type=int, help="Number that all decisions follow from (default 0).")
@click.option("--seed-agent", help="plain, solid, or a folder or git repository: the agent to start from.")
@click.option("--name", help="Name of the run, a folder under ./archive or $DGM_ARCHIVE.")
@click.option(
    "--timeout-factor", type=Amount(), help="Give agents this many times their wall time, for slow models."
)
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Any setting, by dotted name.")
@engine_option
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
    settings = make_paths_absolute(resolve(config, assignments, _dot_setting_names(flags)))
    if config:
        require_own_file(config, settings, file_models(config))
    folder = launch.new_folder(name)
    watcher = SearchWatcher(yes=yes)
    prepared = asyncio.run(launch.prepare(settings, watcher))
    tell_prices(prepared.settings)
    with launch.create(folder, prepared) as made:
        if name is None:
            sys.stderr.write(f"name: {folder.name} (in {folder.parent})\n")
        return _perform_search(made, prepared, watcher, as_json)


@click.command()
@run_argument
@click.option("--workers", type=click.IntRange(1, 4096), help="Steps at once, for this session.")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting from here on: models.*, providers.*, limits.*, scale.*, workers or sandbox.",
)
@click.option("--benchmark", help="Where the run's benchmark lies now; its content must be the same.")
@click.option(
    "--regrade",
    type=click.Choice(["refused"]),
    help="'refused': perform again what was graded unresolved after the model had been refused to the agent.",
)
@engine_option
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
        launch.check_is_search(opened)
        watcher = SearchWatcher(yes=yes)
        settings = _change_settings(opened, assignments, benchmark)
        budget = launch.change_budget(assemble.budget_of(opened, settings), _strip_limit_names(flags))
        again = launch.prepare_again(opened, settings, budget, watcher, regrade=regrade is not None)
        prepared = asyncio.run(again)
        if workers is not None:
            prepared = replace(prepared, settings=prepared.settings.model_copy(update={"workers": workers}))
        return _perform_search(opened, prepared, watcher, as_json)


def _change_settings(opened: Run, assignments: Sequence[str], benchmark: str | None) -> Settings:
    """Return the settings of a run with a person's changes."""
    before = assemble.settings_of(opened)
    after = (
        apply_assignments(before.model_dump(mode="json"), assignments, SETTABLE, "dgm resume")
        if assignments
        else before
    )
    return make_paths_absolute(after.model_copy(update={"benchmark": benchmark})) if benchmark else after


class SearchWatcher(TerminalWatcher):
    """A watcher of a search: it also asks before much is spent, and tells what the first evaluations cost."""

    def __init__(self, *, yes: bool) -> None:
        """Ask nothing about money if ``yes`` was given."""
        super().__init__()
        self._yes = yes

    def confirm(self, settings: Settings, budget: Budget, spent_usd: float) -> None:
        """Ask if the session may cost more than the user's limit for spending unasked."""
        confirm_spending(settings, budget, spent_usd, yes=self._yes)

    def confirm_grader(self, change: str) -> None:
        """Ask whether the search may go on under another grader."""
        confirm_grader(change, yes=self._yes)

    def model_away(self, error: Infrastructure) -> None:
        """Say that the search will wait."""
        sys.stderr.write(f"{error}; the search will wait for it\n")

    def withdrawn(self, evaluations: int) -> None:
        """Say how many evaluations are performed again."""
        sys.stderr.write(f"to be performed again: {count_text(evaluations, 'evaluation')}\n")

    def show(self, made: Run, settings: Settings, shown: RunProgress) -> None:
        """Show events of a run from now on, and the cost of its first evaluations."""
        self.attach(shown, FirstCosts(made, settings, shown.announce))


def _dot_setting_names(flags: dict[str, Any]) -> dict[str, Any]:
    names = {
        "policy": "policy.name",
        "until_score": "budget.until_score",
        "patience": "budget.patience",
        "timeout_factor": "limits.time_factor",
    } | {f"max_{limit}": f"budget.{limit}" for limit in ("evaluations", "agents", "usd", "tokens", "hours")}
    return {names.get(key, key): value for key, value in flags.items()}


def _strip_limit_names(flags: dict[str, Any]) -> dict[str, Any]:
    """Return the limits among the flags by the names that budgets give them."""
    return {key.removeprefix("max_"): value for key, value in flags.items()}


def _perform_search(
    made: Run, prepared: launch.PreparedSession, watcher: SearchWatcher, as_json: bool
) -> int:
    with show_progress(made, quiet=as_json) as shown:
        watcher.show(made, prepared.settings, shown)
        try:
            over = asyncio.run(launch.perform(made, prepared, watcher))
        except asyncio.CancelledError:
            over = AT_ONCE
    if over == AT_ONCE:
        sys.stderr.write(f"{over.message}; resume with: dgm resume {made.name}\n")
        return INTERRUPTED
    if as_json:
        emit_json({**run_summary(made), "ended": over.reason.value})
    else:
        write_lines(status_lines(made))
    _say_next(made, over)
    return EXIT.get(over.reason, 0)


def _say_next(made: Run, over: Ending) -> None:
    next_step = (
        f"look with: dgm tree {made.name}"
        if over.reason in (Reason.GOAL, Reason.STANDSTILL)
        else f"resume with: dgm resume {made.name}"
    )
    # The message may quote a provider or an agent.
    sys.stderr.write(f"{one_line(over.message + _childless_note(made, over), 1_000)}; {next_step}\n")


def _childless_note(made: Run, over: Ending) -> str:
    """Return a note that no child was born, if the search ended for another reason; else nothing."""
    tree = made.tree
    if over.reason is Reason.CANNOT_GO_ON or len(tree.agents) > 1 or not tree.stillborn:
        return ""
    stages = ", ".join(f"{count} {stage}" for stage, count in sorted(tree.stillborn.items()))
    return f"; no child was born: {sum(tree.stillborn.values()):,} stillborn ({stages})"
