"""A run at one moment: progress, spend, forecast, goals and problems."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dgm.archive.events import AgentStillborn, ChildProposed, RunPaused, RunStarted, RunStopped
from dgm.archive.live import LiveCalls, LiveState, write_live
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import (
    SEED,
    ActionId,
    AgentId,
    Born,
    Budget,
    Entry,
    Evaluate,
    Expand,
    Stillborn,
    TaskId,
    Verdict,
)
from dgm.views.run import RunReader, RunView, find_highest
from tests.support.runs.builder import RunBuilder, create_run, make_config
from tests.support.runs.paid import TASKS, PaidRun, small
from tests.support.runs.trees import Log

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def paid(tmp_path: Path) -> Iterator[PaidRun]:
    made = small(tmp_path / "paid")
    yield made
    made.run.close()


def view_of(run: Run, later_s: float = 0.0) -> RunView:
    return RunView.load(run, run.tree.last_at + later_s)


def test_verdicts_of_all_roots_count(tmp_path: Path) -> None:
    with create_run(tmp_path / "forest", make_config(Settings(model="offline")), Budget(), TASKS) as run:
        made = RunBuilder(run)
        for root, verdict in enumerate((Verdict.RESOLVED, Verdict.UNRESOLVED)):
            made.bear({"agent.toml": Entry(f"# {root}".encode())}, ())
            made.record_verdict(made.begin(Evaluate(AgentId(root), TASKS[0])), root, TASKS[0], verdict)
        counts = view_of(run).evaluations
    assert (counts.graded, counts.resolved, counts.unresolved) == (2, 1, 1)


def test_spend_is_split_by_role_and_model(paid: PaidRun) -> None:
    paid.refused(ActionId(1))
    view = view_of(paid.run)
    assert (view.spend.usd, view.spend.left_usd) == (pytest.approx(0.2), pytest.approx(0.3))
    assert (view.spend.calls, view.spend.tokens, view.spend.cached_share) == (20, 22_000, 0.25)
    assert [(part.role, part.model, part.calls) for part in view.spend.by] == [
        ("improve", "anthropic/dear", 13),
        ("solve", "openai/cheap", 7),
    ]
    assert view.models == {
        "solve": "openai/cheap",
        "improve": "anthropic/dear",
        "diagnose": "openai/cheap",
    }
    assert (view.seed, view.offline, view.refusals, view.failures.refused[0].reason) == (
        0,
        False,
        1,
        "model_not_found",
    )


def test_agents_and_evaluations_are_counted(paid: PaidRun) -> None:
    view = view_of(paid.run)
    counts = view.evaluations
    assert (view.agents, view.stillborn, view.expansions, view.running) == (3, {"check": 1}, 3, 1)
    assert (counts.graded, counts.resolved, counts.unresolved, counts.invalid) == (2, 1, 1, 1)
    assert [(dead.operator, dead.stage, dead.times) for dead in view.failures.stillborn] == [
        ("self-edit", "check", 1)
    ]
    assert [(count.reason, count.times) for count in view.failures.lost] == [("the provider was away", 1)]
    assert view.best is not None
    assert (view.best.agent, view.best.best) == (0, True)


def test_a_run_without_a_limit_has_nothing_left(tmp_path: Path) -> None:
    made = small(tmp_path / "free", usd=None)
    view = view_of(made.run)
    made.run.close()
    assert (view.spend.left_usd, view.budget) == (None, {})


def test_a_paused_run_gives_its_reason_and_no_forecast(paid: PaidRun) -> None:
    paid.run.append(RunPaused("openai does not answer"))
    view = view_of(paid.run)
    assert (view.state, view.living, view.paused) == ("paused", True, "openai does not answer")
    assert view.forecast is None


def test_actions_without_an_outcome_are_listed(paid: PaidRun) -> None:
    step = paid.start(Evaluate(AgentId(1), TaskId("hostile\x1b[2J\n"), 1))
    paid.call(step, 3)
    expansion, evaluation = view_of(paid.run, 30.0).under_way
    assert (expansion.kind, expansion.parents, expansion.agent, expansion.operator) == (
        "expand",
        (2,),
        2,
        "self-edit",
    )
    assert (expansion.model_calls, expansion.task) == (2, None)
    assert (evaluation.action, evaluation.kind, evaluation.agent, evaluation.attempt) == (
        step,
        "evaluate",
        1,
        2,
    )
    assert (evaluation.model_calls, evaluation.last_event_age_s) == (3, 30.0)
    assert evaluation.age_s >= 30.0


def test_calls_of_an_earlier_try_do_not_count(paid: PaidRun) -> None:
    what = Evaluate(SEED, TASKS[1])
    step = paid.start(what)
    paid.call(step, 5)
    paid.lost(step)
    paid.again(step, what)
    paid.call(step, 1)
    action = view_of(paid.run).under_way[-1]
    assert (action.model_calls, action.tries) == (1, 2)


def test_rates_and_the_forecast_are_those_of_the_session(paid: PaidRun) -> None:
    spent = paid.run.tree.spend
    view = view_of(paid.run, 3600.0)
    assert view.rates is not None
    # Two graded evaluations and three ended expansions (two births, one stillbirth) after the beginning.
    assert view.rates.evaluations_per_hour == pytest.approx(2, rel=0.01)
    assert view.rates.expansions_per_hour == pytest.approx(3, rel=0.01)
    assert view.rates.usd_per_hour == pytest.approx(spent.usd, rel=0.01)
    assert view.rates.tokens_per_second == pytest.approx(spent.tokens / 3600, rel=0.01)
    left_s = (0.5 - spent.usd) / spent.usd * 3600
    assert view.forecast is not None
    assert (view.forecast.binding, view.forecast.complete) == ("usd", True)
    assert view.forecast.left_s == view.budget["usd"].left_s == pytest.approx(left_s, rel=0.01)
    assert view.forecast.ends_unix_s == pytest.approx(view.now_unix_s + left_s, rel=0.01)


def test_a_seed_and_two_verdicts_are_too_little_for_rates(tmp_path: Path) -> None:
    made = PaidRun(tmp_path / "run")
    made.evaluated(0, 0, calls=1)
    made.evaluated(0, 1, calls=1)
    assert view_of(made.run, 60.0).rates is None
    made.stillborn(0, calls=1)
    assert view_of(made.run, 60.0).rates is not None
    made.run.close()


def test_a_child_that_the_user_decides_on_ended_once(tmp_path: Path) -> None:
    made = PaidRun(tmp_path / "run")
    for task in (0, 1):
        made.evaluated(0, task, calls=1)
    action = made.start(Expand((SEED,), "self-edit"))
    commit = made.run.tree.agents[0].commit
    made.run.append(ChildProposed(action, Born((SEED,), "self-edit", commit, "better")))
    made.run.append(
        AgentStillborn(action, Stillborn((SEED,), "self-edit", "approve", "no", decided="a person"))
    )
    rates = view_of(made.run, 3600.0).rates
    assert rates is not None
    assert rates.expansions_per_hour == pytest.approx(1, rel=0.01)
    made.run.close()


def test_a_new_session_is_not_predicted_from_an_old_one(paid: PaidRun) -> None:
    paid.run.append(RunStopped("stopped"))
    paid.run.append(RunStarted(Budget(usd=2.0, seconds=7200.0), TASKS, resumed=True))
    view = view_of(paid.run, 60.0)
    assert view.rates is None
    assert (view.budget["usd"].left_s, view.budget["usd"].unknown) == (None, "not yet known")
    assert view.forecast is not None
    assert (view.forecast.binding, view.forecast.complete) == ("seconds", False)


def test_an_ended_run_has_neither_rates_nor_a_forecast(paid: PaidRun) -> None:
    paid.run.append(RunStopped("stopped"))
    view = view_of(paid.run, 9e6)
    assert (view.state, view.living, view.rates, view.forecast, view.running) == (
        "stopped",
        False,
        None,
        None,
        1,
    )


def test_goals_say_how_near_they_are(tmp_path: Path) -> None:
    made = PaidRun(tmp_path / "run")
    made.run.append(RunStarted(Budget(evaluations=50, score=0.3, patience=10), TASKS))
    made.evaluated(0, 0, calls=1)
    made.evaluated(0, 1, calls=1)
    goals = view_of(made.run).goals
    assert goals.until_score is not None
    assert goals.until_score.lower_bound == pytest.approx(0.215, abs=1e-3)
    assert (goals.until_score.limit, goals.until_score.agent) == (0.3, 0)
    assert goals.patience is not None
    assert (goals.patience.evaluations_without_better, goals.patience.limit) == (2, 10)
    made.run.close()


def test_a_reader_that_follows_agrees_with_one_that_opens(tmp_path: Path) -> None:
    made = PaidRun(tmp_path / "run")
    made.run.append(RunStarted(Budget(evaluations=50, patience=3), TASKS))
    with Run.open(tmp_path / "run") as read:
        reader = RunReader(read)
        first = reader.view().goals.patience
        assert first is not None
        assert first.evaluations_without_better == 0
        made.evaluated(0, 0, calls=1)
        made.child(0, calls=1)
        made.evaluated(1, 0, calls=1)
        reader.follow()
        now = made.run.tree.last_at + 60.0
        followed = reader.view(now)
        with Run.open(tmp_path / "run") as opened:
            assert followed == RunView.load(opened, now)
    assert followed.goals.patience is not None
    assert followed.goals.patience.evaluations_without_better == 2
    made.run.close()


def test_open_calls_are_shown_while_the_run_is_written(tmp_path: Path) -> None:
    made = small(tmp_path / "run")
    now = made.run.tree.last_at + 10.0
    write_live(made.run.folder, LiveState(LiveCalls(3, 1, now - 40.0)))
    calls = RunView.load(made.run, now).model_calls
    assert calls is not None
    assert (calls.under_way, calls.waiting, calls.oldest_wait_s) == (3, 1, 40.0)
    made.run.close()
    with Run.open(tmp_path / "run") as run:
        assert view_of(run).model_calls is None


def test_the_highest_rate_is_only_named_if_it_is_another_agents() -> None:
    log = Log()
    for parent in ((), (0,), (1,)):
        log.born(*parent)
    log.graded(1, [True, False, True])
    log.graded(2, [True, True])
    assert find_highest(log.tree, AgentId(2)) is None
    assert find_highest(log.tree, AgentId(1)) == 2
    assert find_highest(Log().tree, None) is None


def test_the_view_is_the_json_document(paid: PaidRun) -> None:
    view = view_of(paid.run)
    assert RunView.model_validate_json(view.model_dump_json(indent=2)) == view
