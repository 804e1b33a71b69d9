"""Which operator makes the next child: the sixth part of a policy, where a run has several or they have needs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from random import Random
from typing import Protocol

from dgm.archive.events import ActionStarted, Recorded
from dgm.archive.tree import Tree
from dgm.config import Settings
from dgm.domain import Action, AgentId, Expand
from dgm.errors import UserError
from dgm.policies.rules import OperatorRule, PolicyContext
from dgm.protocols import Needs, Policy

MatesOf = Callable[[Tree, AgentId], Sequence[AgentId]]
"""The best second parents for a child of an agent, all equally good; none where there is nobody."""


class Pick(Protocol):
    """A choice among a few words."""

    def pick(self, tree: Tree, arms: Sequence[str], rng: Random) -> str:
        """Return one of ``arms``, of which there is at least one."""
        ...


class FixedWeights:
    """A choice with chances in proportion to weights."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights

    def pick(self, tree: Tree, arms: Sequence[str], rng: Random) -> str:  # noqa: ARG002  (the same whatever happened)
        """Return one of the arms; draw one number, none where there is one arm."""
        if len(arms) == 1:
            return arms[0]
        sums = list(accumulate(self._weights.get(arm, 1.0) for arm in arms))
        place = rng.random() * sums[-1]
        return next((arm for arm, end in zip(arms, sums, strict=True) if place < end), arms[-1])


class Turns:
    """A choice of one aim after the other, by how many expansions of the operator were begun; an ``Observer``."""

    def __init__(self, operator: str) -> None:
        self._operator = operator
        self._begun = 0

    def observe(self, event: Recorded) -> None:
        """Fold one event into the state."""
        match event.event:
            case ActionStarted(_, Expand(operator=operator), again=False) if operator == self._operator:
                self._begun += 1
            case _:
                pass

    def pick(self, tree: Tree, arms: Sequence[str], rng: Random) -> str:  # noqa: ARG002  (nothing is left to chance)
        """Return the next of the arms, in turn."""
        return arms[self._begun % len(arms)]


class Operators:
    """The operator rule: picks one of the operators whose needs the tree can meet, with a mate and an aim if it wants.

    Where only one operator is ready, no number is drawn to choose it. Where a parent rule names two parents, the
    operators that want two compete; if no operator wants two, the second parent is left out. The aim is chosen here for
    operators that look at no failure. The aims of the others are kinds of failure, which the evidence decides.
    """

    def __init__(
        self, needs: Mapping[str, Needs], pick: Pick, aims: Mapping[str, Pick], mates_of: MatesOf
    ) -> None:
        """Take the parts of the rule.

        Args:
            needs: operator → its needs, in the order of the settings.
            pick: chooses among operators.
            aims: operator → the choice among its aims, for the operators that get their aim here.
            mates_of: finds second parents.
        """
        self._needs = needs
        self._pick = pick
        self._aims = aims
        self._mates_of = mates_of

    def choose(self, tree: Tree, parents: tuple[AgentId, ...], rng: Random) -> Expand | None:
        """Return the expansion of an operator whose needs are met; ``None`` where no operator is ready."""
        parents = tuple(dict.fromkeys(parents))
        crossing = [name for name, needs in self._needs.items() if needs.parents > 1]
        paired = len(parents) > 1 and bool(crossing)
        parents = parents if paired else parents[:1]
        mates = () if paired or not crossing else self._mates_of(tree, parents[0])
        ready = [
            name
            for name in (crossing if paired else self._needs)
            if _met(self._needs[name], tree, parents, mates)
        ]
        if not ready:
            return None
        name = self._pick.pick(tree, ready, rng)
        needs = self._needs[name]
        if needs.parents > len(parents):
            parents = (*parents, mates[0] if len(mates) == 1 else mates[int(rng.random() * len(mates))])
        aim = self._aims[name].pick(tree, needs.aims, rng) if name in self._aims else ""
        return Expand(parents, name, aim=aim)


class Choosing:
    """A whole policy whose expansions get one of several operators."""

    def __init__(self, policy: Policy, kit: PolicyContext, operators: OperatorRule) -> None:
        """Wrap a policy.

        Args:
            policy: names ``kit.operator`` where it leaves the choice open.
            kit: the kit that ``operators`` was made with.
            operators: the rule.
        """
        self.name = policy.name
        self._policy = policy
        self._asked = kit.operator
        self._observers = kit.observers
        self._operators = operators
        self.keeps_state = policy.keeps_state or bool(self._observers)

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """Return the policy's step with an operator chosen; ``None`` where no operator can make the child now."""
        said = self._policy.next(tree, rng)
        if isinstance(said, Expand) and said.operator == self._asked:
            return self._operators.choose(tree, said.parents, rng)
        return said

    def observe(self, event: Recorded) -> None:
        """Pass the event to the policy and to the observers of the kit."""
        if self._policy.keeps_state:
            self._policy.observe(event)
        for observer in self._observers:
            observer.observe(event)


def operator_rule(settings: Settings, needs: Mapping[str, Needs], kit: PolicyContext) -> OperatorRule | None:
    """Return the rule that the settings ask for, its state shared in ``kit``; None where one operator needs nothing.

    Args:
        settings: the settings of the run.
        needs: operator → its needs; an operator that is not named needs nothing.
        kit: the kit of the policy.

    Raises:
        UserError: no operator could make the first child.
    """
    names = settings.operator_names
    wanted = {name: needs.get(name, Needs()) for name in names}
    if len(names) == 1 and wanted[names[0]] == Needs():
        return None
    if not any(each.parents == 1 and each.archive <= 1 for each in wanted.values()):
        raise UserError(
            f"operator = {settings.operator!r}: needs more agents than the one that a search begins with; "
            "name another operator beside it, such as self-edit"
        )
    choice: Pick = FixedWeights(settings.operators.weights)
    if settings.operators.choice == "bandit":
        choice = _bandit(_operator, kit)
    aims = {
        name: _aim_choice(name, settings, kit)
        for name, each in wanted.items()
        if each.aims and not each.failures
    }
    crossing = any(each.parents > 1 for each in wanted.values())
    return Operators(wanted, choice, aims, _mates(kit) if crossing else lambda _tree, _agent: ())


def whole(policy: Policy, asked: str, settings: Settings, needs: Mapping[str, Needs]) -> Policy:
    """Return a policy that is no composition, with the operators that the settings ask for.

    Args:
        policy: the policy.
        asked: the operator that it names where it leaves the choice open.
        settings: the settings of the run.
        needs: see ``operator_rule``.

    Raises:
        UserError: no operator could make the first child, or no operator can always make a child.
    """
    kit = PolicyContext(asked, settings.policy.alpha)
    rule = operator_rule(settings, needs, kit)
    if rule is None:
        return policy
    if not any(_always(needs.get(name, Needs())) for name in settings.operator_names):
        raise UserError(
            f"operator = {settings.operator!r}: none can always make a child, and the policy '{policy.name}' does "
            "not say what to do then; name another operator beside it, such as self-edit"
        )
    return Choosing(policy, kit, rule)


def _aim_choice(name: str, settings: Settings, kit: PolicyContext) -> Pick:
    if settings.operators.parts == "bandit":
        return _bandit(partial(_aim, name), kit)
    return kit.shared(partial(Turns, name))


def _bandit(arm: Callable[[Expand], str], kit: PolicyContext) -> Pick:
    from dgm.policies.bandit import Bandit  # imported here because it loads numpy; so does _mates

    return kit.shared(partial(Bandit, arm))


def _mates(kit: PolicyContext) -> MatesOf:
    from dgm.policies.mates import Mates

    return kit.shared(Mates).of


def _operator(what: Expand) -> str:
    return what.operator


def _aim(operator: str, what: Expand) -> str:
    return what.aim if what.operator == operator else ""


def _always(needs: Needs) -> bool:
    return needs.parents == 1 and needs.archive <= 1 and not needs.failures


def _met(needs: Needs, tree: Tree, parents: Sequence[AgentId], mates: Sequence[AgentId]) -> bool:
    return (
        (needs.parents <= len(parents) or bool(mates))
        and tree.own_unresolved[parents[0]] >= needs.failures
        and len(tree.agents) >= needs.archive
    )
