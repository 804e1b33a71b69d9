"""The data of the page of tasks × agents: the tasks and all agents' tallies, and the verdicts of some agents."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.archive.tree import Tree
from dgm.domain import AgentId, Evaluate, TaskId, Verdict
from dgm.errors import UserError
from dgm.views.tasks import list_tasks
from dgm.web.shared import RunSource, parse_number

AGENTS = 256
"""Maximum number of agents in a request for verdicts."""
MARKS = {Verdict.RESOLVED: "y", Verdict.UNRESOLVED: "n"}
NO_VERDICT, RUNNING, UNTRIED = "i", "r", "."
"""Letters of cells: every attempt was invalid so far, the first one is under way, and none was started."""


def load_page(source: RunSource, _: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the values of the page."""
    tree = source.run.tree
    return {"agents": len(tree.agents), "tasks": len(tree.tasks)}


def load_tasks(source: RunSource, _: Mapping[str, str]) -> bytes:
    """Return the search tasks with their tallies, in the order of the suite."""
    rows = list_tasks(source.run)[: len(source.run.tree.tasks)]
    tasks = {
        "name": [row.task for row in rows],
        "resolved": [row.tally.resolved for row in rows],
        "n": [row.tally.n for row in rows],
        "state": [row.state for row in rows],
    }
    return json.dumps({"seq": source.run.tree.seq, "tasks": tasks}).encode()


def load_cells(source: RunSource, values: Mapping[str, str]) -> bytes:
    """Return agent → a letter for each search task, in the order of the suite.

    Raises:
        UserError: an agent does not exist, or there are too many.
    """
    tree = source.run.tree
    names = values.get("agents", "").split(",")
    agents = {parse_number(name, "agent") for name in names}
    if len(names) > AGENTS or max(agents) >= len(tree.agents):
        raise UserError(f"agents: at most {AGENTS} numbers below {len(tree.agents)}")
    running = {
        (what.agent, what.task)
        for what in tree.pending.values()
        if isinstance(what, Evaluate) and what.attempt == 0
    }
    cells = {agent: row_of(tree, AgentId(agent), tree.tasks, running) for agent in sorted(agents)}
    return json.dumps({"seq": tree.seq, "cells": cells}).encode()


def row_of(tree: Tree, agent: AgentId, tasks: Sequence[TaskId], running: set[tuple[AgentId, TaskId]]) -> str:
    """Return a letter for the first verdict of an agent on each task."""
    verdicts = tree.verdicts(agent)

    def letter(task: TaskId) -> str:
        if task not in verdicts:
            return UNTRIED
        verdict = verdicts[task]
        if verdict is None:
            return RUNNING if (agent, task) in running else NO_VERDICT
        return MARKS[verdict]

    return "".join(map(letter, tasks))
