import unittest

from lru import MISSING, Cache, ManualClock


def filled(capacity=3, **options):
    cache = Cache(capacity, **options)
    for key in ("a", "b", "c"):
        cache.put(key, key.upper())
    return cache


class OrderTest(unittest.TestCase):
    def test_oldest_is_evicted(self):
        cache = filled()
        cache.put("d", "D")
        self.assertEqual(cache.keys(), ["b", "c", "d"])

    def test_use_keeps(self):
        cache = filled()
        cache.get("a")
        cache.put("d", "D")
        self.assertEqual(cache.keys(), ["c", "a", "d"])

    def test_peek_does_not_keep(self):
        cache = filled()
        self.assertEqual(cache.peek("a"), "A")
        cache.put("d", "D")
        self.assertNotIn("a", cache)

    def test_replace(self):
        cache = filled()
        cache.put("a", 1)
        self.assertEqual((cache.get("a"), len(cache)), (1, 3))

    def test_on_evict(self):
        gone = []
        cache = filled(2, on_evict=lambda key, value: gone.append((key, value)))
        cache.drop("b")
        self.assertEqual(gone, [("a", "A")])

    def test_many_keys(self):
        cache = Cache(20)
        for number in range(60):
            cache.put(f"page {number}", number)
        self.assertEqual(len(cache), 20)
        self.assertEqual(cache.stats.evicted, 40)


class WeightTest(unittest.TestCase):
    def test_weight(self):
        cache = Cache(10, weigh=len)
        cache.put("a", "four")
        cache.put("b", "seven..")
        self.assertEqual((cache.keys(), cache.weight), (["b"], 7))

    def test_too_heavy(self):
        cache = Cache(3, weigh=len)
        cache.put("a", "ok")
        cache.put("b", "too long")
        self.assertEqual(cache.keys(), ["a"])


class TimeTest(unittest.TestCase):
    def setUp(self):
        self.clock = ManualClock()
        self.cache = Cache(5, ttl=10, clock=self.clock)

    def test_fresh(self):
        self.cache.put("a", 1)
        self.clock.advance(9)
        self.assertEqual(self.cache.get("a"), 1)

    def test_expires(self):
        self.cache.put("a", 1)
        self.clock.advance(10)
        self.assertIsNone(self.cache.get("a"))
        self.assertEqual(self.cache.stats.expired, 1)

    def test_own_ttl(self):
        self.cache.put("a", 1, ttl=2)
        self.clock.advance(3)
        self.assertNotIn("a", self.cache)

    def test_remaining(self):
        self.cache.put("a", 1)
        self.clock.advance(4)
        self.assertEqual((self.cache.remaining("a"), self.cache.remaining("b")), (6, 0))

    def test_purge(self):
        self.cache.put("a", 1, ttl=1)
        self.cache.put("b", 1)
        self.clock.advance(5)
        self.assertEqual((self.cache.purge(), self.cache.keys()), (1, ["b"]))


class LoadTest(unittest.TestCase):
    def test_loads_once(self):
        calls = []
        cache = Cache(2)
        for _ in range(3):
            self.assertEqual(cache.get_or_load("a", lambda key: calls.append(key)), None)
        self.assertEqual(calls, ["a"])

    def test_stats(self):
        cache = filled()
        cache.get("a")
        cache.get("z", MISSING)
        self.assertEqual(cache.stats.hit_rate, 0.5)
