import unittest

from ratelimit import ManualClock, TokenBucket, parse_rule


class RateRules(unittest.TestCase):
    def setUp(self):
        self.clock = ManualClock()

    def test_sizes(self):
        rules = ("5/s", "2/s burst 6", "60/min burst 3", "3600/h", "10/min", "1/d")
        self.assertEqual([parse_rule(rule).build(self.clock).remaining() for rule in rules], [5, 6, 3, 3600, 10, 1])

    def test_slow_recovery(self):
        bucket = parse_rule("30/min burst 4").build(self.clock)
        bucket.take(4)
        self.assertEqual(bucket.wait(2), 4.0)

    def test_one_and_a_half(self):
        bucket = parse_rule("90/min").build(self.clock)
        bucket.take(90)
        self.clock.advance(60)
        self.assertEqual(bucket.remaining(), 90)

    def test_slow_queue(self):
        bucket = parse_rule("6/min queue 1").build(self.clock)
        bucket.take()
        self.assertEqual(bucket.wait(), 10.0)

    def test_recovery(self):
        bucket = parse_rule("2/s burst 6").build(self.clock)
        bucket.take(6)
        self.clock.advance(1)
        self.assertEqual(bucket.remaining(), 2)

    def test_rate_of_nothing_is_refused(self):
        with self.assertRaises(ValueError):
            TokenBucket(0, 5, self.clock)

    def test_queue(self):
        bucket = parse_rule("2/s queue 3").build(self.clock)
        self.assertEqual([bucket.take() for _ in range(4)], [True, True, True, False])

    def test_window(self):
        self.assertEqual(parse_rule("5 in 2min").build(self.clock).remaining(), 5)
