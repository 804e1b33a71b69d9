"""A run and its agents as plain JSON documents, for ``--json`` and as the source of printed lists."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.analysis.accounts import Accounts, AgentAccount, Purpose, RoleAndModel
from dgm.analysis.best import best_of
from dgm.analysis.budgets import count_ended_expansions
from dgm.analysis.dead_ends import find_dead_end, read_last_output
from dgm.analysis.given_up import count_given_up
from dgm.archive.begun_checks import find_cut_checks
from dgm.archive.changes import format_assignments, merge_tables
from dgm.archive.deaths import CANNOT_GO_ON
from dgm.archive.history import LIVING, state, writer
from dgm.archive.run import Run
from dgm.config import LimitSettings
from dgm.domain import NO_ACTION, Agent, AgentId, Tally, Usage
from dgm.stats import best_of_many, lower_bound, wilson

SCHEMA = 1
ROLES = ("solve", "improve", "diagnose")
"""Roles of ``dgm.models.choose``; importing it would load much that reading a run does not need."""


def run_summary(run: Run) -> dict[str, Any]:
    """Return run, state, agents, evaluations by verdict, spend, and the best agent so far."""
    return run_facts(run, best_of(run) if run.tree.agents else None)


def run_facts(run: Run, best: AgentId | None) -> dict[str, Any]:
    """Return the same if the best agent is known already, or is not asked for; to find it may take long."""
    tree = run.tree
    total = tree.clade(AgentId(0)) if tree.agents else Tally()
    settings = run.settings()
    models = models_of(run)
    return {
        "schema": SCHEMA,
        "run": run.name,
        "folder": str(run.folder),
        "state": state(run),
        "paused": tree.paused,
        "benchmark": settings["benchmark"],
        "model": models_text(models),
        "models": models,
        "policy": settings["policy"]["name"],
        "sandbox": run.sandbox(),
        "seed": settings["seed"],
        "workers": settings["workers"],
        "agents": len(tree.agents),
        "stillborn": dict(sorted(tree.stillborn.items())),
        "dead_end": dead_end_record(run),
        "evaluations": {
            "graded": tree.evaluations,
            "resolved": total.resolved,
            "unresolved": total.unresolved,
            "invalid": tree.invalid,
        },
        "running": len(tree.pending),
        "waiting": len(tree.waiting),
        "budget": {
            "evaluations": tree.budget.evaluations,
            "agents": tree.budget.agents,
            "usd": tree.budget.usd,
            "tokens": tree.budget.tokens,
            "seconds": tree.budget.seconds,
            "until_score": tree.budget.score,
            "patience": tree.budget.patience,
            **_expansion_record(run),
        },
        "seconds": round(tree.wall_seconds, 1),
        "spend": {
            **spend_record(tree.spend),
            "by": usage_records(tree.spend_by),
            "left_usd": remaining_usd(run),
        },
        "refusals": tree.refusals,
        "model_notes": model_notes(run),
        "cut_calls": cut_calls_record(run),
        "changes": format_assignments(changes_of(run)),
        "withdrawn": tree.withdrawals.total,
        "best": None if best is None else agent_record(run, tree.agents[best]),
    }


def dead_end_record(run: Run) -> dict[str, Any] | None:
    """Return why the children of a search died that could not go on; None for any other run."""
    if run.tree.stop_reason != CANNOT_GO_ON:
        return None
    usual = LimitSettings().stillborn_in_a_row
    end = find_dead_end(run.tree, run.settings()["limits"].get("stillborn_in_a_row", usual))
    if end is None:
        return None
    dead = end.last.outcome
    return {
        "times": end.times,
        "stages": dict(end.stages),
        "stage": dead.stage,
        "reason": dead.reason,
        "action": end.last.action,
        "output": read_last_output(run, end),
        "may_help": end.may_help,
    }


def model_notes(run: Run) -> dict[str, Any]:
    """Return the facts learned about each model, and the wait that goes on now, if there is one."""
    facts = run.tree.model_facts
    waits = facts.waits
    going_on = waits is not None and waits.until > time.time() and not run.tree.stop_reason
    return {
        "learned": {model: list(words) for model, words in facts.words.items()},
        "waits": {"model": waits.model, "words": waits.words, "until": waits.until}
        if waits and going_on
        else None,
    }


def cut_calls_record(run: Run) -> list[dict[str, Any]]:
    """Return the unanswered model calls that a process's death cut off, each at its worst case.

    If no process writes the run, they include the calls that the last process left open. These include checks
    of models (action 0), and are not in the spend yet.
    """
    calls = run.tree.model_calls
    found = [(key, one.model, one.usage, True) for key, one in calls.cut.items()]
    if state(run) not in LIVING:
        found += [(key, one.model, one.most, False) for key, one in calls.open.items()]
    if writer(run.folder) is None:
        checks = enumerate(find_cut_checks(run.folder), 1)
        found += [((NO_ACTION, number), model, most, False) for number, (model, most) in checks]
    return [
        {"action": action, "number": number, "model": model, "in_spend": booked, **spend_record(usage)}
        for (action, number), model, usage, booked in sorted(found, key=lambda item: item[0])
    ]


def changes_of(run: Run) -> Mapping[str, Any]:
    """Return the current values of the settings that were changed since the run was made; nested."""
    found: Mapping[str, Any] = {}
    for _, change in run.tree.changes:
        found = merge_tables(found, change)
    return found


def _expansion_record(run: Run) -> dict[str, Any]:
    """Return an expansion's cost in evaluations and the number of ended expansions; empty if the cost is 0."""
    cost = run.tree.budget.expansion_cost
    return {"expansion_cost": cost, "expansions": count_ended_expansions(run.tree)} if cost else {}


def agent_record(run: Run, agent: Agent) -> dict[str, Any]:
    """Return one agent: origin, tallies, place in the tree."""
    tree = run.tree
    own = tree.own(agent.id)
    return {
        "agent": agent.id,
        "id": agent.id,
        "parents": list(agent.parents),
        "children": list(tree.children(agent.id)),
        "depth": tree.depth(agent.id),
        "commit": agent.commit,
        "operator": agent.operator,
        "rationale": agent.rationale,
        "own": tally_record(own),
        "clade": tally_record(tree.clade(agent.id)),
        "lower_bound": round(lower_bound(own), 6),
        "given_up": count_given_up(tree, agent.id),
    }


def tally_record(tally: Tally) -> dict[str, Any]:
    """Return counts, rate and the 95 % Wilson interval of the rate."""
    low, high = wilson(tally)
    return {
        "resolved": tally.resolved,
        "unresolved": tally.unresolved,
        "n": tally.n,
        "rate": round(tally.rate, 6),
        "interval": [round(low, 6), round(high, 6)],
    }


def corrected_rate_record(run: Run, agent: AgentId) -> dict[str, Any] | None:
    """Return the agent's rate on the search tasks, and that rate corrected for the choice of this agent by its rate.

    None if there was no choice: the agent itself or all others were not evaluated. The assumptions of the
    correction are stated at ``dgm.stats.best_of_many``.
    """
    tree = run.tree
    tallies = [tree.own(other.id) for other in tree.agents]
    evaluated = sum(tally.n > 0 for tally in tallies)
    if not tallies[agent].n or evaluated < 2:
        return None
    return {
        "agent": agent,
        "evaluated": evaluated,
        "rate": round(tallies[agent].rate, 6),
        "corrected_rate": round(best_of_many(tallies[agent], tallies), 6),
    }


def spend_record(usage: Usage) -> dict[str, Any]:
    """Return model calls, tokens and money (USD)."""
    return {
        "calls": usage.calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "tokens": usage.tokens,
        "usd": round(usage.usd, 6),
        "cached_tokens": usage.cached_tokens,
        "written_tokens": usage.written_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cached_share": round(cached_input_share(usage), 6),
    }


def usage_records(by: Mapping[RoleAndModel, Usage]) -> list[dict[str, Any]]:
    """Return the same by role and model, the most expensive first."""
    dearest = sorted(by.items(), key=lambda item: (-item[1].usd, -item[1].tokens, item[0]))
    return [{"role": role, "model": model, **spend_record(usage)} for (role, model), usage in dearest]


def accounts_record(run: Run) -> list[dict[str, Any]]:
    """Return each agent's spend, by purpose, by role and model, and by action."""
    accounts = Accounts(run)
    agents = [agent.id for agent in run.tree.agents]
    return [{"agent": agent, **account_record(accounts.of(agent), accounts.clade(agent))} for agent in agents]


def account_record(account: AgentAccount, clade: Usage) -> dict[str, Any]:
    """Return an agent's spend, by purpose, by role and model, and by action."""
    return {
        **{purpose.value: spend_record(account.of(purpose)) for purpose in Purpose},
        "total": spend_record(account.total),
        "clade": spend_record(clade),
        "by": usage_records(account.by),
        "actions": [
            {"action": line.action, "purpose": line.purpose.value, "by": usage_records(line.by)}
            for line in account.lines
        ],
    }


def cached_input_share(usage: Usage) -> float:
    """Return the share of the input tokens that came from the provider's cache, from 0 to 1."""
    return usage.cached_tokens / usage.input_tokens if usage.input_tokens else 0.0


def remaining_usd(run: Run) -> float | None:
    """Return the rest of the run's budget in USD, at least 0; None if it sets no limit."""
    limit = run.tree.budget.usd
    return None if limit is None else max(0.0, round(limit - run.tree.spend.usd, 6))


def models_of(run: Run) -> dict[str, str]:
    """Return role → the name of its model, from the run's settings.

    Several models read ``2 one + 1 other``, with their weights.
    """
    settings = run.settings()
    own = settings.get("models", {})
    return {role: _model_names_text(own.get(role)) or settings["model"] for role in ROLES}


def _model_names_text(said: str | Sequence[Mapping[str, Any]] | None) -> str:
    if said is None or isinstance(said, str):
        return said or ""
    if len(said) == 1:
        return str(said[0]["model"])
    return " + ".join(f"{each['weight']:g} {each['model']}" for each in said)


def models_text(models: Mapping[str, str]) -> str:
    """Return one name if all roles have the same model, else each model with its roles."""
    roles: dict[str, list[str]] = {}
    for role, model in models.items():
        roles.setdefault(model, []).append(role)
    if len(roles) == 1:
        return next(iter(roles))
    return ", ".join(f"{model} ({', '.join(those)})" for model, those in roles.items())
