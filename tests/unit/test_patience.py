"""How a search waits out an outage."""

from dgm.search.patience import Patience


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_waits_double_up_to_a_minute():
    clock = Clock()
    patience = Patience(100, clock)
    waits = []
    for _ in range(8):
        patience.failure("engine gone")
        waits.append(patience.wait_s())
        clock.now += patience.wait_s()
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_one_outage_that_fails_all_workers_is_one_wait():
    patience = Patience(100, Clock())
    for _ in range(8):
        patience.failure("engine gone")
    assert patience.wait_s() == 1.0


def test_success_starts_over():
    patience = Patience(3, Clock())
    patience.failure("a")
    patience.failure("b")
    patience.success()
    patience.failure("c")
    assert not patience.exhausted
    assert patience.wait_s() == 1.0


def test_it_ends_after_the_limit():
    patience = Patience(2, Clock())
    patience.failure("a")
    patience.failure("the last")
    assert patience.exhausted
    assert patience.last_reason == "the last"
