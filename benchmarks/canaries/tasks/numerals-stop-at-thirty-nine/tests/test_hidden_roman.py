import unittest

from roman import numeral


class Numerals(unittest.TestCase):
    def test_forty(self):
        self.assertEqual(numeral(40), "XL")
        self.assertEqual(numeral(49), "XLIX")

    def test_large(self):
        self.assertEqual(numeral(90), "XC")
        self.assertEqual(numeral(1994), "MCMXCIV")
        self.assertEqual(numeral(3888), "MMMDCCCLXXXVIII")

    def test_small(self):
        self.assertEqual(numeral(39), "XXXIX")
