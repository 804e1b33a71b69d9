"""The actions that a policy may ask for.

A plug-in can answer anything, and a recorded answer is performed again at each resume.
"""

from dgm.archive.tree import Tree
from dgm.domain import AgentId, Evaluate, Expand, TaskId
from dgm.errors import UserError


def refuse_nonsense(policy: str, tree: Tree, wanted: object) -> None:
    """Make sure that an answer is valid in the tree, before any of it is recorded.

    Raises:
        UserError: it is no action, names an agent or a task that does not exist, names no parent, or starts a
            tried task as a first attempt.
    """
    match wanted:
        case Expand(parents):
            said = _of_parents(tree, parents)
        case Evaluate(agent, task, attempt):
            said = _of_agent(tree, agent) or _of_task(tree, agent, task, attempt)
        case _:
            said = f"{wanted!r}, which is no Expand, no Evaluate and not None"
    if said:
        raise UserError(
            f"policy '{policy}' asks for {said}; a plug-in's fault, for dgm's own policies never do"
        )


def _of_parents(tree: Tree, parents: tuple[AgentId, ...]) -> str:
    if not parents:
        return "a child without a parent"
    return next(filter(None, (_of_agent(tree, parent) for parent in parents)), "")


def _of_agent(tree: Tree, agent: AgentId) -> str:
    if 0 <= agent < len(tree.agents):
        return ""
    return f"agent {agent}, and there are the agents 0 to {len(tree.agents) - 1}"


def _of_task(tree: Tree, agent: AgentId, task: TaskId, attempt: int) -> str:
    if task not in tree.tasks:
        return f"the task '{task}', which the benchmark does not have"
    again = attempt == 0 and task in tree.tried(agent)
    return f"task {task} of agent {agent} again" if again else ""
