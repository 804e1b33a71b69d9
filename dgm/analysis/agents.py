"""Agents of a run: the best one, those that a name or words mean, and the line from the seed to one of them.

``best`` has one meaning in every command, key and picture: the agent that the recommendation of the run's policy names.
Its lower bound is ``dgm.stats.lower_bound`` of its own verdicts under every policy, whatever measure the policy itself
recommends by. The agent with the plain top score may be another one: luck counts in it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from pydantic import ValidationError

from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.config import PolicySettings
from dgm.domain import Agent, AgentId, Evaluate
from dgm.errors import UserError
from dgm.policies.hgm import best_belief
from dgm.policies.registry import best_agent

UNNAMED = "hgm"
"""The policy of a run that names none; not today's default, which may change."""


def best_of(run: Run) -> AgentId:
    """Return the agent that the run recommends now; the run must have one."""
    return best_in(run, run.tree)


def best_in(run: Run, tree: Tree) -> AgentId:
    """Return the agent that the run's policy recommends in ``tree``, a fold of the run's log up to any moment.

    A run without a named policy is read as ``hgm`` would read it; so is one whose plug-in policy is not
    installed here.
    """
    frozen = {"name": UNNAMED, **run.config.get("settings", {}).get("policy", {})}
    try:
        policy = PolicySettings(
            **{key: frozen[key] for key in ("name", "recommendation", "alpha") if key in frozen}
        )
        return best_agent(policy, tree)
    except (UserError, ValidationError):
        return best_belief(tree)


def find_agent(run: Run, name: str) -> Agent:
    """Return an agent by id, ``best``, ``cheapest``, ``seed``, or the start of its commit.

    Raises:
        UserError: there is none, or several fit.
    """
    agents = run.tree.agents
    if not agents:
        raise UserError(f"run {run.name} has no agent yet; wait until its seed is born")
    if name == "best":
        return agents[best_of(run)]
    if name == "cheapest":
        from dgm.analysis.cheapest import cheapest_of

        answer = cheapest_of(run)
        if answer.shown is None:
            raise UserError(
                f"run {run.name}: no agent is shown to be cheaper and not worse than the best one, agent "
                f"{answer.best}; this takes more search tasks that both have tried"
            )
        return agents[answer.shown.agent]
    if name == "seed":
        return agents[0]
    if name.isdecimal() and int(name) < len(agents):
        return agents[AgentId(int(name))]
    matches = [agent for agent in agents if len(name) >= 4 and agent.commit.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    what = "several agents" if matches else "no agent"
    raise UserError(
        f"run {run.name}: {what} '{name}'; give an id from 0 to {len(agents) - 1}, 'best', 'cheapest', 'seed' or "
        "a commit"
    )


def count_abandoned(tree: Tree, agent: AgentId) -> int:
    """Count an agent's tasks without a verdict whose evaluation failed too often to be tried again."""
    missing = {task for task, verdict in tree.verdicts(agent).items() if verdict is None}
    if missing:
        for what in (*tree.pending.values(), *tree.to_redo().values()):
            if isinstance(what, Evaluate) and what.agent == agent:
                missing.discard(what.task)
    return len(missing)


def trace_lineage(tree: Tree, leaf: AgentId) -> Sequence[Agent]:
    """Return the agents from the seed to ``leaf`` along first parents, the seed first.

    Raises:
        UserError: there is no such agent.
    """
    if not 0 <= leaf < len(tree.agents):
        known = f"they are 0 to {len(tree.agents) - 1}" if tree.agents else "the run has none yet"
        raise UserError(f"no agent {leaf}; {known}")
    line = [tree.agents[leaf]]
    while line[-1].parents:
        line.append(tree.agents[line[-1].parents[0]])
    return line[::-1]


def find_matching(tree: Tree, words: str) -> Sequence[AgentId]:
    """Return the agents that match the words, ordered by number.

    A match is the agent of that number, an agent whose commit begins with the words, or one whose operator or rationale
    contains them. The case of letters does not matter. If nothing matches, return the agents with a verdict on a task
    whose name contains the words.
    """
    words = words.strip().lower()
    if not words:
        return []

    def is_match(agent: Agent) -> bool:
        is_named = str(agent.id) == words or agent.commit.startswith(words)
        return is_named or any(words in text.lower() for text in (agent.operator, agent.rationale))

    return [agent.id for agent in tree.agents if is_match(agent)] or [
        agent.id
        for agent in tree.agents
        if any(verdict and words in task.lower() for task, verdict in tree.verdicts(agent.id).items())
    ]


def next_match(matches: Sequence[AgentId], after: AgentId, *, backwards: bool = False) -> AgentId | None:
    """Return the next of some agents in order of number, seen from one of them; the last is followed by the first."""
    if not matches:
        return None
    if backwards:
        return matches[bisect_left(matches, after) - 1]
    return matches[bisect_right(matches, after) % len(matches)]
