import unittest

from units import quantity
from units.printing import spoken


class WholeParts(unittest.TestCase):
    def test_film(self):
        self.assertEqual(quantity("3725 s").parts("h", "min", "s"), [1, 2, 5])

    def test_days(self):
        self.assertEqual(quantity("36.5 h").parts("d", "h", "min"), [1, 12, 30])

    def test_length(self):
        self.assertEqual(quantity("12345 mm").parts("m", "cm", "mm"), [12, 34, 5])

    def test_rest_with_decimals(self):
        self.assertEqual(quantity("3661.5 s").parts("h", "min", "s"), [1, 1, 1.5])

    def test_negative(self):
        self.assertEqual(quantity("-3725 s").parts("h", "min", "s"), [-1, -2, -5])

    def test_spoken(self):
        self.assertEqual(spoken(quantity("7384 s"), "h", "min", "s"), "2 h 3 min 4 s")

    def test_below_the_first(self):
        self.assertEqual(quantity("125 s").parts("h", "min", "s"), [0, 2, 5])

    def test_one_unit(self):
        self.assertEqual(quantity("90 s").parts("min"), [1.5])
