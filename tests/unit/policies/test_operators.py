"""Which operator makes the next child, with whom, and at what it aims."""

from collections import Counter
from random import Random

import pytest

from dgm.config import Settings
from dgm.domain import AgentId, Evaluate, Expand
from dgm.errors import UserError
from dgm.policies.operators import Mates, open_operators
from dgm.policies.policy import View
from dgm.policies.published import rank_by_worth
from dgm.policies.registry import open_policy
from dgm.protocols import Needs
from tests.support.runs.trees import TASKS, Log

pytestmark = pytest.mark.slow

NEEDS = {
    "self-edit": Needs(),
    "diagnose": Needs(failures=1, aims=("unresolved", "empty")),
    "crossover": Needs(parents=2),
    "invent": Needs(archive=4),
    "module": Needs(aims=("loop", "tools", "context")),
    "share": Needs(failures=1, group=2),
    "distil": Needs(failures=1, successes=1),
}


def choose(operator, log, parent=0, seed=0, **operators):
    """A choice by the rule of these operators after it has seen the whole log."""
    rule, observers = open_operators(Settings(operator=operator, operators=operators), NEEDS)
    for event in log.events:
        for observer in observers:
            observer.observe(event)
    return rule.choose(log.tree, AgentId(parent), seed if isinstance(seed, Random) else Random(seed))


def choices(operator, log, seeds=300, **operators):
    """How often each is chosen."""
    return Counter(choose(operator, log, seed=seed, **operators).operator for seed in range(seeds))


class NoNumbers(Random):
    """A stream that may not be asked."""

    def random(self):
        raise AssertionError("a number was drawn")

    getrandbits = random


@pytest.fixture
def lonely():
    log = Log()
    log.born()
    return log


# One operator


@pytest.mark.parametrize("operator", ["module", "diagnose"])
def test_one_operator_draws_no_number(operator, lonely):
    lonely.graded(0, [False])
    assert choose(operator, lonely, seed=NoNumbers()).operator == operator


def test_an_operator_that_cannot_do_it_now_leaves_the_step_to_evaluation(lonely):
    lonely.graded(0, [True])
    settings = Settings(operator="diagnose", policy={"name": "random"})
    policy = open_policy(settings, NEEDS)
    assert all(isinstance(policy.next(lonely.tree, Random(seed)), Evaluate) for seed in range(20))
    lonely.graded(0, [False])
    assert any(isinstance(policy.next(lonely.tree, Random(seed)), Expand) for seed in range(20))


def test_an_operator_waits_for_the_first_success_of_anybody(lonely):
    lonely.graded(0, [False])
    assert choose("distil", lonely) is None
    lonely.born(0)
    lonely.graded(1, [True])
    assert choose("distil", lonely).parents == (0,)


# Several


def test_weights_say_how_much_more_often(lonely):
    found = choices("self-edit+module", lonely, weights={"module": 9})
    assert 15 <= found["self-edit"] <= 50


def test_only_operators_whose_needs_are_met_compete(lonely):
    lonely.graded(0, [True])
    every = "self-edit+diagnose+crossover+invent"
    assert set(choices(every, lonely, seeds=40)) == {"self-edit"}
    lonely.graded(0, [False])
    assert set(choices(every, lonely, seeds=40)) == {"self-edit", "diagnose"}
    for _ in range(3):
        lonely.born(0)
    assert set(choices(every, lonely, seeds=60)) == {"self-edit", "diagnose", "invent"}
    lonely.tried(1, **{TASKS[1]: True, TASKS[0]: False})
    lonely.tried(2, **{TASKS[0]: True, TASKS[1]: False})
    assert {choose(every, lonely, 1, seed).operator for seed in range(80)} == {*every.split("+")}


def test_the_bandit_is_told_every_event_by_the_policy(lonely):
    settings = Settings(
        operator="self-edit+module",
        operators={"choice": "bandit"},
        policy={"name": "random", "alpha": 0.9},
    )
    policy = open_policy(settings, NEEDS)
    assert policy.keeps_state
    lonely.graded(0, [False] * 6)
    for _ in range(8):
        lonely.made((0,), "module", dies="check")
        lonely.graded(lonely.made((0,), "self-edit"), [True] * 8)
    for event in lonely.events:
        policy.observe(event)
    said = [policy.next(lonely.tree, Random(seed)) for seed in range(150)]
    grown = Counter(action.operator for action in said if isinstance(action, Expand))
    assert grown["self-edit"] > 10 * max(grown["module"], 1)


# Mates


@pytest.fixture
def family():
    """The seed; 1 and 2 of it, 3 of 1. 1 and 2 solve different tasks, 3 more of what 2 lacks."""
    log = Log()
    for parents in ((), (0,), (0,), (1,)):
        log.born(*parents)
    one, two, three, four = TASKS[:4]
    log.tried(0, **{one: False, two: False})
    log.tried(1, **{one: True, two: False, three: True})
    log.tried(2, **{one: False, two: True, three: False, four: False})
    log.tried(3, **{one: True, two: False, three: True, four: True})
    return log


def test_a_mate_is_of_another_lineage_and_each_solves_what_the_other_does_not(family):
    mates = Mates()
    assert mates.of(family.tree, AgentId(0)) == ()
    assert mates.of(family.tree, AgentId(1)) == [2]
    assert mates.of(family.tree, AgentId(3)) == [2]


def test_equally_good_mates_are_drawn_among(family):
    family.born(1)
    family.tried(4, **{TASKS[0]: True, TASKS[1]: False, TASKS[2]: True, TASKS[3]: True})
    assert Mates().of(family.tree, AgentId(2)) == [3, 4]
    expansions = [choose("self-edit+crossover", family, 2, seed) for seed in range(60)]
    assert {what.parents for what in expansions if what.operator == "crossover"} == {(2, 3), (2, 4)}


def test_two_are_crossed_once(family):
    family.made((3, 2), "crossover", dies="conflict")
    mates = Mates()
    for event in family.events:
        mates.observe(event)
    assert mates.of(family.tree, AgentId(2)) == [1]
    assert mates.of(family.tree, AgentId(3)) == ()


def test_a_barren_agent_is_nobody_s_mate(family):
    for _ in range(10):
        family.made((3,), "self-edit", dies="check")
    assert Mates().of(family.tree, AgentId(2)) == [1]


def test_a_mate_solved_what_the_parent_tried_in_vain(family):
    """Not only what it has not tried."""
    family.born(2)
    family.tried(4, **{TASKS[5]: True, TASKS[6]: False})
    family.born(0)
    family.tried(5, **{TASKS[6]: True, TASKS[7]: False})
    assert Mates().of(family.tree, AgentId(5)) == ()


# Groups


def test_a_group_is_the_parent_and_the_best_by_performance_and_novelty(family):
    """Agents 1 and 3 solve most but the same; 2 solves what they do not."""
    family.tried(4 - 1, **{TASKS[4]: False, TASKS[5]: False})
    ranked = rank_by_worth(View(family.tree))
    for parent in range(4):
        partner = next(agent for agent in ranked if agent != parent)
        assert choose("share", family, parent) == Expand((parent,), "share", group=(parent, partner))


def test_a_lone_seed_is_a_group_of_one_and_needs_a_failure(lonely):
    lonely.graded(0, [True])
    assert choose("share", lonely) is None
    lonely.graded(0, [False])
    assert choose("share", lonely) == Expand((0,), "share", group=(0,))


def test_each_member_has_its_child_before_another_group_begins_or_another_operator_works(family):
    every = "share+self-edit"
    group = family_group = (3, 1)
    family.performed(Expand((3,), "share", group=group))
    for seed in range(20):
        assert choose(every, family, 2, NoNumbers(seed)) == Expand((1,), "share", group=family_group)
    family.performed(Expand((1,), "share", group=group), dies="check")
    assert {choose(every, family, 2, seed).parents for seed in range(20)} == {(2,)}


def test_a_member_that_became_barren_is_passed_over(family):
    family.performed(Expand((3,), "share", group=(3, 1, 2)))
    for _ in range(10):
        family.made((1,), "self-edit", dies="check")
    assert choose("share", family, 0) == Expand((2,), "share", group=(3, 1, 2))


# Aims


def test_parts_come_round_robin_whoever_the_parent_is(lonely):
    lonely.born(0)
    aims = []
    for number in range(7):
        aims.append(choose("module", lonely, number % 2).aim)
        lonely.made((number % 2,), "module", aim=aims[-1], dies="size" if number % 3 else "")
    assert aims == ["loop", "tools", "context"] * 2 + ["loop"]
    assert choose("module+self-edit", lonely, weights={"module": 1e9}).aim == "tools"


def test_parts_by_bandit_go_where_children_were_better(lonely):
    lonely.graded(0, [False] * 6)
    for _ in range(8):
        lonely.graded(lonely.made((0,), "module", aim="tools"), [True] * 6)
        for aim in ("loop", "context"):
            lonely.made((0,), "module", aim=aim, dies="check")
        lonely.made((0,), "self-edit", dies="check")
    aims = Counter(choose("module", lonely, seed=seed, parts="bandit").aim for seed in range(60))
    assert aims["tools"] > 50
    assert choose("module+self-edit", lonely, parts="bandit", weights={"module": 1e9}).aim in aims


def test_an_aim_that_is_a_kind_of_failure_is_left_to_the_evidence(lonely):
    lonely.graded(0, [False])
    assert choose("diagnose", lonely).aim == ""


# Settings


@pytest.mark.parametrize("operator", ["invent", "crossover", "crossover+invent"])
def test_operators_that_could_never_make_a_first_child_are_refused(operator):
    with pytest.raises(UserError, match="cannot make a child of every agent"):
        open_policy(Settings(operator=operator), NEEDS)
