"""``dgm tree``, ``show``, ``diff`` and ``lineage``: read a run, also while it is written."""

import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from itertools import starmap

import click

from dgm.analysis.accounts import Accounts
from dgm.analysis.agent_names import find_agent
from dgm.analysis.best import BestAgent, best_of, find_best
from dgm.analysis.given_up import count_given_up
from dgm.analysis.lineage import Lineage
from dgm.analysis.summary import run_summary
from dgm.archive.history import LIVING, evaluations_of, state
from dgm.archive.run import Run
from dgm.cli.arguments import agent_argument, as_json, open_run, run_argument
from dgm.cli.output import emit_json, show_patch
from dgm.cli.transcript import show_transcript
from dgm.domain import Agent, AgentId, Usage
from dgm.errors import UserError
from dgm.show.agent_records import full_record, member_record
from dgm.show.agents import find_tree_states, root_text
from dgm.show.attempts import find_attempt
from dgm.show.best import STAR_MEANS, best_lines, bound_text
from dgm.show.evaluations import evaluation_line
from dgm.show.making import making_lines
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, fact_line, make_line
from dgm.show.spend import account_lines, fruitless_lines, refusal_lines
from dgm.show.terminal import write_lines
from dgm.show.trees import step_lines, tree_lines
from dgm.show.words import given_up_text, interval_text, operator_text, tally_text

STARRED = 5_000
"""Maximum number of agents for which ``tree`` finds the best one before its first line; above, no row has a star."""


@click.command()
@run_argument
@click.option(
    "--depth", type=click.IntRange(min=0), help="Show agents down to this many steps from the seed."
)
@as_json
def tree(run_name: str, depth: int | None, as_json: bool) -> None:
    """Print the archive as a tree of agents; ★ is the best agent: the one that the policy recommends.

    Its lower bound stands below the tree: its rate on the search tasks is higher with 99 % probability. An only child
    (↓) stands straight below its parent; only branchings are indented.
    """
    with open_run(run_name) as run:
        if as_json:
            agents = [member_record(run, agent) for agent in run.tree.agents]
            emit_json({**run_summary(run), "agents": agents})
            return
        write_lines(_tree_lines(run, depth), crop=True)


def _tree_lines(run: Run, depth: int | None) -> Iterator[Line]:
    tree, width = run.tree, _terminal_width()
    if not tree.agents:
        return
    many = len(tree.agents) > STARRED
    found = _find_best_in_thread(run) if many else None
    best = None if many else find_best(run)
    for _, shown in tree_lines(
        tree,
        best.agent if best else None,
        depth,
        width=width,
        states=find_tree_states(tree, living=state(run) in LIVING),
    ):
        yield shown
    if best := best or (found.result() if found else None):
        yield from best_lines(tree, best)


def _find_best_in_thread(run: Run) -> "Future[BestAgent]":
    """Look for the best agent in a thread that does not delay the program's exit."""
    found: Future[BestAgent] = Future()

    def look() -> None:
        try:
            found.set_result(find_best(run))
        except BaseException as error:  # noqa: BLE001  # raised where the result is asked for
            found.set_exception(error)

    threading.Thread(target=look, daemon=True).start()
    return found


def _terminal_width() -> int | None:
    """Return the width of a terminal in cells; None if the output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@click.command()
@run_argument
@agent_argument
@click.option(
    "--transcript",
    "task",
    metavar="TASK",
    help="Print all that is kept of AGENT's evaluation on TASK: patch, tests, and what its model said.",
)
@click.option(
    "--attempt",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --transcript: the attempt to print (default: the newest).",
)
@as_json
def show(run_name: str, agent_name: str, task: str | None, attempt: int | None, as_json: bool) -> None:
    """Print one agent (an id, 'best', 'seed' or a commit): origin, tallies, evaluations, cost.

    With --transcript TASK, print one of its evaluations as the browser shows it; --json gives the turns.
    """
    if attempt is not None and task is None:
        raise UserError("--attempt chooses an attempt at a task; give --transcript TASK as well")
    with open_run(run_name) as run:
        agent = find_agent(run, agent_name)
        if task is not None:
            show_transcript(run, *find_attempt(run, agent, task, attempt), as_json=as_json)
            return
        if as_json:
            emit_json(full_record(run, agent))
            return
        evaluations = evaluations_of(run, agent.id)
        accounts = Accounts(run)
        account = accounts.of(agent.id)
        write_lines(_agent_lines(run, agent))
        write_lines(account_lines(account, accounts.clade(agent.id)))
        write_lines(refusal_lines(accounts.refusals(agent.id)))
        write_lines([make_line(Span("evaluations:", Tone.STRONG))])
        for action, evaluation in evaluations.items():
            usage = sum(accounts.action(action).values(), Usage())
            write_lines([make_line("  ", *evaluation_line(evaluation, usage))])
        write_lines(fruitless_lines(account, evaluations))


def _agent_lines(run: Run, agent: Agent) -> Sequence[Line]:
    tree, own, clade = run.tree, run.tree.own(agent.id), run.tree.clade(agent.id)
    given_up = given_up_text(count_given_up(tree, agent.id))
    facts = {
        "agent": str(agent.id),
        "commit": agent.commit,
        "parents": ", ".join(map(str, agent.parents)) or f"– ({root_text(agent)})",
        "children": ", ".join(map(str, tree.children(agent.id))) or "–",
        "operator": operator_text(agent.operator, tree.aim(agent.id)),
        "rationale": one_line(agent.rationale, 200),
    }
    star = [fact_line("best", STAR_MEANS)] if agent.id == best_of(run) else []
    tallies = {
        "own": f"{tally_text(own)}  {interval_text(own)}  {bound_text(own)}  {given_up}".rstrip(),
        "clade": f"{tally_text(clade)}  {interval_text(clade)}",
    }
    return [
        *starmap(fact_line, facts.items()),
        *star,
        *making_lines(run, agent),
        *starmap(fact_line, tallies.items()),
    ]


@click.command()
@run_argument
@agent_argument
@click.argument("other_name", metavar="[OTHER]", required=False)
@as_json
def diff(run_name: str, agent_name: str, other_name: str | None, as_json: bool) -> None:
    """Print what AGENT changed against OTHER; without OTHER against its parent."""
    with open_run(run_name) as run:
        agent = find_agent(run, agent_name)
        parent = agent.parents[0] if agent.parents else AgentId(0)
        other = find_agent(run, other_name) if other_name else run.tree.agents[parent]
        patch = run.repository.diff(other.commit, agent.commit)
    if as_json:
        emit_json({"from": other.id, "to": agent.id, "patch": patch.decode("utf-8", "replace")})
        return
    show_patch(patch)


@click.command()
@run_argument
@agent_argument
@click.option("--patches", is_flag=True, help="Print each step's diff as well.")
@as_json
def lineage(run_name: str, agent_name: str, patches: bool, as_json: bool) -> None:
    """Print the steps from the seed to AGENT, each with its rationale and tally."""
    with open_run(run_name) as run:
        agent = find_agent(run, agent_name)
        steps = Lineage(run.tree, agent.id).agents
        if as_json:
            records = [member_record(run, step) for step in steps]
            emit_json({"run": run.name, "agent": agent.id, "lineage": records})
            return
        for step in steps:
            write_lines(
                (shown for _, shown in step_lines(run.tree, step.id, width=_terminal_width())), crop=True
            )
            if patches and step.parents:
                show_patch(run.repository.diff(run.tree.agents[step.parents[0]].commit, step.commit))
