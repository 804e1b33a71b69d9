"""The actions that a policy may ask for.

A plug-in can answer anything, and a recorded answer is performed again at each resume.
"""

from dgm.archive.tree import Tree
from dgm.domain import AgentId, Evaluate, Expand, TaskId
from dgm.errors import UserError


def validate_action(policy: str, tree: Tree, wanted: object) -> None:
    """Make sure that an answer is valid in the tree, before any of it is recorded.

    Raises:
        UserError: it is no action, names an agent or a task that does not exist, names no parent, or starts a
            tried task as a first attempt.
    """
    match wanted:
        case Expand(parents):
            said = _find_parent_fault(tree, parents)
        case Evaluate(agent, task, attempt):
            said = _find_agent_fault(tree, agent) or _find_task_fault(tree, agent, task, attempt)
        case _:
            said = f"{wanted!r}, which is no Expand, no Evaluate and not None"
    if said:
        raise UserError(
            f"policy '{policy}' asks for {said}; a plug-in's fault, for dgm's own policies never do"
        )


def _find_parent_fault(tree: Tree, parents: tuple[AgentId, ...]) -> str:
    if not parents:
        return "a child without a parent"
    return next(filter(None, (_find_agent_fault(tree, parent) for parent in parents)), "")


def _find_agent_fault(tree: Tree, agent: AgentId) -> str:
    if 0 <= agent < len(tree.agents):
        return ""
    return f"agent {agent}, and there are the agents 0 to {len(tree.agents) - 1}"


def _find_task_fault(tree: Tree, agent: AgentId, task: TaskId, attempt: int) -> str:
    if task not in tree.tasks:
        return f"the task '{task}', which the benchmark does not have"
    again = attempt == 0 and task in tree.tried(agent)
    return f"task {task} of agent {agent} again" if again else ""
