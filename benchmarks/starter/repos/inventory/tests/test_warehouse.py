import unittest

from inventory import InventoryError, NotEnoughStock, Warehouse, transfer

from .stock import filled, show


class Stock(unittest.TestCase):
    def test_receive_adds(self):
        self.assertEqual(filled().on_hand("bolt"), 150)

    def test_unknown_item(self):
        self.assertEqual(filled().on_hand("rope"), 0)
        self.assertEqual(filled().available("rope"), 0)

    def test_issue_takes(self):
        store = filled()
        store.issue("bolt", 20)
        self.assertEqual(store.on_hand("bolt"), 130)

    def test_issue_too_much(self):
        store = filled()
        with self.assertRaises(NotEnoughStock):
            store.issue("nut", 81)
        self.assertEqual(store.on_hand("nut"), 80)

    def test_quantity_must_be_positive(self):
        with self.assertRaises(InventoryError):
            filled().receive("nut", 0)

    def test_expiring_first(self):
        taken = filled().issue("glue", 7)
        self.assertEqual([(b.quantity, b.expires) for b in taken], [(5, "2024-01-31"), (2, "2024-03-31")])

    def test_expired_is_not_available(self):
        self.assertEqual(filled().available("glue", today="2024-02-15"), 10)

    def test_discard(self):
        store = filled()
        self.assertEqual(store.discard_expired("2024-02-15"), {"glue": 5})
        self.assertEqual(store.on_hand("glue"), 10)


class Counting(unittest.TestCase):
    def test_less(self):
        store = filled()
        self.assertEqual(store.count("nut", 75), -5)
        self.assertEqual(store.on_hand("nut"), 75)

    def test_more(self):
        store = filled()
        self.assertEqual(store.count("nut", 90), 10)
        self.assertEqual(store.on_hand("nut"), 90)

    def test_journal_agrees(self):
        store = filled()
        store.count("nut", 75)
        store.issue("nut", 5)
        self.assertEqual(store.journal.balance("nut"), store.on_hand("nut"))

    def test_balance_in_the_past(self):
        store = filled()
        store.issue("bolt", 10)
        self.assertEqual(store.journal.balance("bolt", until=2), 150)


class Transfers(unittest.TestCase):
    def test_moves(self):
        north, south = filled(), Warehouse("south")
        transfer(north, south, "glue", 6)
        show(south)
        self.assertEqual((north.on_hand("glue"), south.on_hand("glue")), (9, 6))

    def test_expiry_goes_along(self):
        north, south = filled(), Warehouse("south")
        transfer(north, south, "glue", 6)
        self.assertEqual([b.expires for b in south.shelf("glue")], ["2024-01-31", "2024-03-31"])
