"""Which operator makes the next child, with whom, and at what it aims."""

from collections import Counter
from random import Random

import pytest

from dgm.config import Settings, resolve
from dgm.domain import AgentId, Budget, Evaluate, Expand
from dgm.errors import UserError
from dgm.policies import registry
from dgm.policies.mates import Mates
from dgm.policies.operators import Choosing, operator_rule
from dgm.policies.registry import open_policy
from dgm.policies.rules import PolicyContext
from dgm.protocols import Needs
from tests.support.runs.trees import TASKS, Log

pytestmark = pytest.mark.slow

NEEDS = {
    "self-edit": Needs(),
    "diagnose": Needs(failures=1, aims=("unresolved", "empty")),
    "crossover": Needs(parents=2),
    "invent": Needs(archive=4),
    "module": Needs(aims=("loop", "tools", "context")),
}


def rule(operator, **operators):
    """The rule of these operators, and its kit."""
    kit = PolicyContext()
    return operator_rule(Settings(operator=operator, operators=operators), NEEDS, kit), kit


def choose(made, log, parents=(0,), seed=0):
    """A choice by a rule that has seen the whole log."""
    chosen, kit = made
    for event in log.events:
        for observer in kit.observers:
            observer.observe(event)
    return chosen.choose(log.tree, tuple(map(AgentId, parents)), Random(seed))


def choices(operator, log, seeds=300, **operators):
    """How often each is chosen."""
    said = [choose(rule(operator, **operators), log, seed=seed) for seed in range(seeds)]
    return Counter(what.operator for what in said)


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


@pytest.mark.parametrize("name", sorted(registry.POLICIES))
def test_one_operator_that_needs_nothing_changes_no_policy(name, lonely):
    lonely.graded(0, [True, False] * 5)
    settings = Settings(policy={"name": name})
    with_needs, without = open_policy(settings, {"self-edit": Needs()}), open_policy(settings)
    assert with_needs.keeps_state == without.keeps_state
    for policy in (with_needs, without):
        for event in lonely.events:
            policy.observe(event)
    streams = Random(1), Random(1)
    assert with_needs.next(lonely.tree, streams[0]) == without.next(lonely.tree, streams[1])
    assert streams[0].getstate() == streams[1].getstate()


@pytest.mark.parametrize("operator", ["module", "diagnose"])
def test_one_operator_draws_no_number(operator, lonely):
    lonely.graded(0, [False])
    chosen, _ = rule(operator)
    assert chosen.choose(lonely.tree, (AgentId(0),), NoNumbers()).operator == operator


def test_an_operator_that_cannot_do_it_now_leaves_the_step_to_evaluation(lonely):
    lonely.graded(0, [True])
    settings = Settings(operator="diagnose", policy={"name": "random"})
    policy = open_policy(settings, NEEDS)
    assert all(isinstance(policy.next(lonely.tree, Random(seed)), Evaluate) for seed in range(20))
    lonely.graded(0, [False])
    assert any(isinstance(policy.next(lonely.tree, Random(seed)), Expand) for seed in range(20))


# Several


def test_equal_weights_choose_alike(lonely):
    found = choices("self-edit+module", lonely)
    assert set(found) == {"self-edit", "module"}
    assert min(found.values()) > 120


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
    made = rule(every)
    assert {choose(made, lonely, (1,), seed).operator for seed in range(80)} == {*every.split("+")}


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


def test_the_best_mate_covers_the_most_tasks(family):
    assert Mates().of(family.tree, AgentId(2)) == [3]


def test_equally_good_mates_are_drawn_among(family):
    family.born(1)
    family.tried(4, **{TASKS[0]: True, TASKS[1]: False, TASKS[2]: True, TASKS[3]: True})
    assert Mates().of(family.tree, AgentId(2)) == [3, 4]
    made = rule("self-edit+crossover")
    said = [choose(made, family, (2,), seed) for seed in range(60)]
    assert {what.parents for what in said if what.operator == "crossover"} == {(2, 3), (2, 4)}


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


def test_two_parents_of_the_parent_rule_are_for_operators_that_want_two(family):
    made = rule("self-edit+crossover")
    said = [choose(made, family, (1, 2), seed) for seed in range(20)]
    assert set(said) == {Expand((AgentId(1), AgentId(2)), "crossover")}


def test_without_such_an_operator_the_second_parent_is_left_out(family):
    assert choose(rule("self-edit+module"), family, (1, 2)).parents == (1,)


# Aims


def test_parts_come_round_robin_whoever_the_parent_is(lonely):
    made = rule("module+self-edit", weights={"module": 1e9})
    lonely.born(0)
    aims = []
    for number in range(7):
        chosen, kit = rule("module")
        what = choose((chosen, kit), lonely, (number % 2,))
        aims.append(what.aim)
        lonely.made((number % 2,), "module", aim=what.aim, dies="size" if number % 3 else "")
    assert aims == ["loop", "tools", "context"] * 2 + ["loop"]
    assert choose(made, lonely).aim == "tools"


def test_parts_by_bandit_go_where_children_were_better(lonely):
    lonely.graded(0, [False] * 6)
    for _ in range(8):
        lonely.graded(lonely.made((0,), "module", aim="tools"), [True] * 6)
        for aim in ("loop", "context"):
            lonely.made((0,), "module", aim=aim, dies="check")
        lonely.made((0,), "self-edit", dies="check")
    made = rule("module+self-edit", parts="bandit", weights={"module": 1e9})
    aims = Counter(choose(rule("module", parts="bandit"), lonely, seed=seed).aim for seed in range(60))
    assert aims["tools"] > 50
    assert choose(made, lonely).aim in aims


def test_an_aim_that_is_a_kind_of_failure_is_left_to_the_evidence(lonely):
    lonely.graded(0, [False])
    assert choose(rule("diagnose"), lonely).aim == ""


# Settings


@pytest.mark.parametrize("operator", ["invent", "crossover+invent"])
def test_operators_that_could_never_make_a_first_child_are_refused(operator):
    with pytest.raises(UserError, match="needs more agents than the one that a search begins with"):
        open_policy(Settings(operator=operator), NEEDS)


class Whole:
    """A whole policy that always expands the seed by the operator that it is told."""

    name = "whole"
    keeps_state = False

    def __init__(self, kit):
        self.operator = kit.operator

    def next(self, tree, rng):
        return Expand((AgentId(0),), self.operator)

    def observe(self, event):
        raise AssertionError("it keeps no state")


def test_a_whole_policy_gets_one_of_several_operators(monkeypatch, lonely):
    monkeypatch.setitem(registry.POLICIES, "whole", f"{__name__}:Whole")
    given = ["operator=self-edit + module", "policy.name=whole", "operators.choice=bandit"]
    policy = open_policy(resolve(None, given, {}), NEEDS)
    assert isinstance(policy, Choosing)
    for event in lonely.events:
        policy.observe(event)
    said = {policy.next(lonely.tree, Random(seed)).operator for seed in range(30)}
    assert said == {"self-edit", "module"}
    assert isinstance(open_policy(Settings(policy={"name": "whole"}), NEEDS), Whole)


def test_a_whole_policy_wants_an_operator_that_can_always_do_it(monkeypatch):
    monkeypatch.setitem(registry.POLICIES, "whole", f"{__name__}:Whole")
    with pytest.raises(UserError, match="none can always make a child, and the policy 'whole'"):
        open_policy(Settings(operator="diagnose", policy={"name": "whole"}), NEEDS)


def test_the_budget_still_says_whether_the_archive_may_grow():
    log = Log(Budget(agents=1))
    log.born()
    log.graded(0, [True, False] * 5)
    policy = open_policy(Settings(operator="self-edit+module", policy={"name": "random"}), NEEDS)
    assert policy.next(log.tree, Random(0)) is None
