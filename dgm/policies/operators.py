"""Which operator makes the next child, with which aim and mate, if a run has several or they have needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from math import fsum
from random import Random
from typing import Protocol

import numpy as np

from dgm.archive.events import (
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    Recorded,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.tree import Tree
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Cost, Expand, Tally, TaskId, Verdict
from dgm.errors import UserError
from dgm.policies.curriculum import comparable_tallies
from dgm.policies.limits import fertile
from dgm.policies.policy import Observer, OperatorRule, View
from dgm.policies.published import rank_by_worth
from dgm.protocols import Needs
from dgm.stats import JUDGED, chance_better


class Choice(Protocol):
    """A choice among a few words."""

    def pick(self, tree: Tree, arms: Sequence[str], rng: Random) -> str:
        """Return one of ``arms``, of which there is at least one; draw no number where there is one."""
        ...


class Operators:
    """A rule that draws among the operators whose needs are met."""

    def __init__(
        self,
        needs: Mapping[str, Needs],
        choice: Choice,
        aims: Mapping[str, Choice],
        mates: "Mates | None",
        groups: "Groups | None",
    ) -> None:
        """Take the parts of the rule.

        Args:
            needs: operator → its needs, in the order of the settings.
            choice: chooses among operators.
            aims: operator → the choice among its aims, for the operators that get their aim here.
            mates: finds second parents; None if no operator needs one.
            groups: knows which members of a group still have no child; None if no operator has groups.
        """
        self._needs, self._choice, self._aims, self._mates = needs, choice, aims, mates
        self._groups = groups

    def choose(self, tree: Tree, parent: AgentId, rng: Random) -> Expand | None:
        """Return the expansion of an operator whose needs are met; None where no operator is ready.

        A group that is not complete goes before ``parent``: its next member has a child.
        """
        if self._groups and (due := self._groups.find_next(tree)):
            return due
        mates = self._mates.of(tree, parent) if self._mates else ()
        ready = [name for name, needs in self._needs.items() if _is_met(needs, tree, parent, mates)]
        if not ready:
            return None
        name = self._choice.pick(tree, ready, rng)
        parents: tuple[AgentId, ...] = (parent,)
        if self._needs[name].parents > 1:
            parents = (parent, mates[0] if len(mates) == 1 else mates[int(rng.random() * len(mates))])
        aim = self._aims[name].pick(tree, self._needs[name].aims, rng) if name in self._aims else ""
        size = self._needs[name].group
        return Expand(parents, name, aim=aim, group=_form_group(tree, parent, size) if size > 1 else ())


def open_operators(settings: Settings, needs: Mapping[str, Needs]) -> tuple[OperatorRule, Sequence[Observer]]:
    """Return the rule that the settings ask for, and what must see every event.

    Args:
        settings: the settings of the run.
        needs: operator → its needs; an operator that is not named needs nothing.

    Raises:
        UserError: every operator needs several agents.
    """
    wanted = {name: needs.get(name, Needs()) for name in settings.operator_names}
    if not any(need.parents == 1 and need.archive <= 1 for need in wanted.values()):
        raise UserError(
            f"operator = {settings.operator!r}: cannot make a child of every agent; "
            "name another operator beside it, such as self-edit"
        )
    choice: Choice = FixedWeights(settings.operators.weights)
    if settings.operators.choice == "bandit":
        choice = Bandit(lambda expansion: expansion.operator, promises=settings.operators.promises)
    by_bandit = settings.operators.parts == "bandit"
    aims = {
        name: Bandit(partial(_aim_of, name)) if by_bandit else Turns(name)
        for name, need in wanted.items()
        if need.aims and not need.failures
    }
    mates = Mates() if any(need.parents > 1 for need in wanted.values()) else None
    groups = Groups() if any(need.group > 1 for need in wanted.values()) else None
    parts = (choice, *aims.values(), mates, groups)
    return Operators(wanted, choice, aims, mates, groups), [
        part for part in parts if isinstance(part, Observer)
    ]


def _aim_of(operator: str, expansion: Expand) -> str:
    return expansion.aim if expansion.operator == operator else ""


def _is_met(needs: Needs, tree: Tree, parent: AgentId, mates: Sequence[AgentId]) -> bool:
    return (
        (needs.parents == 1 or bool(mates))
        and tree.own_unresolved[parent] >= needs.failures
        and int(np.sum(tree.own_resolved)) >= needs.successes
        and len(tree.agents) >= needs.archive
    )


class FixedWeights:
    """A choice with chances in proportion to weights."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights

    def pick(self, tree: Tree, arms: Sequence[str], rng: Random) -> str:  # noqa: ARG002  (the same whatever happened)
        """Return one of the arms."""
        if len(arms) == 1:
            return arms[0]
        sums = list(accumulate(self._weights.get(arm, 1.0) for arm in arms))
        drawn = rng.random() * sums[-1]
        return next((arm for arm, end in zip(arms, sums, strict=True) if drawn < end), arms[-1])


class Turns:
    """A choice of one aim after the other, by how many expansions of the operator were begun."""

    def __init__(self, operator: str) -> None:
        self._operator = operator
        self._begun = 0

    def observe(self, event: Recorded) -> None:
        """Count the expansions of the operator."""
        match event.event:
            case ActionStarted(action=Expand(operator=self._operator), again=False):
                self._begun += 1

    def pick(self, tree: Tree, arms: Sequence[str], rng: Random) -> str:  # noqa: ARG002  (nothing is left to chance)
        """Return the next of the arms."""
        return arms[self._begun % len(arms)]


MATES_AMONG = 64
"""Maximum number of fertile agents that are looked at: those that resolved most."""


class Mates:
    """A finder of second parents: agents of another lineage that solve what the first does not, and the reverse.

    The same two agents are never crossed again, whatever the result: a second cross gives the same merge. Source: a
    design of this project; GEPA also pairs parents for the tasks that they solve between them (arXiv:2507.19457).
    """

    def __init__(self) -> None:
        self._crossed: set[frozenset[AgentId]] = set()

    def observe(self, event: Recorded) -> None:
        """Remember who was crossed."""
        match event.event:
            case ActionStarted(_, Expand(parents)) if len(parents) > 1:
                self._crossed.add(frozenset(parents))

    def of(self, tree: Tree, agent: AgentId) -> Sequence[AgentId]:
        """Return the best mates of an agent, all equally good, by id; none where nobody qualifies.

        A mate is fertile. Neither agent is an ancestor of the other, and each resolved a task that the other failed.
        With a Pareto front, all such agents on it are mates, whatever they resolved. Else, of those
        the best mates resolved, together with ``agent``, the most tasks; among equals, the most that ``agent`` failed.
        """
        if tree.front:
            return self._find_on_front(tree, agent)
        solved, failed = _outcomes(tree, agent)
        if not solved or not failed:
            return ()
        ranked: dict[tuple[int, int], list[AgentId]] = {}
        for other in self._find_candidates(tree, agent):
            others_solved, others_failed = _outcomes(tree, other)
            gained = len(others_solved & failed)
            if gained and solved & others_failed:
                ranked.setdefault((len(solved | others_solved), gained), []).append(other)
        return sorted(ranked[max(ranked)]) if ranked else ()

    def _find_on_front(self, tree: Tree, agent: AgentId) -> Sequence[AgentId]:
        able, above = fertile(tree), {agent, *tree.ancestors(agent)}
        return [
            other
            for other in sorted(tree.front - above)
            if able[other]
            and frozenset((agent, other)) not in self._crossed
            and agent not in tree.ancestors(other)
        ]

    def _find_candidates(self, tree: Tree, agent: AgentId) -> Sequence[AgentId]:
        above = {agent, *tree.ancestors(agent)}
        able = np.flatnonzero(fertile(tree))
        by_solved = able[np.argsort(-np.array(tree.own_resolved, dtype=np.int64)[able], kind="stable")]
        others = [
            AgentId(other) for other in by_solved[: MATES_AMONG + len(above)].tolist() if other not in above
        ]
        return [
            other
            for other in others[:MATES_AMONG]
            if frozenset((agent, other)) not in self._crossed and agent not in tree.ancestors(other)
        ]


class Groups:
    """The members of the latest group that still have no child: each has one, before another group begins.

    A member that may not be a parent any more is passed over. Source: arXiv:2602.04837, where a group's children are
    made together; here they follow one another, so that later ones also see what was evaluated meanwhile.
    """

    def __init__(self) -> None:
        self._latest: Expand | None = None

    def observe(self, event: Recorded) -> None:
        """Remember the latest expansion of a group."""
        match event.event:
            case ActionStarted(_, Expand(group=group) as expansion, again=False) if group:
                self._latest = expansion

    def find_next(self, tree: Tree) -> Expand | None:
        """Return the expansion of the next member; None if no group is open."""
        if self._latest is None:
            return None
        group = self._latest.group
        due = group[group.index(self._latest.parents[0]) + 1 :]
        able = fertile(tree)
        member = next((agent for agent in due if able[agent]), None)
        return None if member is None else Expand((member,), self._latest.operator, group=group)


def _form_group(tree: Tree, parent: AgentId, size: int) -> tuple[AgentId, ...]:
    """Return a parent and the others of highest worth in performance and novelty (``published.novelty``)."""
    others = [agent for agent in rank_by_worth(View(tree)) if agent != parent and agent not in tree.flagged]
    return (parent, *others[: size - 1])


def _outcomes(tree: Tree, agent: AgentId) -> tuple[set[TaskId], set[TaskId]]:
    """Return the tasks that the agent resolved at first attempt, and the tasks that it failed."""
    verdicts = tree.verdicts(agent).items()
    solved = {task for task, verdict in verdicts if verdict is Verdict.RESOLVED}
    return solved, {task for task, verdict in verdicts if verdict is Verdict.UNRESOLVED}


STRENGTH = 4.0
"""Weight of the success of all arms in the belief about one, in expansions."""
AT_FIRST = 0.25
"""The share of children that are better, before any is known."""
SPEND_WEIGHT = 2.0
PROMISE_WEIGHT = 4.0
"""Weight of the kept predictions of all arms in the rate of one, in predictions."""
MOST_PROMISING = 0.95
UNJUDGED = ("expired",)
"""Stages at which a child ends that say nothing of who made it."""

Spend = tuple[float, float, float]
"""USD, tokens, seconds."""
NOTHING: Spend = (0.0, 0.0, 0.0)


@dataclass(slots=True)
class Arm:
    """The results of one arm's expansions."""

    spend: Spend = NOTHING
    ended: int = 0
    """Expansions that ended, with a child or without."""
    fruitless: int = 0
    """Those without, but for ``UNJUDGED``."""
    children: int = 0
    better: dict[AgentId, float] = field(default_factory=dict)
    """q of each child that is judged."""
    promises: dict[AgentId, Tally] = field(default_factory=dict)
    """Kept and broken predictions of each child with a tested one."""


class Bandit:
    """Thompson sampling on what an operator's children are worth, per unit of spend.

    An arm succeeds when a child is better than the best of its parents. Success is not observed, only estimated from
    verdicts, so a child counts for the share

        q = P(rate of the child > rate of its best parent),   rates ~ Beta(1 + resolved, 1 + unresolved)

    once it has ``JUDGED`` verdicts, and q is renewed with every verdict of either; an expansion without a child counts
    as a failure. With m the success of all arms together, the belief about one arm is Beta(a, b),

        a = s m + Σ q,   b = s (1 - m) + Σ (1 - q) + fruitless,   m = (s M + Σ q) / (s + judged + fruitless)

    (the sums in m run over all arms), s = ``STRENGTH``, M = ``AT_FIRST``. One number is drawn from each arm's belief
    and divided by the arm's mean spend; the largest wins. Spend is the cost of the expansions plus ``JUDGED`` mean
    evaluations for each child that was born. So an operator that asks no model is cheap but not free. Spend is in USD;
    in tokens where nothing cost USD; in seconds where no tokens were used either. An arm's mean is shrunk towards the
    mean of all arms with the weight of ``SPEND_WEIGHT`` expansions. Evaluations that the infrastructure failed count
    nowhere.

    With ``promises``, the operator's record of kept predictions (``dgm.domain.Prediction``) shifts what is believed of
    a child without verdicts, which is the part of weight s in a and b: there m is replaced by

        m_k = min(MOST, m p_k / p),   p_k = (r p + kept) / (r + tested),   p = (1 + Σ kept) / (2 + Σ tested)

    where kept and tested count the predictions of the arm's children, the sums run over all arms, r =
    ``PROMISE_WEIGHT``, and MOST = ``MOST_PROMISING``. An arm that promises nothing keeps m.

    Source: W. R. Thompson, Biometrika 25 (1933), p. 285; O. Chapelle and L. Li, "An empirical evaluation of Thompson
    sampling" (NIPS 2011), which also covers delayed answers; Y. Xia, H. Li, T. Qin, N. Yu and T.-Y. Liu, "Thompson
    sampling for budgeted multi-armed bandits" (IJCAI 2015), where the cost is drawn, too.
    """

    def __init__(self, arm_of: Callable[[Expand], str], *, promises: bool = False) -> None:
        """Begin without knowledge.

        Args:
            arm_of: names an expansion's arm, empty if it belongs to none.
            promises: whether kept predictions shift what is believed of a child without verdicts.
        """
        self._arm_of = arm_of
        self._counts_promises = promises
        self._arms: dict[str, Arm] = {}
        self._under_way: dict[ActionId, str] = {}
        self._children_of: dict[AgentId, list[AgentId]] = {}
        """The children of each agent that are of some arm."""
        self._arm_of_child: dict[AgentId, str] = {}
        self._changed: set[AgentId] = set()
        """Children whose q may have changed since it was computed."""
        self._evaluation_spend = NOTHING
        self._evaluations = 0

    def observe(self, event: Recorded) -> None:
        """Fold one event into the state."""
        match event.event:
            case TaskGraded(_, outcome) if outcome.verdict is not Verdict.INVALID:
                self._evaluation_spend = _add(self._evaluation_spend, outcome.cost)
                self._evaluations += 1
                self._change(outcome.agent)
            case VerdictWithdrawn(what=what):
                # The cost of a withdrawn verdict was spent all the same.
                self._change(what.agent)
            case ActionStarted(action, Expand() as expansion):
                if arm := self._arm_of(expansion):
                    self._under_way[action] = arm
            case AgentBorn(action, child, outcome):
                if arm := self._end(action, outcome.cost):
                    self._arms[arm].children += 1
                    self._arm_of_child[child] = arm
                    for parent in outcome.parents:
                        self._children_of.setdefault(parent, []).append(child)
            case AgentStillborn(action, outcome):
                arm = self._end(action, outcome.cost)
                if arm and outcome.stage not in UNJUDGED:
                    self._arms[arm].fruitless += 1

    def pick(self, tree: Tree, arms: Sequence[str], rng: Random) -> str:
        """Return one of the arms; as for ``draw_beta``, the legacy generator is used."""
        if len(arms) == 1:
            return arms[0]
        beliefs = [self.belief(tree, arm) for arm in arms]
        stream = np.random.RandomState(rng.getrandbits(32))
        drawn = stream.beta([a for a, _ in beliefs], [b for _, b in beliefs])
        return arms[int(np.argmax(drawn / np.array(self.mean_spends(arms))))]

    def belief(self, tree: Tree, arm: str) -> tuple[float, float]:
        """Return a and b of the belief about an arm; the tree must be the fold of the observed events."""
        self._renew(tree)
        everybody = self._arms.values()
        successes = fsum(q for other in everybody for q in other.better.values())
        tried = sum(len(other.better) + other.fruitless for other in everybody)
        pooled = (STRENGTH * AT_FIRST + successes) / (STRENGTH + tried)
        known = self._arms.get(arm, Arm())
        if self._counts_promises:
            pooled = min(MOST_PROMISING, pooled * self._promise_ratio(known))
        gains = fsum(known.better.values())
        failures = len(known.better) - gains + known.fruitless
        return STRENGTH * pooled + gains, STRENGTH * (1.0 - pooled) + failures

    def _promise_ratio(self, arm: Arm) -> float:
        """Return p_k / p of an arm."""
        everybody = sum(
            (tally for other in self._arms.values() for tally in other.promises.values()), Tally()
        )
        promises = sum(arm.promises.values(), Tally())
        rate = (1 + everybody.resolved) / (2 + everybody.n)
        return (PROMISE_WEIGHT * rate + promises.resolved) / (PROMISE_WEIGHT + promises.n) / rate

    def mean_spends(self, arms: Sequence[str]) -> Sequence[float]:
        """Return the mean spend of each arm, in USD, tokens or seconds; 1.0 for each where nothing is known."""
        everybody = list(self._arms.values())
        ended = sum(arm.ended for arm in everybody)
        unit = next((unit for unit in range(3) if any(arm.spend[unit] for arm in everybody)), None)
        if unit is None or not ended:
            return [1.0] * len(arms)
        judging = JUDGED * self._evaluation_spend[unit] / self._evaluations if self._evaluations else 0.0

        def spend_of(arm: Arm) -> float:
            return arm.spend[unit] + judging * arm.children

        pooled = fsum(map(spend_of, everybody)) / ended
        known = [self._arms.get(arm, Arm()) for arm in arms]
        return [(spend_of(arm) + SPEND_WEIGHT * pooled) / (arm.ended + SPEND_WEIGHT) for arm in known]

    def _renew(self, tree: Tree) -> None:
        enough = min(JUDGED, len(tree.active))
        tallies = comparable_tallies(tree) if self._changed else []
        for child in self._changed:
            better, tally = self._arms[self._arm_of_child[child]].better, tallies[child]
            better.pop(child, None)
            self._arms[self._arm_of_child[child]].promises[child] = tree.promises(child)
            if tally.n >= enough:
                parents = [tallies[parent] for parent in tree.agents[child].parents]
                best = max(parents, key=lambda tally: (1 + tally.resolved) / (2 + tally.n))
                better[child] = chance_better(tally, best)
        self._changed.clear()

    def _change(self, agent: AgentId) -> None:
        self._changed.update(self._children_of.get(agent, ()))
        if agent in self._arm_of_child:
            self._changed.add(agent)

    def _end(self, action: ActionId, cost: Cost) -> str:
        arm = self._under_way.pop(action, "")
        if arm:
            known = self._arms.setdefault(arm, Arm())
            known.ended += 1
            known.spend = _add(known.spend, cost)
        return arm


def _add(spend: Spend, cost: Cost) -> Spend:
    return (spend[0] + cost.usage.usd, spend[1] + cost.usage.tokens, spend[2] + cost.seconds)
