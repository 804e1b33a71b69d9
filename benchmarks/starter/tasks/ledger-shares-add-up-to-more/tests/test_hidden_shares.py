import unittest

from ledger import allocate, split


class Shares(unittest.TestCase):
    def test_exact(self):
        self.assertEqual(split(90, 3), [30, 30, 30])

    def test_one_left(self):
        self.assertEqual(split(100, 3), [34, 33, 33])

    def test_all_but_one_left(self):
        self.assertEqual(split(11, 4), [3, 3, 3, 2])

    def test_fewer_cents_than_parts(self):
        self.assertEqual(split(2, 5), [1, 1, 0, 0, 0])

    def test_nothing(self):
        self.assertEqual(split(0, 3), [0, 0, 0])

    def test_debt(self):
        self.assertEqual(split(-100, 3), [-33, -33, -34])

    def test_allocate_is_fair(self):
        self.assertEqual(allocate(7, [1, 1]), [4, 3])
