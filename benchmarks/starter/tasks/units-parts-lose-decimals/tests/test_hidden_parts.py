import unittest

from units import quantity
from units.printing import spoken


class PartsWithDecimals(unittest.TestCase):
    def test_swimmer(self):
        self.assertEqual(quantity("83.45 s").parts("min", "s"), [1, 23.45])

    def test_three(self):
        self.assertEqual(quantity("3661.5 s").parts("h", "min", "s"), [1, 1, 1.5])

    def test_one_unit(self):
        self.assertEqual(quantity("90 s").parts("min"), [1.5])

    def test_negative(self):
        self.assertEqual(quantity("-90.5 s").parts("min", "s"), [-1, -30.5])

    def test_below_one(self):
        self.assertEqual(quantity("25 cm").parts("km", "m"), [0, 0.25])

    def test_spoken(self):
        self.assertEqual(spoken(quantity("61.25 s"), "min", "s"), "1 min 1.25 s")

    def test_whole(self):
        self.assertEqual(quantity("3725 s").parts("h", "min", "s"), [1, 2, 5])
        self.assertEqual(quantity("7200 s").parts("h", "min"), [2, 0])

    def test_wrong_order(self):
        with self.assertRaises(ValueError):
            quantity("90 min").parts("min", "h")
