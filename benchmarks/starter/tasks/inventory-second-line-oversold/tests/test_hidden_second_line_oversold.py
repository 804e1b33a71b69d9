import unittest

from inventory import NotEnoughStock, Warehouse


def stocked(quantity=50):
    store = Warehouse("east")
    store.receive("pen", quantity, unit_cost=5)
    store.receive("ink", quantity, unit_cost=7)
    return store


class RaisedOrders(unittest.TestCase):
    def test_two_calls(self):
        store = stocked()
        store.reserve("a", "pen", 10)
        store.reserve("a", "pen", 15)
        self.assertEqual((store.reserved("pen"), store.available("pen")), (25, 25))

    def test_another_item_between(self):
        store = stocked()
        store.reserve("a", "pen", 10)
        store.reserve("a", "ink", 3)
        store.reserve("a", "pen", 1)
        self.assertEqual(dict(store.reservation("a").lines), {"pen": 11, "ink": 3})

    def test_not_more_than_there_is(self):
        store = stocked(20)
        store.reserve("a", "pen", 12)
        store.reserve("a", "pen", 8)
        with self.assertRaises(NotEnoughStock):
            store.reserve("b", "pen", 1)

    def test_refused_call_changes_nothing(self):
        store = stocked(20)
        store.reserve("a", "pen", 12)
        with self.assertRaises(NotEnoughStock):
            store.reserve("a", "pen", 9)
        self.assertEqual(store.reserved("pen"), 12)

    def test_orders_are_apart(self):
        store = stocked()
        store.reserve("a", "pen", 10)
        store.reserve("b", "pen", 4)
        self.assertEqual((store.reservation("a").total, store.reservation("b").total), (10, 4))

    def test_release_after_two_calls(self):
        store = stocked()
        store.reserve("a", "pen", 10)
        store.reserve("a", "pen", 6)
        self.assertEqual(store.release("a", "pen", 12), 12)
        self.assertEqual(store.reserved("pen"), 4)

    def test_single_call(self):
        store = stocked()
        store.reserve("a", "pen", 50)
        self.assertEqual(store.available("pen"), 0)
