"""A policy in a simulated world: the real loop, virtual time, outcomes that nothing but the world decides."""

import asyncio
from dataclasses import replace

import pytest

from dgm.archive.events import ActionLost, ActionStarted, AgentBorn, RunStarted, TaskGraded
from dgm.config import Settings
from dgm.domain import SEED, ActionId, Born, Budget, Expand, Verdict
from dgm.search.loop import LoopHooks, Search
from dgm.simulation import virtual
from dgm.simulation.policies import open_contender
from dgm.simulation.trial import SHARES, Trial, Watcher, budget_of, perform, quiet, world_of
from dgm.simulation.virtual import Memory, SimulatedWorker, key_as_commit
from tests.support.runs.trees import Log

pytestmark = pytest.mark.slow

# fmt: off
PINNED = {
    # policy, family, world, budget, expansion cost, workers, failures: final, area, best, recommended, depth, agents,
    # expansions, evaluations, failed, ended, hours
    ("hgm", "drift", 5, 120, 1.0, 1, 0.0):
        (0.264788782, 0.203800996, 0.2648294278, 8, 4, 17, 16, 104, 0, "goal reached", 17.358099),
    ("lineage", "mismatch", 3, 120, 1.0, 1, 0.0):
        (0.8462327125, 0.279320169, 0.8462327125, 34, 29, 35, 34, 86, 0, "goal reached", 19.121419),
    ("oracle", "skills", 1, 60, 1.0, 1, 0.0):
        (0.5648755515, 0.353304122, 0.5648755515, 30, 17, 31, 30, 30, 0, "goal reached", 14.554483),
    ("random", "low-retention-crowd", 2, 150, 1.0, 20, 0.0):
        (0.2559516413, 0.204597273, 0.2567967432, 10, 2, 19, 18, 132, 0, "goal reached", 1.473584),
    ("hgm", "broken", 3, 150, 2.0, 8, 0.2):
        (0.2131357305, 0.208373948, 0.2350271057, 0, 0, 18, 17, 116, 28, "goal reached", 2.283668),
    ("hgm+operators.choice=bandit", "operators", 3, 60, 1.0, 1, 0.0):
        (0.2594943225, 0.278739144, 0.3212653567, 0, 0, 8, 9, 43, 0, "budget spent", 6.533403),
    ("hgm+alpha=0.9", "late-bloomers", 1, 100, 1.0, 1, 0.0):
        (0.2502292789, 0.1623288, 0.2906900161, 32, 14, 40, 39, 61, 0, "goal reached", 15.4365),
    ("lineage+gate=hgm", "trade-offs", 7, 100, 1.0, 1, 0.0):
        (0.3119913069, 0.259513337, 0.3309775893, 13, 13, 15, 14, 86, 0, "goal reached", 14.072601),
    ("best-of-n", "tuning-pair", 4, 100, 1.0, 1, 0.0):
        (0.3326562128, 0.33680741, 0.3715570517, 7, 1, 15, 14, 86, 0, "goal reached", 12.016061),
    ("greedy", "siblings", 6, 100, 1.0, 1, 0.0):
        (0.250778902, 0.250778902, 0.2568370426, 0, 0, 5, 4, 96, 0, "goal reached", 12.121873),
    ("sica", "heavy-tails", 2, 100, 1.0, 1, 0.0):
        (0.1804981257, 0.180498126, 0.1856694857, 0, 0, 2, 1, 99, 0, "goal reached", 11.499239),
    ("oracle", "late-bloomers", 3, 50, 1.0, 1, 0.0):
        (0.3972863832, 0.287430722, 0.3972863832, 24, 8, 26, 25, 25, 0, "goal reached", 11.480258),
    ("hgm+curriculum.start=10+curriculum.agents=2", "extremes", 3, 100, 1.0, 1, 0.0):
        (0.3385064317, 0.330209861, 0.3387642227, 6, 2, 15, 14, 86, 0, "goal reached", 11.674215),
}
# fmt: on
TROUBLED = Trial("hgm", "broken", 3, budget=150, expansion_cost=2.0, workers=8, failures=0.2)


@pytest.fixture(autouse=True)
def _without_warnings():
    quiet()


def searched(trial, on_event=lambda tree, recorded: None, clock=virtual.clock):
    """The tree and the events of a trial."""
    world = world_of(trial)
    policy, _ = open_contender(trial.policy, world)

    async def session():
        memory = Memory(keep=True)
        worker = SimulatedWorker(world, memory.tree, asyncio.sleep)
        memory.append(RunStarted(budget_of(trial), world.tasks))
        memory.append(memory.birth(ActionId(0), Born((), "seed", key_as_commit(world.root(), ()), "")))
        settings = Settings(seed=trial.seed, workers=trial.workers)
        around = LoopHooks(lambda recorded: on_event(memory.tree, recorded), clock=clock)
        await Search(memory, policy, worker, settings, around).go()
        return memory

    memory = virtual.run(session())
    return memory.tree, [recorded.event for recorded in memory.since(0)]


def verdicts(tree):
    """Whether each agent, by its nature, resolved each task."""
    return {
        (agent.commit, task): verdict
        for agent in tree.agents
        for task, verdict in tree.verdicts(agent.id).items()
        if verdict is not None
    }


def children(tree, events):
    """Each child by its parents' natures and its number among the first parent's expansions."""
    born = [event for event in events if isinstance(event, AgentBorn) and event.outcome.parents]
    return {
        (
            tuple(tree.agents[parent].commit for parent in event.outcome.parents),
            tree.child_number(event.action),
        ): event.outcome.commit
        for event in born
    }


def agree(one, other):
    common = one.keys() & other.keys()
    assert all(one[key] == other[key] for key in common)
    return len(common)


@pytest.mark.parametrize("trial", PINNED)
def test_results_never_change(trial):
    r = perform(Trial(*trial))
    scores = (r.final, pytest.approx(r.area, abs=1e-8), r.best)
    counts = (r.recommended, r.depth, r.agents, r.expansions, r.evaluations, r.failed, r.ended)
    assert (*scores, *counts, pytest.approx(r.hours, abs=1e-5)) == PINNED[trial]


def test_two_policies_meet_the_same_children_and_the_same_verdicts():
    trial = Trial("hgm", "drift", 5, budget=120)
    tree, events = searched(trial)
    other, its_events = searched(replace(trial, policy="random", workers=7))
    assert agree(verdicts(tree), verdicts(other)) >= 10
    assert agree(children(tree, events), children(other, its_events)) >= 3


def test_infrastructure_failures_change_no_verdict():
    tree, events = searched(TROUBLED)
    calm, _ = searched(replace(TROUBLED, failures=0.0))
    assert sum(isinstance(event, ActionLost) for event in events) > 10
    assert agree(verdicts(tree), verdicts(calm)) >= 20
    assert all(e.outcome.verdict is not Verdict.INVALID for e in events if isinstance(e, TaskGraded))
    assert tree.evaluations == len(verdicts(tree))


@pytest.mark.parametrize(
    ("policy", "failures"),
    [("hgm", 0.0), ("hgm", 0.1), ("lineage", 0.1), ("random", 0.0), ("dgm", 0.1), ("best-of-n", 0.1)],
)
def test_the_budget_holds_whatever_is_in_flight(policy, failures):
    trial = Trial(policy, "drift", 2, budget=300, expansion_cost=10.0, workers=64, failures=failures)
    widest = 0

    def look(tree, recorded):
        nonlocal widest
        flying = len(tree.pending) + len(tree.to_redo()) - tree.expansions_in_flight
        assert tree.evaluations + flying + 10.0 * tree.expansions_begun <= 300
        widest = max(widest, len(tree.pending))

    tree, _ = searched(trial, look)
    assert widest > 10
    assert tree.evaluations + 10.0 * tree.expansions_begun > 280


def test_a_step_that_is_given_up_counts_once_for_each_failure():
    trial = Trial("random", "drift", 5, budget=60, failures=0.8)
    lost = []

    class Listening(Watcher):
        def __call__(self, recorded):
            super().__call__(recorded)
            if isinstance(recorded.event, ActionLost):
                lost.append(recorded.event.final)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dgm.simulation.trial.Watcher", Listening)
        said = perform(trial)
    assert any(lost)
    assert said.failed == lost.count(False)


def watched():
    """A tree and who watches it, in a trial of 64 evaluations where an expansion takes ten."""
    log = Log(Budget(evaluations=64, expansion_cost=10.0))
    log.born()
    return log, Watcher(Trial("random", "drift", 1, budget=64, expansion_cost=10.0), log.tree, lambda: 0.5)


def test_an_expansion_counts_by_its_cost():
    log, watcher = watched()
    log.made((0,), "self-edit")
    watcher(log.events[-1])
    assert len(watcher.curve) == 4, "1, 2, 4 and 8 of 64 are spent, 12 are not"


def test_an_expansion_counts_when_it_is_over():
    log, watcher = watched()
    log.add(ActionStarted(log.tree.next_action, Expand((SEED,), "self-edit")))
    log.graded(0, [True, False])
    watcher(log.events[-1])
    assert len(watcher.curve) == 2, "1 and 2 of 64 are spent"


def test_the_curve_ends_with_the_final_score_and_the_area_is_between_its_extremes():
    result = perform(Trial("hgm", "drift", 1, budget=160))
    assert len(result.curve) == len(SHARES)
    assert result.curve[-1] == result.final <= result.best
    points = [result.root, *result.curve]
    assert min(points) <= result.area <= max(points)


def test_a_search_that_waits_for_workers_does_not_poll():
    asked = 0

    def clock():
        nonlocal asked
        asked += 1
        return virtual.clock()

    # The last steps of a budget, after a failure, are waited for by nothing but themselves.
    _, events = searched(replace(TROUBLED, workers=20), clock=clock)
    started = sum(isinstance(event, ActionStarted) for event in events)
    assert asked < 20 * started
