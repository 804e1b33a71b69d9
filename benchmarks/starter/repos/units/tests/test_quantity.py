import unittest
from fractions import Fraction

from units import DimensionMismatch, ParseError, quantity


class Reading(unittest.TestCase):
    def test_decimal(self):
        self.assertEqual(quantity("2.5 km").amount, Fraction(5, 2))

    def test_fraction(self):
        self.assertEqual(str(quantity("1/4 l").to("ml")), "250 ml")

    def test_no_number(self):
        with self.assertRaises(ParseError):
            quantity("km")

    def test_no_unit(self):
        with self.assertRaises(ParseError):
            quantity("12")


class Converting(unittest.TestCase):
    def test_length(self):
        self.assertEqual(str(quantity("1 in").to("cm")), "2.54 cm")

    def test_speed(self):
        self.assertEqual(str(quantity("90 km/h").to("m/s")), "25 m/s")

    def test_temperature(self):
        self.assertEqual(str(quantity("212 degF").to("degC")), "100 degC")

    def test_mismatch(self):
        with self.assertRaises(DimensionMismatch):
            quantity("1 m").to("s")


class Computing(unittest.TestCase):
    def test_add(self):
        self.assertEqual(str(quantity("1 km") + quantity("250 m")), "1.25 km")

    def test_subtract(self):
        self.assertEqual(str(quantity("1 h") - quantity("15 min")), "0.75 h")

    def test_warmer_by_a_difference(self):
        self.assertEqual(str(quantity("20 degC") + quantity("5 K")), "25 degC")

    def test_product(self):
        self.assertEqual(quantity("2 N") * quantity("3 m"), quantity("6 N*m"))

    def test_quotient(self):
        self.assertEqual(str((quantity("90 km") / quantity("1 h")).to("m/s")), "25 m/s")

    def test_ratio(self):
        self.assertEqual(quantity("1 km") / quantity("250 m"), 4)

    def test_compare(self):
        self.assertTrue(quantity("1 mi") > quantity("1.6 km"))

    def test_round(self):
        self.assertEqual([str(quantity(text).round(1)) for text in ("0.25 m", "-0.25 m")], ["0.3 m", "-0.3 m"])

    def test_steps(self):
        steps = quantity("0 m").steps(quantity("1 m"), quantity("50 cm"))
        self.assertEqual([str(step) for step in steps], ["0 m", "0.5 m", "1 m"])
