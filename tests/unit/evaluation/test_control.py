"""The control of equal spend: as many attempts of the seed as the search's money buys, no more, each once."""

import asyncio
import itertools
from dataclasses import replace

import pytest

from dgm.analysis.accounts import Accounts
from dgm.analysis.budgets import Reason
from dgm.api.holdout import begin_holdout
from dgm.archive.events import ActionStarted, Control, ModelCalled, TaskGraded
from dgm.archive.run import Run
from dgm.assemble import RunParts
from dgm.config import Settings
from dgm.domain import AgentId, Cost, Evaluate, Evaluation, Split, TaskId, Usage, Verdict
from dgm.errors import Infrastructure
from dgm.evaluation.control import (
    HoldoutSchedule,
    Unit,
    count_evaluations,
    estimate_cost,
    name_candidates,
    plan_control,
    read_attempts,
)
from dgm.evaluation.schedule import CONTROL, EvaluationProgress, compare_agents, enter_agent
from dgm.replay.decisions import decide_again
from dgm.search.loop import LoopHooks, Search
from dgm.search.prepare import RunController
from dgm.views.holdout import ControlView, read_holdout
from tests.support.runs.paid import small

pytestmark = pytest.mark.starts_processes

TASKS = tuple(TaskId(f"held-{n}") for n in range(4))
SOLVED_BY = {"held-0": 0, "held-1": 2, "held-2": 4, "held-3": 99}
"""Number of the seed's attempt that solves each task."""
BEST = {"held-0", "held-3"}
"""What the best agent solves."""


CALL = Usage(1, 1000, 100, 0.01)


class Held:
    """A benchmark as far as an examination's beginning asks for it."""

    def tasks(self, split):
        assert split is Split.HOLDOUT
        return [type("Task", (), {"id": task})() for task in TASKS]


class Worker:
    """Each attempt takes a call of 0.01 USD; what comes of it is in the tables above."""

    def __init__(self, holdout, usage=CALL, broken=()):
        self.holdout, self.usage, self.broken = holdout, usage, set(broken)
        self.under_way, self.done = [], []

    async def perform(self, action, what):
        if what.agent != 1:
            assert what.task not in self.under_way, "two attempts at one task at once"
            self.under_way.append(what.task)
        for _ in range(action % 3 + 1):
            await asyncio.sleep(0)
        if what.agent != 1:
            self.under_way.remove(what.task)
        if (what.agent, what.task) in self.broken:
            raise Infrastructure("the provider was away")
        number = len(self.holdout.store.calls(action)) + 1
        if self.usage.calls:
            self.holdout.append(ModelCalled(action, number, "m", "solve", self.usage))
        solved = what.task in BEST if what.agent == 1 else what.attempt >= SOLVED_BY[what.task]
        self.done.append(what)
        verdict = Verdict.RESOLVED if solved else Verdict.UNRESOLVED
        done = Evaluation(what.agent, what.task, what.attempt, verdict, "made up")
        return replace(done, cost=replace(done.cost, usage=self.usage, seconds=2.0))


@pytest.fixture
def search(tmp_path):
    """A search of 20 calls, 0.20 USD, 22,000 tokens; the last of its three agents is the best."""
    made = small(tmp_path / "search")
    yield made.run
    made.run.close()


@pytest.fixture
def holdout(search):
    config = {
        **search.config,
        "kind": "holdout",
        "settings": Settings(model="offline").model_dump(mode="json"),
    }
    with Run.create(search.folder / "holdout", config) as made:
        yield made


def session(holdout, search, control, *, usd=None, workers=1, worker=None, stop_after=None):
    """One session of a holdout evaluation; how it ended, and who worked."""
    parts = RunParts(None, Held())
    both = (search.tree.agents[0], search.tree.agents[2])
    begin_holdout(holdout, search, both, usd, parts, control)
    settings = Settings(model="offline", workers=workers, limits={"tries": 2})
    worker = worker or Worker(holdout)
    ticks = itertools.count(step=100.0)
    around = LoopHooks(lambda _: hear(), clock=lambda: float(next(ticks)))
    going = Search(RunController(holdout, settings), HoldoutSchedule(), worker, settings, around)

    def hear():
        if stop_after is not None and len(worker.done) >= stop_after:
            going.ask_to_stop("enough")

    return asyncio.run(asyncio.wait_for(going.go(), 60)), worker


def attempts(holdout):
    """The control's, in the order of their starts."""
    started = [item.event.action for item in holdout.store.read() if isinstance(item.event, ActionStarted)]
    return [(what.task, what.attempt) for what in started if holdout.tree.agents[what.agent].key == CONTROL]


def missing(holdout, plan):
    attempts = read_attempts(holdout, plan)
    return attempts.missing if attempts.firsts_ended else None


def counts(holdout, search):
    progress = EvaluationProgress.read(holdout)
    return count_evaluations(holdout, progress, name_candidates(holdout, search, best(search)), 16)


def best(search):
    return search.tree.agents[2]


def said(holdout, search):
    return ControlView.load(holdout, best(search), plan_control(search))


@pytest.mark.parametrize("workers", [1, 4])
def test_the_seed_gets_what_the_search_took(search, holdout, workers) -> None:
    over, worker = session(holdout, search, plan_control(search), workers=workers)
    assert over.reason is Reason.NOTHING_LEFT
    # 0.20 USD buy 20 attempts of 0.01, 5 at each of 4 tasks; of a solved task none is left over.
    wanted = {("held-1", 1), ("held-1", 2)} | {(f"held-{n}", k) for n in (2, 3) for k in (1, 2, 3, 4)}
    assert sorted(attempts(holdout)) == sorted(wanted)
    assert len(worker.done) == len(set(worker.done)) == 8 + 10
    if workers == 1:
        numbers = [number for _, number in attempts(holdout)]
        assert numbers == sorted(numbers)
    found = said(holdout, search)
    assert (found.unit, found.affordable) == (Unit.USD, 5)
    assert found.search == pytest.approx(0.20)
    assert found.attempt == pytest.approx(0.01)
    assert (found.attempts, found.wanted, found.missing) == (5, 5, 0)
    assert (found.seed_once.resolved, found.seed_once.n) == (1, 4)
    assert (found.seed_any.resolved, found.best.resolved) == (3, 2)
    assert (found.lost, found.gained) == (("held-1", "held-2"), ("held-3",))
    assert found.spend.usd == found.took == pytest.approx(0.10)
    assert decide_again(holdout).differing == 0


def test_pairs_come_first_and_are_what_they_were(search, holdout) -> None:
    session(holdout, search, None)
    assert attempts(holdout) == []
    assert said(holdout, search) is None
    before, account = compare_agents(holdout, AgentId(0), AgentId(1)), Accounts(holdout).of(AgentId(0)).total
    session(holdout, search, plan_control(search))
    assert compare_agents(holdout, AgentId(0), AgentId(1)) == before
    assert Accounts(holdout).of(AgentId(0)).total == account
    starts = [item.event.action for item in holdout.store.read() if isinstance(item.event, ActionStarted)]
    assert [what.agent for what in starts[:8]] == [0, 1] * 4
    assert holdout.tree.agents[2].commit == search.tree.agents[0].commit
    assert decide_again(holdout).differing == 0


def test_a_bound_stops_it_and_a_higher_one_only_adds(search, holdout) -> None:
    session(holdout, search, plan_control(search, attempts=2))
    found = said(holdout, search)
    assert (found.attempts, found.wanted, found.affordable, found.bound) == (2, 2, 5, 2)
    assert found.seed_any.resolved == 1
    first = attempts(holdout)
    assert missing(holdout, plan_control(search, attempts=2)) == 0
    assert missing(holdout, plan_control(search)) == 9
    session(holdout, search, plan_control(search))
    assert attempts(holdout)[: len(first)] == first
    assert len(attempts(holdout)) == len(set(attempts(holdout))) == 10
    assert missing(holdout, plan_control(search)) == 0
    assert decide_again(holdout).differing == 0


@pytest.mark.parametrize(("after", "workers"), [(3, 3), (9, 1), (12, 3), (16, 1)])
def test_stopped_and_resumed_it_does_the_same(search, holdout, after, workers) -> None:
    over, one = session(holdout, search, plan_control(search), workers=workers, stop_after=after)
    assert over.reason is Reason.STOPPED
    over, two = session(holdout, search, plan_control(search), workers=workers)
    assert over.reason is Reason.NOTHING_LEFT
    done = [*one.done, *two.done]
    assert len(done) == len(set(done)) == 18
    assert said(holdout, search).seed_any.resolved == 3
    assert decide_again(holdout).differing == 0


def test_a_spent_budget_leaves_what_there_is(search, holdout) -> None:
    over, _ = session(holdout, search, plan_control(search), usd=0.115)
    assert over.reason is Reason.LIMIT
    assert holdout.tree.spend.usd == pytest.approx(0.12)
    found = said(holdout, search)
    # Four further attempts: one at each of the three unsolved tasks, and one more, which solves held-1 in a round that
    # the others have not had.
    assert (found.attempts, found.wanted) == (2, 5)
    assert found.missing == 3 + 3
    assert found.seed_any.resolved == 1
    session(holdout, search, plan_control(search), usd=1.0)
    assert said(holdout, search).missing == 0


def test_a_search_that_went_on_buys_more(search, holdout) -> None:
    plan = plan_control(search)
    session(holdout, search, replace(plan, usd=plan.usd / 2))
    before = ControlView.load(holdout, best(search), replace(plan, usd=plan.usd / 2))
    assert (before.affordable, before.missing) == (2, 0)
    # Plain dgm report, before anybody examines again: what the search has taken by now, and that more is to be had.
    stale = said(holdout, search)
    assert stale.search == pytest.approx(0.20)
    assert (stale.affordable, stale.attempts, stale.missing) == (5, 2, 9)
    session(holdout, search, plan)
    assert (said(holdout, search).affordable, said(holdout, search).missing) == (5, 0)
    assert decide_again(holdout).differing == 0


@pytest.mark.parametrize(
    ("usage", "unit", "affordable"),
    [
        (Usage(1, 900, 200, 0.0), Unit.TOKENS, 22_000 // (4 * 1100)),
        (Usage(), Unit.SECONDS, 80 // (4 * 2)),
    ],
)
def test_what_costs_no_money_is_compared_in_tokens_or_seconds(
    search, holdout, usage, unit, affordable
) -> None:
    plan = replace(plan_control(search), seconds=80.0)
    session(holdout, search, plan, worker=Worker(holdout, usage))
    found = ControlView.load(holdout, best(search), plan)
    assert (found.unit, found.affordable) == (unit, affordable)
    each = {Unit.TOKENS: 1100, Unit.SECONDS: 2.0}[unit]
    assert found.took == pytest.approx(len(attempts(holdout)) * each)


def test_without_anything_to_compare_there_is_no_control(search, holdout) -> None:
    assert missing(holdout, plan_control(search)) is None
    session(holdout, search, Control(0.0, 0, 0.0, 20))
    assert attempts(holdout) == []
    assert missing(holdout, Control(0.0, 0, 0.0, 20)) == 0
    assert ControlView.load(holdout, best(search), Control(0.0, 0, 0.0, 20)) is None


def test_a_control_of_one_attempt_is_there_without_being_asked_for(search, holdout) -> None:
    session(holdout, search, None)
    cheap = replace(plan_control(search), usd=0.05)
    assert missing(holdout, cheap) == 0
    found = ControlView.load(holdout, best(search), cheap)
    assert (found.affordable, found.attempts, found.missing, found.took) == (1, 1, 0, 0.0)
    assert found.seed_any.resolved == found.seed_once.resolved == 1


def test_agents_that_were_examined_are_counted_but_for_the_seed_and_its_control(search, holdout) -> None:
    session(holdout, search, plan_control(search))
    assert read_holdout(search, best(search)).examined == 1
    enter_agent(holdout, search, search.tree.agents[1])
    assert read_holdout(search, best(search)).examined == 1
    session(holdout, search, None)
    assert read_holdout(search, best(search)).examined == 2


def test_a_lower_bound_than_before_takes_no_attempt_back(search, holdout) -> None:
    session(holdout, search, plan_control(search))
    session(holdout, search, plan_control(search, attempts=2))
    found = said(holdout, search)
    assert (found.bound, found.wanted, found.attempts, found.missing) == (5, 5, 5, 0)


def test_a_task_whose_first_attempt_was_given_up_is_left_out(search, holdout) -> None:
    over, _ = session(holdout, search, plan_control(search), worker=Worker(holdout, broken=[(0, "held-0")]))
    assert over.reason is Reason.NOTHING_LEFT
    found = said(holdout, search)
    assert found.affordable == 6
    assert (found.seed_any.n, found.seed_any.resolved) == (3, 2)
    assert all(task != "held-0" for task, _ in attempts(holdout))
    assert decide_again(holdout).differing == 0


def test_the_cost_of_a_control_follows_from_the_seeds_attempts(search, holdout) -> None:
    # The seed's one attempt in the search took 0.03 USD; the search's 0.20 USD buy 6 of them.
    before = estimate_cost(search, None, plan_control(search, attempts=2), len(TASKS))
    assert (before.attempts, before.usd) == (4, pytest.approx(0.12))
    assert estimate_cost(search, holdout, plan_control(search, attempts=2), len(TASKS)) == before
    most = estimate_cost(search, None, plan_control(search), len(TASKS))
    assert (most.attempts, most.usd, most.tokens) == (6, pytest.approx(0.18), 6 * 3300)
    session(holdout, search, None)
    # The seed solved one of the four tasks at its first attempt.
    known = estimate_cost(search, holdout, plan_control(search), len(TASKS))
    assert (known.attempts, known.usd, known.tokens) == (12, pytest.approx(0.12), 12 * 1100)
    assert known.seconds == pytest.approx(12 * 2.0)
    assert estimate_cost(search, holdout, plan_control(search, attempts=2), len(TASKS)).attempts == 3
    session(holdout, search, plan_control(search))
    assert estimate_cost(search, holdout, plan_control(search), len(TASKS)).attempts == 0


def test_progress_counts_what_is_done_and_what_is_left_of_each_candidate(search, holdout) -> None:
    plan = plan_control(search)
    session(holdout, search, plan, stop_after=3)
    assert counts(holdout, search) == {"seed": (2, 4), "best (2)": (1, 4), "control": (0, 16)}
    session(holdout, search, plan, stop_after=5)
    # Three tasks are left, of four further attempts each.
    assert counts(holdout, search) == {"seed": (4, 4), "best (2)": (4, 4), "control": (0, 12)}
    session(holdout, search, plan)
    # held-1 is solved by the second one, so that two are not made.
    assert counts(holdout, search)["control"] == (10, 10)


def test_what_a_search_took_holds_all_of_its_work_and_its_seconds(search) -> None:
    plan, action, what = (
        plan_control(search),
        search.tree.next_action,
        Evaluate(AgentId(2), search.tree.tasks[1]),
    )
    assert (plan.usd, plan.tokens, plan.attempts) == (pytest.approx(0.20), 22_000, 20)
    search.append(ActionStarted(action, what))
    done = Evaluation(what.agent, what.task, 0, Verdict.RESOLVED, "made up", cost=Cost(seconds=80.0))
    search.append(TaskGraded(action, done))
    assert plan_control(search).seconds == plan.seconds + 80.0
