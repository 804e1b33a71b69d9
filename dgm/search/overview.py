"""The whole search as an operator may see it: a row for each agent, and what is left of the budget."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping

from dgm.analysis.budgets import sum_evaluations_spent
from dgm.archive.events import TaskGraded
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Usage
from dgm.meta.evidence import BUDGET_FILE, TABLE_FILE
from dgm.stats import wilson

_TITLES = (
    "agent",
    "parents",
    "operator",
    "solved",
    "evaluations",
    "clade_solved",
    "clade_evaluations",
    "clade_gain",
    "clade_expansions",
    "stillborn_children",
    "tokens",
    "usd",
    "change",
)


def read_overview(run: Run, action: ActionId) -> Mapping[str, bytes]:
    """Return the files of an overview as they were when the action was first started; used in a thread.

    ``archive.tsv`` has a row for each agent whose edit has no findings, those with the highest rates (lower end of the
    interval) first. ``clade_gain`` is that of ``Tree.clade_gain``; ``tokens`` and ``usd`` are the spend on making and
    evaluating the agent. ``budget.json`` has each limit of the search, with what is used and left of it.
    """
    tree, evaluations = Tree(), defaultdict[AgentId, list[ActionId]](list)
    with tree.many():
        for recorded in run.store.read(0, run.store.starts_of_action(action)[0][0] - 1):
            tree.apply(recorded)
            if isinstance(recorded.event, TaskGraded):
                evaluations[recorded.event.outcome.agent].append(recorded.event.action)
    rows = ["\t".join(row) for row in _rows(tree, evaluations)]
    table = "\n".join(["\t".join(_TITLES), *rows, ""])
    return {TABLE_FILE: table.encode("utf-8", "replace"), BUDGET_FILE: _describe_budget(tree)}


def _rows(tree: Tree, evaluations: Mapping[AgentId, list[ActionId]]) -> Iterator[tuple[str, ...]]:
    agents = [agent for agent in tree.agents if agent.id not in tree.flagged]
    for agent in sorted(agents, key=lambda agent: (-wilson(tree.own(agent.id))[0], agent.id)):
        own, clade = tree.own(agent.id), tree.clade(agent.id)
        gain, expansions = tree.clade_gain(agent.id)
        actions = {*evaluations.get(agent.id, ()), *([agent.action] if agent.parents else ())}
        spend = sum(map(tree.spend_of, actions), Usage())
        yield (
            *(str(agent.id), ",".join(map(str, agent.parents)), agent.operator),
            *map(str, (own.resolved, own.n, clade.resolved, clade.n)),
            *(f"{gain:+.3f}" if expansions else "", str(expansions), str(tree.stillbirths[agent.id])),
            *(str(spend.tokens), f"{spend.usd:.4f}"),
            " ".join(agent.rationale.split()),
        )


def _describe_budget(tree: Tree) -> bytes:
    budget = tree.budget
    uses = {
        "evaluations": (sum_evaluations_spent(tree), budget.evaluations),
        "agents": (len(tree.agents), budget.agents),
        "tokens": (tree.spend.tokens, budget.tokens),
        "usd": (tree.spend.usd, budget.usd),
        "seconds": (round(tree.wall_seconds), budget.seconds),
    }
    limits = {
        name: {"used": used, "limit": limit, "left": None if limit is None else max(0, limit - used)}
        for name, (used, limit) in uses.items()
    }
    return json.dumps(limits, indent=1).encode() + b"\n"
