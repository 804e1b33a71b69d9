"""How a search waits out an outage, and when it abandons an action."""

import pytest

from dgm.domain import ActionId
from dgm.search.loop import Backoff

A, B = ActionId(1), ActionId(2)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    ("actions", "pass_time", "waits"),
    [([A] * 8, True, [1, 2, 4, 8, 16, 32, 60, 60]), ([*range(8)], False, [1] * 8)],
)
def test_waits_double_up_to_a_minute_and_one_outage_of_all_workers_is_one_wait(actions, pass_time, waits):
    clock = Clock()
    backoff, waited = Backoff(100, 100, clock), []
    for action in actions:
        backoff.record_failure(ActionId(action), "engine gone")
        waited.append(backoff.wait_s())
        clock.now += backoff.wait_s() * pass_time
    assert waited == waits


def test_it_ends_after_the_limit_and_success_starts_over():
    backoff = Backoff(2, 100, Clock())
    backoff.record_failure(A, "a")
    backoff.record_success()
    backoff.record_failure(A, "b")
    assert (backoff.exhausted, backoff.wait_s()) == (False, 1.0)
    backoff.record_failure(B, "the last")
    assert (backoff.exhausted, backoff.last_reason, backoff.last_failed) == (True, "the last", B)


@pytest.mark.parametrize(
    ("others_succeed", "abandoned"), [(True, [False, False, True]), (False, [False] * 3)]
)
def test_only_what_fails_while_others_succeed_is_abandoned(others_succeed, abandoned):
    backoff, decisions = Backoff(100, 3, Clock()), []
    for _ in range(3):
        backoff.record_failure(A, "image gone")
        decisions.append(backoff.should_give_up(A))
        if others_succeed:
            backoff.record_success()
    assert decisions == abandoned
