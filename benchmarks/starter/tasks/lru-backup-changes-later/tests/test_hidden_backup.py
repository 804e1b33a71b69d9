import unittest

from lru import Cache, ManualClock


class Backup(unittest.TestCase):
    def setUp(self):
        self.clock = ManualClock()
        self.cache = Cache(5, clock=self.clock)
        self.cache.put("job:1", "one", ttl=20)
        self.cache.put("job:2", "two", tags=["old"])

    def test_labels_after_the_backup(self):
        saved = self.cache.snapshot()
        self.cache.tag("job:1", "failed")
        self.cache.restore(saved)
        self.assertEqual(self.cache.tags("job:1"), ["job"])

    def test_labels_after_going_back(self):
        saved = self.cache.snapshot()
        self.cache.restore(saved)
        self.cache.tag("job:2", "failed")
        self.cache.restore(saved)
        self.assertEqual(self.cache.tags("job:2"), ["job", "old"])

    def test_two_caches_from_one_backup(self):
        saved = self.cache.snapshot()
        first, second = Cache(5, clock=self.clock), Cache(5, clock=self.clock)
        first.restore(saved)
        second.restore(saved)
        first.tag("job:1", "mine")
        self.assertEqual(second.tags("job:1"), ["job"])

    def test_backup_changed_by_hand(self):
        saved = self.cache.snapshot()
        saved[0][3].add("by hand")
        self.assertEqual(self.cache.tags("job:1"), ["job"])

    def test_labels_before_the_backup_come_back(self):
        self.cache.tag("job:1", "kept")
        saved = self.cache.snapshot()
        self.cache.clear()
        self.cache.restore(saved)
        self.assertEqual(self.cache.tags("job:1"), ["job", "kept"])

    def test_order_and_times(self):
        self.cache.get("job:1")
        saved = self.cache.snapshot()
        self.clock.advance(100)
        self.cache.restore(saved)
        self.assertEqual(self.cache.keys(), ["job:2", "job:1"])
        self.assertEqual((self.cache.remaining("job:1"), self.cache.remaining("job:2")), (20, None))

    def test_drop_by_label(self):
        self.cache.restore(self.cache.snapshot())
        self.assertEqual(self.cache.drop_tag("old"), 1)
