import unittest

from ratelimit import Limiter, ManualClock, SlidingWindow, parse_rule


class SlidingEdge(unittest.TestCase):
    def setUp(self):
        self.clock = ManualClock()

    def test_opens_in_time(self):
        window = SlidingWindow(2, 10, self.clock)
        window.take(2)
        self.clock.advance(10)
        self.assertEqual([window.take(), window.take(), window.take()], [True, True, False])

    def test_not_before(self):
        window = SlidingWindow(2, 10, self.clock)
        window.take(2)
        self.clock.advance(9.5)
        self.assertEqual((window.take(), window.wait()), (False, 0.5))

    def test_waiting_is_enough(self):
        for limit, length, cost in ((1, 1, 1), (3, 8, 2), (5, 0.5, 5)):
            window = SlidingWindow(limit, length, self.clock)
            window.take(limit)
            self.clock.advance(window.wait(cost))
            self.assertTrue(window.take(cost))

    def test_only_the_old_ones_expire(self):
        window = SlidingWindow(2, 10, self.clock)
        window.take()
        self.clock.advance(4)
        window.take()
        self.clock.advance(6)
        self.assertEqual(window.remaining(), 1)

    def test_full_window(self):
        window = SlidingWindow(2, 10, self.clock)
        self.assertEqual([window.take() for _ in range(3)], [True, True, False])

    def test_in_a_limiter(self):
        limiter = Limiter([parse_rule("1 in 4s sliding")], self.clock)
        answers = []
        for _ in range(4):
            answers.append(limiter.check("a").allowed)
            self.clock.advance(2)
        self.assertEqual(answers, [True, False, True, False])
