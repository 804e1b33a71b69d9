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
    Kit,
    Observer,
    OneOperator,
    OperatorRule,
    ParentRule,
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
    """Asks the gate; then the parent rule and the operator rule, or the evaluation rule and the task rule.

    Where nobody is to be evaluated an archive that may grow grows, whatever the gate says; where nobody is to be a
    parent, or no operator can make a child of it now, evaluation goes on. Where the rules name nobody for either, and
    nothing is awaited that could change that, the best score that has an untried task is evaluated: a search ends
    early only when every agent has tried every task.
    """

    def __init__(
        self,
        name: str,
        kit: Kit,
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
        """The next step; ``None`` where nothing can be done, or not before something pending finishes."""
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
        """Passes the event on to every part that keeps state, once."""
        for observer in self._observers:
            observer.observe(event)

    def _expand(self, tree: Tree, rng: Random) -> Expand | None:
        parents = self._parent.parents(tree, rng)
        return self._operators.choose(tree, parents, rng) if parents else None


def _best_untried(tree: Tree) -> AgentId | None:
    # Not with the module: numpy takes longer than all else of a --help.
    from dgm.policies.tasks import best_untried

    return best_untried(tree)


def _awaits(tree: Tree) -> bool:
    """Whether something is under way, to be performed again, or up to a person."""
    return bool(tree.pending or tree.to_redo() or tree.waiting)
