"""A run and its agents as plain JSON documents: what ``--json`` prints and what people's lists are made from."""

from typing import Any

from dgm.archive.history import state
from dgm.archive.run import Run
from dgm.domain import Agent, AgentId, Tally, Usage
from dgm.policies.best_belief import best_belief
from dgm.stats import lower_bound, wilson

SCHEMA = 1


def run_summary(run: Run) -> dict[str, Any]:
    """Run, state, agents, evaluations by verdict, spend, and the best agent so far."""
    tree = run.tree
    total = tree.clade(AgentId(0)) if tree.agents else Tally()
    settings = run.config["settings"]
    return {
        "schema": SCHEMA,
        "run": run.name,
        "folder": str(run.folder),
        "state": state(run),
        "benchmark": settings["benchmark"],
        "model": settings["model"],
        "policy": settings["policy"]["name"],
        "sandbox": run.config["sandbox"],
        "seed": settings["seed"],
        "workers": settings["workers"],
        "agents": len(tree.agents),
        "stillborn": dict(sorted(tree.stillborn.items())),
        "evaluations": {
            "graded": tree.evaluations,
            "resolved": total.resolved,
            "unresolved": total.unresolved,
            "invalid": tree.invalid,
        },
        "running": len(tree.pending),
        "budget": {
            "evaluations": tree.budget.evaluations,
            "agents": tree.budget.agents,
            "usd": tree.budget.usd,
            "tokens": tree.budget.tokens,
            "seconds": tree.budget.seconds,
        },
        "seconds": round(tree.wall_seconds, 1),
        "spend": spend_record(tree.spend),
        "best": agent_record(run, tree.agents[best_belief(tree)]) if tree.agents else None,
    }


def agent_record(run: Run, agent: Agent) -> dict[str, Any]:
    """One agent: origin, tallies, place in the tree."""
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
    }


def tally_record(tally: Tally) -> dict[str, Any]:
    """Counts, rate and the 95 % Wilson interval of the rate."""
    low, high = wilson(tally)
    return {
        "resolved": tally.resolved,
        "unresolved": tally.unresolved,
        "n": tally.n,
        "rate": round(tally.rate, 6),
        "interval": [round(low, 6), round(high, 6)],
    }


def spend_record(usage: Usage) -> dict[str, Any]:
    """Model calls, tokens and money."""
    return {
        "calls": usage.calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "tokens": usage.tokens,
        "usd": round(usage.usd, 6),
    }
