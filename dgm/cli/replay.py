"""``dgm replay``: repeat the work of a run, and compare the results."""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from dgm import replay as replaying
from dgm.analysis.agent_names import find_agent
from dgm.analysis.budgets import Ending, Reason
from dgm.analysis.summary import spend_record
from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.cli.arguments import (
    Amount,
    agent_argument,
    as_json,
    engine_option,
    run_argument,
    sandbox_option,
)
from dgm.cli.complaint import FAILED, LIMIT
from dgm.cli.output import emit_json
from dgm.cli.watching import TerminalWatcher
from dgm.domain import AgentId, TaskId
from dgm.errors import UserError
from dgm.replay import How, Live, Match
from dgm.sessions.live_settings import choose_live_settings
from dgm.show.replay_rows import (
    action_record,
    action_text,
    again_record,
    again_text,
    head_record,
    live_lines,
    live_step_text,
    live_text,
    step_record,
    step_text,
    summary_text,
)
from dgm.show.words import count_text

BAD = (Match.DIFFERENT, Match.NOT_PERFORMED)


def live_options(command: Any) -> Any:
    """Add the options that ``lineage`` and ``evaluations`` share."""
    for option in (
        click.option(
            "--set",
            "assignments",
            multiple=True,
            metavar="KEY=VALUE",
            help="With --live: a setting, such as models.*.",
        ),
        click.option(
            "--max-usd",
            type=Amount(),
            help="With --live: what it may cost, in all.",
        ),
        click.option(
            "--into",
            type=click.Path(path_type=Path),
            help="With --live: folder to record it in (default in RUN).",
        ),
        click.option("--live", "model", metavar="MODEL", help="Do it again for real, by MODEL, and compare."),
        sandbox_option(),
        engine_option,
    ):
        command = option(command)
    return command


@click.group()
@run_argument
@click.pass_context
def replay(context: click.Context, run_name: str) -> None:
    """Do again what RUN did, and compare: decisions, the lineage of an agent, or evaluations.

    Nothing is written into RUN and no key is needed, unless --live asks a model for real.
    """
    context.obj = run_name
    # Its warnings concern divergences, which are printed with their steps.
    logging.getLogger("dgm.gateway").setLevel(logging.ERROR)


@replay.command()
@click.option("--live", "model", hidden=True)
@as_json
@click.pass_obj
def decisions(run_name: str, model: str | None, as_json: bool) -> int:
    """Ask the policy again every question that the run asked; needs no sandbox."""
    if model:
        raise UserError("--live: a decision asks no model, so there is nothing to do live; leave it out")
    with Run.open(find_run(run_name)) as run:
        found = replaying.decisions(run)
    first = found.first
    if as_json:
        record = None
        if first:
            did, says = action_record(first.did), action_record(first.says)
            record = {"seq": first.seq, "action": first.action, "did": did, "says": says}
        emit_json(
            {
                "run": run.name,
                "replay": "decisions",
                "identical": not found.differing,
                "asked": found.asked,
                "differing": found.differing,
                "first": record,
                "seconds": round(found.seconds, 3),
            }
        )
    elif first:
        sys.stdout.write(
            f"event {first.seq}, action {first.action}: the run did: {action_text(first.did)}; "
            f"the policy says now: {action_text(first.says)}\n"
            f"{found.differing} of {found.asked} decisions differ, the first is above; {found.seconds:.1f} s\n"
        )
    else:
        sys.stdout.write(f"{count_text(found.asked, 'decision')}, all identical, {found.seconds:.1f} s\n")
    return FAILED if found.differing else 0


@replay.command()
@agent_argument
@live_options
@as_json
@click.pass_obj
def lineage(
    run_name: str,
    agent_name: str,
    sandbox: str | None,
    model: str | None,
    into: Path | None,
    max_usd: float | None,
    assignments: tuple[str, ...],
    as_json: bool,
) -> int:
    """Perform every expansion from the seed to AGENT again, on recorded replies, and compare commit ids."""
    _check_live(model, into=into, max_usd=max_usd, set=assignments)
    with Run.open(_find_folder(run_name, model, into)) as run:
        agent = find_agent(run, agent_name).id
        if model:
            live = Live(
                choose_live_settings(run, model, None, assignments, {"sandbox": sandbox}, TerminalWatcher()),
                into,
                max_usd,
                on_step=_make_printer(as_json, live_step_text),
            )
            return _live_lineage(run, agent, live, as_json)
        began = time.monotonic()
        steps = asyncio.run(replaying.lineage(run, agent, sandbox, _make_printer(as_json, step_text)))
    matches = [step.match for step in steps]
    if as_json:
        emit_json(
            {
                **head_record(run, "lineage", matches, began),
                "agent": agent,
                "steps": [step_record(s) for s in steps],
            }
        )
    else:
        sys.stdout.write(summary_text("step", matches, began) + "\n")
    return _exit_code(matches)


@replay.command()
@click.argument("agent_names", metavar="[AGENT]…", nargs=-1)
@click.option("--task", help="Only of this task.")
@click.option(
    "--perform", is_flag=True, help="Let the agents work again on recorded replies; else only grade."
)
@click.option("--workers", type=click.IntRange(1, 4096), help="Evaluations at once (default: the run's).")
@click.option("--benchmark", help="With --live: another suite; its search split, the seed and AGENT.")
@live_options
@as_json
@click.pass_obj
def evaluations(
    run_name: str,
    agent_names: tuple[str, ...],
    task: str | None,
    perform: bool,
    workers: int | None,
    benchmark: str | None,
    sandbox: str | None,
    model: str | None,
    into: Path | None,
    max_usd: float | None,
    assignments: tuple[str, ...],
    as_json: bool,
) -> int:
    """Grade the recorded patches again in fresh sandboxes, of all agents or of AGENT, and compare verdicts."""
    _check_live(model, benchmark=benchmark, into=into, max_usd=max_usd, set=assignments)
    if model and perform:
        raise UserError("--perform works on recorded replies and --live on new ones; give one of them")
    with Run.open(_find_folder(run_name, model, into)) as run:
        agents = [find_agent(run, name).id for name in agent_names] or None
        chosen = TaskId(task) if task else None
        if model:
            own = {"sandbox": sandbox, "workers": workers}
            live = Live(
                choose_live_settings(run, model, benchmark, assignments, own, TerminalWatcher()),
                into,
                max_usd,
                on_evaluation=lambda agent, done: None if as_json else _print_line(live_text(agent, done)),
            )
            return _live_evaluations(run, live, agents, chosen, as_json)
        began = time.monotonic()
        how = How(perform, workers or run.settings()["workers"], _make_printer(as_json, again_text))
        done = asyncio.run(replaying.evaluations(run, agents, chosen, how, sandbox))
    matches = [again.match for again in done]
    if as_json:
        records = [again_record(again) for again in done]
        emit_json(
            {**head_record(run, "evaluations", matches, began), "performed": perform, "evaluations": records}
        )
    else:
        sys.stdout.write(
            summary_text(f"evaluation {'performed' if perform else 'graded'} again", matches, began) + "\n"
        )
    return _exit_code(matches)


def _check_live(model: str | None, **given: object) -> None:
    alone = [name for name, value in given.items() if value]
    if alone and not model:
        raise UserError(
            f"--{alone[0].replace('_', '-')} says how something is done live; give --live MODEL too"
        )


def _find_folder(run_name: str, model: str | None, into: Path | None) -> Path:
    return find_run(run_name, write=model is not None and into is None)


def _make_printer(quiet: bool, text: Callable[[Any], str]) -> Callable[[Any], None]:
    return (lambda _: None) if quiet else lambda item: _print_line(text(item))


def _exit_code(matches: Sequence[Match]) -> int:
    return FAILED if any(match in BAD for match in matches) else 0


def _live_lineage(run: Run, agent: AgentId, live: Live, as_json: bool) -> int:
    done = asyncio.run(replaying.live_lineage(run, agent, live))
    born = sum(step.born is not None for step in done.steps)
    same = sum(step.same for step in done.steps)
    if as_json:
        steps = [
            {
                "agent": s.agent,
                "commit": s.commit,
                "born": s.born,
                "stage": s.stage,
                "said": s.said,
                "same": s.same,
            }
            for s in done.steps
        ]
        emit_json(
            {
                "run": run.name,
                "replay": "lineage",
                "live": live.settings.model,
                "folder": str(done.folder),
                "ended": done.ending.reason.value,
                "agent": agent,
                "steps": steps,
                "missing": done.missing,
                "spend": spend_record(done.spend),
            }
        )
    else:
        if done.ending is replaying.DONE:
            for step in done.steps:
                _print_line(live_step_text(step))
        dead = len(done.steps) - born
        _print_line(
            f"{count_text(len(done.steps), 'step')} by {live.settings.model}: {born} born, {dead} stillborn, "
            f"{same} identical with the recorded commit"
        )
        _print_line(
            f"recorded in {done.folder}; {count_text(done.spend.calls, 'call')}, {done.spend.usd:.4f} USD"
        )
    return _report_ending(done.ending)


def _live_evaluations(
    run: Run, live: Live, agents: Sequence[AgentId] | None, task: TaskId | None, as_json: bool
) -> int:
    done = asyncio.run(replaying.live_evaluations(run, live, agents, task))
    if as_json:
        emit_json(
            {
                "run": run.name,
                "replay": "evaluations",
                "live": live.settings.model,
                "benchmark": live.settings.benchmark,
                "folder": str(done.folder),
                "ended": done.ending.reason.value,
                "missing": done.missing,
                "against_record": done.against_record and done.against_record.record(),
                "agents": {str(agent): one.record() for agent, one in done.agents.items()},
                "against_seed": {str(agent): one.record() for agent, one in done.against_seed.items()},
                "spend": spend_record(done.spend),
            }
        )
    else:
        sys.stdout.write("\n".join(live_lines(done, live.settings)) + "\n")
    return _report_ending(done.ending)


def _report_ending(over: Ending) -> int:
    if over.reason is Reason.NOTHING_LEFT:
        return 0
    more = " with a larger --max-usd" if over.reason is Reason.LIMIT else ""
    sys.stderr.write(f"{over.message}; repeat the command{more} to go on\n")
    return LIMIT if over.reason is Reason.LIMIT else FAILED


def _print_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
