"""The Huxley-Gödel Machine (arXiv:2510.21614), its published program, and two controls behind the same gate.

The gate expands while N ** α >= number of agents, α = 0.6 (section 3). N is the number of evaluations. Stillborn
children count like born ones (the paper does not say): parents that cannot have children must not take all of the
budget.
"""

from random import Random

import numpy as np

from dgm.archive.events import ActionStarted, AgentBorn, Recorded, TaskGraded, VerdictWithdrawn
from dgm.archive.tree import REWARD_UNIT, Tree
from dgm.domain import AgentId, Born, Evaluation, Expand, Tally, Verdict
from dgm.policies.policy import Floats, Ints, Plan, View, draw_beta, next_root
from dgm.stats import lower_bound, reward_lower_bound


def may_widen(view: View) -> bool:
    """Return whether the archive is too small for its evaluations; the seed is evaluated before it has a child."""
    return (
        view.evaluations > 0
        and view.evaluations**view.alpha >= len(view.tree.agents) + view.births + view.stillborn
    )


def hgm(view: View, rng: Random) -> Plan:
    """Expand by clade, evaluate by own results, both by Thompson sampling (section 3 and algorithm 1).

    A clade's score is its metaproductivity CMP: what the agent and all its descendants resolved, over what they tried.
    Each rate is drawn from Beta(τ(1 + resolved), τ(1 + unresolved)). τ = B / b, where B is the budget of evaluations
    and b its remainder, so that draws sharpen towards the end; 1 without such a budget. The cost of expansions counts
    as spent in b (0 in the paper).

    With rewards r in [0, 1] (``policy.reward``), resolved becomes Σ r and unresolved Σ (1 - r): the mean of the draws
    is that of the rewards, shrunk as before, and their spread is not too small, because a variable in [0, 1] with mean
    m has a variance of at most m (1 - m), that of a verdict. (S. Agrawal and N. Goyal, COLT 2012, section 3, toss a
    coin with chance r instead; the expectation of its counts is Σ r.)

    The five children with which the paper's asynchronous form begins (appendix B) are
    left out.
    """
    budget = view.tree.budget.evaluations
    tau = (
        budget / max(view.evaluations_left, 1)
        if budget is not None and view.evaluations_left is not None
        else 1.0
    )
    return Plan(
        expand=may_widen(view),
        parent=lambda: draw_beta(
            tau * (1.0 + view.clade_reward),
            tau * (1.0 + (view.clade_solved + view.clade_failed - view.clade_reward)),
            view.fertile,
            rng,
        ),
        agent=lambda: draw_beta(
            tau * (1.0 + view.reward), tau * (1.0 + (view.graded - view.reward)), view.open, rng
        ),
    )


def best_of_n(view: View, rng: Random) -> Plan:
    """Make only children of the seed (several roots in turn), else as ``hgm``: the control that a tree has to beat."""
    return Plan(may_widen(view), lambda: next_root(view, view.can_have_child), hgm(view, rng).agent)


def chance(view: View, rng: Random) -> Plan:
    """Choose every agent with the same chance."""

    def choose(agents: Ints) -> AgentId | None:
        return AgentId(int(agents[rng.randrange(len(agents))])) if len(agents) else None

    return Plan(may_widen(view), lambda: choose(view.fertile), lambda: choose(view.open))


def best_belief(tree: Tree) -> AgentId:
    """Return the agent whose own tally has the highest lower credible bound.

    The bound is the 1st percentile of Beta(1 + resolved, 1 + unresolved) (arXiv:2510.21614, section 3). Among equals
    the agent with more evaluations wins, then the oldest. An agent without an evaluation is only chosen where no
    agent has any.

    With rewards in [0, 1] the bound is ``stats.reward_lower_bound``: percentiles of a Beta are derived for verdicts.

    The bound rises with each resolved task and falls with each unresolved one. So it is computed only for tallies
    that have more resolved than every other tally with as few unresolved or fewer.
    """
    if tree.objective.reward:
        counts = tree.own_resolved + tree.own_unresolved
        rows = [
            (total / REWARD_UNIT, int(n)) for total, n in zip(tree.own_reward.tolist(), counts, strict=True)
        ]
        return AgentId(max(range(len(rows)), key=lambda a: (reward_lower_bound(*rows[a]), rows[a][1], -a)))
    tallies = [Tally(*counts) for counts in zip(tree.own_resolved, tree.own_unresolved, strict=True)]
    most_resolved: dict[int, int] = {}
    for tally in tallies:
        if tally.n and tally.resolved > most_resolved.get(tally.unresolved, -1):
            most_resolved[tally.unresolved] = tally.resolved
    candidates: list[Tally] = []
    for unresolved, resolved in sorted(most_resolved.items()):
        if not candidates or resolved > candidates[-1].resolved:
            candidates.append(Tally(resolved, unresolved))
    if not candidates:
        return tree.agents[0].id
    best = max(candidates, key=lambda tally: (lower_bound(tally), tally.n))
    return AgentId(tallies.index(best))


class HgmPublished:
    """``hgm`` as its published program behaves, so that results can be compared with either.

    Source: metauto-ai/HGM (``hgm.py``, ``tree.py``, ``config.yaml``) at commit 013872d, with its default settings.
    (Other commits sum a clade over ``get_sub_tree()[:-1]``: the agent itself instead of the last descendant.) It
    differs from the paper in three things, all reproduced here:

    * Draws do not sharpen: τ = 1, because ``cool_down`` is off.
    * Only agents with a result and a mean above 0 can be parents. Where the seed resolves nothing there is none, and
    the
      search ends with the seed's last task.
    * To read a clade, the program takes the agent's own list of outcomes and appends those of every descendant, in
      place. So each expansion adds the descendants' outcomes once more to the own list of every possible parent, with
      everything that was added to the descendants before. These lists give the means and the draws, both of parents and
      of agents to evaluate. A list of 10,000 outcomes or more is not extended; for parents it is read as 10,000 times
      its mean.

    Not reproduced: the program's seed comes with all its results and is not counted; a failed birth counts nowhere, so
    that a search whose births all fail would not end; up to five expansions of the seed at the start, by the number of
    workers.
    """

    FULL_LIST = 10_000
    """``n_pseudo_descendant_evals`` of the program."""

    def __init__(self) -> None:
        self.resolved: list[int] = []
        """Per agent, in its list."""
        self.lengths: list[int] = []
        self._parents: list[int] = []

    def decide(self, view: View, rng: Random) -> Plan:
        """Return the plan by the lists."""

        def parent() -> AgentId | None:
            possible = self.possible_parents
            solved, failed = self.clades()
            return draw_beta(1.0 + solved, 1.0 + failed, possible[view.can_have_child[possible]], rng)

        def agent() -> AgentId | None:
            solved = np.array(self.resolved, dtype=np.float64)
            failed = np.array(self.lengths, dtype=np.float64) - solved
            return draw_beta(1.0 + solved, 1.0 + failed, view.open, rng)

        return Plan(may_widen(view), parent, agent)

    def observe(self, event: Recorded) -> None:
        """Fold one event into the lists. The start of an expansion means that the clades were read just before."""
        match event.event:
            case TaskGraded(_, Evaluation(agent=agent, verdict=verdict)) if verdict is not Verdict.INVALID:
                self.resolved[agent] += verdict is Verdict.RESOLVED
                self.lengths[agent] += 1
            case VerdictWithdrawn(what=what, verdict=verdict):
                # Copies in the lists of ancestors stay, because in the program nothing leaves a list.
                self.resolved[what.agent] -= verdict is Verdict.RESOLVED
                self.lengths[what.agent] -= 1
            case AgentBorn(outcome=Born(parents=parents)):
                self.resolved.append(0)
                self.lengths.append(0)
                self._parents.append(parents[0] if parents else -1)
            case ActionStarted(action=Expand(), again=False):
                self._extend_lists()

    @property
    def possible_parents(self) -> Ints:
        """Ids of the agents with a finite mean above 0; ascending."""
        return np.flatnonzero(np.array(self.resolved, dtype=np.int64) > 0)

    def clades(self) -> tuple[Floats, Floats]:
        """Return per agent the resolved and unresolved counts of its clade; leave the lists unchanged."""
        resolved, lengths = self._sum_clades()
        for agent, length in enumerate(self.lengths):
            if length >= self.FULL_LIST:
                share = self.FULL_LIST / length
                resolved[agent] += (share - 1) * self.resolved[agent]
                lengths[agent] += (share - 1) * length
        return np.array(resolved), np.array(lengths) - np.array(resolved)

    def _extend_lists(self) -> None:
        """Change the lists like the program does when it reads the clades of all possible parents.

        The program reads them in order of birth, parents before their children. So each agent takes its descendants'
        lists in their state before this reading.
        """
        resolved, lengths = self._sum_clades()
        for agent in self.possible_parents:
            if self.lengths[agent] < self.FULL_LIST:
                self.resolved[agent] = int(resolved[agent])
                self.lengths[agent] = int(lengths[agent])

    def _sum_clades(self) -> tuple[list[float], list[float]]:
        resolved: list[float] = list(self.resolved)
        lengths: list[float] = list(self.lengths)
        for agent in range(len(resolved) - 1, 0, -1):
            if (parent := self._parents[agent]) >= 0:
                resolved[parent] += resolved[agent]
                lengths[parent] += lengths[agent]
        return resolved, lengths
