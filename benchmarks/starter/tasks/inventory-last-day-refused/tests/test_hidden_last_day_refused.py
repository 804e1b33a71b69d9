import unittest

from inventory import NotEnoughStock, Warehouse, value_of


def stocked():
    store = Warehouse("east")
    store.receive("gel", 8, unit_cost=10, expires="2024-05-31")
    store.receive("gel", 5, unit_cost=10, expires="2024-06-30")
    return store


class LastDay(unittest.TestCase):
    def test_available(self):
        self.assertEqual(stocked().available("gel", "2024-05-31"), 13)

    def test_issue_all(self):
        self.assertEqual([b.quantity for b in stocked().issue("gel", 13, "2024-05-31")], [8, 5])

    def test_day_after(self):
        self.assertEqual(stocked().available("gel", "2024-06-01"), 5)
        with self.assertRaises(NotEnoughStock):
            stocked().issue("gel", 6, "2024-06-01")

    def test_discard(self):
        store = stocked()
        self.assertEqual(store.discard_expired("2024-05-31"), {})
        self.assertEqual(store.discard_expired("2024-06-01"), {"gel": 8})

    def test_value(self):
        self.assertEqual(value_of(stocked(), today="2024-06-30"), {"gel": 50})

    def test_pick(self):
        store = stocked()
        store.reserve("o", "gel", 10, due="2024-05-31")
        self.assertEqual(sum(b.quantity for b in store.pick("o", "2024-05-31")["gel"]), 10)

    def test_exactly_what_is_available(self):
        store = stocked()
        store.issue("gel", 13)
        self.assertEqual(store.on_hand("gel"), 0)
        with self.assertRaises(NotEnoughStock):
            stocked().issue("gel", 14)

    def test_no_expiry(self):
        store = Warehouse("w")
        store.receive("nail", 3)
        self.assertEqual(store.available("nail", "2999-01-01"), 3)
