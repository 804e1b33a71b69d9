"""How a search waits out an outage, and what it gives up."""

from dgm.domain import ActionId
from dgm.search.backoff import Backoff

A, B = ActionId(1), ActionId(2)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_waits_double_up_to_a_minute():
    clock = Clock()
    patience = Backoff(100, 100, clock)
    waits = []
    for _ in range(8):
        patience.hopeless(A, "engine gone")
        waits.append(patience.wait_s())
        clock.now += patience.wait_s()
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_one_outage_that_fails_all_workers_is_one_wait():
    patience = Backoff(100, 100, Clock())
    for n in range(8):
        patience.hopeless(ActionId(n), "engine gone")
    assert patience.wait_s() == 1.0


def test_success_starts_over():
    patience = Backoff(3, 100, Clock())
    patience.hopeless(A, "a")
    patience.hopeless(A, "b")
    patience.success()
    patience.hopeless(A, "c")
    assert not patience.exhausted
    assert patience.wait_s() == 1.0


def test_it_ends_after_the_limit():
    patience = Backoff(2, 100, Clock())
    patience.hopeless(A, "a")
    patience.hopeless(B, "the last")
    assert patience.exhausted
    assert patience.last_reason == "the last"
    assert patience.last_failed == B


def test_nothing_is_given_up_while_nothing_succeeds():
    patience = Backoff(100, 3, Clock())
    assert not any(patience.hopeless(A, "outage") for _ in range(20))


def test_what_fails_while_others_succeed_is_given_up():
    patience = Backoff(100, 3, Clock())
    said = []
    for _ in range(3):
        said.append(patience.hopeless(A, "image gone"))
        patience.success()
    assert said == [False, False, True]
