"""Search among the agents of a run by what a user types."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from dgm.archive.tree import Tree
from dgm.domain import Agent, AgentId


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


def next_match(found: Sequence[AgentId], after: AgentId, *, backwards: bool = False) -> AgentId | None:
    """Return the next of some agents in order of number, seen from one of them; the last is followed by the first."""
    if not found:
        return None
    if backwards:
        return found[bisect_left(found, after) - 1]
    return found[bisect_right(found, after) % len(found)]
