"""The share of a budget that the seed may take: no search spends itself on the agent that it starts from.

A policy put together from parts decides freely until it wants one more evaluation of a seed that is alone. If that
would take the seed above ``SEED_SHARE`` of any limit of the run, the seed has a child instead. While first children are
being made, the other workers may continue with the seed up to ``MEANWHILE_SHARE``, and then make further children.

The cost of an evaluation is learned from the log. Evaluations are counted. Money and tokens are the mean of the graded
evaluations; until the first is graded, ``UNPRICED`` may run. The clock is read from the times of events. Everything is
a function of the tree, so decisions replay. A plug-in that is a whole policy decides alone.
"""

from collections.abc import Iterator
from random import Random

from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.domain import SEED, Action, Evaluate
from dgm.policies.limits import births_under_way, evaluations_begun, may_expand
from dgm.policies.rules import OperatorRule
from dgm.protocols import Policy

SEED_SHARE = 0.3
"""Of every limit of a run: the most that evaluations of the seed take before its first child is begun."""
MEANWHILE_SHARE = 0.4
"""The same while the seed's first children are being made, or wait for a person."""
UNPRICED = 2
"""Evaluations that run before one is graded, where money or tokens are limited: nobody knows yet what one takes."""
SOLVE_ROLE = "solve"
"""The role of model calls in evaluations."""
SLACK = 1e-9
"""Relative; above rounding."""


class FirstChildInTime:
    """A policy that begins the seed's first child before the seed has taken more than its share."""

    def __init__(self, policy: Policy, operators: OperatorRule) -> None:
        """Wrap a policy.

        Args:
            policy: decides everything else.
            operators: the policy's own rule on operators, which ``policy.observe`` keeps up to date.
        """
        self._policy = policy
        self._operators = operators
        self.name = policy.name
        self.keeps_state = policy.keeps_state

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """Return the policy's step, or a child of the seed where an evaluation of the seed would take too much."""
        wanted = self._policy.next(tree, rng)
        if not isinstance(wanted, Evaluate) or len(tree.agents) > 1 or seed_has_room(tree):
            return wanted
        awaited = bool(tree.pending or tree.to_redo() or tree.waiting)
        # An operator learns from results, so wait for the first one if it is on its way.
        if may_expand(tree) and (tree.own(SEED).n or not awaited):
            child = self._operators.choose(tree, (SEED,), rng)
            if child is not None:
                return child
        return None if awaited else wanted

    def observe(self, event: Recorded) -> None:
        """Pass the event on."""
        self._policy.observe(event)


def seed_has_room(tree: Tree) -> bool:
    """Return whether one more evaluation keeps a lone seed within its share of every limit; the first always does."""
    begun = evaluations_begun(tree)
    if begun == 0:
        return True
    share = MEANWHILE_SHARE if births_under_way(tree) else SEED_SHARE
    return all(taken <= share * limit * (1 + SLACK) for taken, limit in _after_one_more(tree, begun))


def _after_one_more(tree: Tree, begun: int) -> Iterator[tuple[float, float]]:
    """Yield for each limit of the run the seed's spend after one more evaluation, and the limit."""
    budget = tree.budget
    if budget.evaluations is not None:
        yield begun + 1, budget.evaluations
    if budget.usd is not None:
        yield _priced(tree, begun, "usd"), budget.usd
    if budget.tokens is not None:
        yield _priced(tree, begun, "tokens"), budget.tokens
    if budget.seconds is not None:
        yield tree.wall_seconds + _evaluation_seconds(tree), budget.seconds


def _priced(tree: Tree, begun: int, unit: str) -> float:
    """Return the cost of the evaluations begun and one more, in ``usd`` or ``tokens``; infinite where it is unknown."""
    spent = sum(
        float(getattr(usage, unit)) for (role, _), usage in tree.spend_by.items() if role == SOLVE_ROLE
    )
    ids = [
        id_
        for each in (tree.pending, tree.to_redo())
        for id_, what in each.items()
        if isinstance(what, Evaluate)
    ]
    under_way = [float(getattr(tree.spend_of(id_), unit)) for id_ in ids]
    if not tree.evaluations:
        return spent if begun < UNPRICED else float("inf")
    finished = spent - sum(under_way)
    mean = finished / tree.evaluations
    return finished + mean + sum(max(mean, taken) for taken in under_way)


def _evaluation_seconds(tree: Tree) -> float:
    """Return about how many seconds an evaluation takes; 0.0 before one is graded.

    This is the busy time of all workers divided by the evaluations that it went into; those under way count half. With
    one worker it is the mean.
    """
    running = sum(isinstance(what, Evaluate) for what in tree.pending.values())
    if not tree.evaluations:
        return 0.0
    return tree.wall_seconds * (running + 1) / (tree.evaluations + running / 2)
