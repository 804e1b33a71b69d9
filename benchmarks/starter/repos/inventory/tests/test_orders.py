import unittest

from inventory import NotEnoughStock, UnknownReservation

from .stock import filled, show


class Reserving(unittest.TestCase):
    def test_held_is_not_available(self):
        store = filled()
        store.reserve("o1", "bolt", 60)
        show(store)
        self.assertEqual((store.available("bolt"), store.on_hand("bolt")), (90, 150))

    def test_not_more_than_available(self):
        store = filled()
        store.reserve("o1", "tape", 5)
        with self.assertRaises(NotEnoughStock):
            store.reserve("o2", "tape", 3)

    def test_two_items(self):
        store = filled()
        store.reserve("o1", "tape", 2)
        store.reserve("o1", "nut", 3)
        self.assertEqual(store.reservation("o1").lines, {"tape": 2, "nut": 3})

    def test_adds_up(self):
        store = filled()
        store.reserve("o1", "nut", 20)
        store.reserve("o1", "nut", 5)
        self.assertEqual(store.reserved("nut"), 25)

    def test_unknown_order(self):
        with self.assertRaises(UnknownReservation):
            filled().reservation("o9")

    def test_due(self):
        store = filled()
        store.reserve("late", "nut", 1, due="2024-02-02")
        store.reserve("soon", "nut", 1, due="2024-01-02")
        self.assertEqual(store.orders_due("2024-02-02"), ["soon", "late"])


class Releasing(unittest.TestCase):
    def test_whole_order(self):
        store = filled()
        store.reserve("o1", "nut", 20)
        self.assertEqual(store.release("o1"), 20)
        self.assertEqual(store.available("nut"), 80)

    def test_one_item(self):
        store = filled()
        store.reserve("o1", "nut", 20)
        store.reserve("o1", "tape", 2)
        store.release("o1", "nut")
        self.assertEqual(store.reservation("o1").lines, {"tape": 2})

    def test_part(self):
        store = filled()
        store.reserve("o1", "nut", 20)
        self.assertEqual(store.release("o1", "nut", 8), 8)
        self.assertEqual(store.reserved("nut"), 12)


class Picking(unittest.TestCase):
    def test_takes_and_closes(self):
        store = filled()
        store.reserve("o1", "bolt", 120)
        picked = store.pick("o1")
        show(store)
        self.assertEqual([(b.quantity, b.unit_cost) for b in picked["bolt"]], [(100, 3), (20, 4)])
        self.assertEqual((store.on_hand("bolt"), store.reserved("bolt")), (30, 0))

    def test_all_or_nothing(self):
        store = filled()
        store.reserve("o1", "nut", 10)
        store.reserve("o1", "glue", 12)
        with self.assertRaises(NotEnoughStock):
            store.pick("o1", today="2024-02-15")
        self.assertEqual(store.on_hand("nut"), 80)
