"""``dgm run``, ``dgm resume`` and ``dgm stop``."""

import inspect
import sys
from collections.abc import Callable
from json import dumps
from typing import Annotated, Any

from cyclopts import Parameter

from dgm.analysis.budgets import Ending, Reason
from dgm.api.arguments import assignments_of
from dgm.api.batching import BatchRunView, BatchView, evolve_batch
from dgm.api.control import StopView
from dgm.api.control import stop as stop_run
from dgm.api.search import Evolution, evolve, settings_of_arguments, settings_of_receivers
from dgm.api.search import plan as plan_search
from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.batch.perform import Stage
from dgm.cli.app import call_with_consent, derive, derive_parameters, make_flag, print_json
from dgm.cli.complaint import FAILED, INTERRUPTED, LIMIT, USAGE
from dgm.cli.output import make_console, print_view
from dgm.cli.signals import print_line
from dgm.cli.watching import TerminalWatcher
from dgm.errors import UserError
from dgm.paths import preset_file, preset_names
from dgm.render import fmt
from dgm.render.plan_text import render_plan
from dgm.render.report_text import cheapest_text
from dgm.render.safe import one_line
from dgm.render.text import render_run
from dgm.search.loop import AT_ONCE
from dgm.views.agents import AgentRow
from dgm.views.objective import CheapestView
from dgm.views.run import RunView

EXIT = {
    Reason.LIMIT: LIMIT,
    Reason.OUTAGE: FAILED,
    Reason.CANNOT_GO_ON: FAILED,
    Reason.REFUSED: USAGE,
    Reason.ENDLESS: USAGE,
}
YES = make_flag("yes", "Skip the cost confirmation.")
REPEATED = {
    "agent": Annotated[list[str] | None, Parameter(name=("--agent", "--seed-agent"))],
    "sink": Annotated[list[str] | None, Parameter(metavar="ADDRESS")],
    "notify": Annotated[list[str] | None, Parameter(metavar="URL")],
}
"""Parameter that takes one text or several → the option that may be repeated."""
RUN = inspect.Parameter(
    "run",
    inspect.Parameter.POSITIONAL_ONLY,
    annotation=Annotated[str, Parameter(help="Name or folder of the run.")],
)
NAME_CELLS, MESSAGE_CELLS = 100, 1_000
STAGE_STYLES = {
    Stage.FINISHED: "green",
    Stage.SPENT: "yellow",
    Stage.INTERRUPTED: "yellow",
    Stage.FAILED: "red",
}


class SearchView(RunView):
    """A run after a session of its search."""

    ended: str
    """Why the session ended."""
    cheapest: CheapestView | None
    """None without an agent."""


def _option(
    name: str, kind: Any, text: str, default: object = None, metavar: str | None = None
) -> inspect.Parameter:
    annotation = Annotated[kind, Parameter(help=text, metavar=metavar)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _command(
    function: Callable[..., int], source: Callable[..., Any], *extra: inspect.Parameter, omit: tuple[str, ...]
) -> Callable[..., int]:
    """Give a function the parameters and the help of a function of the Python API, and further parameters."""
    *options, trust, json = derive_parameters(source, trust=True, omit=omit)
    options = [option.replace(annotation=REPEATED.get(option.name, option.annotation)) for option in options]
    parameters = sorted([*options, *extra, trust, json], key=lambda parameter: parameter.kind)
    function.__doc__ = source.__doc__
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function


def _run(
    file: str | None = None,
    *,
    seeds: str | None = None,
    vary: list[str] | None = None,
    parallel: int = 1,
    plan: bool = False,
    yes: bool = False,
    trust: bool = False,
    json: bool = False,
    **options: Any,
) -> int:
    if options.get("preset") == "list":
        return _print_presets(json=json)
    watcher = TerminalWatcher(quiet=json, yes=yes)
    if seeds is not None and "seed" in options:
        raise UserError("contradicts the seeds; give one of them", argument="seed")
    if plan:
        return _plan(file, watcher, json=json, batch=seeds is not None or bool(vary), **options)
    if seeds is None and not vary:
        if parallel != 1:
            raise UserError("needs seeds or values to vary", argument="parallel")
        watcher.names_run = "name" not in options
        return _search(lambda: evolve(file, watcher=watcher, **options), watcher, trust=trust)
    name, texts, preset = (options.pop(key, None) for key in ("name", "settings", "preset"))
    receivers = settings_of_receivers(options.pop("sink", None), options.pop("notify", None))
    settings = [*(texts or ()), *assignments_of({**settings_of_arguments(**options), **receivers})]

    def perform() -> BatchView:
        return evolve_batch(
            file,
            preset=preset,
            name=name,
            seeds=seeds,
            vary=vary or (),
            parallel=parallel,
            settings=settings,
            on_run=None if json else _print_run,
            watcher=watcher,
        )

    batch = call_with_consent(perform, agree=trust)
    if json:
        print_json(batch)
    else:
        _print_batch(batch)
    return batch.exit_code


def _print_presets(*, json: bool) -> int:
    lines = {
        name: preset_file(name).read_text(encoding="utf-8").partition("\n")[0] for name in preset_names()
    }
    presets = {name: line.removeprefix("# ") for name, line in lines.items()}
    text = dumps(presets, indent=2) if json else "\n".join(f"{name:<15} {presets[name]}" for name in presets)
    sys.stdout.write(f"{text}\n")
    return 0


def _plan(file: str | None, watcher: TerminalWatcher, *, json: bool, batch: bool, **options: Any) -> int:
    if batch:
        raise UserError("plans one run; leave out --seeds and --vary", argument="plan")
    for without_run in ("name", "sink", "notify"):
        options.pop(without_run, None)
    view = plan_search(file, watcher=watcher, **options)
    if json:
        print_json(view)
    else:
        print_view(render_plan(view))
    return 0


def _resume(run: str, *, yes: bool = False, trust: bool = False, json: bool = False, **options: Any) -> int:
    watcher = TerminalWatcher(quiet=json, yes=yes)
    with Evolution.open(find_run(run, write=True)) as opened:
        return _search(lambda: opened.resume(watcher=watcher, **options), watcher, trust=trust)


run = _command(
    _run,
    evolve,
    _option("seeds", str | None, "A run with each seed: 1:4 (1, 2 and 3) or 1,2,5."),
    _option("vary", list[str] | None, "A run with each value of a setting.", None, "KEY=A,B"),
    _option("parallel", int, "Runs at once, with --seeds or --vary.", 1),
    make_flag("plan", "Print what the budget buys; run nothing."),
    YES,
    omit=("operators", "sandbox", "allow_paid"),
)
resume = _command(_resume, Evolution.resume, RUN, YES, omit=("allow_paid", "objects"))


def _print_stop(view: StopView) -> None:
    name = one_line(view.run, NAME_CELLS)
    if not view.stopped:
        print_line(f"{name} is not running")
        return
    host = f" on {one_line(view.host, NAME_CELLS)}" if view.host else ""
    print_line(f"asked pid {view.pid}{host} to stop; to continue later: dgm resume {name}")


stop = derive(stop_run, _print_stop)


def _search(call: Callable[[], Evolution], watcher: TerminalWatcher, *, trust: bool) -> int:
    try:
        evolution = call_with_consent(call, agree=trust)
    except KeyboardInterrupt:
        if not watcher.run_name:
            raise
        sys.stderr.write(f"{AT_ONCE.message}; to continue: dgm resume {watcher.run_name}\n")
        return INTERRUPTED
    return _print_outcome(evolution, json=watcher.quiet)


def _print_outcome(evolution: Evolution, *, json: bool) -> int:
    ending = evolution.ending
    assert ending is not None, "a session was performed"
    run = evolution.run
    if json:
        cheapest = CheapestView.load(run) if run.tree.agents else None
        print_json(SearchView(**dict(RunView.load(run)), cheapest=cheapest, ended=ending.reason.value))
    elif ending != AT_ONCE:
        make_console().print(render_run(RunView.load(run)))
        if run.tree.agents and (text := cheapest_text(CheapestView.load(run))):
            print_line(f"cheapest: {text}")
    next_step = (
        f"to look at it: dgm show {run.name}"
        if ending.reason in (Reason.GOAL, Reason.STANDSTILL)
        else f"to continue: dgm resume {run.name}"
    )
    if ending.reason is Reason.LIMIT:
        next_step += " with a larger limit"
    # The message may quote a provider or an agent.
    sys.stderr.write(
        f"{one_line(ending.message + _childless_note(run, ending), MESSAGE_CELLS)}; {next_step}\n"
    )
    return INTERRUPTED if ending == AT_ONCE else EXIT.get(ending.reason, 0)


def _childless_note(run: Run, ending: Ending) -> str:
    """Return a note that no child was born, if the search ended for another reason; else nothing."""
    tree = run.tree
    if ending.reason is Reason.CANNOT_GO_ON or len(tree.agents) > len(tree.roots) or not tree.stillborn:
        return ""
    stages = ", ".join(f"{count} {stage}" for stage, count in sorted(tree.stillborn.items()))
    return f"; no child was born: {sum(tree.stillborn.values()):,} stillborn ({stages})"


def _print_run(run: BatchRunView) -> None:
    facts = "" if run.stage is Stage.RUNNING else f": {_run_facts(run)}"
    print_line(f"{run.run}  {one_line(run.state, MESSAGE_CELLS)}{facts}")


def _run_facts(run: BatchRunView) -> str:
    best = _best_text(run.best) if run.best else "none"
    return f"{fmt.count(run.evaluations, 'evaluation')}, best {best}, {fmt.money(run.usd)}"


def _best_text(best: AgentRow) -> str:
    return f"agent {best.agent}: {fmt.tally(best.own)} (lower bound {best.lower_bound:.2f})"


def _print_batch(batch: BatchView) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("run", "state", "evaluations", "agents", f"{fmt.BEST} best agent", "USD", box=None)
    for row in batch.runs:
        best = Text(_best_text(row.best) if row.best else fmt.DASH)
        state = Text(row.stage.value, STAGE_STYLES.get(row.stage, "dim"))
        table.add_row(row.run, state, str(row.evaluations), str(row.agents), best, f"{row.usd:.4f}")
    make_console().print(table)
    for row in batch.runs:
        if row.stage is Stage.FAILED:
            sys.stderr.write(f"{row.run} failed: {one_line(row.state, MESSAGE_CELLS)} (see {row.log})\n")
    if all(row.stage in (Stage.FINISHED, Stage.SPENT) for row in batch.runs):
        sys.stderr.write(f"to compare them: dgm report '{batch.name}-*'\n")
    else:
        sys.stderr.write("to continue: repeat the command\n")
