import unittest

from inventory import Costing, Warehouse, value_of


def store_with(*receipts):
    store = Warehouse("west")
    for receipt in receipts:
        store.receive("it", *receipt)
    return store


def shelf(store):
    return [(batch.quantity, batch.unit_cost, batch.expires) for batch in store.shelf("it")]


class Deliveries(unittest.TestCase):
    def test_same_price_other_day(self):
        store = store_with((4, 10, "2024-01-05"), (3, 10, "2024-01-09"))
        self.assertEqual(store.available("it", "2024-01-07"), 3)

    def test_later_delivery_expires_first(self):
        store = store_with((4, 10, "2024-01-09"), (3, 10, "2024-01-05"))
        self.assertEqual(shelf(store), [(3, 10, "2024-01-05"), (4, 10, "2024-01-09")])

    def test_same_day_other_price(self):
        self.assertEqual(value_of(store_with((4, 10), (3, 20)))["it"], 100)

    def test_same_day_other_price_lowest(self):
        self.assertEqual(value_of(store_with((4, 20), (3, 10)), Costing.LOWEST)["it"], 70)

    def test_only_one_of_them_expires(self):
        store = store_with((4, 10, "2024-01-05"), (3, 10))
        self.assertEqual(store.discard_expired("2024-02-01"), {"it": 4})
        self.assertEqual(shelf(store), [(3, 10, None)])

    def test_equal_deliveries_are_joined(self):
        store = store_with((4, 10, "2024-01-05"), (3, 10, "2024-01-05"))
        self.assertEqual(shelf(store), [(7, 10, "2024-01-05")])

    def test_different_in_both(self):
        store = store_with((4, 10, "2024-01-05"), (3, 20, "2024-01-09"))
        self.assertEqual(len(shelf(store)), 2)

    def test_total(self):
        self.assertEqual(store_with((4, 10), (3, 20), (5, 10)).on_hand("it"), 12)
