"""Evaluations, events, spend and state as lines: what each says, that none is obeyed."""

from pathlib import Path

import pytest

from dgm.analysis.accounts import Accounts, RefusedRequest
from dgm.analysis.summary import run_summary
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentStillborn,
    CallRefused,
    Event,
    Recorded,
    RunPaused,
    TaskGraded,
)
from dgm.domain import SEED, ActionId, Cost, Evaluate, Evaluation, Stillborn, TaskId, Usage, Verdict
from dgm.show.evaluations import evaluation_line
from dgm.show.events import event_line, log_line
from dgm.show.safe import cell_width
from dgm.show.spans import Tone, plain_text
from dgm.show.spend import account_lines, fruitless_lines, refusal_lines, spend_lines
from dgm.show.status import status_lines
from tests.support.runs.paid import PaidRun, small
from tests.support.runs.trees import Log

pytestmark = pytest.mark.slow

HOSTILE = "a\x1b[2J\nb\u202e"
GRADED = Evaluation(
    SEED, TaskId("lru/evict"), 0, Verdict.UNRESOLVED, "2 of 5\ntests failed", 0.6, Cost(seconds=14.25)
)


@pytest.fixture
def paid(tmp_path: Path) -> PaidRun:
    return small(tmp_path / "paid")


def test_an_evaluation_says_what_came_of_it_and_what_it_took() -> None:
    shown = evaluation_line(GRADED, Usage(3, 20_000, 800, 0.0125))
    assert plain_text(shown) == (
        "unresolved   14.2 s     20,800 tokens   0.0125 USD  lru/evict: 2 of 5 tests failed"
    )
    assert shown[0].tone is Tone.BAD
    narrow = evaluation_line(GRADED, Usage(), 40)
    assert plain_text(narrow).startswith("✗ unresolved")
    assert sum(cell_width(span.text) for span in narrow) <= 40


def test_a_further_attempt_is_said_to_be_one() -> None:
    again = Evaluation(SEED, TaskId("t"), 2, Verdict.RESOLVED, "")
    assert plain_text(evaluation_line(again, Usage())).endswith("t (attempt 3):")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            TaskGraded(ActionId(1), GRADED),
            "agent 0 (1/2 50%) unresolved lru/evict in 14.2 s: 2 of 5 tests failed",
        ),
        (
            AgentStillborn(ActionId(1), Stillborn((SEED,), "op", "check", "no")),
            "a child of 0 is stillborn (check): no",
        ),
        (ActionLost(ActionId(7), "killed"), "action 7 is lost: killed"),
        (RunPaused("529"), "paused until the model's provider answers again: 529"),
        (CallRefused(ActionId(3), "solve", 400, "bad", "no"), "action 3 was refused bad: no"),
        (ActionStarted(ActionId(3), Evaluate(SEED, TaskId("t"))), ""),
    ],
)
def test_what_happened_is_told_in_a_sentence(event: Event, said: str) -> None:
    log = Log()
    log.born()
    log.graded(0, [True, False])
    assert plain_text(event_line(event, log.tree)) == said
    # An old event is told without the tally of now.
    assert plain_text(event_line(event, None)) == said.replace(" (1/2 50%)", "")


def test_agents_with_a_name_are_called_by_it() -> None:
    log = Log()
    log.born()
    said = plain_text(event_line(TaskGraded(ActionId(1), GRADED), log.tree, {SEED: "the\x1bseed"}))
    assert said.startswith("the\\x1bseed (–) unresolved")


def test_an_event_of_the_log_is_a_row() -> None:
    shown = plain_text(log_line(Recorded(12, 0.0, ActionLost(ActionId(7), "killed"))))
    assert shown == '     12  1970-01-01 00:00:00  action_lost         7  {"reason":"killed","final":false}'


def test_nothing_that_others_wrote_is_obeyed() -> None:
    log = Log()
    log.born()
    evaluation = Evaluation(SEED, TaskId(HOSTILE), 0, Verdict.RESOLVED, HOSTILE)
    lines = [
        evaluation_line(evaluation, Usage()),
        event_line(TaskGraded(ActionId(1), evaluation), log.tree),
        event_line(AgentStillborn(ActionId(1), Stillborn((SEED,), HOSTILE, HOSTILE, HOSTILE)), log.tree),
        event_line(CallRefused(ActionId(3), HOSTILE, 400, HOSTILE, HOSTILE), log.tree),
        *refusal_lines([RefusedRequest(HOSTILE, HOSTILE, 2, ActionId(1))]),
    ]
    assert all(plain_text(shown).isprintable() for shown in lines)


def test_spend_is_told_by_role_where_there_are_several(paid: PaidRun) -> None:
    lines = [plain_text(shown) for shown in spend_lines(paid.run.tree)]
    assert lines[0] == (
        "spend        20 model calls, 22,000 tokens, 0.2000 of 0.50 USD, 0.3000 left (25% of the input was cached)"
    )
    assert len(lines) == 3


def test_an_account_is_told_by_purpose(paid: PaidRun) -> None:
    accounts = Accounts(paid.run)
    lines = [plain_text(shown) for shown in account_lines(accounts.of(SEED), accounts.clade(SEED))]
    assert lines[0] == "spend:"
    assert [each.split(" ")[2] for each in lines[1:]] == [
        "making",
        "evaluating",
        "stillborn",
        "unfinished",
        "its",
    ]
    assert lines[-1].startswith("  its clade in all    20 model calls")
    assert len(account_lines(accounts.of(SEED))) == len(lines) - 1
    assert plain_text(fruitless_lines(accounts.of(SEED), ())[0]) == "paid for without a result (yet):"


def test_refusals_beyond_the_first_are_counted() -> None:
    many = [RefusedRequest("bad", f"number {n}", 12 - n, ActionId(1)) for n in range(12)]
    lines = [plain_text(shown) for shown in refusal_lines(many)]
    assert lines[1] == "  12 times bad: number 0"
    assert (len(lines), lines[-1]) == (12, "  and 2 more")
    assert len(refusal_lines(many, most=None)) == 13
    assert refusal_lines([]) == []


def test_a_run_that_waits_says_so_near_the_top(paid: PaidRun) -> None:
    facts = {**run_summary(paid.run), "paused": "529 overloaded", "waiting": 2}
    lines = [plain_text(shown) for shown in status_lines(paid.run, facts)]
    names = [each.split()[0] for each in lines]
    assert names[:5] == ["run", "paused", "searches", "waiting", "agents"]
    assert lines[3] == "waiting      2 children wait for you: dgm approve paid"
    assert [each.split()[0] for each in map(plain_text, status_lines(paid.run))][:3] == [
        "run",
        "searches",
        "agents",
    ]
