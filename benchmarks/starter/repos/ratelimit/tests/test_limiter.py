import unittest

from ratelimit import Limiter, ManualClock, parse_rule
from ratelimit.headers import headers, status


class Limiting(unittest.TestCase):
    def setUp(self):
        self.clock = ManualClock()

    def limiter(self, *rules, **options):
        return Limiter([parse_rule(rule) for rule in rules], self.clock, **options)

    def allowed(self, limiter, client, count):
        return [limiter.check(client).allowed for _ in range(count)]

    def test_clients_are_separate(self):
        limiter = self.limiter("1/s")
        self.assertEqual(self.allowed(limiter, "a", 2), [True, False])
        self.assertEqual(self.allowed(limiter, "b", 2), [True, False])

    def test_burst(self):
        self.assertEqual(self.allowed(self.limiter("1/s burst 3"), "a", 4), [True, True, True, False])

    def test_decision(self):
        decision = self.limiter("2/s burst 4").check("a", cost=3)
        self.assertEqual((decision.allowed, decision.remaining), (True, 1))

    def test_denied_uses_up_nothing(self):
        limiter = self.limiter("4 in 10s", "2 in 1s")
        self.allowed(limiter, "a", 5)
        self.clock.advance(1)
        self.assertEqual(self.allowed(limiter, "a", 3), [True, True, False])

    def test_retry_after_the_longest_wait(self):
        limiter = self.limiter("1 in 10s", "1 in 4s")
        limiter.check("a")
        self.assertEqual(limiter.check("a").retry_after_s, 10)

    def test_too_costly(self):
        self.assertIsNone(self.limiter("2/s").check("a", cost=3).retry_after_s)

    def test_own_rules(self):
        limiter = self.limiter("1/s")
        limiter.set_rules("vip", [parse_rule("3/s")])
        self.assertEqual(self.allowed(limiter, "vip", 4), [True, True, True, False])

    def test_no_rules_at_all(self):
        limiter = self.limiter("1/s")
        limiter.set_rules("vip", [])
        self.assertEqual(self.allowed(limiter, "vip", 3), [True] * 3)

    def test_exempt(self):
        limiter = self.limiter("1/s")
        limiter.exempt("root")
        self.assertEqual(self.allowed(limiter, "root", 3), [True] * 3)

    def test_ban(self):
        limiter = self.limiter("1/s", strikes=2, ban_s=30)
        self.allowed(limiter, "a", 3)
        self.assertEqual(limiter.banned(), ["a"])
        self.clock.advance(29)
        self.assertEqual(limiter.check("a").reason, "banned")
        self.clock.advance(1)
        self.assertTrue(limiter.check("a").allowed)

    def test_pardon(self):
        limiter = self.limiter("1/s", strikes=1)
        self.allowed(limiter, "a", 2)
        limiter.pardon("a")
        self.assertEqual(limiter.banned(), [])

    def test_peek(self):
        limiter = self.limiter("2/s")
        self.allowed(limiter, "a", 2)
        self.assertEqual(limiter.peek("a"), 0.5)

    def test_forget_idle(self):
        limiter = self.limiter("1 in 60s")
        limiter.check("old")
        self.clock.advance(20)
        limiter.check("new")
        self.assertEqual(limiter.forget_idle(10), 1)
        self.assertEqual([limiter.counts(name)["allowed"] for name in ("old", "new")], [0, 1])

    def test_busiest(self):
        limiter = self.limiter("1/s")
        for name in ("b", "a", "c", "c"):
            limiter.check(name)
        self.assertEqual(limiter.busiest(2), ["c", "a"])

    def test_headers(self):
        limiter = self.limiter("1/s")
        limiter.check("a")
        decision = limiter.check("a")
        self.assertEqual(headers(decision), {"RateLimit-Remaining": "0", "Retry-After": "1"})
        self.assertEqual(status(decision), 429)
