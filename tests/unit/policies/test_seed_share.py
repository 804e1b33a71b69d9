"""Whatever bounds a run, the seed takes at most 0.3 of it before its first child is begun."""

from random import Random

import pytest

from dgm.archive.events import (
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    ModelCalled,
    Recorded,
    RunStarted,
    TaskGraded,
)
from dgm.archive.tree import Tree
from dgm.config import Settings
from dgm.domain import (
    SEED,
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Cost,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from dgm.policies.limits import UNPRICED, seed_has_room
from dgm.policies.registry import POLICIES, open_policy
from dgm.protocols import Needs
from tests.support.runs.trees import Log, named

TASKS = tuple(TaskId(f"task-{n}") for n in range(60))
EVALUATION = Usage(5, 9_000, 1_000, 0.04)
EVALUATION_S = 60.0


class Clockwork:
    """A search of so many workers whose evaluations all take the same; an expansion takes three times as long."""

    def __init__(self, policy, budget, workers=1, births=True):
        self.policy, self.workers, self.births = policy, workers, births
        self.tree, self.at, self.seq = Tree(), 1_000.0, 0
        self.running = []
        self.add(RunStarted(budget, TASKS))
        self.add(AgentBorn(ActionId(0), SEED, Born((), "seed", CommitId("c0"), "the seed")))

    def add(self, event):
        self.seq += 1
        recorded = Recorded(self.seq, self.at, event)
        self.tree.apply(recorded)
        self.policy.observe(recorded)

    def start(self):
        """Ask the policy for one more step and begin it; None where it waits."""
        action = self.tree.next_action
        what = self.policy.next(self.tree, Random(action))
        if what is not None:
            self.add(ActionStarted(action, what))
            took = EVALUATION_S * (3 if isinstance(what, Expand) else 1)
            self.running.append((self.at + took, action, what))
        return what

    def finish(self):
        """Let the step end that is the first to end."""
        self.running.sort()
        self.at, action, what = self.running.pop(0)
        cost = Cost(EVALUATION, EVALUATION_S)
        role = "solve" if isinstance(what, Evaluate) else "improve"
        self.add(ModelCalled(action, 1, "model", role, EVALUATION, 1.0))
        match what:
            case Evaluate(agent, task):
                verdict = Verdict.RESOLVED if action % 4 == 0 else Verdict.UNRESOLVED
                self.add(TaskGraded(action, Evaluation(agent, task, 0, verdict, "", cost)))
            case Expand(parents, operator) if self.births:
                child = AgentId(len(self.tree.agents))
                self.add(
                    AgentBorn(
                        action, child, Born(parents, operator, CommitId(f"c{child}"), f"edit {child}", cost)
                    )
                )
            case Expand(parents, operator):
                self.add(AgentStillborn(action, Stillborn(parents, operator, "probe", "", cost)))

    def steps(self, until):
        """What is begun, in order, up to and with the first step that ``until`` holds for; at most 300 steps."""
        begun = []
        while len(begun) < 300:
            what = self.start() if len(self.running) < self.workers else None
            if what is None:
                assert self.running, "a search with a budget left waits for nothing"
                self.finish()
                continue
            begun.append(what)
            if until(what):
                break
        return begun


def is_birth(what):
    return isinstance(what, Expand)


BOUNDS = {
    "evaluations": (Budget(evaluations=50), 15),
    "few evaluations": (Budget(evaluations=14), 4),
    "money": (Budget(usd=2.0), 15),
    "tokens": (Budget(tokens=500_000), 15),
    "time": (Budget(seconds=50 * EVALUATION_S), 15),
    "all": (Budget(1_000, 50, 1.0, 500_000, 10_000 * EVALUATION_S), 7),
}


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_begins_a_child_before_the_seed_has_taken_three_tenths_of_the_money(policy):
    begun = Clockwork(named(policy), Budget(usd=0.8)).steps(is_birth)
    assert is_birth(begun[-1])
    assert begun[-1].parents == (SEED,)
    assert len(begun) - 1 <= 6


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("policy", ["lineage", "adas"])
def test_whatever_bounds_a_run_the_seed_takes_at_most_three_tenths_before_its_first_child(policy, bound):
    budget, most = BOUNDS[bound]
    begun = Clockwork(named(policy), budget).steps(is_birth)
    assert is_birth(begun[-1])
    assert len(begun) - 1 <= most


@pytest.mark.parametrize("bound", ["evaluations", "money", "tokens"])
@pytest.mark.parametrize("workers", [2, 8])
@pytest.mark.parametrize("policy", ["lineage", "adas", "hgm"])
def test_what_is_under_way_counts(policy, workers, bound):
    budget, most = BOUNDS[bound]
    begun = Clockwork(named(policy), budget, workers).steps(is_birth)
    assert is_birth(begun[-1])
    assert len(begun) - 1 <= most


@pytest.mark.parametrize("workers", [2, 8])
def test_time_is_shared_by_all_workers(workers):
    search = Clockwork(named("adas"), Budget(seconds=20 * EVALUATION_S), workers)
    begun = search.steps(is_birth)
    assert search.tree.wall_seconds <= 6 * EVALUATION_S
    assert len(begun) - 1 >= 3 * workers


@pytest.mark.parametrize(("seconds", "room"), [(23, False), (24, True)])
def test_an_evaluation_under_way_counts_half_in_the_time_of_one(seconds, room):
    log = Log(Budget(seconds=seconds), TASKS)
    log.born()
    log.graded(0, [True])
    log.start(Evaluate(SEED, TASKS[1]))
    # In 3 s, two workers spent 6 s on 1.5 evaluations, 4 s on each. One more makes 7 s, of 23.3 s at least.
    assert (log.tree.wall_seconds, seed_has_room(log.tree)) == (3.0, room)


@pytest.mark.parametrize("bound", ["money", "tokens"])
def test_before_the_first_price_is_known_few_evaluations_run(bound):
    search = Clockwork(named("lineage"), BOUNDS[bound][0], workers=8)
    begun = [search.start() for _ in range(8)]
    assert sum(what is not None for what in begun) == UNPRICED
    search.finish()
    assert search.start() is not None


def test_while_the_first_children_are_made_the_other_workers_do_not_spend_the_purse_on_the_seed():
    search = Clockwork(named("adas"), BOUNDS["money"][0], workers=8)
    *begun, _ = search.steps(lambda _: len(search.tree.agents) > 1)
    evaluations = [what for what in begun if isinstance(what, Evaluate)]
    assert {what.agent for what in evaluations} == {SEED}
    assert 15 < len(evaluations) <= 20
    assert sum(map(is_birth, begun)) > 1


def test_a_first_child_that_dies_gives_the_seed_nothing():
    search = Clockwork(named("lineage"), BOUNDS["money"][0], births=False)
    begun = search.steps(lambda _: sum(search.tree.stillborn.values()) == 5)
    assert sum(isinstance(what, Evaluate) for what in begun) <= 15


def test_where_no_child_may_be_born_the_seed_goes_on():
    search = Clockwork(named("adas"), Budget(evaluations=50, agents=1))
    begun = search.steps(lambda _: search.tree.tried_count[SEED] == 30)
    assert not any(map(is_birth, begun))


@pytest.mark.parametrize("under_way", [False, True])
def test_an_operator_that_needs_failures_waits_for_them_where_they_are_under_way(under_way):
    settings = Settings(operator="diagnose+self-edit", policy={"name": "adas"})
    policy = open_policy(settings, {"diagnose": Needs(failures=1), "self-edit": Needs(failures=1)})
    log = Log(Budget(evaluations=10), TASKS)
    log.born()
    log.graded(0, [True] * 3)
    if under_way:
        log.add(ActionStarted(log.tree.next_action, Evaluate(SEED, TASKS[40])))
    wanted = policy.next(log.tree, Random(0))
    assert wanted is None if under_way else isinstance(wanted, Evaluate)
