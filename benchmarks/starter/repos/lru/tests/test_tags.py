import unittest

from lru import Cache, ManualClock, Order, Stats, memoized


class TagTest(unittest.TestCase):
    def test_namespace(self):
        cache = Cache(5)
        cache.put("user:7", "Ann")
        self.assertEqual(cache.tags("user:7"), ["user"])

    def test_tags_of_their_own(self):
        cache = Cache(5)
        cache.put("user:7", "Ann", tags=["staff"])
        cache.put("page:1", "Home")
        self.assertEqual((cache.tags("user:7"), cache.tags("page:1")), (["staff", "user"], ["page"]))

    def test_drop_tag(self):
        cache = Cache(5)
        cache.put_many({"user:7": "Ann", "user:8": "Bob", "page:1": "Home"})
        self.assertEqual((cache.drop_tag("user"), cache.keys()), (2, ["page:1"]))

    def test_tag(self):
        cache = Cache(5)
        cache.put("x", 1)
        self.assertTrue(cache.tag("x", "new"))
        self.assertFalse(cache.tag("y", "new"))
        self.assertEqual(cache.drop_tag("new"), 1)


class SnapshotTest(unittest.TestCase):
    def test_round_trip(self):
        clock = ManualClock()
        cache = Cache(5, ttl=10, clock=clock)
        cache.put_many({"a": 1, "b": 2})
        clock.advance(4)
        saved = cache.snapshot()
        clock.advance(100)
        cache.restore(saved)
        self.assertEqual((cache.keys(), cache.remaining("a")), (["a", "b"], 6))

    def test_copies_tags(self):
        cache = Cache(5)
        cache.put("a", 1, tags=["old"])
        saved = cache.snapshot()
        cache.tag("a", "new")
        self.assertEqual(saved, [("a", 1, None, {"old"})])

    def test_restored_tags_are_its_own(self):
        cache = Cache(5)
        cache.put("a", 1)
        saved = cache.snapshot()
        cache.restore(saved)
        cache.tag("a", "new")
        self.assertNotIn("new", saved[0][3])


class MemoTest(unittest.TestCase):
    def test_memoized(self):
        calls = []

        @memoized(Cache(5))
        def square(number):
            calls.append(number)
            return number * number

        self.assertEqual([square(3), square(3), square(4)], [9, 9, 16])
        self.assertEqual(calls, [3, 4])
        square.forget()
        square(3)
        self.assertEqual(calls, [3, 4, 3])


class PartsTest(unittest.TestCase):
    def test_order(self):
        order = Order()
        for key in "abcab":
            order.touch(key)
        order.discard("a")
        self.assertEqual((list(order), order.oldest(), len(order)), (["c", "b"], "c", 2))

    def test_stats_add_up(self):
        self.assertEqual(Stats(1, 2, 3, 4) + Stats(1, 1, 1, 1), Stats(2, 3, 4, 5))
