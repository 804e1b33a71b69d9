"""The answer of the holdout tasks, on verdicts made by hand: its rule, its numbers, and its sentences."""

import pytest

from dgm.archive.events import TaskGraded
from dgm.domain import AgentId, Evaluate, Evaluation, Tally, TaskId, Usage, Verdict
from dgm.evaluation.control import Unit
from dgm.evaluation.schedule import compare_verdicts
from dgm.render import report_text
from dgm.stats import mcnemar_power, tasks_needed
from dgm.views.holdout import Answer, ControlView, HoldoutView, paired_fields
from dgm.views.report import ReportView, make_headline
from dgm.views.values import TallyView, UsageView
from tests.support.runs.paid import PaidRun
from tests.unit.report.conftest import twenty

pytestmark = pytest.mark.slow

CONTROL = ControlView(
    **paired_fields(twenty(1, 3, 11)),
    unit=Unit.TOKENS,
    search=9_700_000,
    attempt=14_700,
    affordable=32,
    bound=20,
    wanted=20,
    attempts=20,
    missing=0,
    seed_once=TallyView.of(Tally(7, 13)),
    seed_any=TallyView.of(Tally(14, 6)),
    best=TallyView.of(Tally(12, 8)),
    spend=UsageView.of(Usage(900, 2_000_000, 90_000)),
    took=2_090_000,
)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """The report on agent 2 of a seed and four children, evaluated 10 times each but the last, which was not."""
    made = PaidRun(tmp_path_factory.mktemp("runs") / "searched")
    for agent, resolved in enumerate((3, 4, 7, 2)):
        for task in range(10):
            action = made.start(Evaluate(AgentId(agent), TaskId(f"task-{task}")))
            verdict = Verdict.RESOLVED if task < resolved else Verdict.UNRESOLVED
            made.run.append(
                TaskGraded(action, Evaluation(AgentId(agent), TaskId(f"task-{task}"), 0, verdict, ""))
            )
        made.child(0, calls=0)
    yield ReportView.load(made.run, AgentId(2))
    made.run.close()


def report(searched, gained: int, lost: int, both: int = 4, **more) -> ReportView:
    holdout = HoldoutView.of(twenty(gained, lost, both), tasks=20, **more)
    best = AgentId(0 if more.get("itself") else 2)
    update = {
        "holdout": holdout,
        "answer": holdout.answer,
        "headline": make_headline(holdout, best, simulated=False),
    }
    if more.get("itself"):
        update |= {"best": searched.seed_agent, "highest": None}
    return searched.model_copy(update=update)


@pytest.mark.parametrize(
    ("gained", "lost", "answer", "result"),
    [
        (6, 0, Answer.BETTER, "yes, better: "),
        (5, 0, Answer.NOT_SHOWN, "not shown to be better: "),
        (0, 0, Answer.NOT_SHOWN, "not shown to be better: "),
        (0, 5, Answer.NOT_SHOWN, "not shown to be better: "),
        (0, 6, Answer.WORSE, "no, worse: "),
    ],
)
def test_the_answer_says_no_more_than_the_test_shows(searched, gained, lost, answer, result) -> None:
    view = report(searched, gained, lost)
    assert view.answer is view.holdout.answer is answer
    counts = f"{4 + gained} of 20 holdout tasks, the seed {4 + lost}"
    assert view.headline == result + counts
    assert view.holdout.shown_better == (answer is Answer.BETTER)


def test_p_difference_and_power_are_numbers() -> None:
    view = HoldoutView.of(twenty(4, 1, 6), tasks=20)
    assert view.mcnemar_p == 0.375
    assert view.difference.mean == 0.15
    low, high = view.difference.interval
    assert -0.2 < low < 0 < 0.3 < high < 0.5
    assert (view.power.gained, view.power.lost) == (0.25, 0.05)
    assert view.power.power == mcnemar_power(20, 0.25, 0.05)
    assert view.power.tasks_for_80_percent == tasks_needed(0.25, 0.05)
    assert 0 < HoldoutView.of(twenty(20, 0, 0), tasks=20).mcnemar_p < 1e-5


@pytest.mark.parametrize(("gained", "lost"), [(20, 0), (0, 20), (0, 0)])
def test_tasks_that_all_went_alike_give_no_interval(gained: int, lost: int) -> None:
    difference = HoldoutView.of(twenty(gained, lost, 0), tasks=20).difference
    assert (difference.mean, difference.interval) == ((gained - lost) / 20, None)


def test_many_losses_leave_room_for_the_gain() -> None:
    power = HoldoutView.of(twenty(2, 18, 0), tasks=20).power
    assert (power.gained, power.lost) == (pytest.approx(0.6), 0.4)


def test_without_tasks_nothing_is_concluded() -> None:
    view = HoldoutView.of(compare_verdicts([]), tasks=0)
    assert (view.answer, view.difference, view.power) == (Answer.NOT_EXAMINED, None, None)


@pytest.mark.parametrize(("gained", "lost"), [(6, 0), (0, 6)])
def test_nothing_is_shown_before_the_last_verdict(searched, gained: int, lost: int) -> None:
    view = report(searched, gained, lost, missing=1, control=CONTROL)
    holdout = view.holdout
    assert (view.answer, holdout.shown_better) == (Answer.NOT_EXAMINED, False)
    assert {holdout.mcnemar_p, holdout.difference, holdout.power, holdout.control} == {None}
    assert view.headline.startswith("not known: ")
    assert not [*report_text.holdout_sentences(view), *report_text.control_sentences(view)]


def test_the_seed_is_not_compared_with_itself(searched) -> None:
    view = report(searched, 0, 0, itself=True)
    assert view.holdout.seed_agent.n == 20
    assert view.holdout.mcnemar_p is view.holdout.difference is view.holdout.power is None
    assert view.headline.startswith("no agent is better: ")
    assert "by nothing: the best agent is the seed, which resolves 3/10 30%" in report_text.gain_text(view)


def test_the_best_agents_rate_is_corrected_for_the_choice(searched) -> None:
    chosen = searched.chosen
    assert (chosen.agent, chosen.evaluated, chosen.rate) == (2, 4, 0.7)
    assert 0.4 < chosen.corrected_rate < 0.65  # 0.4 is the rate of all together


def test_nothing_is_corrected_without_a_choice(tmp_path) -> None:
    alone = PaidRun(tmp_path / "alone")
    assert ReportView.load(alone.run).chosen is None
    alone.run.close()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0042, Unit.USD, "0.0042 USD"),
        (12.5, Unit.USD, "12.50 USD"),
        (1500, Unit.TOKENS, "1.5k tokens"),
        (90, Unit.SECONDS, "90 seconds of work"),
        (9000, Unit.SECONDS, "2.5 hours of work"),
    ],
)
def test_amounts_have_their_unit(value: float, unit: Unit, text: str) -> None:
    assert report_text.amount_text(value, unit) == text


def test_a_report_on_a_terminal(searched, snapshot_text) -> None:
    view = report(searched, 6, 1, control=CONTROL).model_copy(update={"seconds": 3725.0})
    snapshot_text("report", report_text.render_report(view))
