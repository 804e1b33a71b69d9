"""A policy is a function ``decide(view, rng)`` that returns a ``Plan``; the rules that hold for all stand here.

A policy with state is a class: ``observe(event)`` folds each event of the log once, ``decide`` reads the result. A
decision must follow from the log and ``rng`` alone, so that it can be replayed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain
from random import Random
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dgm.archive.curriculum import Counts
from dgm.archive.events import Recorded
from dgm.archive.tree import REWARD_UNIT, Tree
from dgm.domain import Action, AgentId, Evaluate, Expand, TaskId
from dgm.errors import UserError
from dgm.plugins import FUNCTION_MARK
from dgm.policies import limits

ROOT_TASKS = 5
"""Tasks that each of several roots tries before the policy decides, all the same ones."""
F = TypeVar("F", bound=Callable[..., object])
Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
Flags = NDArray[np.bool_]
AnyId = int | np.integer[Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """Answers of a policy about its next step. A function in it is called only if its answer is needed."""

    expand: bool
    """True if a child comes before an evaluation."""
    parent: Callable[[], AnyId | None]
    """Chooses a parent among ``view.fertile``; None if nobody should have a child now."""
    agent: Callable[[], AnyId | None]
    """Chooses an agent to evaluate among ``view.open``; None if nobody should be evaluated now."""
    task: Callable[[AgentId], TaskId] | None = None
    """Chooses one of ``view.untried(agent)``; None: at random."""


class View:
    """A run as a policy sees it. Arrays have an entry per agent, by its id; work in flight counts as done."""

    def __init__(self, tree: Tree, alpha: float = 0.6, operator: str = "self-edit") -> None:
        self.tree = tree
        """All else: see ``dgm/archive/tree.py``."""
        self.tasks = tree.active
        """Tasks that agents are evaluated on now; all search tasks unless the run has a curriculum."""
        self.alpha = alpha
        """The setting ``policy.alpha``."""
        self.operator = operator
        """Stands in an ``Expand`` for whichever operator the settings choose."""
        self.may_expand = limits.may_expand(tree)
        self.evaluations = limits.evaluations_begun(tree)
        self.births = limits.births_under_way(tree)
        """Children that are being made, or wait for approval."""
        self.stillborn = sum(tree.stillborn.values())
        self.busy = limits.is_busy(tree)
        """True if anything is under way or waits."""
        self.evaluations_left = limits.evaluations_left(tree)
        """Evaluations that the budget still has; None without such a budget."""

    @cached_property
    def solved(self) -> Counts:
        """Number of the agent's own verdicts that are resolved; under a curriculum as if on average tasks."""
        return self.tree.comparable[0].copy()

    @cached_property
    def failed(self) -> Counts:
        """Number of the agent's own verdicts that are unresolved; under a curriculum as if on average tasks."""
        return self.graded - self.solved

    @cached_property
    def clade_solved(self) -> Counts:
        """Number of resolved verdicts of the agent and all its descendants; under a curriculum as in ``solved``."""
        return self.tree.comparable[1].copy()

    @cached_property
    def clade_failed(self) -> Counts:
        """Number of unresolved verdicts of the agent and all its descendants; under a curriculum as in ``solved``."""
        return self.tree.clade_resolved + self.tree.clade_unresolved - self.clade_solved

    @cached_property
    def reward(self) -> Floats:
        """Sum of the rewards of the agent's evaluations, each in [0, 1]; ``solved`` unless ``policy.reward`` is set."""
        weighed = self.tree.objective.reward
        return np.asarray(
            np.array(self.tree.own_reward) / REWARD_UNIT if weighed else self.solved.astype(float)
        )

    @cached_property
    def clade_reward(self) -> Floats:
        """The same of the agent and all its descendants."""
        weighed = self.tree.objective.reward
        return np.asarray(
            np.array(self.tree.clade_reward) / REWARD_UNIT if weighed else self.clade_solved.astype(float)
        )

    @cached_property
    def graded(self) -> Ints:
        """Number of the agent's own verdicts."""
        return np.asarray(self.tree.own_resolved + self.tree.own_unresolved)

    @cached_property
    def score(self) -> Floats:
        """Share of the agent's own evaluations that it resolved; 0.0 without any."""
        return np.asarray(self.solved / np.maximum(self.graded, 1))

    @cached_property
    def tried(self) -> Ints:
        """Number of tasks that are graded, running or given up."""
        return np.array(self.tree.tried_count, dtype=np.int64)

    @cached_property
    def running(self) -> Ints:
        """Number of evaluations that run or wait to be performed again."""
        counts = np.array(self.tree.pending_evaluations, dtype=np.int64)
        for action in self.tree.to_redo().values():
            if isinstance(action, Evaluate):
                counts[action.agent] += 1
        return counts

    @cached_property
    def can_have_child(self) -> Flags:
        """Whether the agent may have a child (``limits.fertile``)."""
        return limits.fertile(self.tree)

    @cached_property
    def fertile(self) -> Ints:
        """Ids of the agents that may have a child, ascending."""
        return np.flatnonzero(self.can_have_child)

    @cached_property
    def open(self) -> Ints:
        """Ids of the agents with an untried task, ascending."""
        return np.flatnonzero(self.tree.untried_count > 0)

    @cached_property
    def parents_of_unborn(self) -> Sequence[tuple[AgentId, ...]]:
        """The parents of each child that is being made, or waits for approval."""
        actions = chain(self.tree.pending.values(), self.tree.to_redo().values())
        making = [action.parents for action in actions if isinstance(action, Expand)]
        return making + [waiting.child.parents for waiting in self.tree.waiting.values()]

    @cached_property
    def children(self) -> Ints:
        """Number of children, born or on their way."""
        born = np.array([len(self.tree.children(agent.id)) for agent in self.tree.agents], dtype=np.int64)
        return born + self._count(chain.from_iterable(map(dict.fromkeys, self.parents_of_unborn)))

    @cached_property
    def stillborn_of(self) -> Ints:
        """Number of stillborn children, counted for their first parent."""
        born = self._count(agent.parents[0] for agent in self.tree.agents if agent.parents)
        unborn = self._count(parents[0] for parents in self.parents_of_unborn)
        return np.asarray(np.maximum(np.array(self.tree.expansions, dtype=np.int64) - born - unborn, 0))

    def untried(self, agent: AgentId) -> list[TaskId]:
        """Return the tasks that the agent has not tried, in the order of the suite."""
        tried = self.tree.tried(agent)
        return [task for task in self.tasks if task not in tried]

    def best_open(self) -> AgentId | None:
        """Return the agent with the best score and an untried task, the oldest of equals; None where there is none."""
        return AgentId(int(self.open[int(np.argmax(self.score[self.open]))])) if len(self.open) else None

    def _count(self, agents: Iterable[AgentId]) -> Ints:
        return np.bincount(np.array(list(agents), dtype=np.int64), minlength=len(self.tree.agents))


Decide = Callable[[View, Random], Plan | Action | None]


@runtime_checkable
class Observer(Protocol):
    """Keeper of a state folded from the events."""

    def observe(self, event: Recorded) -> None:
        """Fold one event into the state."""
        ...


class OperatorRule(Protocol):
    """The rule that decides which operator makes a child."""

    def choose(self, tree: Tree, parent: AgentId, rng: Random) -> Expand | None:
        """Return the expansion, with a mate where the operator wants one; None if no child can be made now."""
        ...


def policy(decide: F) -> F:
    """Mark a function as a policy, so that settings may name it as ``module:function``."""
    setattr(decide, FUNCTION_MARK, True)
    return decide


def recombine(own: Decide, parts: Mapping[str, Decide]) -> Decide:
    """Return a policy whose plans have some fields from the plans of other policies.

    Raises:
        UserError: in a decision, if one of the policies returns a step instead of a plan.
    """

    def decide(view: View, rng: Random) -> Plan:
        plan = own(view, rng)
        for field, part in parts.items():
            other = part(view, rng)
            if not isinstance(plan, Plan) or not isinstance(other, Plan):
                raise UserError(
                    "policy: a policy that returns a step instead of a Plan has no parts to exchange"
                )
            plan = replace(plan, **{field: getattr(other, field)})
        assert isinstance(plan, Plan)
        return plan

    return decide if parts else own


class PlannedPolicy:
    """A ``Policy`` that performs the plans of a deciding function.

    - Nobody has a child while the archive may not grow, whatever the plan.
    - Where the plan names no parent, or no operator can make the child now, it continues with an evaluation.
    - Where it names nobody to evaluate, it continues with a child.
    - Where it names nobody for either, and nothing under way could change that, the agent with the best score and an
      untried task is evaluated. So a search ends early only when every agent has tried every task.
    - A lone seed without room for another evaluation (``limits.seed_has_room``) has a child first. Several roots try
      the same ``ROOT_TASKS`` tasks before anything else; then the best of them has the first child.

    A function that returns a step instead of a plan is obeyed; None means to wait.
    """

    def __init__(
        self,
        name: str,
        decide: Decide,
        operators: OperatorRule,
        observers: Sequence[Observer] = (),
        *,
        alpha: float = 0.6,
        operator: str = "self-edit",
    ) -> None:
        """Keep the parts.

        Args:
            name: shown to users.
            decide: the policy.
            operators: makes an expansion of a parent.
            observers: see every event.
            alpha: the setting ``policy.alpha``.
            operator: in an expansion that the function returns, stands for the operator that the rule chooses.
        """
        self.name = name
        self.keeps_state = bool(observers)
        self._decide, self._operators, self._observers = decide, operators, observers
        self._alpha, self._operator = alpha, operator

    def observe(self, event: Recorded) -> None:
        """Pass the event on."""
        for observer in self._observers:
            observer.observe(event)

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """Return the next step; None where nothing can be done, or not before something under way ends."""
        view = View(tree, self._alpha, self._operator)
        plan = self._decide(view, rng)
        if isinstance(plan, Plan):
            step = self._compare_roots(plan, view, rng) or self._perform(plan, view, rng)
            return self._start_family(step, view, rng) if isinstance(step, Evaluate) else step
        if isinstance(plan, Expand) and plan.operator == self._operator and len(plan.parents) == 1:
            return self._operators.choose(tree, plan.parents[0], rng)
        return plan

    def _perform(self, plan: Plan, view: View, rng: Random) -> Action | None:
        may_expand = view.may_expand
        if may_expand and plan.expand:
            child = self._expand(plan, view, rng)
            if child is not None:
                return child
            may_expand = False
        chosen = plan.agent()
        if chosen is None:
            child = self._expand(plan, view, rng) if may_expand else None
            if child is not None or view.busy:
                return child
            chosen = view.best_open()
        if chosen is None:
            return None
        agent = AgentId(int(chosen))
        return Evaluate(agent, plan.task(agent) if plan.task else rng.choice(view.untried(agent)))

    def _expand(self, plan: Plan, view: View, rng: Random) -> Expand | None:
        parent = plan.parent()
        return None if parent is None else self._operators.choose(view.tree, AgentId(int(parent)), rng)

    def _compare_roots(self, plan: Plan, view: View, rng: Random) -> Evaluate | None:
        """Return an evaluation of the root that has tried the fewest tasks, on a task that another one has tried.

        None for a lone seed, or if all roots have tried enough or have no room.
        """
        roots = view.tree.roots
        least = min(roots, key=lambda root: (view.tried[root], root))
        enough = min(ROOT_TASKS, len(view.tasks))
        if len(roots) < 2 or view.tried[least] >= enough or not limits.seed_has_room(view.tree):
            return None
        known = set[TaskId]().union(*map(view.tree.tried, roots))
        shared = [task for task in view.untried(least) if task in known]
        if shared:
            return Evaluate(least, shared[0])
        return Evaluate(least, plan.task(least) if plan.task else rng.choice(view.untried(least)))

    def _start_family(self, wanted: Evaluate, view: View, rng: Random) -> Action | None:
        """Return a child of the best root where an evaluation of childless roots would take too much of the budget."""
        roots = view.tree.roots
        if len(view.tree.agents) > len(roots) or limits.seed_has_room(view.tree):
            return wanted
        # An operator learns from results, so wait for the first one if it is on its way.
        able = [root for root in roots if view.can_have_child[root] and (view.graded[root] or not view.busy)]
        if view.may_expand and able:
            child = self._operators.choose(view.tree, max(able, key=lambda root: view.score[root]), rng)
            if child is not None:
                return child
        return None if view.busy else wanted


def draw_beta(a: Floats, b: Floats, among: Ints, rng: Random) -> AgentId | None:
    """Draw a number from each agent's Beta(a, b) and return the agent of the highest (Thompson sampling).

    Shapes: ``a`` and ``b`` (agents,), ``among`` (k,). The legacy generator is used because numpy promises that its
    stream never changes, so that recorded decisions replay under any later numpy.
    """
    if not len(among):
        return None
    drawn = np.random.RandomState(rng.getrandbits(32)).beta(a[among], b[among])
    return AgentId(int(among[int(np.argmax(drawn))]))


def draw_weighted(weights: Floats, among: Ints, rng: Random) -> AgentId | None:
    """Draw an agent with chances in proportion to weights, evenly where all are 0; both arrays have the shape (k,).

    Only ``Random.random`` is used: Python promises to keep its stream, so recorded decisions replay.
    """
    if not len(among):
        return None
    sums = list(accumulate(weights.tolist()))
    if not sums[-1]:
        sums = list(range(1, len(among) + 1))
    index = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
    return AgentId(int(among[min(index, len(among) - 1)]))


def next_root(view: View, able: Flags) -> AgentId | None:
    """Return the root with the fewest children, the oldest of equals; None where none is able to have one."""
    roots = [root for root in view.tree.roots if able[root]]
    return min(roots, key=lambda root: (view.children[root], root), default=None)


def pick(agents: Ints, index: int) -> AgentId | None:
    """Return one of the agents by its index; None where there are none."""
    return AgentId(int(agents[index])) if len(agents) else None
