"""The clock of these tests is the log's: an event a minute."""

from dataclasses import replace

import pytest

from dgm.analysis.agents import best_of
from dgm.archive.events import (
    ActionStarted,
    PromotionDecided,
    PromotionStarted,
    RunPaused,
    RunStarted,
    RunStopped,
)
from dgm.archive.run import Run
from dgm.domain import AgentId, Budget, Evaluate
from dgm.sinks.feed import Feed
from dgm.sinks.notices import BEST_EVERY_S, FIRST_EVALUATIONS, NoticeRules
from tests.support.runs.growing import TASKS, Growing


@pytest.fixture
def growing(tmp_path):
    growing = Growing(tmp_path / "run")
    yield growing
    growing.run.close()


def notices_of(run: Run, step_s: float = 60.0):
    feed, rules = Feed(run), NoticeRules(run)
    notices = []
    for recorded in run.store.read():
        timed = replace(recorded, at=1e9 + recorded.seq * step_s)
        feed.fold(timed)
        notices += rules.observe(timed, feed)
    return notices


def kinds_of(run: Run, **options: float) -> list[str]:
    return [notice.kind for notice in notices_of(run, **options)]


def test_the_end_says_why_and_what_to_do(growing) -> None:
    growing.graded(0, 0, good=True)
    growing.run.append(RunStopped("budget spent"))
    (notice,) = notices_of(growing.run)
    assert notice.kind == "end"
    assert notice.facts["message"] == "ended: budget spent"
    assert notice.facts["next"] == "dgm resume run"
    assert (notice.facts["best"], notice.facts["resolved"], notice.facts["evaluated"]) == (0, 1, 1)


def test_a_pause_and_its_end_are_noticed_once_however_often_the_provider_is_asked(growing) -> None:
    for _ in range(3):
        growing.run.append(RunPaused("overloaded"))
        growing.run.append(ActionStarted(growing.run.tree.next_action, Evaluate(AgentId(0), TASKS[0])))
    growing.graded(0, 1, good=True)
    assert kinds_of(growing.run) == ["pause", "continue"]


@pytest.mark.parametrize(("evaluations", "kinds"), [(4, []), (5, ["50%"]), (8, ["50%"]), (9, ["50%", "90%"])])
def test_half_and_nine_tenths_of_a_limit_are_noticed_once_each(growing, evaluations, kinds) -> None:
    growing.run.append(RunStarted(Budget(evaluations=10), TASKS, resumed=True))
    growing.born(0)
    for number in range(evaluations):
        growing.graded(*divmod(number, 8), good=False)
    assert [notice.facts["message"][:3] for notice in notices_of(growing.run)] == kinds


def test_a_larger_budget_is_noticed_anew(growing) -> None:
    growing.run.append(RunStarted(Budget(evaluations=4), TASKS, resumed=True))
    for number in range(4):
        growing.graded(0, number, good=False)
    growing.run.append(RunStarted(Budget(evaluations=8), TASKS, resumed=True))
    for number in range(4, 8):
        growing.graded(0, number, good=False)
    assert kinds_of(growing.run) == ["budget", "budget", "budget"]


def grow_better_agents(growing: Growing) -> None:
    """Make two agents after the first ten evaluations, of which each is better than all before."""
    for number in range(8):
        growing.graded(0, number, good=False)
    for agent in (1, 2):
        growing.born(agent - 1)
        for number in range(8):
            growing.graded(agent, number, good=number < 4 * agent)


def test_a_new_best_is_noticed_after_the_first_evaluations(growing) -> None:
    grow_better_agents(growing)
    best = [notice.facts["best"] for notice in notices_of(growing.run, BEST_EVERY_S) if notice.kind == "best"]
    assert best[-1] == 2
    assert len(best) == len(set(best))


def test_no_best_is_noticed_among_the_first_evaluations(growing) -> None:
    growing.graded(0, 0, good=False)
    growing.born(0)
    for number in range(FIRST_EVALUATIONS - 2):
        growing.graded(1, number, good=True)
    assert best_of(growing.run) == 1
    assert kinds_of(growing.run) == []


def test_new_best_agents_in_quick_succession_are_one_notice(growing) -> None:
    grow_better_agents(growing)
    assert kinds_of(growing.run, step_s=1.0).count("best") == 1


def test_a_certified_agent_is_noticed_and_a_rejected_one_is_not(growing) -> None:
    growing.born(0)
    for number, accepted in ((1, None), (2, AgentId(1))):
        growing.run.append(PromotionStarted(number, AgentId(0), (AgentId(1),), 0.05, 1))
        growing.run.append(PromotionDecided(number, accepted))
    (notice,) = notices_of(growing.run)
    assert (notice.kind, notice.facts["message"]) == ("certified", "agent 1 is certified to be better")


def test_notices_are_a_function_of_the_log(growing) -> None:
    grow_better_agents(growing)
    before = notices_of(growing.run)
    growing.run.append(RunStopped("stopped"))
    after = notices_of(growing.run)
    assert after[:-1] == before
    assert [notice.position for notice in after] == sorted({notice.position for notice in after})
