"""What ``lineage`` takes a child and an evaluation to be worth: states set by hand, values reckoned by hand."""

import math

import pytest

from dgm.archive.events import ActionStarted, AgentStillborn, ChildProposed, Recorded, TaskGraded
from dgm.domain import (
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
    Verdict,
)
from dgm.policies.lineage.breakage import NEVER
from dgm.policies.lineage.constants import DIFFICULTY_VARIANCE
from dgm.policies.lineage.fold import Fold
from dgm.policies.lineage.hyper import Laws
from dgm.policies.lineage.outlook import _under_way
from dgm.policies.lineage.steps import State
from tests.support.runs.trees import Log

MANY = tuple(TaskId(f"task-{n:02}") for n in range(70))
LAWS = Laws(rho=0.5, q=0.1, drift=0.01)
ANCHOR = 0.1
SEED_STATE = State(t=0.5, m=0.5, tt=0.4, tm=0.1, mm=0.2)
"""Its child is expected at 0.1 + 0.5 (0.5 - 0.1) + 0.5 = 0.8, where the seed stands with its bonus of 0.3.

The variance about that is 0.5² 0.4 + 2 · 0.5 · 0.1 + 0.2 + 0.1 = 0.5.
"""
HOPELESS = SEED_STATE._replace(m=-5.0)


def judged(*states, budget=1000, cost=1.0, results=2, rate=0.0, growing=False, anchor=ANCHOR):
    """The outlook on a seed and its children, sound, that have ``results`` each and these states."""
    log = Log(Budget(evaluations=budget, expansion_cost=cost), MANY)
    for agent in range(len(states)):
        log.born(*[0] * bool(agent))
        log.graded(agent, [True] * results)
    if growing:
        log.add(ActionStarted(log.tree.next_action, Expand((AgentId(0),), "self-edit")))
    fold = Fold()
    for event in log.events:
        fold.observe(event)
    posterior = fold.posterior
    posterior.beliefs.states[:] = states
    posterior.laws, posterior.anchor, posterior.breakage.rate = LAWS, anchor, rate
    posterior.breakage.odds[:] = [NEVER] * len(states)
    return fold.outlook(log.tree)


def gained(variance, probes):
    """Expected improvement, where nothing lies between, by so many evaluations: s φ(0) with s = v √(I / (1 + v I))."""
    information = 0.18 * probes
    return variance * math.sqrt(information / (1 + variance * information)) / math.sqrt(2 * math.pi)


def test_an_expansion_counts_by_its_cost():
    # One evaluation of the child gives 0.0203 per unit of cost, two 0.0220, four 0.0207.
    worth = judged(SEED_STATE, cost=3.0)._expansion_worth(0)
    assert worth == pytest.approx(gained(0.5, 2) / (3 + 2))


def test_a_child_is_worth_less_by_how_often_children_are_broken():
    sound, often = (judged(SEED_STATE, rate=rate)._expansion_worth(0) for rate in (0.0, 0.2))
    assert often == pytest.approx(0.8 * sound)


def test_a_child_is_the_less_certain_the_more_its_parents_skill_and_drift_vary_together():
    # Without what they share the variance is 0.4; 2 · 0.5 · 0.1 comes on top, or is taken off.
    together, apart = (judged(SEED_STATE._replace(tm=tm))._expansion_worth(0) for tm in (0.1, -0.1))
    assert together == pytest.approx(gained(0.5, 1) / 2)
    assert apart == pytest.approx(gained(0.3, 1) / 2)


@pytest.mark.parametrize(("cost", "pays"), [(1.4, True), (1.6, False)])
def test_a_child_may_promise_half_of_what_an_evaluation_does(cost, pays):
    # An evaluation of the seed is worth gained(0.4, 1) = 0.0654; a child gained(0.5, 1) / (cost + 1), which is 0.0338
    # at 1.4 and 0.0312 at 1.6, and counts twice.
    assert judged(SEED_STATE, cost=cost).expansion_pays == pays


@pytest.mark.parametrize(("variance", "target"), [(0.33, 2), (0.27, 1)])
def test_the_best_agents_rival_is_the_second_best(variance, target):
    # Each is 0.4 from the other, so the one that is less known is tried.
    seed, best = State(-2.0, 0.0, 0.01, 0.0, 0.0), State(1.0, 0.0, 0.3, 0.0, 0.0)
    second = State(0.6, 0.0, variance, 0.0, 0.0)
    assert judged(seed, best, second).target == target


@pytest.mark.parametrize(("skill", "parent"), [(1.54, 1), (1.6, 2)])
def test_a_line_that_loses_half_of_its_gains_loses_half_of_what_it_drifted(skill, parent):
    # In six generations the first line drifts by 0.4 (1 + ½ + … + ¹⁄₃₂) = 0.7875; the other's child keeps half.
    seed = State(0.0, 0.0, 0.01, 0.0, 0.0)
    drifting, able = State(0.0, 0.4, 1.0, 0.0, 0.0), State(skill, 0.0, 1.0, 0.0, 0.0)
    assert judged(seed, drifting, able, anchor=0.0).parent == parent


@pytest.mark.parametrize(
    ("budget", "results", "known"), [(10, 2, False), (10, 3, True), (1000, 59, False), (1000, 60, True)]
)
def test_a_lone_seed_has_a_child_after_three_tenths_of_the_budget_or_sixty_results(budget, results, known):
    assert judged(HOPELESS, budget=budget, results=results).expansion_pays == known


def test_a_seed_that_is_known_waits_for_a_child_on_its_way():
    assert not judged(HOPELESS, budget=10, results=3, growing=True).expansion_pays


def test_a_seed_that_is_known_and_has_a_child_must_promise_something():
    assert not judged(HOPELESS, HOPELESS, budget=10, results=3).expansion_pays


def test_a_line_is_the_less_certain_the_less_its_drift_is_known():
    # 0.4 + 2 · 6 · 0.1 + 6² · 0.2 + 0.1 = 8.9.
    _, spread = judged(SEED_STATE)._prospects()
    assert spread == pytest.approx([math.sqrt(8.9)])


def test_a_child_that_waits_for_a_person_counts_like_one_on_its_way():
    outlook = judged(SEED_STATE, growing=True)
    waiting = judged(SEED_STATE, growing=True)
    action = next(iter(waiting._tree.pending))
    born = Born((AgentId(0),), "self-edit", CommitId("c" * 40), "")
    waiting._tree.apply(Recorded(1000, 1000.0, ChildProposed(action, born)))
    assert not waiting._tree.pending
    assert _under_way(waiting._tree)[1] == pytest.approx(_under_way(outlook._tree)[1])
    assert _under_way(waiting._tree)[1] == pytest.approx([1.0])


def test_a_task_teaches_by_its_uncertainty_and_the_less_the_more_results_are_of_it():
    outlook = judged(SEED_STATE)
    evidence = outlook._posterior.evidence
    evidence.difficulties[0], evidence.difficulty_variances[0] = 0.0, DIFFICULTY_VARIANCE
    # A fifth of all results, with one for each of the 70 tasks: half of the worth.
    evidence.uses[0] = round(0.2 * (len(evidence) + len(MANY)))
    used, new = outlook.task_worth(AgentId(0), [MANY[0], MANY[-1]])
    p = 1 / (1 + math.exp(-SEED_STATE.t))
    w = p * (1 - p)
    assert new == pytest.approx(w / (1 + w * DIFFICULTY_VARIANCE))
    share = evidence.uses[0] / (len(evidence) + len(MANY))
    assert used == pytest.approx(new / (1 + (share / 0.2) ** 4))


@pytest.mark.parametrize(("solving", "improving"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_where_either_took_no_time_an_expansion_costs_as_much_as_an_evaluation(solving, improving):
    log, fold = Log(tasks=MANY), Fold()
    log.born()
    seed, dead = AgentId(0), Stillborn((AgentId(0),), "self-edit", "check", "", Cost(seconds=improving))
    done = Evaluation(seed, MANY[0], 0, Verdict.RESOLVED, "", cost=Cost(seconds=solving))
    log.add(ActionStarted(log.tree.next_action, Evaluate(seed, MANY[0])))
    log.add(TaskGraded(ActionId(1), done))
    log.add(ActionStarted(log.tree.next_action, Expand((seed,), "self-edit")))
    log.add(AgentStillborn(ActionId(2), dead))
    for event in log.events:
        fold.observe(event)
    assert fold.outlook(log.tree).expansion_cost == 1.0
