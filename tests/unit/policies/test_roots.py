"""A search that starts from several agents: all roots are tried alike first, and every rule works across them."""

from random import Random

import pytest

from dgm.archive.events import TaskGraded
from dgm.config import Settings
from dgm.domain import AgentId, Budget, Evaluate, Evaluation, Expand, Verdict
from dgm.policies import hgm, published
from dgm.policies.limits import seed_has_room
from dgm.policies.lineage import Lineage, recommend
from dgm.policies.operators import Mates
from dgm.policies.policy import ROOT_TASKS, View
from dgm.policies.registry import POLICIES, open_policy
from dgm.protocols import Needs
from tests.support.runs.trees import Log, named


def forest(*verdicts, budget=None):
    """Roots with these verdicts on the first tasks."""
    log = Log(budget)
    for root, results in enumerate(verdicts):
        log.born()
        log.graded(root, map(int, results))
    return log


def follow(policy, log):
    for event in log.events:
        policy.observe(event)
    return policy


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_each_root_tries_the_same_tasks_before_anything_else(name):
    log = forest("", "", "")
    policy, seen, tried = named(name), 0, []
    for _ in range(3 * ROOT_TASKS):
        for event in log.events[seen:]:
            policy.observe(event)
        seen = len(log.events)
        action = policy.next(log.tree, Random(f"1/{log.tree.next_action}"))
        assert isinstance(action, Evaluate)
        tried.append((action.agent, action.task))
        number = log.start(action)
        log.add(TaskGraded(number, Evaluation(action.agent, action.task, 0, Verdict.UNRESOLVED, "")))
    tasks = [{task for agent, task in tried if agent == root} for root in range(3)]
    assert tasks[0] == tasks[1] == tasks[2]
    assert len(tasks[0]) == ROOT_TASKS


def test_a_lone_seed_decides_as_ever():
    log = forest("")
    assert isinstance(named("hgm").next(log.tree, Random(0)), Evaluate)
    log.graded(0, [True])
    assert isinstance(named("hgm").next(log.tree, Random(0)), Expand)


def test_roots_share_the_seeds_part_of_the_budget_and_the_best_has_the_first_child():
    assert seed_has_room(forest("10", "11", budget=Budget(evaluations=17)).tree), "5 of 17 are less than 0.3"
    log = forest("10", "11", budget=Budget(evaluations=16))
    assert not seed_has_room(log.tree)
    step = named("pareto").next(log.tree, Random(0))
    assert isinstance(step, Expand)
    assert step.parents == (1,)


def test_every_root_is_tried_once_however_small_the_budget():
    log = forest("1", "", budget=Budget(evaluations=3))
    assert seed_has_room(log.tree)
    assert follow(named("lineage"), log).next(log.tree, Random(0)) == Evaluate(AgentId(1), log.tree.tasks[0])


@pytest.mark.parametrize("name", ["best-of-n", "no-self-improvement"])
def test_controls_make_children_of_the_roots_in_turn(name):
    log = forest("1" * 10, "0" * 10)
    parents = []
    for _ in range(4):
        decide = hgm.best_of_n if name == "best-of-n" else named(name)._decide
        parents.append(decide(View(log.tree), Random(0)).parent())
        log.born(parents[-1])
    assert parents == [0, 1, 0, 1]


def test_uct_enters_by_the_root_with_the_highest_bound():
    log = forest("1000000000", "1110000000")
    assert published.uct(View(log.tree), Random(0)).parent() == 1
    for _ in range(6):
        log.graded(log.born(1), [False] * 10)
    assert published.uct(View(log.tree), Random(0)).parent() == 0, "many fruitless visits lower the bound"


def test_the_published_hgm_keeps_the_roots_apart():
    log = forest("10", "11")
    log.graded(log.born(1), [True])
    policy = follow(hgm.HgmPublished(), log)
    solved, failed = policy.clades()
    assert (solved.tolist(), failed.tolist()) == ([1, 3, 1], [1, 0, 0])


def test_lineage_judges_children_by_their_own_root():
    log = forest("0" * 10, "1" * 10)
    policy = follow(Lineage(), log)
    low, high = policy.posterior.anchors
    assert low < -0.5 < 0.5 < high
    log.born(0), log.born(1)
    for event in log.events[-2:]:
        policy.observe(event)
    skills = policy.posterior.skills
    assert skills[2] == pytest.approx(skills[0], abs=0.3)
    assert skills[3] == pytest.approx(skills[1], abs=0.3)
    assert policy.posterior.broken()[:2].tolist() == [0.0, 0.0]


def test_the_better_root_is_recommended_until_a_child_proves_better():
    log = forest("1" * 4 + "0" * 6, "1" * 6 + "0" * 4)
    assert recommend(log.tree) == 1
    log.graded(log.born(0), [True] * 10)
    log.graded(log.born(2), [True] * 10)
    assert recommend(log.tree) in {2, 3}


def test_two_roots_are_mates_and_cross():
    log = forest("10", "01")
    assert Mates().of(log.tree, AgentId(0)) == [1]
    settings = Settings(operator="crossover+self-edit", operators={"weights": {"self-edit": 1e-9}})
    rule = open_policy(settings, {"crossover": Needs(parents=2)})._operators
    assert rule.choose(log.tree, AgentId(1), Random(0)) == Expand((AgentId(1), AgentId(0)), "crossover")
