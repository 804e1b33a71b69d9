import unittest

from lru import Cache, ManualClock


class Lifetime(unittest.TestCase):
    def setUp(self):
        self.clock = ManualClock(100)
        self.cache = Cache(5, ttl=10, clock=self.clock)

    def test_zero(self):
        self.cache.put("a", 1, ttl=0)
        self.assertNotIn("a", self.cache)

    def test_zero_without_a_default(self):
        cache = Cache(5, clock=self.clock)
        cache.put("a", 1, ttl=0)
        self.assertIsNone(cache.get("a"))

    def test_zero_for_many(self):
        self.cache.put_many({"a": 1, "b": 2}, ttl=0)
        self.assertEqual(self.cache.purge(), 2)

    def test_zero_as_the_default(self):
        cache = Cache(5, ttl=0, clock=self.clock)
        cache.put("a", 1)
        cache.put("b", 1, ttl=3)
        self.assertEqual(("a" in cache, "b" in cache), (False, True))

    def test_zero_is_loaded_each_time(self):
        calls = []
        for _ in range(2):
            self.cache.get_or_load("a", calls.append, ttl=0)
        self.assertEqual(calls, ["a", "a"])

    def test_own_time(self):
        self.cache.put("a", 1, ttl=25)
        self.clock.advance(24)
        self.assertEqual((self.cache.get("a"), self.cache.remaining("a")), (1, 1))

    def test_default_time(self):
        self.cache.put("a", 1)
        self.assertEqual(self.cache.remaining("a"), 10)

    def test_for_ever(self):
        cache = Cache(5, clock=self.clock)
        cache.put("a", 1)
        self.clock.advance(10**9)
        self.assertEqual((cache.get("a"), cache.remaining("a")), (1, None))
