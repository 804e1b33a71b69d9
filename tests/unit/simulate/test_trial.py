"""A policy in a simulated world: the real loop, virtual time, outcomes that nothing but the world decides."""

import asyncio
from dataclasses import replace

import pytest

from dgm.archive.events import ActionLost, ActionStarted, AgentBorn, RunStarted, TaskGraded
from dgm.config import Settings
from dgm.domain import SEED, ActionId, Born, Budget, Evaluate, Expand, Verdict
from dgm.errors import UserError
from dgm.search.loop import LoopHooks, Search
from dgm.search.orders import EvaluateOrder
from dgm.simulate import clockwork
from dgm.simulate.contenders import contender
from dgm.simulate.crew import quiet
from dgm.simulate.memory import Memory
from dgm.simulate.trial import SHARES, Trial, Watcher, budget_of, perform, world_of
from dgm.simulate.worker import SimulatedWorker, key_as_commit
from tests.support.runs.trees import Log

pytestmark = pytest.mark.slow

TROUBLED = Trial("hgm", "broken", 3, budget=150, expansion_cost=2.0, workers=8, failures=0.2)


@pytest.fixture(autouse=True)
def _without_warnings():
    quiet()


def timeless(result):
    """The result without what the machine's speed decides."""
    return replace(result, decision_ms=0.0, processor_s=0.0)


def searched(trial, on_event=lambda tree, recorded: None, clock=clockwork.clock):
    """The tree and the events of a trial."""
    world = world_of(trial)
    policy = contender(trial.policy, world).policy

    async def session():
        memory = Memory(clockwork.clock, keep=True)
        worker = SimulatedWorker(world, memory.tree, asyncio.sleep)
        memory.append(RunStarted(budget_of(trial), world.tasks))
        memory.append(memory.birth(ActionId(0), Born((), "seed", key_as_commit(world.root(), ()), "")))
        settings = Settings(seed=trial.seed, workers=trial.workers)
        around = LoopHooks(lambda recorded: on_event(memory.tree, recorded), clock=clock)
        await Search(memory, policy, worker, settings, around).go()
        return memory

    memory = clockwork.run(session())
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
    born = [event for event in events if isinstance(event, AgentBorn) and event.parents]
    return {
        (
            tuple(tree.agents[parent].commit for parent in event.parents),
            tree.child_number(event.action),
        ): event.commit
        for event in born
    }


def agree(one, other):
    common = one.keys() & other.keys()
    assert all(one[key] == other[key] for key in common)
    return len(common)


@pytest.mark.parametrize("policy", ["hgm", "lineage", "oracle"])
def test_equal_trials_have_equal_results(policy):
    trial = replace(TROUBLED, policy=policy)
    assert timeless(perform(trial)) == timeless(perform(trial))


def test_two_policies_meet_the_same_children_and_the_same_verdicts():
    trial = Trial("hgm", "drift", 5, budget=200)
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


@pytest.mark.parametrize("policy", ["hgm", "lineage", "random", "dgm", "best-of-n"])
@pytest.mark.parametrize("failures", [0.0, 0.1])
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
        patch.setattr("dgm.simulate.trial.Watcher", Listening)
        said = perform(trial)
    assert any(lost)
    assert said.failed == lost.count(False)


def watched():
    """A tree and who watches it, in a trial of 64 evaluations where an expansion takes ten."""
    log = Log(Budget(evaluations=64, expansion_cost=10.0))
    log.born()
    return log, Watcher(log.tree, lambda: 0.5, Trial("random", "drift", 1, budget=64, expansion_cost=10.0))


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


def test_each_attempt_takes_a_time_of_its_own():
    world = world_of(Trial("random", "drift", 1))
    log = Log(tasks=world.tasks)
    log.born()
    waited = []

    async def wait(seconds):
        waited.append(seconds)

    worker = SimulatedWorker(world, log.tree, wait)
    for attempt in (0, 1, 2, 1):
        what = Evaluate(SEED, world.tasks[0], attempt)
        asyncio.run(worker.perform(EvaluateOrder(ActionId(1), what, log.tree.agents[SEED])))
    assert len(set(waited)) == 3
    assert waited[3] == waited[1]


def test_more_workers_take_less_of_the_worlds_time():
    alone, many = (perform(Trial("random", "drift", 1, budget=200, workers=n)).hours for n in (1, 20))
    assert many < alone / 5


def test_one_worker_decides_the_same_whether_time_is_slept_or_skipped():
    trial = Trial("hgm", "drift", 4, budget=100)
    tree, _ = searched(trial)
    result = perform(trial)
    assert (len(tree.agents), tree.evaluations) == (result.agents, result.evaluations)


def test_the_curve_ends_with_the_final_score_and_the_area_is_between_its_extremes():
    result = perform(Trial("hgm", "drift", 1, budget=160))
    assert len(result.curve) == len(SHARES)
    assert result.curve[-1] == result.final <= result.best
    points = [result.root, *result.curve]
    assert min(points) <= result.area <= max(points)


def test_the_oracle_recommends_the_best_of_its_tree():
    result = perform(Trial("oracle", "drift", 1, budget=60))
    assert result.regret == 0.0
    assert not result.stuck


def test_a_search_that_waits_for_workers_does_not_poll():
    asked = 0

    def clock():
        nonlocal asked
        asked += 1
        return clockwork.clock()

    # The last steps of a budget, after a failure, are waited for by nothing but themselves.
    _, events = searched(replace(TROUBLED, workers=20), clock=clock)
    started = sum(isinstance(event, ActionStarted) for event in events)
    assert asked < 20 * started


@pytest.mark.parametrize(
    "text", ["", "nix", "hgm+", "hgm+gate", "hgm+gate=nix", "hgm+colour=red", "hgm+alpha=2"]
)
def test_a_policy_that_cannot_be_is_named(text):
    with pytest.raises(UserError, match="policy"):
        perform(Trial(text, "drift", 1))


def test_a_recombined_policy_decides_otherwise():
    plain, other = (perform(Trial(text, "drift", 1, budget=100)) for text in ("hgm", "hgm+alpha=0.9"))
    assert other.agents > plain.agents
