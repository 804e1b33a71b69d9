import unittest

from units import STANDARD, ParseError, UnknownUnit, quantity


class Exponents(unittest.TestCase):
    def test_letter(self):
        with self.assertRaises(ParseError) as caught:
            quantity("3 m^x")
        self.assertIn("m^x", str(caught.exception))

    def test_decimal(self):
        with self.assertRaises(ParseError):
            quantity("3 m^1.5")

    def test_second_factor(self):
        with self.assertRaises(ParseError):
            STANDARD.get("m/s^^2")

    def test_whole(self):
        self.assertEqual(STANDARD.get("cm^2").factor * 10000, 1)

    def test_negative(self):
        self.assertEqual(STANDARD.get("s^-1").dimension, STANDARD.get("m/m*s^-1").dimension)

    def test_unknown_stays_unknown(self):
        with self.assertRaises(UnknownUnit):
            STANDARD.get("parsec^2")
