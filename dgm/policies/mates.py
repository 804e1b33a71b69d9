"""With whom an agent has a child of two parents: one of another lineage that solves what it does not, and the reverse.

Source: a design of this project. GEPA also pairs parents for the tasks that they solve between them, when it merges
along the Pareto front (arXiv:2507.19457, appendix on merging).
"""

from collections.abc import Sequence

import numpy as np

from dgm.archive.events import ActionStarted, Recorded
from dgm.archive.tree import Tree
from dgm.domain import AgentId, Expand, TaskId, Verdict
from dgm.policies.limits import fertile

AMONG = 64
"""Of the fertile agents, only so many are looked at: those that resolved most."""


class Mates:
    """A finder of second parents that knows which pairs were crossed; an ``Observer``.

    The same two agents are never crossed again, whatever the result: a second cross gives the same merge.
    """

    def __init__(self) -> None:
        self._crossed: set[frozenset[AgentId]] = set()

    def observe(self, event: Recorded) -> None:
        """Fold one event into the state."""
        match event.event:
            case ActionStarted(_, Expand(parents)) if len(parents) > 1:
                self._crossed.add(frozenset(parents))
            case _:
                pass

    def of(self, tree: Tree, agent: AgentId) -> Sequence[AgentId]:
        """Return the best mates of an agent, all equally good, by id; none where nobody qualifies.

        A mate is fertile. Neither agent is an ancestor of the other, and each resolved a task that the other failed.
        The best mates resolved, together with ``agent``, the most tasks; among equals, the most that ``agent`` failed.
        """
        solved, failed = _of(tree, agent)
        if not solved or not failed:
            return ()
        found: dict[tuple[int, int], list[AgentId]] = {}
        for other in self._among(tree, agent):
            theirs, lacking = _of(tree, other)
            gained = len(theirs & failed)
            if gained and solved & lacking:
                found.setdefault((len(solved | theirs), gained), []).append(other)
        return sorted(found[max(found)]) if found else ()

    def _among(self, tree: Tree, agent: AgentId) -> Sequence[AgentId]:
        above = {agent, *tree.ancestors(agent)}
        able = np.flatnonzero(fertile(tree))
        most = able[np.argsort(-np.array(tree.own_resolved, dtype=np.int64)[able], kind="stable")]
        candidates = [AgentId(int(other)) for other in most[: AMONG + len(above)] if other not in above]
        return [
            other
            for other in candidates[:AMONG]
            if frozenset((agent, other)) not in self._crossed and agent not in tree.ancestors(other)
        ]


def _of(tree: Tree, agent: AgentId) -> tuple[set[TaskId], set[TaskId]]:
    """Return the tasks that the agent resolved at first attempt, and the tasks that it failed."""
    verdicts = tree.verdicts(agent).items()
    solved = {task for task, verdict in verdicts if verdict is Verdict.RESOLVED}
    return solved, {task for task, verdict in verdicts if verdict is Verdict.UNRESOLVED}
