import unittest

from lru import Cache


class Namespaces(unittest.TestCase):
    def test_one_after_the_other(self):
        cache = Cache(5)
        cache.put("alpha:7", "Ann")
        cache.put("beta:1", "Home")
        self.assertEqual((cache.tags("alpha:7"), cache.tags("beta:1")), (["alpha"], ["beta"]))

    def test_plain_key(self):
        cache = Cache(5)
        cache.put("gamma:1", 1)
        cache.put("plain", 1)
        self.assertEqual(cache.tags("plain"), [])

    def test_many(self):
        cache = Cache(5)
        cache.put_many({"alpha:1": 1, "beta:1": 2, "plain": 3})
        self.assertEqual([cache.tags(key) for key in cache.keys()], [["alpha"], ["beta"], []])

    def test_many_in_another_cache(self):
        Cache(5).put_many({"delta:1": 1})
        cache = Cache(5)
        cache.put_many({"plain": 3})
        self.assertEqual(cache.tags("plain"), [])

    def test_list_of_the_caller(self):
        tags = ["staff"]
        cache = Cache(5)
        cache.put("alpha:1", 1, tags=tags)
        cache.put_many({"beta:1": 1}, tags=tags)
        self.assertEqual((tags, cache.tags("beta:1")), (["staff"], ["beta", "staff"]))

    def test_many_with_tags(self):
        cache = Cache(5)
        cache.put_many({"alpha:1": 1, "beta:1": 2}, tags=["new"])
        self.assertEqual((cache.tags("alpha:1"), cache.tags("beta:1")), (["alpha", "new"], ["beta", "new"]))

    def test_drop_tag(self):
        cache = Cache(5)
        cache.put("alpha:1", 1)
        cache.put("beta:1", 2)
        self.assertEqual((cache.drop_tag("alpha"), cache.keys()), (1, ["beta:1"]))

    def test_own_tags(self):
        cache = Cache(5)
        cache.put("x", 1, tags=["b", "a"])
        self.assertEqual(cache.tags("x"), ["a", "b"])
