"""A search among equals is rarely called better: 100 of them, by the real loop, examined on tasks that none had seen.

In these worlds every agent resolves every task with the same probability as the seed, so that whoever is recommended
was only lucky. Each world is a search of 100 evaluations; 50 are searched by ``hgm``, 50 by ``lineage``. Then seed and
recommended agent are tried on 60 tasks outside of the search's pool and judged as a report judges them.

A test at 5 % may call 5 % of them better *or worse*; calling at most 10 of 100 better is 5 % and 2.33 standard errors
more (a test of exactly 5 % would fail here in 1 of 100 draws of seeds). The exact McNemar test is conservative: on the
seeds 1,000 to 1,399 it called 7 of 400 better after ``hgm`` and 4 of 400 after ``lineage``, 1.4 %. Whoever of the
archive did best on the very tasks that judge it was called better in 46 and 58 of 400, 13 %.
"""

import pytest

from dgm.archive.events import RunStarted
from dgm.config import Settings
from dgm.domain import SEED, ActionId, Born, Budget, Verdict
from dgm.evaluation.schedule import Comparison, compare_verdicts
from dgm.search.loop import LoopHooks, Search
from dgm.simulation import virtual
from dgm.simulation.policies import open_contender
from dgm.simulation.virtual import Memory, SimulatedWorker, key_as_commit
from dgm.simulation.world import open_world
from dgm.views.holdout import is_better

# The time is for a machine that does much else: searches take about 20 s of a processor.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

EQUAL = {
    "step_mean": 0.0,
    "step_sd": 0.0,
    "neutral": 0.0,
    "drift_root": 0.0,
    "drift_sd": 0.0,
    "broken": 0.0,
    "jackpots": 0.0,
    "retention": 1.0,
}
"""Parameters of worlds in which no edit changes anything."""
EVALUATIONS = 100
HOLDOUT = 60
AT_MOST = 10


class Searched:
    """One search on virtual time, and what it recommends."""

    def __init__(self, policy, seed, **overrides):
        self.world = world = open_world("hopeless", seed, **{"harmful_only": 0.0, **EQUAL, **overrides})
        asked, recommend = open_contender(policy, world)

        async def session():
            memory = Memory(keep=asked.keeps_state)
            worker = SimulatedWorker(world, memory.tree, virtual.pass_time)
            memory.append(RunStarted(Budget(evaluations=EVALUATIONS), world.tasks))
            memory.append(memory.birth(ActionId(0), Born((), "seed", key_as_commit(world.root(), ()), "")))
            around = LoopHooks(clock=virtual.clock)
            await Search(memory, asked, worker, Settings(seed=seed, workers=1), around).go()
            return memory.tree, worker.latents

        self.tree, self.latents = virtual.run(session())
        self.best = recommend(self.tree)

    def verdict(self, agent, task):
        resolved = self.world.resolves(self.latents.of(self.tree.agents[agent]), task, 0)
        return Verdict.RESOLVED if resolved else Verdict.UNRESOLVED

    @property
    def holdout(self):
        seen = set(self.world.tasks)
        return [task for task in self.world.names if task not in seen][:HOLDOUT]

    def compared(self, agent) -> Comparison:
        """The seed and an agent on the holdout tasks."""
        return compare_verdicts(
            (task, self.verdict(SEED, task), self.verdict(agent, task)) for task in self.holdout
        )


@pytest.fixture(scope="module")
def searches():
    return [Searched(("hgm", "lineage")[seed % 2], seed) for seed in range(100)]


@pytest.mark.slow
def test_equals_are_called_better_in_at_most_5_percent_and_sampling_error(searches) -> None:
    better = sum(is_better(one.compared(one.best)) for one in searches)
    assert better <= AT_MOST
    # Nor of those searches alone that recommend another agent than the seed, which is never called better.
    others = sum(one.best != SEED for one in searches)
    assert others > 50
    assert better <= 0.05 * others + 2.33 * (0.05 * 0.95 * others) ** 0.5


def test_all_agents_of_these_worlds_are_equal(searches) -> None:
    for one in searches[:20]:
        scores = {one.world.true_score(one.latents.of(agent)) for agent in one.tree.agents}
        assert len(one.tree.agents) > 3
        assert len(scores) == 1
        assert not set(one.holdout) & set(one.tree.tasks)
        assert len(one.holdout) == HOLDOUT


@pytest.mark.slow
def test_whoever_is_chosen_on_the_tasks_that_judge_it_is_called_better_too_often(searches) -> None:
    """What keeping the holdout apart prevents; and that the bound above can be crossed."""

    def luckiest(one):
        return max(one.tree.agents, key=lambda agent: one.compared(agent.id).second.resolved).id

    assert sum(is_better(one.compared(luckiest(one))) for one in searches) > AT_MOST


@pytest.mark.slow
def test_true_gains_are_called_better() -> None:
    found = [Searched("hgm", seed, step_mean=1.0, step_sd=0.1) for seed in range(20)]
    assert sum(is_better(one.compared(one.best)) for one in found) > 15
