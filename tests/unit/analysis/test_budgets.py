"""Ends beside the budget: a score that is reached, and no better recommendation for long."""

import asyncio
from random import Random

import pytest

from dgm.analysis.budgets import Goals, Reason, Standstill, highest_bound, open_goals, refuse_unreachable
from dgm.archive.events import RunStarted
from dgm.archive.tree import Tree
from dgm.config import resolve
from dgm.domain import Budget, Verdict
from dgm.errors import UserError
from dgm.policies.hgm import best_belief
from dgm.search.loop import LoopHooks, Search
from dgm.search.prepare import RunController
from dgm.stats import lower_bound
from tests.support.runs.trees import TASKS, Log, Settings, named
from tests.unit.search.test_loop import FakeWorker, run, start

pytestmark = pytest.mark.slow

__all__ = ["run"]


def bound(tree):
    return lower_bound(tree.own(best_belief(tree)))


def count(log, patience, since=0):
    tree, standstill = Tree(), Standstill(patience, best_belief, since)
    for recorded in log.events:
        tree.apply(recorded)
        standstill.passed(tree)
    return standstill


def grown():
    """Agent 0 fails and resolves one, agent 1 resolves three, then both fail for long."""
    log = Log()
    log.born()
    log.graded(0, [True, False])
    log.born(0)
    log.graded(1, [True, True, True])
    return log


def test_another_agent_with_a_higher_bound_is_better():
    log = grown()
    # Agent 1 is recommended from its first verdict that puts its bound above the seed's highest so far.
    assert count(log, 4).without_better == 1
    log.graded(0, [False] * 3)
    standstill = count(log, 4)
    assert (standstill.without_better, standstill.over) == (4, True)


def test_the_same_agent_that_is_better_known_is_no_better_recommendation():
    log = Log()
    log.born()
    log.graded(0, [True] * 8)
    standstill = count(log, 8)
    assert (standstill.without_better, standstill.over) == (8, True)


def test_an_agent_that_is_recommended_because_another_one_fell_is_not_better():
    log = grown()
    before = bound(log.tree)
    log.born(0)
    log.graded(2, [True, True])
    log.graded(1, [False] * 4)
    assert best_belief(log.tree) == 2 and bound(log.tree) < before
    assert count(log, 11).without_better == 7


def test_a_segment_ends_when_a_round_of_promotion_is_due():
    log = Log()
    log.born()
    log.graded(0, [True] * 3)
    goals = Goals(best_belief, promotion_at=4)
    assert goals.ending(log.tree) is None
    log.graded(0, [True])
    assert goals.ending(log.tree).reason is Reason.PROMOTION


@pytest.mark.parametrize("patience", [3, 15, 24])
def test_a_resumed_count_goes_on_as_if_it_had_never_stopped(patience):
    log, draw = Log(), Random(patience)
    log.born()
    whole = Standstill(patience, best_belief)
    ends, peak = [], 0
    for _ in range(70):
        if draw.random() < 0.2:
            log.born(0)
        agent = draw.choice([each.id for each in log.tree.agents if len(log.tree.tried(each.id)) < 10] or [0])
        if len(log.tree.tried(agent)) == len(TASKS):
            continue
        log.graded(agent, [draw.random() < 0.1 + agent / 30])
        whole.passed(log.tree)
        again = count(log, patience, log.tree.evaluations)
        assert (again.over, again.without_better) == (whole.over, whole.without_better)
        ends.append(whole.over)
        peak = max(peak, whole.without_better)
    assert any(ends) and not all(ends)
    assert peak >= patience


def test_a_withdrawn_verdict_takes_the_count_back():
    log = grown()
    log.graded(0, [False] * 3)
    log.withdrawn()
    standstill = count(log, 4)
    assert (standstill.without_better, standstill.over) == (3, False)


def test_the_highest_bound_is_that_of_the_best_by_its_own_verdicts():
    log = grown()
    assert highest_bound(Tree()) == 0.0
    assert highest_bound(log.tree) == pytest.approx(bound(log.tree))


def search(run, worker, goals, **settings):
    around = LoopHooks(goals=goals)
    made = Search(
        RunController(run, Settings(**settings)), named("hgm"), worker, Settings(**settings), around
    )
    return asyncio.run(made.go())


@pytest.mark.starts_processes
@pytest.mark.parametrize("workers", [1, 3])
def test_a_search_ends_when_the_lower_bound_reaches_the_score(run, workers):
    start(run, 100, score=0.4)
    worker = FakeWorker(run, verdicts=[Verdict.RESOLVED] * 100)
    over = search(run, worker, open_goals(run), workers=workers)
    assert over.reason is Reason.GOAL
    reached = bound(run.tree)
    assert reached >= 0.4
    assert over.message == (
        f"the lower bound of the best agent, {reached:.3f} of agent {best_belief(run.tree)}, "
        "reached 0.4, as asked for"
    )
    assert run.tree.evaluations < 100


@pytest.mark.starts_processes
def test_a_search_ends_when_nothing_better_was_recommended_for_long(run):
    start(run, 100, patience=12)
    over = search(run, FakeWorker(run, verdicts=[Verdict.UNRESOLVED] * 100), open_goals(run), workers=1)
    assert over.reason is Reason.STANDSTILL
    assert run.tree.evaluations == 12
    assert "no better agent was recommended in 12 evaluations" in over.message
    assert run.tree.stop_reason == "no better agent"


@pytest.mark.starts_processes
def test_a_resumed_search_counts_on_and_takes_a_longer_patience(run):
    start(run, 100, patience=12)
    worker = FakeWorker(run, verdicts=[Verdict.UNRESOLVED] * 100)
    search(run, worker, open_goals(run), workers=1)
    run.append(RunStarted(Budget(evaluations=100, patience=12), TASKS, resumed=True))
    assert search(run, worker, open_goals(run), workers=1).reason is Reason.STANDSTILL
    assert run.tree.evaluations == 12
    run.append(RunStarted(Budget(evaluations=100, patience=20), TASKS, resumed=True))
    search(run, worker, open_goals(run), workers=1)
    assert run.tree.evaluations == 20


def test_a_bound_that_falls_while_steps_end_is_not_reached():
    log = Log(Budget(score=0.3))
    log.born()
    log.graded(0, [True, True, True])
    goals = Goals(best_belief)
    assert goals.ending(log.tree) is not None
    log.graded(0, [False])
    assert goals.ending(log.tree) is None


def test_a_run_without_goals_asks_for_no_recommendation(run):
    start(run, 3)
    assert open_goals(run) is None


def test_a_score_that_nobody_can_have_is_refused():
    refuse_unreachable(Budget(score=0.6), 20)
    with pytest.raises(
        UserError, match=r"^budget\.until_score: 0\.9 .* all 20 search tasks has a lower bound of 0\.80"
    ):
        refuse_unreachable(Budget(score=0.9), 20)


@pytest.mark.parametrize("setting", ["until_score=62", "until_score=0", "patience=0", "confirm_above_usd=-1"])
def test_ends_that_make_no_sense_are_refused(setting):
    with pytest.raises(UserError, match=rf"^budget\.{setting.partition('=')[0]}: "):
        resolve(None, [f"budget.{setting}"], {})


def test_goals_alone_do_not_lift_the_usual_limit():
    budget = resolve(None, [], {"budget.until_score": 0.5, "budget.patience": 30}).budget.budget()
    assert (budget.evaluations, budget.score, budget.patience) == (160, 0.5, 30)


def test_a_wrong_goal_is_named_by_its_flag():
    with pytest.raises(UserError, match=r"^budget\.until_score: 2"):
        resolve(None, [], {"budget.until_score": 2})
