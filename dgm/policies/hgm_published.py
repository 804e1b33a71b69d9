"""``hgm`` as its published program behaves, so that results can be compared with either.

Source: metauto-ai/HGM (``hgm.py``, ``tree.py``, ``config.yaml``) at commit 013872d, with its default settings. (Other
commits, 4ad5174 for one, sum a clade over ``get_sub_tree()[:-1]``: the agent itself instead of the last descendant.
013872d sums over ``[1:]``: its descendants.) It differs from the paper (``hgm``) in three things, all reproduced here:

* Draws do not sharpen: τ = 1, because ``cool_down`` is off.
* Only agents with a result and a mean above 0 can be parents. Where the seed resolves nothing there is none, and the
  search ends with the seed's last task.
* To read a clade, the program takes the agent's own list of outcomes and appends those of every descendant, in place.
  So each expansion adds the descendants' outcomes once more to the own list of every possible parent, with everything
  that was added to the descendants before. These lists give the means and the draws, both of parents and of agents to
  evaluate. A list of 10,000 outcomes or more is not extended; for parents it is read as 10,000 times its mean.

Three things are not reproduced:

* The program's seed comes with all its results. It is not counted as an agent, and its results not as evaluations.
* A failed birth counts nowhere in the program, not even against its parent: a search whose births all fail would not
  end.
* The program begins with up to five expansions of the seed, by the number of workers. No decision here may depend on
  that number.

The gate and α = 0.6 are those of ``hgm``.
"""

from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.events import ActionStarted, AgentBorn, Recorded, TaskGraded, VerdictWithdrawn
from dgm.archive.tree import Tree
from dgm.domain import AgentId, Born, Evaluation, Expand, Verdict
from dgm.policies.composed import Composition
from dgm.policies.hgm import thompson
from dgm.policies.limits import fertile
from dgm.policies.rules import PolicyContext
from dgm.policies.tasks import agents_with_untried

HGM_PUBLISHED = Composition(gate="hgm", parent="hgm-published", evaluation="hgm-published")

FULL_LIST = 10_000
"""``n_pseudo_descendant_evals`` of the program."""


class Lists:
    """Each agent's list of outcomes, by the program's rules, as counts.

    The lists are a fold of the events: gradings, births, and the points at which the clades were read.
    """

    def __init__(self) -> None:
        self.resolved: list[int] = []
        self.lengths: list[int] = []
        self._parents: list[int] = []

    def observe(self, event: Recorded) -> None:
        """Add a verdict to its agent's list, remove a withdrawn verdict, or add the empty list of a new agent."""
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

    @property
    def possible_parents(self) -> NDArray[np.int64]:
        """Ids of the agents with a finite mean above 0; ascending."""
        return np.array(
            [agent for agent, resolved in enumerate(self.resolved) if resolved > 0], dtype=np.int64
        )

    def clades(self) -> tuple[list[float], list[float]]:
        """Return per agent the resolved and unresolved counts of its clade; leave the lists unchanged."""
        resolved, lengths = self._summed()
        for agent, length in enumerate(self.lengths):
            if length >= FULL_LIST:
                share = FULL_LIST / length
                resolved[agent] += (share - 1) * self.resolved[agent]
                lengths[agent] += (share - 1) * length
        return resolved, [length - good for good, length in zip(resolved, lengths, strict=True)]

    def read(self) -> None:
        """Change the lists like the program does when it reads the clades of all possible parents.

        The program reads them in order of birth, parents before their children. So each agent takes its descendants'
        lists in their state before this reading.
        """
        resolved, lengths = self._summed()
        for agent in self.possible_parents:
            if self.lengths[agent] < FULL_LIST:
                self.resolved[agent] = int(resolved[agent])
                self.lengths[agent] = int(lengths[agent])

    def _summed(self) -> tuple[list[float], list[float]]:
        resolved: list[float] = list(self.resolved)
        lengths: list[float] = list(self.lengths)
        for agent in range(len(resolved) - 1, 0, -1):
            resolved[self._parents[agent]] += resolved[agent]
            lengths[self._parents[agent]] += lengths[agent]
        return resolved, lengths


class CladeOfLists:
    """The parent rule. The start of an expansion means that the clades were read just before."""

    def __init__(self, kit: PolicyContext) -> None:
        self._lists = kit.shared(Lists)

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """Return one parent; none where no fertile agent has resolved anything."""
        among = self._lists.possible_parents
        among = among[fertile(tree)[among]]
        if not len(among):
            return ()
        return (thompson(*self._lists.clades(), among, 1.0, rng),)

    def observe(self, event: Recorded) -> None:
        """Apply the effect of reading the clades, once for each new expansion."""
        match event.event:
            case ActionStarted(action=Expand(), again=False):
                self._lists.read()


class OwnList:
    """The evaluation rule: draws by an agent's own list, which includes everything that readings added to it."""

    def __init__(self, kit: PolicyContext) -> None:
        self._lists = kit.shared(Lists)

    def target(self, tree: Tree, rng: Random) -> AgentId | None:
        """Return an agent with an untried task; ``None`` where there is none."""
        targets = agents_with_untried(tree)
        if not len(targets):
            return None
        resolved, lengths = self._lists.resolved, self._lists.lengths
        unresolved = [length - good for good, length in zip(resolved, lengths, strict=True)]
        return thompson(resolved, unresolved, targets, 1.0, rng)
