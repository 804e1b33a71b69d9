"""Children that wait for a person, as the log and the tree have them."""

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    ChildProposed,
)
from dgm.domain import ActionId, AgentId, Born, Budget, CommitId, Cost, Digest, Expand, Stillborn, Usage
from dgm.policies.limits import WAITING, agents_begun, births_in_flight, evaluations_begun, may_expand
from dgm.policies.lineage.decide import Lineage
from tests.support.runs.trees import Log

SEED = AgentId(0)
COST = Cost(Usage(2, 30, 4), 1.5, {"vetting": Digest("a" * 64)})
CHILD = Born((SEED,), "self-edit", CommitId("c" * 40), "why", COST, "1:ab")
DEAD = Stillborn((SEED,), "self-edit", "rejected", "no", COST, "a person")
BORN = AgentBorn(
    ActionId(1), AgentId(1), Born((SEED,), "self-edit", CommitId("c" * 40), "why", COST, "1:ab"), "a person"
)


def waiting(children=1):
    log = Log(Budget(evaluations=100, agents=100))
    log.born()
    for number in range(1, children + 1):
        log.add(ActionStarted(ActionId(number), Expand((SEED,), "self-edit")))
        log.add(ChildProposed(ActionId(number), CHILD))
    return log


def test_a_child_that_waits_is_no_agent_and_holds_no_place_of_a_worker():
    tree = waiting().tree
    assert (len(tree.agents), list(tree.pending), births_in_flight(tree)) == (1, [], 0)
    assert (tree.waiting[ActionId(1)].child, tree.waiting[ActionId(1)].since) == (CHILD, 3.0)
    assert (agents_begun(tree), evaluations_begun(tree)) == (2, 0)


def test_its_birth_and_its_rejection_end_the_waiting():
    log = waiting(2)
    log.add(BORN)
    log.add(AgentStillborn(ActionId(2), DEAD))
    tree = log.tree
    assert (dict(tree.waiting), births_in_flight(tree), agents_begun(tree)) == ({}, 0, 2)
    assert (tree.agents[1].action, tree.stillborn) == (1, {"rejected": 1})


def test_a_child_that_is_made_again_waits_no_longer():
    log = waiting()
    log.add(ActionStarted(ActionId(1), Expand((SEED,), "self-edit"), again=True))
    assert (dict(log.tree.waiting), births_in_flight(log.tree)) == ({}, 1)
    log.add(ActionLost(ActionId(1), "killed"))
    assert (list(log.tree.to_redo()), births_in_flight(log.tree)) == ([1], 1)


def test_no_more_children_are_made_than_a_person_can_be_asked_about():
    assert may_expand(waiting(WAITING - 1).tree)
    assert not may_expand(waiting(WAITING).tree)


def test_for_lineage_what_waits_is_not_under_way():
    log, fold = waiting(5), Lineage()
    for event in log.events:
        fold.observe(event)
    assert fold._most_under_way == 1
    assert not fold._under_way
