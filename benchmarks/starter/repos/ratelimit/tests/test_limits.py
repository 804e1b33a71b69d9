import unittest

from ratelimit import FixedWindow, LeakyBucket, ManualClock, SlidingWindow, TokenBucket


class WithClock(unittest.TestCase):
    def setUp(self):
        self.clock = ManualClock()


class TokenBuckets(WithClock):
    def test_starts_full(self):
        bucket = TokenBucket(1, 3, self.clock)
        self.assertEqual([bucket.take() for _ in range(4)], [True, True, True, False])

    def test_fills(self):
        bucket = TokenBucket(2, 3, self.clock)
        bucket.take(3)
        self.clock.advance(0.5)
        self.assertEqual(bucket.remaining(), 1)

    def test_does_not_overflow(self):
        bucket = TokenBucket(2, 3, self.clock)
        self.clock.advance(100)
        self.assertEqual(bucket.remaining(), 3)

    def test_wait(self):
        bucket = TokenBucket(2, 3, self.clock)
        bucket.take(3)
        self.assertEqual([bucket.wait(cost) for cost in (1, 3, 4)], [0.5, 1.5, None])


class LeakyBuckets(WithClock):
    def test_fills_up(self):
        bucket = LeakyBucket(1, 2, self.clock)
        self.assertEqual([bucket.take() for _ in range(3)], [True, True, False])

    def test_leaks(self):
        bucket = LeakyBucket(1, 2, self.clock)
        bucket.take(2)
        self.clock.advance(1)
        self.assertEqual([bucket.take(), bucket.take()], [True, False])

    def test_wait(self):
        bucket = LeakyBucket(0.5, 2, self.clock)
        bucket.take(2)
        self.assertEqual(bucket.wait(), 2.0)


class Windows(WithClock):
    def test_fixed(self):
        window = FixedWindow(2, 10, self.clock)
        self.assertEqual([window.take() for _ in range(3)], [True, True, False])
        self.clock.advance(10)
        self.assertTrue(window.take())

    def test_fixed_wait(self):
        window = FixedWindow(1, 10, self.clock)
        self.clock.advance(4)
        window.take()
        self.assertEqual(window.wait(), 6)

    def test_sliding(self):
        window = SlidingWindow(2, 10, self.clock)
        window.take()
        self.clock.advance(6)
        window.take()
        self.assertFalse(window.take())
        self.clock.advance(4)
        self.assertEqual([window.take(), window.take()], [True, False])

    def test_sliding_wait(self):
        window = SlidingWindow(2, 10, self.clock)
        window.take()
        self.clock.advance(3)
        window.take()
        self.assertEqual([window.wait(1), window.wait(2)], [7, 10])
