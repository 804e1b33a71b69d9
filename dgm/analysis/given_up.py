"""Tasks that were given up: their evaluation failed again and again without a verdict, so no tally counts them."""

from dgm.archive.tree import Tree
from dgm.domain import AgentId, Evaluate


def count_given_up(tree: Tree, agent: AgentId) -> int:
    """Return the number of tasks of an agent whose evaluation was given up."""
    missing = {task for task, verdict in tree.verdicts(agent).items() if verdict is None}
    if missing:
        for what in (*tree.pending.values(), *tree.to_redo().values()):
            if isinstance(what, Evaluate) and what.agent == agent:
                missing.discard(what.task)
    return len(missing)
