"""The loop on a real archive with a worker whose outcomes are made up: order, budgets, crashes, outages."""

import asyncio
import itertools
import re
import time
from dataclasses import replace

import pytest

from dgm.analysis.budgets import Reason, count_ended_expansions, sum_evaluations_spent
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentStillborn,
    RunPaused,
    RunStarted,
    TaskGraded,
    traces_of,
)
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    Cost,
    Entry,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    Usage,
    Verdict,
)
from dgm.errors import Infrastructure
from dgm.processes import StandstillWatch
from dgm.search.loop import LoopHooks, Search
from dgm.search.prepare import RunController
from tests.support.runs.trees import TASKS, named

pytestmark = pytest.mark.starts_processes


class FakeWorker:
    """Answers every order at once; ``verdicts`` and ``births`` say, start by start, what happens instead."""

    def __init__(self, run, verdicts=(), births=(), delay=lambda n: 0.0):
        self.run = run
        self.verdicts = iter(verdicts)
        self.births = iter(births)
        self.delay = delay
        self.orders = []

    async def perform(self, action, what):
        self.orders.append((action, what))
        await asyncio.sleep(self.delay(len(self.orders)))
        if isinstance(what, Evaluate):
            verdict = next(self.verdicts, None) or (
                Verdict.RESOLVED if action % 3 == 0 else Verdict.UNRESOLVED
            )
            return Evaluation(what.agent, what.task, what.attempt, verdict, "as told", 0.0, Cost(Usage(1)))
        fault = next(self.births, None)
        if fault == "gone":
            raise Infrastructure("engine gone")
        if fault == "dead":
            return Stillborn(what.parents, "self-edit", "check", "as told")
        source = {"agent.py": Entry(b"%d" % (0 if fault == "twin" else action))}
        commit = self.run.repository.commit(
            source, [self.run.tree.agents[parent].commit for parent in what.parents]
        )
        return Born(what.parents, "self-edit", commit, "as told")


@pytest.fixture
def run(tmp_path):
    with Run.create(tmp_path / "run", {}) as made:
        yield made


def start(run, evaluations=12, **budget):
    run.append(RunStarted(Budget(evaluations=evaluations, **budget), TASKS))
    commit = run.repository.commit({"agent.py": Entry(b"seed")}, ())
    run.append(run.birth(Born((), "seed", commit, ""), ActionId(0)))


def search(run, worker, **settings):
    ticks = itertools.count(step=100.0)
    made = Search(
        RunController(run, Settings(**settings)),
        named("hgm"),
        worker,
        Settings(**settings),
        LoopHooks(clock=lambda: float(next(ticks))),
    )
    return asyncio.run(made.go())


class Full(FakeWorker):
    """Can start no thread for its first order."""

    async def perform(self, action, what):
        if not self.orders:
            self.orders.append((action, what))
            raise RuntimeError("can't start new thread")
        return await super().perform(action, what)


def test_a_machine_at_its_limit_of_processes_ends_no_session(run):
    start(run, 3)
    assert search(run, Full(run)).reason is Reason.GOAL
    assert "limit on processes" in events(run, ActionLost)[0].reason


class Keeping(FakeWorker):
    """Keeps a trace in each performance; the first one is lost while the second one goes on, as both keep."""

    def __init__(self, run):
        super().__init__(run)
        self.kept = asyncio.Event()

    async def perform(self, action, what):
        number = len(self.orders) + 1
        outcome = await super().perform(action, what)
        names = {name: self.run.traces.put(name.encode()) for name in (f"own {number}", "shared")}
        if number == 1:
            await self.kept.wait()
            raise Infrastructure("lost")
        if number == 2:
            self.kept.set()
            while not events(self.run, ActionLost):
                await asyncio.sleep(0.01)
        return replace(outcome, cost=Cost(traces=names))


def test_traces_of_a_lost_action_do_not_stay_in_memory(run):
    start(run, 6)
    assert search(run, Keeping(run), workers=2).reason is Reason.GOAL
    assert len(events(run, ActionLost)) == 1
    assert run.store.pending == {}
    named = {name for item in run.store.read() for name in traces_of(item.event)}
    assert {run.traces.get(name) for name in named} > {b"shared", b"own 2"}


class Suspended(FakeWorker):
    """Is stopped for a minute in each of its first performances, which end badly."""

    def __init__(self, run, times):
        super().__init__(run)
        self.times, self.passed_s = times, 0.0

    def watch(self):
        return StandstillWatch(lambda: self.passed_s, lambda: 0.0)

    async def perform(self, action, what):
        if len(self.orders) >= self.times:
            return await super().perform(action, what)
        self.orders.append((action, what))
        self.passed_s += 60.0
        if isinstance(what, Evaluate):
            return Evaluation(what.agent, what.task, what.attempt, Verdict.UNRESOLVED, "out of time", 0.0)
        return Stillborn(what.parents, "self-edit", "check", "out of time")


def test_what_ends_badly_while_dgm_stood_still_is_no_agents_fault(run):
    start(run, 8)
    # More than the failures in a row that would end the session.
    worker = Suspended(run, 12)
    settings = Settings(workers=1, limits={"failures_in_a_row": 3})
    around = LoopHooks(open_watch=worker.watch)
    made = Search(RunController(run, settings), named("best-of-n"), worker, settings, around)
    over = asyncio.run(made.go())
    assert over.reason is Reason.GOAL
    outcomes = [event.outcome for event in (*events(run, TaskGraded), *events(run, AgentStillborn))]
    assert {outcome.reason for outcome in outcomes} == {"as told"}
    lost = events(run, ActionLost)
    assert len(lost) == 12
    assert all("stood still for 60 s" in event.reason for event in lost)


def events(run, kind):
    return [recorded.event for recorded in run.store.read() if isinstance(recorded.event, kind)]


@pytest.mark.parametrize("workers", [1, 4])
def test_exactly_the_asked_for_evaluations_are_graded(run, workers):
    start(run, 30)
    over = search(run, FakeWorker(run, delay=lambda n: 0.001 * (n % 5)), workers=workers)
    assert over.reason is Reason.GOAL
    graded = [(e.outcome.agent, e.outcome.task, e.outcome.attempt) for e in events(run, TaskGraded)]
    assert len(graded) == len(set(graded)) == 30
    assert not run.tree.pending
    assert len(run.tree.agents) > 5


def test_the_same_seed_gives_the_same_run(tmp_path):
    logs = []
    for name in ("a", "b"):
        with Run.create(tmp_path / name, {}) as run:
            start(run, 25)
            search(run, FakeWorker(run), workers=1, seed=7)
            logs.append([(r.seq, r.event) for r in run.store.read()])
    assert [event for _, event in logs[0]] == [event for _, event in logs[1]]


def test_an_invalid_evaluation_is_performed_again_under_its_id(run):
    start(run, 3)
    worker = FakeWorker(run, verdicts=[Verdict.INVALID])
    search(run, worker, workers=1)
    assert [action for action, _ in worker.orders].count(1) == 2
    assert [start.again for start in events(run, ActionStarted) if start.id == 1] == [False, True]
    assert run.tree.evaluations == 3
    assert run.tree.invalid == 1


def test_an_expansion_that_the_world_failed_is_performed_again(run):
    start(run, 6)
    worker = FakeWorker(run, births=["gone"])
    search(run, worker, workers=1)
    expansions = [action for action, what in worker.orders if isinstance(what, Expand)]
    assert expansions.count(expansions[0]) == 2
    assert len(events(run, ActionLost)) == 1


def test_what_was_running_at_a_crash_is_performed_first(run):
    start(run, 4)
    worker = FakeWorker(run, delay=lambda n: 60.0 if n == 3 else 0.0)

    async def killed():
        made = Search(RunController(run, Settings()), named("hgm"), worker, Settings(workers=1))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(made.go(), 0.5)

    asyncio.run(killed())
    interrupted = worker.orders[-1]
    assert list(run.tree.pending) == [interrupted[0]]
    again = FakeWorker(run)
    assert search(run, again, workers=1).reason is Reason.GOAL
    assert again.orders[0] == interrupted
    assert run.tree.evaluations == 4


def test_a_hopeless_action_is_given_up_and_the_search_goes_on(run):
    class Cursed(FakeWorker):
        async def perform(self, action, what):
            self.verdicts = iter([Verdict.INVALID] if action == 1 else [])
            return await super().perform(action, what)

    start(run, 5)
    worker = Cursed(run)
    over = search(run, worker, workers=1, limits={"tries": 3})
    assert over.reason is Reason.GOAL
    assert [action for action, _ in worker.orders].count(1) == 3
    assert [lost.final for lost in events(run, ActionLost)] == [True]
    assert run.tree.evaluations == 5


def test_an_outage_ends_the_session_and_gives_nothing_up(run):
    start(run, 5)
    worker = FakeWorker(run, itertools.repeat(Verdict.INVALID), itertools.repeat("gone"))
    over = search(run, worker, workers=2, limits={"tries": 2, "failures_in_a_row": 7})
    assert over.reason is Reason.OUTAGE
    assert not any(lost.final for lost in events(run, ActionLost))
    assert run.tree.evaluations == 0
    assert search(run, FakeWorker(run), workers=2).reason is Reason.GOAL


@pytest.mark.parametrize("fails", [3, 4])
def test_an_outage_that_ends_before_it_is_looked_into_does_not_end_the_session(run, fails):
    """The provider answers by the time that the loop asks; only a failure after that is no outage's."""

    class Away(FakeWorker):
        async def perform(self, action, what):
            if len(self.orders) < fails:
                self.orders.append((action, what))
                raise Infrastructure("no route to the model")
            return await super().perform(action, what)

    start(run, 5)
    over = search(run, Away(run), workers=1, limits={"tries": 9, "failures_in_a_row": 3})
    assert over.reason is (Reason.GOAL if fails == 3 else Reason.OUTAGE)


def test_a_run_pauses_for_as_long_as_a_provider_asks_and_no_longer(run):
    class Limited:
        spent = refused = ""
        until = time.monotonic() + 0.3

        @property
        def wait_s(self):
            return max(self.until - time.monotonic(), 0.0)

        @property
        def halted(self):
            return "the provider asks to wait" if self.wait_s else ""

        async def outage(self):
            return self.halted

    start(run, 3)
    patient = Settings(limits={"pause_s": 10_000.0})
    made = Search(
        RunController(run, patient), named("hgm"), FakeWorker(run), patient, LoopHooks(supply=Limited())
    )
    over = asyncio.run(asyncio.wait_for(made.go(), 60))
    assert over.reason is Reason.GOAL
    assert len(events(run, RunPaused)) == 1


def test_twins_made_at_the_same_time_are_stillborn(run):
    start(run, 8)
    search(run, FakeWorker(run, births=["twin", "twin", "twin"]), workers=1)
    assert run.tree.stillborn.get("duplicate", 0) >= 1
    contents = [run.repository.tree_of(agent.commit) for agent in run.tree.agents]
    assert len(contents) == len(set(contents))


def test_stillborn_children_are_counted_by_stage(run):
    start(run, 4)
    search(run, FakeWorker(run, births=["dead"]), workers=1)
    assert dict(run.tree.stillborn) == {"check": 1}


def test_a_request_to_stop_lets_running_steps_end(run):
    start(run, 50)
    worker = FakeWorker(run, delay=lambda n: 0.02)

    async def stopped():
        made = Search(RunController(run, Settings(workers=3)), named("hgm"), worker, Settings(workers=3))
        asyncio.get_running_loop().call_later(0.1, made.ask_to_stop, "enough")
        return await made.go()

    over = asyncio.run(stopped())
    assert (over.reason, over.message) == (Reason.STOPPED, "enough")
    assert not run.tree.pending
    assert 0 < run.tree.evaluations < 50
    assert len(worker.orders) == len(events(run, ActionStarted))


def test_a_spent_limit_is_told_from_a_reached_goal(run):
    start(run, 50, seconds=0.2)
    over = search(run, FakeWorker(run, delay=lambda n: 0.05), workers=1)
    assert over.reason is Reason.LIMIT
    assert "seconds" in over.message


def test_a_search_ends_when_nothing_is_left_to_do(run):
    start(run, 500, agents=2)
    over = search(run, FakeWorker(run), workers=2)
    assert over.reason is Reason.NOTHING_LEFT
    assert run.tree.evaluations == 2 * len(TASKS)


def test_evidence_is_drawn_once_and_kept_for_a_repetition(run):
    start(run, 12)
    worker = FakeWorker(run, births=[None, "gone", "gone"])
    search(run, worker, workers=1)
    by_id = {}
    for action, what in worker.orders:
        if isinstance(what, Expand):
            assert by_id.setdefault(action, what) == what
    assert any(what.evidence for what in by_id.values())


def test_parents_that_cannot_have_children_do_not_take_the_whole_budget(run):
    start(run, 20)
    worker = FakeWorker(run, births=itertools.repeat("dead"))
    over = search(run, worker, workers=2, limits={"stillborn_in_a_row": 0})
    assert over.reason is Reason.NOTHING_LEFT
    assert over.message == "every agent has tried every task, and none may have a child any more"
    assert run.tree.evaluations == len(TASKS), "one agent, every task once"
    assert sum(run.tree.stillborn.values()) <= 20


def test_a_policy_with_state_sees_every_event_once_before_it_decides(run):
    class Watching:
        name = "watching"
        keeps_state = True
        seen = ()

        def observe(self, event):
            self.seen = (*self.seen, event.seq)

        def next(self, tree, rng):
            assert self.seen == tuple(range(1, tree.seq + 1))
            return named("hgm").next(tree, rng)

    start(run, 6)
    asyncio.run(Search(RunController(run, Settings()), Watching(), FakeWorker(run), Settings(workers=2)).go())
    assert run.tree.evaluations == 6


class OnlyExpands:
    """Ignores what an expansion takes of the budget."""

    name = "only-expands"
    keeps_state = False

    def observe(self, event):
        pass

    def next(self, tree, rng):
        return Expand((AgentId(0),), "self-edit")


@pytest.mark.parametrize("workers", [1, 3])
def test_an_expansion_without_room_is_nothing_to_start(run, workers):
    start(run, 10, expansion_cost=3.0)
    over = asyncio.run(
        Search(RunController(run, Settings()), OnlyExpands(), FakeWorker(run), Settings(workers=workers)).go()
    )
    assert over.reason is Reason.GOAL
    assert "has no room for an expansion, which takes 3" in over.message
    assert len(run.tree.agents) == 1 + 3
    assert sum_evaluations_spent(run.tree) == 9


def test_the_end_says_what_expansions_took(run):
    start(run, 20, expansion_cost=1.0)
    over = search(run, FakeWorker(run), workers=1)
    expansions = count_ended_expansions(run.tree)
    graded = run.tree.evaluations
    assert (over.reason, graded + expansions) == (Reason.GOAL, 20)
    assert (
        over.message == f"{graded} evaluations and {expansions} expansions took the budget of 20 evaluations"
    )


def test_the_end_speaks_of_evaluations_where_only_they_count(run):
    start(run, 5)
    assert search(run, FakeWorker(run), workers=1).message == "5 evaluations are graded, as asked for"


@pytest.mark.parametrize("workers", [1, 4])
def test_a_search_whose_children_all_die_says_so_and_can_be_resumed(run, workers):
    start(run, 60)
    over = search(run, FakeWorker(run, births=itertools.repeat("dead")), workers=workers)
    assert over.reason is Reason.CANNOT_GO_ON
    assert re.search(
        r"the last 1\d children died of one cause, none was born between: check: as told", over.message
    )
    assert "limits.check_s" in over.message
    assert run.tree.evaluations < 60
    run.append(RunStarted(Budget(evaluations=60), TASKS, resumed=True))
    assert search(run, FakeWorker(run), workers=workers).reason is Reason.GOAL
    assert len(run.tree.agents) > 5


def test_an_exception_of_a_listener_comes_out_as_it_is_and_the_run_goes_on_later(run):
    class Enough(Exception):
        pass

    def listen(recorded):
        if isinstance(recorded.event, TaskGraded):
            raise Enough

    start(run, 6)
    worker = FakeWorker(run, delay=lambda n: 0.0 if n == 1 else 3600.0)
    made = Search(
        RunController(run, Settings()), named("hgm"), worker, Settings(workers=2), LoopHooks(listen)
    )
    with pytest.raises(Enough):
        asyncio.run(made.go())
    assert len(worker.orders) == 2
    search(run, FakeWorker(run), workers=1)
    assert run.tree.evaluations == 6


def test_an_exception_of_an_action_comes_out_as_it_is(run):
    class Broken(FakeWorker):
        async def perform(self, action, what):
            raise ZeroDivisionError(action)

    start(run)
    with pytest.raises(ZeroDivisionError):
        search(run, Broken(run), workers=1)
