"""``dgm evaluate``: evaluate agents on every task of a split, outside of a search; or grade the patches of a file."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dgm import assemble
from dgm.analysis.agent_names import find_agent
from dgm.analysis.budgets import Ending
from dgm.archive.events import Recorded
from dgm.archive.repository import tree_id
from dgm.archive.run import Run
from dgm.benchmarks.opening import make_paths_absolute
from dgm.cli.arguments import Amount, as_json
from dgm.cli.consent import ask_to_spend
from dgm.cli.evaluate_predictions import grade_predictions
from dgm.cli.evaluation import DONE, make_slug, open_evaluation, perform_session, report_missing, select_tasks
from dgm.cli.model_check import check_run
from dgm.cli.output import emit_json
from dgm.config import Settings
from dgm.domain import Snapshot, Split, Task
from dgm.errors import AgentFault, UserError
from dgm.evaluation.evaluating import (
    EvaluationPlan,
    EvaluationProgress,
    Schedule,
    apply_assignments,
    collect_results,
)
from dgm.evaluation.exam import enter_under_key, find_entered
from dgm.meta.contract import read_contract
from dgm.models.auto import settle_auto
from dgm.models.choose import AUTO, names_by_role
from dgm.publish.finding import archive_folders, find_run
from dgm.replay.recorded import choose_sandbox
from dgm.search.availability import GatewayAvailability
from dgm.search.loop import LoopHooks, Search
from dgm.search.model_checks import note_checks
from dgm.search.run_controller import RunController
from dgm.show.evaluate_rows import EvaluationReport, report_lines, report_record
from dgm.simulate import check_performed
from dgm.worker.rehearsal import rehearse

SETTABLE = ("models", "limits", "benchmarks", "workers", "sandbox")


@dataclass(frozen=True, slots=True)
class Contestant:
    """An agent under evaluation."""

    name: str
    """Name for people."""
    key: str
    """Key of the agent's entry in the evaluation."""
    source: Callable[[], Snapshot]
    vetted: bool = False
    """Whether the agent passed vetting at birth, or was the seed of a search."""


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """The agents, tasks and conditions of an evaluation."""

    contestants: Sequence[Contestant]
    base: Path
    """Parent of the evaluation's folder, unless the user names another folder."""
    prefix: str
    """Prefix of the folder's name."""
    of: str
    """Id of the run that the agents belong to; empty if they belong to none."""
    settings: Settings
    split: Split
    tasks: tuple[str, ...]
    """Ids of the tasks; if empty, all of the split."""
    attempts: int
    max_usd: float | None
    into: Path | None


@click.command()
@click.argument("names", metavar="[RUN AGENT…]", nargs=-1)
@click.option(
    "--seed-agent", "seed_agents", multiple=True, metavar="PATH", help="An agent's folder or git repository."
)
@click.option(
    "--predictions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Grade the patches of this .jsonl or .json file instead; nobody works. Needs --benchmark.",
)
@click.option("--benchmark", help="Another benchmark than the run's (starter without a run).")
@click.option(
    "--split", type=click.Choice([split.value for split in Split]), help="Which tasks (default holdout)."
)
@click.option(
    "--task", "--tasks", "tasks", multiple=True, metavar="TASK", help="Only this task; may be repeated."
)
@click.option(
    "--attempts",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Times that each task is tried.",
)
@click.option("--model", help="Another model than the run's (auto without a run).")
@click.option(
    "--max-usd",
    type=Amount(),
    help="Money for the evaluation, earlier sessions included; only a provider that bills more than it was asked "
    "for can cross it.",
)
@click.option("--workers", type=click.IntRange(1, 256), help="Tasks at once (default: the run's).")
@click.option(
    "--sandbox", type=click.Choice(["auto", "docker", "bubblewrap"]), help="Default: as in the run."
)
@click.option("--into", type=click.Path(path_type=Path), help="Folder to record it in (default: in RUN).")
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A setting, such as limits.calls."
)
@click.option("--verbose", is_flag=True, help="List what is unresolved, with the reason.")
@as_json
def evaluate(
    names: tuple[str, ...],
    seed_agents: tuple[str, ...],
    predictions: Path | None,
    split: str | None,
    tasks: tuple[str, ...],
    attempts: int,
    max_usd: float | None,
    into: Path | None,
    verbose: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Let agents of RUN (ids, 'best', 'seed', commits) work on every task of a split, and say how well they do.

    It is recorded in a folder of its own; the same command goes on where it ended and pays for nothing twice.
    """
    if predictions:
        given = {
            "AGENT": names,
            "--seed-agent": seed_agents,
            "--model": flags.pop("model"),
            "--max-usd": max_usd,
        }
        _check_no_agent(given, attempts)
        if not flags["benchmark"]:
            raise UserError(
                "--predictions: say whose tasks they are on: --benchmark swebench:verified, for example"
            )
        benchmark = flags.pop("benchmark")
        return grade_predictions(
            predictions, benchmark, split, tasks, into, flags, verbose=verbose, as_json=as_json
        )
    if len(names) < 2 and not (seed_agents and not names):
        raise UserError("say who is evaluated: dgm evaluate RUN AGENT…, or dgm evaluate --seed-agent PATH")
    with ExitStack() as opened:
        run = opened.enter_context(Run.open(find_run(names[0], write=into is None))) if names else None
        if run:
            check_performed(run)
        contestants = [_run_contestant(run, name) for name in names[1:]] if run else []
        contestants += [_folder_contestant(where) for where in seed_agents]
        plan = EvaluationRequest(
            contestants=list({one.key: one for one in contestants}.values()),
            base=run.folder if run else next(archive_folders()).absolute(),
            prefix="evaluate" if run else "evaluate-" + "-".join(one.key[:8] for one in contestants),
            of=run.config["id"] if run else "",
            settings=_build_settings(run, **flags),
            split=Split(split or Split.HOLDOUT),
            tasks=tasks,
            attempts=attempts,
            max_usd=max_usd,
            into=into,
        )
        return _perform_request(plan, model_given=bool(flags["model"]), verbose=verbose, as_json=as_json)


def _check_no_agent(given: Mapping[str, object], attempts: int) -> None:
    words = [name for name, value in given.items() if value] + (["--attempts"] if attempts != 1 else [])
    if words:
        raise UserError(
            f"--predictions: patches are only graded, no agent works; leave out {', '.join(words)}"
        )


def _run_contestant(run: Run, name: str) -> Contestant:
    agent = find_agent(run, name)
    return Contestant(
        f"agent {agent.id}", agent.commit, lambda: run.repository.source(agent.commit), vetted=True
    )


def _folder_contestant(where: str) -> Contestant:
    source = assemble.read_seed(where)
    return Contestant(where, tree_id(source), lambda: source)


def _build_settings(
    run: Run | None,
    *,
    benchmark: str | None,
    model: str | None,
    workers: int | None,
    sandbox: str | None,
    assignments: Sequence[str],
) -> Settings:
    before = assemble.settings_of(run) if run else Settings()
    base = before.model_dump(mode="json")
    # An evaluation neither improves nor diagnoses: no other model needs to be there, or be paid.
    base["model"] = model or names_by_role(before)["solve"]
    base["models"] |= {"solve": None, "improve": None, "diagnose": None}
    if run:
        base["sandbox"] = choose_sandbox(run)
    own = {"benchmark": benchmark, "workers": workers, "sandbox": sandbox}
    base |= {key: value for key, value in own.items() if value is not None}
    settings = make_paths_absolute(apply_assignments(base, assignments, SETTABLE, "dgm evaluate"))
    if AUTO not in names_by_role(settings).values():
        return settings
    settled, why = settle_auto(settings, ask_to_spend)
    sys.stderr.write(f"model: {why}\n")
    return settled


def _perform_request(plan: EvaluationRequest, *, model_given: bool, verbose: bool, as_json: bool) -> int:
    packages = _common_packages(plan.contestants)
    parts = assemble.parts_of(plan.settings)
    tasks = select_tasks(parts.benchmark, plan.split, plan.tasks)
    model = names_by_role(plan.settings)["solve"]
    words = [plan.prefix, parts.benchmark.name, plan.split.value, *([model] if model_given else [])]
    folder = plan.into or plan.base / "-".join(map(make_slug, words))
    frozen = {
        "of": plan.of,
        "benchmark": parts.benchmark.name,
        "version": parts.benchmark.version,
        "split": plan.split.value,
        "requires": packages,
        "model": model,
        "limits": plan.settings.limits.model_dump(mode="json"),
        "benchmarks": plan.settings.benchmarks.model_dump(mode="json"),
    }
    if not (folder / "run.json").exists():
        _rehearse(plan.contestants, plan, parts)
    with open_evaluation(folder, frozen, plan.settings, parts) as made:
        over = _perform_missing(made, plan, parts, tasks, quiet=as_json)
        wanted = _make_plan(made, plan, tasks)
        found = EvaluationReport(
            folder=made.folder,
            benchmark=parts.benchmark,
            split=plan.split.value,
            model=model,
            names=[one.name for one in plan.contestants],
            results=collect_results(made, wanted),
            tasks=tasks,
            attempts=plan.attempts,
            ended=over,
        )
    if as_json:
        emit_json(report_record(found))
    else:
        sys.stdout.write("\n".join(report_lines(found, verbose=verbose)) + "\n")
    return report_missing(over, found)


def _common_packages(contestants: Sequence[Contestant]) -> list[str]:
    """Return the agents' requirements, which are the same for all agents of one evaluation."""
    try:
        needs = {one.name: sorted(read_contract(one.source()).requires) for one in contestants}
    except AgentFault as fault:
        raise UserError(f"nothing that can work on a task: {fault}") from fault
    first = next(iter(needs))
    for name, packages in needs.items():
        if packages != needs[first]:
            raise UserError(
                f"{name} requires other packages than {first}; evaluate each in a folder of its own"
            )
    return needs[first]


def _rehearse(contestants: Sequence[Contestant], plan: EvaluationRequest, parts: assemble.RunParts) -> None:
    """Find out whether unvetted agents can start; raise as ``rehearse``."""
    for one in contestants:
        if not one.vetted:
            asyncio.run(rehearse(one.name, one.source(), parts.engine, plan.settings.limits))


def _find_usd_limit(made: Run, max_usd: float | None) -> float | None:
    """Return the total limit of the evaluation in USD: the one given now, else the last one given."""
    usd = max_usd if max_usd is not None else made.tree.budget.usd
    if max_usd is not None and max_usd <= made.tree.spend.usd:
        raise UserError(
            f"--max-usd {max_usd}: the evaluation has cost {made.tree.spend.usd:.4f} USD already; give more"
        )
    return usd


def _make_plan(made: Run, plan: EvaluationRequest, tasks: Sequence[Task]) -> EvaluationPlan:
    agents = [find_entered(made, one.key) for one in plan.contestants]
    return EvaluationPlan(
        tuple(agent for agent in agents if agent is not None), tuple(task.id for task in tasks), plan.attempts
    )


def _perform_missing(
    made: Run, plan: EvaluationRequest, parts: assemble.RunParts, tasks: Sequence[Task], *, quiet: bool
) -> Ending:
    """Perform the missing evaluations; if none is missing, call no model and spend nothing."""
    if made.tree.agents:
        wanted = _make_plan(made, plan, tasks)
        if len(wanted.agents) == len(plan.contestants) and not EvaluationProgress(made).missing(wanted):
            return DONE
        # Find this out before any model is called.
        _find_usd_limit(made, plan.max_usd)
        _rehearse([one for one in plan.contestants if find_entered(made, one.key) is None], plan, parts)
        note_checks(made, plan.settings, check_run(plan.settings, made))
    for one in plan.contestants:
        enter_under_key(made, one.key, one.source)
    wanted = _make_plan(made, plan, tasks)

    @asynccontextmanager
    async def searching(on_event: Callable[[Recorded], None]) -> AsyncIterator[Search]:
        async with assemble.open_worker(made, plan.settings, parts, on_event) as worker:
            around = LoopHooks(on_event, GatewayAvailability(worker.gateway))
            yield Search(RunController(made, plan.settings), Schedule(wanted), worker, plan.settings, around)

    usd = _find_usd_limit(made, plan.max_usd)
    return perform_session(made, wanted, [one.name for one in plan.contestants], usd, searching, quiet=quiet)
