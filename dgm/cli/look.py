"""``dgm tree``, ``show``, ``diff``, ``lineage`` and ``log``: read a run, also while it is written."""

import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from dgm.archive.accounts import Account, Accounts, Purpose, RoleAndModel
from dgm.archive.events import Recorded
from dgm.archive.history import evaluations_of
from dgm.archive.lineage import Lineage
from dgm.archive.operator_accounts import aims_of
from dgm.archive.run import Run
from dgm.cli.arguments import agent_argument, as_json, find_agent, open_run, run_argument
from dgm.cli.making_rows import making_lines, making_record
from dgm.cli.output import emit_json, neutral, one_line, show_patch
from dgm.cli.rows import agent_text, interval_text, operator_text, tally_text, tree_lines, usage_text
from dgm.domain import ActionId, Agent, AgentId, Evaluation, Usage
from dgm.errors import UserError
from dgm.search.best import best_of
from dgm.search.summary import account_record, agent_record, by_record, run_summary, spend_record

REFUSALS = 10
"""Different ones shown to people."""


@click.command()
@run_argument
@click.option(
    "--depth", type=click.IntRange(min=0), help="Show agents down to this many steps from the seed."
)
@as_json
def tree(run_name: str, depth: int | None, as_json: bool) -> None:
    """Print the archive as a tree of agents; ★ is the best-belief agent."""
    with open_run(run_name) as run:
        if as_json:
            aims = aims_of(run)
            agents = [_member_record(run, agent, aims) for agent in run.tree.agents]
            emit_json({**run_summary(run), "agents": agents})
            return
        best = best_of(run) if run.tree.agents else None
        for line in tree_lines(run.tree, best, depth, aims_of(run)):
            sys.stdout.write(line + "\n")


@click.command()
@run_argument
@agent_argument
@as_json
def show(run_name: str, agent_name: str, as_json: bool) -> None:
    """Print one agent (an id, 'best', 'seed' or a commit): origin, tallies, evaluations, cost."""
    with open_run(run_name) as run:
        agent = find_agent(run, agent_name)
        evaluations = evaluations_of(run, agent.id)
        accounts = Accounts(run)
        account = accounts.of(agent.id)
        if as_json:
            record = _member_record(run, agent, aims_of(run))
            record["making"] = making_record(run, agent)
            record["cost"] = spend_record(account.of(Purpose.MAKING))
            record["spend"] = account_record(account, accounts.clade(agent.id))
            record["refusals"] = [asdict(refusal) for refusal in accounts.refusals(agent.id)]
            record["evaluations"] = [
                _evaluation_record(action, e, accounts.action(action)) for action, e in evaluations.items()
            ]
            emit_json(record)
            return
        for line in [*_agent_lines(run, agent), *_account_lines(accounts, agent.id), "evaluations:"]:
            sys.stdout.write(line + "\n")
        for action, evaluation in evaluations.items():
            sys.stdout.write(f"  {_evaluation_text(evaluation, accounts.action(action))}\n")
        for line in _fruitless_lines(account, evaluations):
            sys.stdout.write(line + "\n")


def _member_record(run: Run, agent: Agent, aims: Mapping[AgentId, str]) -> dict[str, Any]:
    return {**agent_record(run, agent), "aim": aims.get(agent.id, "")}


def _agent_lines(run: Run, agent: Agent) -> list[str]:
    own, clade = run.tree.own(agent.id), run.tree.clade(agent.id)
    return [
        f"agent      {agent.id}",
        f"commit     {agent.commit}",
        f"parents    {', '.join(map(str, agent.parents)) or '– (the seed)'}",
        f"children   {', '.join(map(str, run.tree.children(agent.id))) or '–'}",
        f"operator   {operator_text(agent.operator, aims_of(run).get(agent.id, ''))}",
        f"rationale  {one_line(agent.rationale, 200)}",
        *making_lines(run, agent),
        f"own        {tally_text(own)}  {interval_text(own)}",
        f"clade      {tally_text(clade)}  {interval_text(clade)}",
    ]


def _account_lines(accounts: Accounts, agent: AgentId) -> list[str]:
    account = accounts.of(agent)
    refusals = accounts.refusals(agent)
    shown = [f"  {each.times} times {one_line(f'{each.code}: {each.message}', 150)}" for each in refusals]
    return [
        "spend:",
        f"  making it           {usage_text(account.of(Purpose.MAKING))}",
        f"  evaluating it       {usage_text(account.of(Purpose.EVALUATING))}",
        f"  stillborn children  {usage_text(account.of(Purpose.STILLBORN))}",
        f"  unfinished children {usage_text(account.of(Purpose.UNFINISHED))}",
        f"  its clade in all    {usage_text(accounts.clade(agent))}",
        *(["refused by the gateway:", *shown[:REFUSALS]] if shown else []),
        *([f"  and {len(shown) - REFUSALS} more"] if len(shown) > REFUSALS else []),
    ]


def _fruitless_lines(account: Account, evaluations: Collection[ActionId]) -> list[str]:
    """What was paid for actions that gave neither the agent nor a verdict on it."""
    lines = [
        f"  action {line.action:<6} {line.purpose:<10}  {usage_text(line.usage)}"
        for line in account.lines
        if line.by and line.purpose is not Purpose.MAKING and line.action not in evaluations
    ]
    return ["paid for without a result (yet):", *lines] if lines else []


def _evaluation_text(evaluation: Evaluation, by: Mapping[RoleAndModel, Usage]) -> str:
    usage = sum(by.values(), Usage())
    took = f"{evaluation.cost.seconds:6.1f} s  {usage.tokens:>9,} tokens  {usage.usd:7.4f} USD"
    return f"{evaluation.verdict:<10} {took}  {evaluation.task}: {one_line(evaluation.reason, 100)}"


def _evaluation_record(
    action: int, evaluation: Evaluation, by: Mapping[RoleAndModel, Usage]
) -> dict[str, Any]:
    return {
        "action": action,
        "task": evaluation.task,
        "attempt": evaluation.attempt,
        "verdict": evaluation.verdict.value,
        "reason": evaluation.reason,
        "score": evaluation.score,
        "seconds": round(evaluation.cost.seconds, 3),
        "cost": {**spend_record(sum(by.values(), Usage())), "by": by_record(by)},
        "traces": dict(evaluation.cost.traces),
    }


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
        aims = aims_of(run)
        if as_json:
            records = [_member_record(run, step, aims) for step in steps]
            emit_json({"run": run.name, "agent": agent.id, "lineage": records})
            return
        for step in steps:
            for parent in step.parents[1:]:
                other = agent_text(run.tree, run.tree.agents[parent], None, aims.get(parent, ""))
                sys.stdout.write(f"   with {other}\n")
            sys.stdout.write(agent_text(run.tree, step, None, aims.get(step.id, "")) + "\n")
            if patches and step.parents:
                before = run.tree.agents[step.parents[0]].commit
                sys.stdout.write(neutral(run.repository.diff(before, step.commit).decode("utf-8", "replace")))


@click.command()
@run_argument
@click.option("--after", type=click.IntRange(min=0), default=0, help="Print events after this number.")
@click.option("--kind", help="Print events of this kind only, such as task_graded.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document a line and nothing else.")
def log(run_name: str, after: int, kind: str | None, as_json: bool) -> None:
    """Print the events of a run, oldest first."""
    from dgm.archive.codec import KINDS

    if kind is not None and kind not in KINDS:
        raise UserError(f"--kind {kind}: there are {', '.join(KINDS)}")
    with open_run(run_name) as run:
        for recorded in run.store.read(after):
            _print_event(recorded, kind, as_json)


def _print_event(recorded: Recorded, kind: str | None, as_json: bool) -> None:
    import json

    from dgm.archive.codec import encode

    name, action, body = encode(recorded.event)
    if kind and kind != name:
        return
    if as_json:
        document = {"seq": recorded.seq, "at": recorded.at, "kind": name, "action": action}
        sys.stdout.write(json.dumps({**document, "body": json.loads(body)}) + "\n")
        return
    at = datetime.fromtimestamp(recorded.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    number = "" if action is None else str(action)
    sys.stdout.write(f"{recorded.seq:>7}  {at}  {name:<15} {number:>5}  {one_line(body, 120)}\n")
