"""What holds for every policy: laws of its decisions, in searches where everything that can happen does."""

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.analysis.budgets import has_evaluation_room, has_room_for
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    ModelCalled,
    TaskGraded,
)
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from dgm.policies.limits import BARREN
from dgm.policies.registry import POLICIES
from tests.support.runs.trees import TASKS, Log, named

pytestmark = pytest.mark.slow

EVERY_POLICY = sorted(POLICIES)
STARVING = {"hgm-published"}
"""May have no child although there is room: the others never."""
ONLY_THE_SEED = {"best-of-n", "no-self-improvement"}
"""Where all are children of the seed."""


@dataclass
class World:
    """Performs actions badly, in any order: an outcome of any kind for whatever is under way."""

    log: Log
    random: Random
    rate: float
    broken: float
    running: dict[ActionId, Evaluate | Expand] = field(default_factory=dict)

    def start(self, number, action, again=False):
        self.log.add(ActionStarted(number, action, again))
        self.running[number] = action

    def finish_one(self):
        number = self.random.choice(sorted(self.running))
        action = self.running.pop(number)
        chance = self.random.random()
        self.log.add(ModelCalled(number, 0, "m", "solve", Usage(calls=1)))
        if chance < 0.1:
            self.log.add(ActionLost(number, "lost", final=chance < 0.03))
        elif isinstance(action, Expand):
            self.log.add(self._birth(number, action))
        else:
            verdict = Verdict.RESOLVED if self.random.random() < self.rate else Verdict.UNRESOLVED
            verdict = Verdict.INVALID if chance > 0.95 else verdict
            self.log.add(TaskGraded(number, Evaluation(action.agent, action.task, 0, verdict, "")))

    def _birth(self, number, action):
        if self.random.random() < self.broken:
            return AgentStillborn(number, Stillborn(action.parents, action.operator, "check", ""))
        agent = AgentId(len(self.log.tree.agents))
        return AgentBorn(number, agent, Born(action.parents, action.operator, CommitId(f"c{agent}"), ""))


def search(name, world, workers, most):
    """A search as the loop does it; yields each new decision before it starts, and None where there was none."""
    made, seen, log = named(name), 0, world.log
    for _ in range(most):
        tree = log.tree
        again = dict(tree.to_redo())
        if again and len(world.running) < workers:
            world.start(*next(iter(again.items())), again=True)
            continue
        action = None
        if len(world.running) < workers and has_evaluation_room(tree):
            for event in log.events[seen:]:
                made.observe(event)
            seen = len(log.events)
            action = made.next(tree, Random(f"3/{tree.next_action}"))
            yield action
        if action is not None:
            world.start(tree.next_action, action)
        elif world.running:
            world.finish_one()
        else:
            return


def follow(name, log):
    """The policy after it has seen the whole log at once."""
    made = named(name)
    for event in log.events:
        made.observe(event)
    return made


WORLDS = st.builds(
    lambda seed, rate, broken, cost, agents: World(
        Log(Budget(evaluations=30, agents=agents, expansion_cost=cost)), Random(seed), rate, broken
    ),
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([0.0, 0.5, 4.0]),
    st.sampled_from([None, 1, 3]),
)


@pytest.mark.parametrize("name", EVERY_POLICY)
@settings(max_examples=10, deadline=None)
@given(world=WORLDS, workers=st.sampled_from([1, 2, 20]))
def test_no_task_twice_and_no_budget_exceeded_whatever_happens(name, world, workers):
    world.log.born()
    for action in search(name, world, workers, 300):
        if isinstance(action, Evaluate):
            assert action.attempt == 0
            assert action.task not in world.log.tree.tried(action.agent)
        if action is not None:
            assert has_room_for(world.log.tree, action)
    limit = world.log.tree.budget.agents
    assert limit is None or len(world.log.tree.agents) <= limit


@pytest.mark.parametrize("name", EVERY_POLICY)
@settings(max_examples=6, deadline=None)
@given(world=WORLDS, workers=st.sampled_from([1, 20]))
def test_a_decision_is_a_function_of_the_log_and_the_stream(name, world, workers):
    world.log.born()
    asked = Random(1)
    for action in search(name, world, workers, 120):
        if asked.random() < 0.2:
            restarted = follow(name, world.log)
            stream = f"3/{world.log.tree.next_action}"
            restarted.next(world.log.tree, Random("asked at another moment"))
            assert restarted.next(world.log.tree, Random(stream)) == action


@pytest.mark.parametrize("name", EVERY_POLICY)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("workers", [1, 3])
def test_a_search_with_room_goes_on(name, seed, workers):
    world = World(Log(Budget(evaluations=40)), Random(seed), rate=0.5, broken=0.3)
    world.log.born()
    for _ in search(name, world, workers, 2000):
        pass
    assert world.log.tree.evaluations == 40
    assert len(world.log.tree.agents) > 1


@pytest.mark.parametrize("name", EVERY_POLICY)
@settings(max_examples=10, deadline=None)
@given(world=WORLDS, workers=st.sampled_from([1, 2, 20]))
def test_a_search_ends_only_when_nothing_is_left_to_spend_or_to_try(name, world, workers):
    world.log.born()
    for action in search(name, world, workers, 3000):
        if action is not None and not has_room_for(world.log.tree, action):
            break
    tree = world.log.tree
    assert not has_evaluation_room(tree) or (not world.running and min(tree.tried_count) == len(tree.tasks))


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY_POLICY)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), workers=st.sampled_from([1, 2, 20]))
def test_a_seed_that_solves_nothing_still_expands(name, seed, workers):
    world = World(Log(Budget(evaluations=60)), Random(seed), rate=0.0, broken=0.0)
    world.log.born()
    for _ in search(name, world, workers, 600):
        pass
    assert (len(world.log.tree.agents) > 1) is (name not in STARVING)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY_POLICY)
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_a_seed_with_more_tasks_than_the_budget_has_evaluations_still_expands(name, rate):
    tasks = tuple(TaskId(f"task-{n}") for n in range(100))
    world = World(Log(Budget(evaluations=90), tasks), Random(5), rate, broken=0.0)
    world.log.born()
    for _ in search(name, world, 1, 600):
        pass
    assert len(world.log.tree.agents) > 1


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_search_ends_whose_births_all_fail(name):
    world = World(Log(Budget(evaluations=500)), Random(5), rate=0.5, broken=1.0)
    world.log.born()
    for _ in search(name, world, 2, 3000):
        pass
    assert not world.running
    assert len(world.log.tree.tried(AgentId(0))) == len(TASKS)


@pytest.mark.parametrize("name", EVERY_POLICY)
@pytest.mark.parametrize("births", [0, 3])
def test_a_search_ends_whose_births_fail_from_some_point_on(name, births):
    world = World(Log(Budget(evaluations=200)), Random(5), rate=0.5, broken=0.0)
    world.log.born()
    for _ in search(name, world, 2, 3000):
        world.broken = float(len(world.log.tree.agents) > births)
    assert not world.running
    assert len(world.log.tree.agents) >= 1 + births
    assert min(world.log.tree.tried_count) == len(TASKS), "what can be evaluated is"
    agents = len(world.log.tree.agents)
    assert sum(world.log.tree.stillborn.values()) <= agents * (BARREN + 2) + world.log.tree.evaluations


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_parent_that_can_have_no_child_is_passed_over(name):
    log = Log(Budget(evaluations=500))
    log.born()
    log.graded(0, [True, False] * 5)
    for child, solved in ((1, 9), (2, 7), (3, 8)):
        log.born(0)
        log.graded(child, [True] * solved + [False] * (10 - solved))
    parents = set()
    for _ in range(6 * BARREN):
        action = follow(name, log).next(log.tree, Random(log.tree.next_action))
        if action is None:
            break
        assert isinstance(action, Expand)
        parents.add(action.parents[0])
        log.add(ActionStarted(log.tree.next_action, action))
        log.add(
            AgentStillborn(ActionId(log.tree.next_action - 1), Stillborn(action.parents, "x", "check", ""))
        )
    assert action is None
    assert sum(log.tree.stillborn.values()) == BARREN * len(parents)
    assert len(parents) == (1 if name in ONLY_THE_SEED else 4)


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_tree_of_one_is_decided_on(name):
    log = Log()
    log.born()
    action = follow(name, log).next(log.tree, Random(0))
    assert isinstance(action, Evaluate)
    assert action.agent == 0
