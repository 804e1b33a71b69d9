import unittest

from toll_road import Account


class TollRoadTest(unittest.TestCase):
    def setUp(self):
        self.account = Account()

    def ride(self, first, last):
        self.account.enter(first)
        return self.account.leave(last)

    def test_new_account(self):
        self.assertEqual((self.account.total, self.account.longest), (0, 0))

    def test_price_of_a_ride(self):
        self.assertEqual(self.ride(10, 30), 62)

    def test_direction_does_not_matter(self):
        self.assertEqual(self.ride(30, 10), 62)

    def test_same_gate_costs_nothing(self):
        self.assertEqual(self.ride(7, 7), 0)

    def test_sums_up(self):
        self.ride(0, 1)
        self.ride(4, 2)
        self.ride(5, 5)
        self.assertEqual((self.account.total, self.account.longest), (13, 2))

    def test_enter_twice(self):
        self.account.enter(1)
        with self.assertRaisesRegex(ValueError, "on the road already"):
            self.account.enter(2)
        self.assertEqual(self.account.leave(2), 5)

    def test_leave_first(self):
        with self.assertRaisesRegex(ValueError, "not on the road"):
            self.account.leave(2)

    def test_wrong_gate_changes_nothing(self):
        self.account.enter(1)
        with self.assertRaisesRegex(ValueError, "no such gate"):
            self.account.leave(-1)
        self.assertEqual(self.account.leave(2), 5)
