"""What a search is doing: read from its log, as JSON and as lines."""

import json
import time
from pathlib import Path

import pytest

from dgm.analysis.activity import read_activity
from dgm.analysis.activity_record import activity_record
from dgm.analysis.best import find_best
from dgm.analysis.goals import StandstillCount
from dgm.archive.events import AgentStillborn, ChildProposed, RunStarted, RunStopped
from dgm.archive.live_calls import LiveCalls, write_live_calls
from dgm.archive.run import Run
from dgm.cli.status import StatusReader
from dgm.domain import SEED, AgentId, Born, Budget, Evaluate, Expand, Stillborn, TaskId
from dgm.show.activity import activity_lines
from dgm.show.spans import Tone, plain_text
from dgm.show.times import duration_text, local_time_text
from tests.support.runs.paid import TASKS, PaidRun, small

pytestmark = pytest.mark.slow


@pytest.fixture
def paid(tmp_path: Path) -> PaidRun:
    made = small(tmp_path / "paid")
    yield made
    made.run.close()


def record(run: Run, later_s: float = 0.0) -> dict[str, object]:
    activity = read_activity(run, run.tree.last_at + later_s)
    count = StandstillCount(run).standstill if run.tree.budget.patience else None
    return activity_record(run, activity, find_best(run), count)


def test_steps_under_way_say_what_since_when_and_how_many_calls(paid: PaidRun) -> None:
    step = paid.start(Evaluate(AgentId(1), TaskId("hostile\x1b[2J\n"), 1))
    paid.call(step, 3)
    found = record(paid.run, 30.0)
    expansion, evaluation = found["under_way"]
    assert (expansion["kind"], expansion["parents"], expansion["operator"], expansion["model_calls"]) == (
        "expand",
        [2],
        "self-edit",
        2,
    )
    assert (evaluation["action"], evaluation["kind"], evaluation["agent"]) == (step, "evaluate", 1)
    assert (evaluation["attempt"], evaluation["model_calls"], evaluation["last_event_age_s"]) == (1, 3, 30.0)
    assert evaluation["age_s"] >= 30.0
    lines = [plain_text(each) for each in activity_lines(found, living=True)]
    assert lines[0].startswith("under way")
    assert "a child of 2 by self-edit: 30 s, since " in lines[0]
    assert "agent 1 on hostile\\x1b[2J (attempt 2): 30 s, since " in lines[1]
    assert lines[1].endswith("; 3 calls, the last 30 s ago")
    assert json.loads(json.dumps(found)) == found


def test_calls_of_an_earlier_try_do_not_count(paid: PaidRun) -> None:
    what = Evaluate(SEED, TASKS[1])
    step = paid.start(what)
    paid.call(step, 5)
    paid.lost(step)
    paid.again(step, what)
    paid.call(step, 1)
    told = record(paid.run)["under_way"][-1]
    assert (told["model_calls"], told["tries"]) == (1, 2)


def test_a_step_that_is_silent_for_long_is_marked(paid: PaidRun) -> None:
    spans = activity_lines(record(paid.run, 1200.0), living=True)[0]
    assert spans[-1].tone is Tone.WARN
    assert activity_lines(record(paid.run, 5.0), living=True)[0][-1].tone is Tone.DIM


def test_rates_and_the_forecast_are_those_of_the_session(paid: PaidRun) -> None:
    spent = paid.run.tree.spend
    found = record(paid.run, 3600.0)
    # Two graded evaluations and three ended expansions (two births, one stillbirth) after the beginning.
    assert found["rates"]["evaluations_per_hour"] == pytest.approx(2, rel=0.01)
    assert found["rates"]["expansions_per_hour"] == pytest.approx(3, rel=0.01)
    assert found["rates"]["usd_per_hour"] == pytest.approx(spent.usd, rel=0.01)
    assert found["rates"]["tokens_per_second"] == pytest.approx(spent.tokens / 3600, rel=0.01)
    money = found["forecast"]["by_budget"]["usd"]
    assert found["forecast"]["binding"] == "usd"
    assert money["left_s"] == pytest.approx((0.5 - spent.usd) / spent.usd * 3600, rel=0.01)
    assert money["ends_unix_s"] == pytest.approx(found["now_unix_s"] + money["left_s"], abs=1)
    line = next(each for each in map(plain_text, activity_lines(found, living=True)) if "forecast" in each)
    assert "of 0.50 USD: " in line
    assert line.endswith("ends the run first")


def test_a_seed_and_two_verdicts_are_too_little(tmp_path: Path) -> None:
    made = PaidRun(tmp_path / "run")
    made.evaluated(0, 0, calls=1)
    made.evaluated(0, 1, calls=1)
    assert record(made.run, 60.0)["rates"] is None
    made.stillborn(0, calls=1)
    assert record(made.run, 60.0)["rates"] is not None
    made.run.close()


def test_a_child_that_a_person_decides_on_ended_once(tmp_path: Path) -> None:
    made = PaidRun(tmp_path / "run")
    for task in (0, 1):
        made.evaluated(0, task, calls=1)
    action = made.start(Expand((SEED,), "self-edit"))
    commit = made.run.tree.agents[0].commit
    made.run.append(ChildProposed(action, Born((SEED,), "self-edit", commit, "better")))
    made.run.append(
        AgentStillborn(action, Stillborn((SEED,), "self-edit", "approve", "no", decided="a person"))
    )
    assert record(made.run, 3600.0)["rates"]["expansions_per_hour"] == pytest.approx(1, rel=0.01)
    made.run.close()


def test_a_new_session_is_not_predicted_from_an_old_one(paid: PaidRun) -> None:
    paid.run.append(RunStopped("stopped"))
    paid.run.append(RunStarted(Budget(usd=2.0, seconds=7200.0), TASKS, resumed=True))
    found = record(paid.run, 60.0)
    assert found["rates"] is None
    assert found["forecast"]["by_budget"]["usd"]["unknown"] == "not yet known"
    assert (found["forecast"]["binding"], found["forecast"]["complete"]) == ("seconds", False)
    lines = [plain_text(each) for each in activity_lines(found, living=True)]
    assert "rates        not yet known" in lines
    assert any(each.endswith("USD: not yet known") for each in lines)
    assert any(each.endswith("ends the run first, of what is known") for each in lines)


def test_an_ended_run_has_rates_of_its_whole_life_and_no_forecast(paid: PaidRun) -> None:
    paid.run.append(RunStopped("stopped"))
    found = record(paid.run, 9e6)
    assert found["forecast"] is None
    assert found["rates"]["window_s"] == pytest.approx(paid.run.tree.wall_seconds, abs=0.001)
    lines = [plain_text(each) for each in activity_lines(found, living=False)]
    assert lines[0].startswith("cut off")
    assert " 30 s," not in lines[0]


def test_how_near_the_ends_are_is_said(tmp_path: Path) -> None:
    made = PaidRun(tmp_path / "run")
    made.run.append(RunStarted(Budget(evaluations=50, score=0.3, patience=10), TASKS))
    made.evaluated(0, 0, calls=1)
    made.evaluated(0, 1, calls=1)
    found = record(made.run)["ends"]
    assert found["until_score"] == {"lower_bound": pytest.approx(0.215, abs=1e-3), "limit": 0.3, "agent": 0}
    assert (found["patience"]["evaluations_without_better"], found["patience"]["limit"]) == (2, 10)
    lines = [plain_text(each) for each in activity_lines(record(made.run), living=True)]
    assert "until score  the best agent's lower bound is 0.215 of 0.3 (agent 0)" in lines
    assert "patience     2 of 10 evaluations without a better agent" in lines
    made.run.close()


def test_a_reader_that_follows_says_what_one_that_opens_says(tmp_path: Path) -> None:
    made = PaidRun(tmp_path / "run")
    made.run.append(RunStarted(Budget(evaluations=50, patience=3), TASKS))
    with Run.open(tmp_path / "run") as read:
        reader = StatusReader(read)
        assert reader.document()["ends"]["patience"]["evaluations_without_better"] == 0
        made.evaluated(0, 0, calls=1)
        made.child(0, calls=1)
        made.evaluated(1, 0, calls=1)
        reader.follow()
        document = reader.document()
        with Run.open(tmp_path / "run") as opened:
            fresh = StatusReader(opened).document()
    for one in (document, fresh):
        # Of the moment at which it is asked.
        for name in ("now_unix_s", "last_event", "rates", "forecast"):
            del one[name]
        del one["ends"]["patience"]["earliest_left_s"]
    assert document == fresh
    assert document["ends"]["patience"]["evaluations_without_better"] == 2
    made.run.close()


def test_many_steps_are_only_counted(paid: PaidRun) -> None:
    for _ in range(12):
        paid.start(Evaluate(AgentId(2), TASKS[0]))
    lines = [plain_text(each) for each in activity_lines(record(paid.run), living=True)]
    assert "             and 5 more" in lines


def test_durations_have_two_units() -> None:
    said = [duration_text(each) for each in (0, 33.4, 72, 3600, 19_620, 273_600, 1e12)]
    assert said == ["0 s", "33 s", "1 min 12 s", "1 h", "5 h 27 min", "3 d 4 h", "more than a year"]


def test_a_clock_time_of_another_day_has_its_date() -> None:
    now = time.mktime((2026, 11, 26, 12, 0, 0, 0, 0, -1))
    assert local_time_text(now - 60, now) == "11:59:00"
    assert local_time_text(now + 86_400, now) == "2026-11-27 12:00"
    assert local_time_text(now - 365 * 86_400, now) == "2025-11-26 12:00"


@pytest.mark.parametrize(
    ("calls", "line"),
    [
        (LiveCalls(0, 0, None), None),
        (LiveCalls(3, 0, None), "model calls  3 under way"),
        (
            LiveCalls(3, 1, 40.0),
            "model calls  3 under way, 1 waits for a turn or the next try: the oldest for 40 s, since ",
        ),
        (
            LiveCalls(0, 12, 700.0),
            "model calls  0 under way, 12 wait for a turn or the next try: the oldest for 11 min 40 s, since ",
        ),
    ],
)
def test_open_calls_are_told_while_the_run_is_written(paid: PaidRun, calls: LiveCalls, line: str) -> None:
    now = paid.run.tree.last_at + 10.0
    waits = None if calls.oldest_wait is None else now - calls.oldest_wait
    write_live_calls(paid.run.folder, LiveCalls(calls.under_way, calls.waiting, waits))
    found = record(paid.run, 10.0)
    told = found["model_calls"]
    assert (told["under_way"], told["waiting"]) == (calls.under_way, calls.waiting)
    assert told["oldest_wait_s"] == calls.oldest_wait
    spans = [one for one in activity_lines(found, living=True) if plain_text(one).startswith("model calls")]
    assert [plain_text(one).startswith(line) for one in spans] == ([True] if line else [])
    marked = calls.oldest_wait is not None and calls.oldest_wait > 600
    assert [one[-1].tone is Tone.WARN for one in spans] == ([marked] if line else [])


def test_open_calls_of_a_dead_process_do_not_count(tmp_path: Path) -> None:
    made = small(tmp_path / "run")
    write_live_calls(made.run.folder, LiveCalls(3, 1, 1.0))
    made.run.close()
    with Run.open(tmp_path / "run") as run:
        assert record(run)["model_calls"] is None
