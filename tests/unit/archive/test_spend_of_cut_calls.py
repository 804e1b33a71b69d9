"""A call that a process's death cut off is in the sums at its worst case until its repetition is answered."""

import asyncio

import pytest

from dgm.archive.events import ActionStarted, CallBooked, CallStarted, ModelCalled, ModelLearned
from dgm.archive.run import Run
from dgm.archive.tree import CHECK_ROLE, Spend, Tree
from dgm.domain import SEED, ActionId, Evaluate, TaskId, Usage
from dgm.gateway.journal import RunJournal
from dgm.messages import BegunCall, CallKey, CutCall, PaidCall, WireProtocol, WireReply, WireRequest
from dgm.views.run import view_cut_calls
from tests.support.runs.packable import begin

pytestmark = pytest.mark.slow

ACTION = ActionId(1)
MOST = Usage(1, 1000, 600, 0.007)
ANSWERED = Usage(1, 40, 20, 0.00024)
REQUEST = WireRequest(WireProtocol.CHAT, {"messages": [{"role": "user", "content": "mend it"}]})
REPLY = WireReply(WireProtocol.CHAT, b"{}", False, ANSWERED)
WHO = ("solve", "m")


def started(number=1):
    return CallStarted(ACTION, number, "m", "solve", MOST)


def called(number=1):
    return ModelCalled(ACTION, number, "m", "solve", ANSWERED)


def booked(usage=MOST, number=1, still_open=True):
    return CallBooked(ACTION, number, "m", "solve", usage, still_open)


def spend_of(*events):
    spend = Spend()
    for event in events:
        spend.apply(event)
    return spend


def test_call_under_way_is_not_in_the_sums():
    spend = spend_of(started())
    assert set(spend.open) == {(ACTION, 1)}
    assert spend.total == spend.of(ACTION) == Usage()


def test_answered_call_is_no_longer_open():
    spend = spend_of(started(), started(2), called())
    assert set(spend.open) == {(ACTION, 2)}
    assert spend.total == spend.by[WHO] == ANSWERED


def test_cut_call_is_counted_at_its_worst_case():
    spend = spend_of(started(), booked())
    assert not spend.open
    assert set(spend.cut) == {(ACTION, 1)}
    assert spend.total == spend.of(ACTION) == spend.by[WHO] == MOST


def test_correction_may_be_negative_and_ends_the_cut_call():
    spend = spend_of(
        started(), booked(), started(2), called(2), booked(Usage(0, -960, 0, -0.00096), 1, False)
    )
    assert not spend.open
    assert not spend.cut
    assert (spend.total.calls, spend.total.input_tokens, spend.total.output_tokens) == (2, 80, 620)
    assert spend.total.usd == pytest.approx(0.007 - 0.00096 + 0.00024)
    assert spend.of(ACTION).usd == pytest.approx(spend.total.usd)


def test_call_that_failed_is_counted_at_what_it_wasted():
    spend = spend_of(started(), booked(Usage(0, 10, 3, 0.1), 1, False))
    assert not spend.open
    assert not spend.cut
    assert spend.total == Usage(0, 10, 3, 0.1)


def test_check_of_a_model_is_counted_under_a_role_of_its_own():
    spend = spend_of(ModelLearned("m", {}, "", Usage(1, 30, 4, 0.5)), ModelLearned("m", {}, "no top_p"))
    assert spend.by == {(CHECK_ROLE, "m"): Usage(1, 30, 4, 0.5)}


# In a run


@pytest.fixture
def run(tmp_path):
    with begin(tmp_path / "r") as opened:
        opened.append(ActionStarted(ACTION, Evaluate(SEED, TaskId("a"))))
        yield opened


def begun(number):
    return BegunCall(CallKey(ACTION, number), "m", "solve", REQUEST, MOST)


def paid(number):
    return PaidCall(CallKey(ACTION, number), "m", "solve", REQUEST, REPLY, 0.5)


def cut_off(run, *numbers):
    """The log as a process leaves it that dies while these calls are under way."""
    journal = RunJournal(run)

    async def go():
        for number in numbers:
            await journal.begin(begun(number))

    asyncio.run(go())


def test_next_session_books_what_was_cut_off_once(run):
    cut_off(run, 1, 2)
    RunJournal(run).book_cut_calls()
    RunJournal(run).book_cut_calls()
    bookings = [one.event for one in run.store.read() if isinstance(one.event, CallBooked)]
    assert [(one.number, one.open, one.usage) for one in bookings] == [(1, True, MOST), (2, True, MOST)]
    found = RunJournal(run).cut_calls(ACTION)
    assert found == [CutCall(number, REQUEST, "m", "solve", MOST) for number in (1, 2)]
    assert RunJournal(run).cut_calls(ActionId(9)) == []


def test_fold_of_the_stored_log_is_the_same(run):
    cut_off(run, 1, 2)
    journal = RunJournal(run)
    journal.book_cut_calls()
    less = CutCall(1, REQUEST, "m", "solve", Usage(0, -960, 0, -0.00096))
    asyncio.run(journal.record(paid(3), [less]))
    cut_off(run, 4)
    fast = Tree()
    for item in run.store.read():
        fast.apply(item)
    for tree in (fast, run.tree):
        assert set(tree.model_calls.cut) == {(ACTION, 2)}
        assert set(tree.model_calls.open) == {(ACTION, 4)}
        assert (tree.spend.calls, tree.spend.input_tokens, tree.spend.output_tokens) == (3, 1080, 1220)
    assert fast.spend == run.tree.spend
    assert fast.spend_of(ACTION) == run.tree.spend_of(ACTION)


def test_answer_and_correction_are_one_commit(run):
    cut_off(run, 1)
    journal = RunJournal(run)
    journal.book_cut_calls()
    before = run.tree.seq
    asyncio.run(journal.record(paid(2), [CutCall(1, REQUEST, "m", "solve", Usage(0, -960))]))
    kinds = [type(one.event) for one in run.store.read(before)]
    assert kinds == [ModelCalled, CallBooked]


def test_call_whose_answer_is_recorded_cannot_be_lost(run):
    journal = RunJournal(run)

    async def go():
        for number in (1, 2):
            await journal.begin(begun(number))
        await journal.record(paid(1))

    asyncio.run(go())
    journal.lose(begun(1))
    journal.lose(begun(2))
    assert set(run.tree.model_calls.cut) == {(ACTION, 2)}
    assert run.tree.spend == ANSWERED + MOST


def test_status_names_each_with_its_worst_case(run, tmp_path):
    cut_off(run, 1)
    RunJournal(run).book_cut_calls()
    cut_off(run, 2)
    # The writer lives: what it has under way is not cut off.
    assert [call.number for call in view_cut_calls(run)] == [1]
    run.close()
    with Run.open(tmp_path / "r") as dead:
        first, second = view_cut_calls(dead)
    assert (first.action, first.number, first.in_spend) == (1, 1, True)
    assert (second.number, second.in_spend, second.tokens, second.usd) == (2, False, 1600, 0.007)
