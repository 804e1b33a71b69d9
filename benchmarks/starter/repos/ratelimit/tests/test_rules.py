import unittest

from ratelimit import LeakyBucket, ManualClock, Rule, parse_rule


class Reading(unittest.TestCase):
    def test_rate(self):
        self.assertEqual(parse_rule("5/s"), Rule("token", 5, 1))

    def test_burst(self):
        self.assertEqual(parse_rule("100/min burst 20"), Rule("token", 100, 60, 20))

    def test_queue(self):
        self.assertIsInstance(parse_rule("1/s queue 4").build(ManualClock()), LeakyBucket)

    def test_window(self):
        self.assertEqual(parse_rule("5 in 2min"), Rule("fixed", 5, 120))

    def test_sliding(self):
        self.assertEqual(parse_rule("5 in 10s sliding"), Rule("sliding", 5, 10))

    def test_unreadable(self):
        with self.assertRaises(ValueError):
            parse_rule("often")

    def test_nothing(self):
        with self.assertRaises(ValueError):
            parse_rule("0/s")

    def test_text(self):
        self.assertEqual(str(parse_rule("5/s burst 7")), "5/1s burst 7")
