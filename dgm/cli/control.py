"""``dgm status`` and ``dgm stop``: what a search is doing, and how to end it in good order."""

import os
import signal
import socket
import sys
import time

import click

from dgm.archive.finding import find_run
from dgm.archive.history import state, writer
from dgm.archive.run import Run
from dgm.cli.approve_rows import waiting_line
from dgm.cli.arguments import as_json, open_run, run_argument
from dgm.cli.output import console, emit_json, one_line
from dgm.cli.rows import interval_text, tally_text, usage_lines, usage_text, usd_text
from dgm.domain import Tally, Usage
from dgm.errors import UserError
from dgm.search.budgets import budget_taken
from dgm.search.summary import cached_share, run_summary


@click.command()
@run_argument
@click.option("--watch", is_flag=True, help="Print again every two seconds until the run ends.")
@as_json
def status(run_name: str, watch: bool, as_json: bool) -> None:
    """Say how far a search is, what it has spent, and which agent is best."""
    with open_run(run_name) as run:
        while True:
            if as_json:
                emit_json(run_summary(run))
            else:
                sys.stdout.write("\n".join(status_lines(run)) + "\n")
            if not watch or state(run) not in ("running", "paused"):
                return
            sys.stdout.flush()
            time.sleep(2.0)
            run.follow()


def status_lines(run: Run) -> list[str]:
    """The state of a run for people."""
    facts = run_summary(run)
    graded, budget = facts["evaluations"], facts["budget"]
    goal = f" of {budget['evaluations']}" if budget["evaluations"] else ""
    state = one_line(facts["state"], 200)
    dead = ", ".join(f"{n} {stage}" for stage, n in facts["stillborn"].items())
    verdicts = ", ".join(f"{graded[name]} {name}" for name in ("resolved", "unresolved", "invalid"))
    lines = [
        f"run          {facts['run']} ({state}, {facts['seconds']:.0f} s, {facts['running']} running)",
        f"searches     {facts['benchmark']} with {facts['model']}, policy {facts['policy']}, in {facts['sandbox']}",
        f"agents       {facts['agents']}" + (f"; stillborn: {one_line(dead, 400)}" if dead else ""),
        f"evaluations  {graded['graded']}{goal}: {verdicts}",
        *([f"budget       {taken}"] if (taken := budget_taken(run.tree)) else []),
        *_spend_lines(run),
    ]
    if facts["paused"]:
        lines.insert(1, f"paused       {one_line(facts['paused'], 200)}")
    if facts["waiting"]:
        lines.insert(3, waiting_line(facts["waiting"], facts["run"]))
    if facts["refusals"]:
        which = f"dgm log {facts['run']} --kind call_refused"
        lines.append(f"refused      {facts['refusals']} requests of agents (which ones: {which})")
    best = facts["best"]
    if best:
        own = Tally(best["own"]["resolved"], best["own"]["unresolved"])
        lines.append(
            f"best         agent {best['id']}: {tally_text(own)} {interval_text(own)}, "
            f"lower bound {best['lower_bound']:.2f}  {one_line(best['rationale'], 60)}"
        )
    if "offline" in facts["models"].values():
        lines.append(
            "note         offline model: a repair program, not a language model; scores are a demonstration"
        )
    return lines


def _spend_lines(run: Run) -> list[str]:
    """What the run took and may take; by role and model where there are several."""
    spend, by, limit = run.tree.spend, run.tree.spend_by, run.tree.budget.usd
    of_limit = "" if limit is None else f" of {usd_text(limit)} USD, {max(0.0, limit - spend.usd):.4f} left"
    text = usage_text(spend)
    lines = [f"spend        {text.removesuffix(' USD') if of_limit else text}{of_limit}{_cached(spend)}"]
    return [*lines, *usage_lines(by, " " * 15)] if len(by) > 1 else lines


def _cached(usage: Usage) -> str:
    return f" ({cached_share(usage):.0%} of the input was cached)" if usage.cached_tokens else ""


@click.command()
@run_argument
@click.option("--now", is_flag=True, help="Do not wait for the steps that are under way.")
@as_json
def stop(run_name: str, now: bool, as_json: bool) -> None:
    """Ask a running search to end: it starts nothing new, records what is under way, and exits."""
    folder = find_run(run_name)
    holder, name = writer(folder), folder.resolve().name
    if holder is None:
        if as_json:
            emit_json({"run": name, "stopped": False, "state": "not running"})
        else:
            console().print(f"{name} is not running")
        return
    pid, host = holder
    if host != socket.gethostname():
        raise UserError(f"{name} is running on {host} (pid {pid}); stop it there")
    _terminate(pid, name)
    if now:
        time.sleep(0.5)
        _terminate(pid, name)
    if as_json:
        emit_json({"run": name, "stopped": True, "pid": pid})
    else:
        console().print(f"asked pid {pid} to stop; go on later with: dgm resume {run_name}")


def _terminate(pid: int, name: str) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise UserError(f"{name} is run by another user (pid {pid}); stop it as that user") from error
