"""A policy put together from its parts (all but the recommendation, which only readers of a run ask)."""

from dataclasses import dataclass
from random import Random

from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.domain import Action, AgentId, Evaluate, Expand
from dgm.policies.limits import may_expand
from dgm.policies.rules import (
    EvaluationRule,
    Gate,
    Observer,
    OneOperator,
    OperatorRule,
    ParentRule,
    PolicyContext,
    TaskRule,
)


@dataclass(frozen=True, slots=True)
class Composition:
    """Names of a policy's parts, each in the registry of its kind."""

    gate: str
    parent: str
    evaluation: str
    task: str = "random"
    recommendation: str = "best-belief"


class Composed:
    """A policy that asks its gate, then the rules of an expansion or the rules of an evaluation.

    An expansion takes the parent rule and the operator rule, an evaluation the evaluation rule and the task rule.

    - Where no agent is to be evaluated, the archive expands if it may, whatever the gate says.
    - Where no agent is to be a parent, or no operator can make a child of it now, evaluation continues.
    - Where the rules name nobody for either, and nothing pending could change that, the agent with the best score and
      an untried task is evaluated. So a search ends early only when every agent has tried every task.
    """

    def __init__(
        self,
        name: str,
        kit: PolicyContext,
        gate: Gate,
        parent: ParentRule,
        evaluation: EvaluationRule,
        task: TaskRule,
    ) -> None:
        self.name = name
        self._operators: OperatorRule = kit.operators or OneOperator(kit.operator)
        self._gate = gate
        self._parent = parent
        self._evaluation = evaluation
        self._task = task
        parts = (gate, parent, evaluation, task)
        own = [part for part in parts if isinstance(part, Observer)]
        self._observers = list(dict.fromkeys([*kit.observers, *own]))
        self.keeps_state = bool(self._observers)

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """Return the next step; ``None`` where nothing can be done, or not before something pending finishes."""
        may = may_expand(tree)
        if may and self._gate.expands(tree, rng):
            grown = self._expand(tree, rng)
            if grown is not None:
                return grown
            may = False
        agent = self._evaluation.target(tree, rng)
        if agent is None:
            grown = self._expand(tree, rng) if may else None
            if grown is not None or _awaits(tree):
                return grown
            agent = _best_untried(tree)
        return None if agent is None else Evaluate(agent, self._task.task(tree, agent, rng))

    def observe(self, event: Recorded) -> None:
        """Pass the event once to every part that keeps state."""
        for observer in self._observers:
            observer.observe(event)

    def _expand(self, tree: Tree, rng: Random) -> Expand | None:
        parents = self._parent.parents(tree, rng)
        return self._operators.choose(tree, parents, rng) if parents else None


def _best_untried(tree: Tree) -> AgentId | None:
    # Imported here because numpy takes longer to load than everything else that a --help needs.
    from dgm.policies.tasks import best_untried

    return best_untried(tree)


def _awaits(tree: Tree) -> bool:
    """Return whether an action is under way or to be performed again, or a child waits for a person."""
    return bool(tree.pending or tree.to_redo() or tree.waiting)
