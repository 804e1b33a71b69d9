import unittest

from units import quantity
from units.printing import fixed, spoken, table


class Choosing(unittest.TestCase):
    def test_best(self):
        self.assertEqual(str(quantity("1500 m").best("mm", "m", "km")), "1.5 km")

    def test_best_exact(self):
        self.assertEqual(str(quantity("1000 m").best("m", "km")), "1 km")

    def test_best_small(self):
        self.assertEqual(str(quantity("0.5 mm").best("m", "mm")), "0.5 mm")


class Parts(unittest.TestCase):
    def test_two(self):
        self.assertEqual(quantity("90 min").parts("h", "min"), [1, 30])

    def test_three(self):
        self.assertEqual(quantity("3725 s").parts("h", "min", "s"), [1, 2, 5])

    def test_negative(self):
        self.assertEqual(quantity("-90 min").parts("h", "min"), [-1, -30])

    def test_wrong_order(self):
        with self.assertRaises(ValueError):
            quantity("90 min").parts("min", "h")


class Text(unittest.TestCase):
    def test_fixed(self):
        self.assertEqual(fixed(quantity("2 m")), "2.00 m")

    def test_spoken(self):
        self.assertEqual(spoken(quantity("3605 s"), "h", "min", "s"), "1 h 5 s")

    def test_spoken_zero(self):
        self.assertEqual(spoken(quantity("0 s"), "h", "s"), "0 s")

    def test_table(self):
        rows = [("walk", quantity("500 m")), ("ride", quantity("12 km"))]
        self.assertEqual(table(rows, "km"), "walk   0.5 km\nride  12.0 km")
