"""The belief about every agent, kept up to date verdict by verdict."""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from dgm.domain import SEED
from dgm.policies.lineage.breakage import Breakage
from dgm.policies.lineage.constants import (
    ANCHOR_MOVE,
    CALIBRATED_AGENTS,
    CALIBRATION,
    MEAN_DRIFT,
    MEAN_DRIFT_WEIGHT,
    OFTEN,
    PENDING_INFORMATION,
    RELINEARISE,
    SOUND_MOVE,
    SWEEP_EVERY,
)
from dgm.policies.lineage.evidence import Evidence
from dgm.policies.lineage.hyper import Facts, expected_before_data, learned, step_at
from dgm.policies.lineage.passes import Beliefs
from dgm.policies.lineage.steps import State, Step

VARIANCES = slice(2, 5)
"""Of a ``State``: what verdicts change whatever they say."""


class Posterior:
    """The belief about every agent, changed by births (``born``) and verdicts (``graded``, ``withdrawn``).

    It depends on their order: the points at which verdicts are linearised depend on the verdicts known by then.
    """

    def __init__(self) -> None:
        self.laws = expected_before_data()
        self.mean_drift = MEAN_DRIFT
        self.breakage = Breakage()
        self.often_broken = False
        """Whether edits are taken to break the agent often: by ``failed_children`` when a sweep last learned."""
        self.anchor = 0.0
        """The seed's skill, that gains are measured from."""
        self.evidence = Evidence()
        self.beliefs = Beliefs(self._step(), self.mean_drift)
        self._depths: list[int] = []
        self._sound: list[float] = []
        """``Breakage.sound`` as messages between agents are weighed by it."""
        self._linearised_at: list[float] = []
        self._stale: set[int] = set()
        """Agents with results whose mean has moved too far from where they were linearised."""
        self._since_sweep = 0

    def __len__(self) -> int:
        return len(self._depths)

    def born(self, parent: int) -> None:
        """Add a new agent; the first one is the seed, whatever its parent."""
        self._depths.append(self._depths[parent] + 1 if self._depths else 0)
        self.evidence.add_agent()
        self.beliefs.add(parent)
        self.breakage.add(parent)
        self._sound.append(1.0)
        self._linearised_at.append(0.0)

    def generation(self, agent: int) -> int:
        """Return how many steps below the seed an agent stands."""
        return self._depths[agent]

    def graded(self, agent: int, task: int, solved: bool, attempt: int = 0) -> None:
        """Add a verdict and infer; every 20th verdict causes a full sweep."""
        self.record(agent, task, solved, attempt)
        self._stale.add(agent)
        for each in sorted(self._stale):
            self._linearise(each)
        self._stale.clear()
        self._weigh(self.breakage.update())
        self._note(self.beliefs.update())
        self._since_sweep += 1
        if self._since_sweep >= SWEEP_EVERY:
            self._since_sweep = 0
            self.sweep()
        elif abs(self.beliefs.states[0].t - self.anchor) > ANCHOR_MOVE:
            self._restart()

    def withdrawn(self, agent: int, task: int, solved: bool, attempt: int = 0) -> None:
        """Take a verdict back and infer everything from the start without it."""
        self.evidence.remove(agent, task, solved, attempt)
        self._since_sweep = 0
        self.sweep()

    def record(self, agent: int, task: int, solved: bool, attempt: int = 0) -> None:
        """Add a verdict without inferring from it; call ``sweep`` when all verdicts are added."""
        while task >= len(self.evidence.difficulties):
            self.evidence.add_task()
        self.evidence.add(agent, task, solved, attempt)

    def sweep(self, learn: bool = True) -> None:
        """Linearise everything anew, learn the shared parameters unless told not to, and infer from the start."""
        self._linearise_all()
        if learn:
            self._learn_parameters()
        self.evidence.learn_difficulties(self._skills(), self._sound)
        self._linearise_all()
        self._restart()

    def within_reach(self, child: int) -> set[int]:
        """Return the tasks that a sound child should be able to solve.

        They are the tasks that its parent solves, or the seed if its parent solves none.
        """
        return self.evidence.solved_by(self.beliefs.parents[child]) or self.evidence.solved_by(SEED)

    def failed_children(self) -> int:
        """Return how many of the first children have failed.

        A child has failed if it solved nothing in three results or more, at least one of them on a task within reach.
        Children of parents that solve nothing do not count: they may have been born broken.
        """
        evidence, parents = self.evidence, self.beliefs.parents
        return sum(
            evidence.counts[child] >= CALIBRATION
            and not evidence.solved[child]
            and evidence.solved[parents[child]] > 0
            and not self.within_reach(child).isdisjoint(evidence.tried_by(child))
            for child in range(1, min(len(self), CALIBRATED_AGENTS + 1))
        )

    def broken(self) -> NDArray[np.float64]:
        """Return P(broken) of every agent; 0 for the seed."""
        broken: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.array(self.breakage.odds)))
        broken[:1] = 0.0
        return broken

    def states(self, pending: Mapping[int, int]) -> NDArray[np.float64]:
        """Return every agent's state; shape (agents, 5), columns in the order of ``State``.

        Evaluations under way (agent → how many) reduce the variances and leave the means alone.
        """
        states = _rows(self.beliefs.states)
        if not pending:
            return states
        beliefs = self.beliefs.copy()
        for agent, count in pending.items():
            precision, eta = beliefs.evidence(agent)
            more = PENDING_INFORMATION * count
            mean = beliefs.states[agent].t
            beliefs.set_evidence(agent, precision + more, eta + more * mean, self._sound[agent])
        beliefs.update()
        states[:, VARIANCES] = _rows(beliefs.states)[:, VARIANCES]
        return states

    def facts(self) -> Facts:
        """Return the tree and its linearised verdicts."""
        agents = range(len(self))
        precisions, etas = zip(*(self.beliefs.evidence(agent) for agent in agents), strict=True)
        return Facts(self.beliefs.parents, self._depths, precisions, etas, self._sound)

    def _skills(self) -> list[float]:
        return [state.t for state in self.beliefs.states]

    def _step(self) -> Step[float]:
        return step_at(self.laws, self.anchor, self.mean_drift)

    def _linearise(self, agent: int) -> None:
        at = self.beliefs.states[agent].t
        self._linearised_at[agent] = at
        precision, eta = self.evidence.linearised(agent, at)
        if agent:
            self.breakage.say(agent, self.evidence.broken_odds(agent, self.beliefs.predicted(agent)))
        self.beliefs.set_evidence(agent, precision, eta, self._sound[agent])

    def _linearise_all(self) -> None:
        self._linearised_at = self._skills()
        agents = range(len(self))
        odds = self.evidence.broken_odds_of_all([self.beliefs.predicted(agent) for agent in agents])
        self.breakage.replace(odds)
        self._sound = self.breakage.sound[:]
        precisions, etas = self.evidence.linearise_all(self._linearised_at)
        self.beliefs.replace_evidence(list(zip(precisions, etas, strict=True)), self._sound)
        self._stale.clear()

    def _learn_parameters(self) -> None:
        self.laws = learned(self.facts(), self.anchor, self.mean_drift)
        probed = (agent for agent, count in enumerate(self.evidence.counts) if count)
        self.often_broken = self.failed_children() >= OFTEN
        self.breakage.learn(probed, self.often_broken)
        drift = sum(state.m for state in self.beliefs.states)
        self.mean_drift = (MEAN_DRIFT_WEIGHT * MEAN_DRIFT + drift) / (MEAN_DRIFT_WEIGHT + len(self))

    def _weigh(self, agents: list[int]) -> None:
        """Weigh the agents' messages by their current chances of being sound."""
        for agent in agents:
            sound = self.breakage.sound[agent]
            if abs(sound - self._sound[agent]) > SOUND_MOVE:
                self._sound[agent] = sound
                self.beliefs.set_evidence(agent, *self.beliefs.evidence(agent), sound)

    def _restart(self) -> None:
        self.anchor = self.beliefs.states[0].t
        self._note(self.beliefs.restart(self._step(), self.mean_drift))

    def _note(self, moved: list[int]) -> None:
        states, at, counts = self.beliefs.states, self._linearised_at, self.evidence.counts
        for agent in moved:
            if counts[agent] and abs(states[agent].t - at[agent]) > RELINEARISE:
                self._stale.add(agent)
            else:
                self._stale.discard(agent)


def _rows(states: Sequence[State]) -> NDArray[np.float64]:
    return np.fromiter(chain.from_iterable(states), np.float64, 5 * len(states)).reshape(-1, 5)
