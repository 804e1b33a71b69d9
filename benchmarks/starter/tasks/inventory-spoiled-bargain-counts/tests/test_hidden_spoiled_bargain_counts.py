import unittest

from inventory import Costing, Warehouse, value_of


def lowest(today, *receipts):
    store = Warehouse("w")
    for quantity, cost, expires in receipts:
        store.receive("x", quantity, cost, expires)
    return value_of(store, Costing.LOWEST, today)["x"]


class LowestPrice(unittest.TestCase):
    def test_expired_bargain(self):
        self.assertEqual(lowest("2024-02-01", (5, 10, "2024-01-20"), (10, 250, "2024-03-31")), 2500)

    def test_two_good_prices(self):
        receipts = (5, 10, "2024-01-20"), (10, 250, None), (2, 200, "2024-09-01")
        self.assertEqual(lowest("2024-02-01", *receipts), 2400)

    def test_everything_expired(self):
        self.assertEqual(lowest("2024-02-01", (5, 10, "2024-01-20"), (4, 8, "2024-01-21")), 0)

    def test_expired_was_dearer(self):
        self.assertEqual(lowest("2024-02-01", (5, 300, "2024-01-20"), (10, 250, None)), 2500)

    def test_without_a_day(self):
        self.assertEqual(lowest(None, (5, 10, "2024-01-20"), (10, 250, None)), 150)

    def test_bargain_on_its_last_day(self):
        self.assertEqual(lowest("2024-01-20", (5, 10, "2024-01-20"), (10, 250, None)), 150)

    def test_by_batch(self):
        store = Warehouse("w")
        store.receive("x", 5, 10, "2024-01-20")
        store.receive("x", 10, 250)
        self.assertEqual(value_of(store, today="2024-02-01"), {"x": 2500})
        self.assertEqual(value_of(store), {"x": 2550})
