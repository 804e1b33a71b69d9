"""What is said of the control of equal spend."""

from dataclasses import replace

import pytest

from dgm.domain import AgentId, Tally, Usage
from dgm.evaluation.control import AttemptPrice, ControlFindings, Unit
from dgm.report.control import amount_text, control_record, control_sentences
from dgm.report.facts import gather_report
from dgm.report.figures import draw_holdout
from dgm.report.headline import ExamFindings
from dgm.report.page import render_page
from dgm.report.people import holdout_lines
from dgm.show.spans import plain_text
from tests.unit.report.test_headline import twenty
from tests.unit.report.test_markup import Texts

FOUND = ControlFindings(
    price=AttemptPrice(Unit.TOKENS, 9_700_000, 14_700, 20),
    bound=20,
    attempts=20,
    further=180,
    missing=0,
    once=Tally(7, 13),
    pairs=twenty(1, 3, 11),
    spend=Usage(900, 2_000_000, 90_000),
    took=2_090_000,
)
REAL, OFFLINE = {"solve": "openai/gpt-6.2-sol"}, {"solve": "offline"}


def test_it_says_what_was_bought_and_what_came_of_it() -> None:
    said = " ".join(control_sentences(FOUND, "myrun", REAL))
    assert "the 9.7M tokens of the search pay for 32 attempts of the seed at each holdout task" in said
    assert "it was given at most 20. Solved tasks are not tried again" in said
    assert "the further attempts took 2.1M tokens." in said
    assert "With 20 attempts at each task, the seed resolves 14 of 20 tasks" in said
    assert "with one attempt, 7 of 20" in said
    assert (
        "resolves 12 of 20: 1 that the control does not resolve, while it misses 3 that the control" in said
    )
    assert "exact McNemar p = 0.625" in said
    assert "not complete" not in said
    assert "independent" not in said


def test_one_that_is_not_complete_says_how_far_it_is() -> None:
    said = " ".join(control_sentences(replace(FOUND, attempts=12, missing=31), "myrun", OFFLINE))
    assert "every task has had 12 of 20 attempts, and up to 31 more are left" in said
    assert "not independent" in said


def test_a_report_names_the_command_of_a_control_that_was_not_performed() -> None:
    (more,) = control_sentences(None, "my run", REAL)
    assert "dgm report 'my run' --holdout --control" in more


def test_a_report_says_nothing_of_a_control_that_would_show_nothing() -> None:
    assert control_sentences(None, "my run", OFFLINE) == []


def test_all_that_money_buys_has_no_bound() -> None:
    few = replace(FOUND, price=AttemptPrice(Unit.USD, 2.0, 0.05, 20), attempts=2)
    said = " ".join(control_sentences(few, "myrun", REAL))
    assert "the 2.00 USD of the search pay for 2 attempts of the seed at each holdout task. Solved" in said


def test_a_search_that_pays_for_no_further_attempt_is_one_sentence() -> None:
    cheap = replace(FOUND, price=AttemptPrice(Unit.USD, 0.9, 0.05, 20), attempts=1)
    assert control_sentences(cheap, "myrun", REAL) == [
        "Control of equal spend: the 0.90 USD of the search pay for no further attempt of the seed."
    ]


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.0042, Unit.USD, "0.0042 USD"),
        (12.5, Unit.USD, "12.50 USD"),
        (1500, Unit.TOKENS, "1.5k tokens"),
        (90, Unit.SECONDS, "90 seconds of work"),
        (9000, Unit.SECONDS, "2.5 hours of work"),
    ],
)
def test_amounts_have_their_unit(value: float, unit: Unit, said: str) -> None:
    assert amount_text(value, unit) == said


@pytest.mark.starts_processes
def test_it_stands_on_the_page_in_the_terminal_and_in_the_document(paid) -> None:
    found = ExamFindings(twenty(6, 0, 5), Usage(), {}, Usage(), Usage(), 20, 0, FOUND)
    report = gather_report(paid.run, AgentId(2), found, [])
    text = Texts(render_page(report).decode()).text
    assert "seed × 20" in text
    assert "Control of equal spend: the 9.7M tokens" in text
    lines = "\n".join(map(plain_text, holdout_lines(paid.run, found, AgentId(2))))
    assert "  control of equal spend: the 9.7M tokens" in lines
    drawing = draw_holdout(report)
    assert drawing is not None
    assert "seed × 20" in drawing.html()
    said = control_record(FOUND)
    assert (said["unit"], said["affordable"], said["attempts"]) == ("tokens", 32, 20)
    assert (said["seed_any"]["resolved"], said["seed_once"]["resolved"], said["best"]["resolved"]) == (
        14,
        7,
        12,
    )
