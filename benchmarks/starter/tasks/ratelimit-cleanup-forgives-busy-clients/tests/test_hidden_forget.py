import unittest

from ratelimit import Limiter, ManualClock, parse_rule


class Forgetting(unittest.TestCase):
    def setUp(self):
        self.clock = ManualClock()

    def limiter(self, rule, **options):
        return Limiter([parse_rule(rule)], self.clock, **options)

    def test_busy_client_is_kept(self):
        limiter = self.limiter("2 in 1h")
        limiter.check("a", cost=2)
        self.clock.advance(60)
        self.assertEqual(limiter.forget_idle(3600), 0)
        self.assertFalse(limiter.check("a").allowed)
        self.assertEqual(limiter.counts("a"), {"allowed": 1, "denied": 1})

    def test_only_the_idle_go(self):
        limiter = self.limiter("5 in 1h")
        for name in ("a", "b", "c"):
            limiter.check(name)
            self.clock.advance(10)
        self.assertEqual(limiter.forget_idle(20), 2)
        self.assertEqual(limiter.busiest(3), ["c"])

    def test_exactly_idle(self):
        limiter = self.limiter("5 in 1h")
        limiter.check("a")
        self.clock.advance(20)
        self.assertEqual(limiter.forget_idle(20), 1)

    def test_banned_and_quiet_is_kept(self):
        limiter = self.limiter("1 in 1s", strikes=1, ban_s=100)
        limiter.check("a")
        limiter.check("a")
        self.clock.advance(50)
        self.assertEqual(limiter.forget_idle(10), 0)
        self.assertEqual(limiter.check("a").reason, "banned")

    def test_banned_and_busy_is_kept(self):
        limiter = self.limiter("1 in 1s", strikes=1, ban_s=100)
        limiter.check("a")
        limiter.check("a")
        self.assertEqual(limiter.forget_idle(10), 0)
        self.assertEqual(limiter.banned(), ["a"])

    def test_ban_that_is_over(self):
        limiter = self.limiter("1 in 1s", strikes=1, ban_s=30)
        limiter.check("a")
        limiter.check("a")
        self.clock.advance(30)
        self.assertEqual(limiter.forget_idle(10), 1)

    def test_nobody(self):
        self.assertEqual(self.limiter("1/s").forget_idle(0), 0)
