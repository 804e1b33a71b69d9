"""The data of the tree page: the columns of all agents or of those that changed, the facts of one, and the search.

The script of the page lays the tree out and draws it, because it has to do so again whenever the user folds a clade.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgm.analysis.agents import find_agent, find_matching
from dgm.archive.events import AgentBorn, TaskGraded, VerdictWithdrawn
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import AgentId, Tally
from dgm.stats import wilson
from dgm.views.agents import AgentRow, agent_states
from dgm.web.shared import RunSource, parse_number

CHANGES = 5_000
"""Maximum number of events of which only the changed agents are sent; after more, all are."""
MATCHES = 10_000
"""Maximum number of agents in an answer to a search."""
WORDS = 200
"""Maximum number of characters to search for."""


def load_page(source: RunSource, _: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the values of the tree page."""
    return {"agents": len(source.run.tree.agents)}


def load_tree(source: RunSource, values: Mapping[str, str]) -> bytes:
    """Return the columns of the agents that changed after event ``since``; by default those of all agents.

    Raises:
        UserError: ``since`` is no number.
    """
    run, since = source.run, parse_number(values.get("since", "0"), "since")
    changed = find_changed(run, since) if since else None
    answer = {
        "seq": run.tree.seq,
        "ids": changed,
        **_columns(run.tree, changed),
        "best": source.best(),
        "front": sorted(run.tree.front),
        "states": _states(run),
    }
    return json.dumps(answer, separators=(",", ":")).encode()


def load_row(source: RunSource, values: Mapping[str, str]) -> bytes:
    """Return the row of one agent, as ``dgm tree --json`` prints it.

    Raises:
        UserError: there is no such agent.
    """
    agent = find_agent(source.run, values.get("agent", ""))
    states = source.memo("states", lambda: agent_states(source.run))
    return AgentRow.of(source.run.tree, agent, source.best(), states).model_dump_json().encode()


def load_matches(source: RunSource, values: Mapping[str, str]) -> bytes:
    """Return the numbers of the agents that match some words, as the search of ``dgm browse`` finds them."""
    matches = find_matching(source.run.tree, values.get("words", "")[:WORDS])
    return json.dumps({"agents": matches[:MATCHES], "more": max(0, len(matches) - MATCHES)}).encode()


def find_changed(run: Run, since: int) -> Sequence[int] | None:
    """Return the agents that were born, or whose own or clade tally changed, after an event; None: maybe all."""
    tree = run.tree
    if since > tree.seq:
        return None
    # The sign keeps SQLite from reading all events of these kinds by their index.
    kinds = "+kind IN ('agent_born', 'task_graded', 'verdict_withdrawn')"
    events = run.store.select(f"seq > ? AND seq <= ? AND {kinds}", (since, tree.seq))
    changed: set[int] = set()
    for number, recorded in enumerate(islice(events, CHANGES + 1)):
        if number == CHANGES:
            return None
        match recorded.event:
            case AgentBorn(id=agent):
                changed.add(agent)
            case TaskGraded(outcome=what) | VerdictWithdrawn(what=what):
                changed |= {what.agent, *tree.ancestors(what.agent)}
            case _:
                pass
    return sorted(changed)


def _columns(tree: Tree, changed: Sequence[int] | None) -> Mapping[str, Any]:
    """Return the columns of some agents, parents first; None: all."""
    rows = slice(None) if changed is None else np.array(changed, dtype=np.int64)
    agents = tree.agents if changed is None else [tree.agents[number] for number in changed]
    operators = list(dict.fromkeys(agent.operator for agent in tree.agents))
    numbers = {operator: number for number, operator in enumerate(operators)}
    resolved, unresolved = tree.own_resolved[rows], tree.own_unresolved[rows]
    low, high = measure_intervals(resolved, unresolved)
    columns = {
        "resolved": resolved,
        "n": resolved + unresolved,
        "cladeResolved": tree.clade_resolved[rows],
        "cladeN": tree.clade_resolved[rows] + tree.clade_unresolved[rows],
        "low": low,
        "high": high,
    }
    return {
        "agents": {
            "parent": [agent.parents[0] if agent.parents else -1 for agent in agents],
            "operator": [numbers[agent.operator] for agent in agents],
            **{name: column.tolist() for name, column in columns.items()},
        },
        "operators": operators,
        "crossovers": [(agent.id, agent.parents[1:]) for agent in agents if len(agent.parents) > 1],
    }


def measure_intervals(
    resolved: NDArray[np.int64], unresolved: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ends of 95 % intervals in whole per cent; tallies that are equal are computed once."""
    size = int(unresolved.max(initial=0)) + 1
    tallies, rows = np.unique(resolved * size + unresolved, return_inverse=True)
    ends = [wilson(Tally(*divmod(tally, size))) for tally in tallies.tolist()]
    low, high = np.rint(100 * np.array(ends).reshape(-1, 2)).astype(np.int64)[rows].T
    return low, high


def _states(run: Run) -> Mapping[str, Sequence[AgentId]]:
    """Return state → the agents in it; idle ones are left out."""
    states: dict[str, list[AgentId]] = {}
    for agent, state in agent_states(run).items():
        states.setdefault(state.value, []).append(agent)
    return states
