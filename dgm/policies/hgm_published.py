"""``hgm`` as its published program behaves, so that results can be compared with either.

Source: metauto-ai/HGM (``hgm.py``, ``tree.py``, ``config.yaml``) at commit 013872d, with its default settings. (Others,
4ad5174 for one, sum a clade over ``get_sub_tree()[:-1]``, the agent itself instead of the last descendant; 013872d
over ``[1:]``, its descendants.) It differs from the paper (``hgm``) in three things, all reproduced here:

* Draws do not sharpen: τ = 1, because ``cool_down`` is off.
* Only agents with a result and a mean above 0 can be parents. Where the seed resolves nothing there is none, and the
  search ends with the seed's last task.
* To read a clade, the program takes the agent's own list of outcomes and appends those of every descendant, in place.
  So each expansion, whoever it falls to, adds the descendants' outcomes once more to every possible parent's own, with
  all that was added to the descendants before. These lists then give the draws, of parents and of agents to evaluate,
  and the means. A list of 10,000 outcomes or more is left alone, and read as 10,000 times its mean for parents.

Not reproduced: that the seed comes with all its results, is not counted as an agent, nor they as evaluations; that a
failed birth counts nowhere (a search whose births all fail would not end), not even against its parent; and the first
expansions of the seed, up to five by the number of workers, on which no decision here may depend. The gate and α = 0.6
are ``hgm``'s.
"""

from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.events import ActionStarted, AgentBorn, Recorded, TaskGraded, VerdictWithdrawn
from dgm.archive.tree import Tree
from dgm.domain import AgentId, Evaluation, Expand, Verdict
from dgm.policies.composed import Composition
from dgm.policies.hgm import thompson
from dgm.policies.limits import fertile
from dgm.policies.rules import Kit
from dgm.policies.tasks import agents_with_untried

HGM_PUBLISHED = Composition(gate="hgm", parent="hgm-published", evaluation="hgm-published")

FULL_LIST = 10_000
"""``n_pseudo_descendant_evals`` of the program."""


class Lists:
    """Each agent's list of outcomes as the program would hold it by now; only the counts matter.

    A fold of the events: what was graded, who was born, and at which points the clades were read.
    """

    def __init__(self) -> None:
        self.resolved: list[int] = []
        self.lengths: list[int] = []
        self._parents: list[int] = []

    def observe(self, event: Recorded) -> None:
        """Adds a verdict to its agent's list, takes one out that was withdrawn, or adds a new agent's empty list."""
        match event.event:
            case TaskGraded(_, Evaluation(agent=agent, verdict=verdict)) if verdict is not Verdict.INVALID:
                self.resolved[agent] += verdict is Verdict.RESOLVED
                self.lengths[agent] += 1
            case VerdictWithdrawn(what=what, verdict=verdict):
                # Copies that reading has left in the lists of ancestors stay, as in the program nothing leaves them.
                self.resolved[what.agent] -= verdict is Verdict.RESOLVED
                self.lengths[what.agent] -= 1
            case AgentBorn(parents=parents):
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
        """Per agent, the resolved and the unresolved outcomes that reading its clade would give; changes nothing."""
        resolved, lengths = self._summed()
        for agent, length in enumerate(self.lengths):
            if length >= FULL_LIST:
                share = FULL_LIST / length
                resolved[agent] += (share - 1) * self.resolved[agent]
                lengths[agent] += (share - 1) * length
        return resolved, [length - good for good, length in zip(resolved, lengths, strict=True)]

    def read(self) -> None:
        """What reading the clades of all possible parents leaves behind.

        The program reads them in order of birth, parents before their children, so that each takes its descendants'
        lists as they were before.
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
    """The parent rule. That an expansion was started says that the clades were read just before."""

    def __init__(self, kit: Kit) -> None:
        self._lists = kit.shared(Lists)

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """One parent; none where nobody fertile has resolved anything."""
        among = self._lists.possible_parents
        among = among[fertile(tree)[among]]
        if not len(among):
            return ()
        return (thompson(*self._lists.clades(), among, 1.0, rng),)

    def observe(self, event: Recorded) -> None:
        """Leaves behind what the reading did, once for each new expansion."""
        match event.event:
            case ActionStarted(action=Expand(), again=False):
                self._lists.read()


class OwnList:
    """The evaluation rule: by an agent's own list, with all that was added to it."""

    def __init__(self, kit: Kit) -> None:
        self._lists = kit.shared(Lists)

    def target(self, tree: Tree, rng: Random) -> AgentId | None:
        """An agent with an untried task."""
        targets = agents_with_untried(tree)
        if not len(targets):
            return None
        resolved, lengths = self._lists.resolved, self._lists.lengths
        unresolved = [length - good for good, length in zip(resolved, lengths, strict=True)]
        return thompson(resolved, unresolved, targets, 1.0, rng)
