import unittest
from fractions import Fraction

from units import STANDARD, Dimension, ParseError, Registry, UnitError, UnknownUnit


class Lookup(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(STANDARD.get("min").factor, 60)

    def test_prefix(self):
        self.assertEqual(STANDARD.get("km").factor, 1000)

    def test_own_symbol_before_prefix(self):
        self.assertEqual(STANDARD.get("min").dimension, Dimension(time=1))

    def test_compound(self):
        unit = STANDARD.get("m/s^2")
        self.assertEqual(unit.dimension, Dimension(length=1, time=-2))

    def test_compound_factor(self):
        self.assertEqual(STANDARD.get("km/h").factor, Fraction(1000, 3600))

    def test_unknown(self):
        with self.assertRaises(UnknownUnit):
            STANDARD.get("parsec")

    def test_no_prefix_allowed(self):
        with self.assertRaises(UnknownUnit):
            STANDARD.get("kmin")

    def test_unreadable(self):
        with self.assertRaises(ParseError):
            STANDARD.get("m//s")

    def test_defined_twice(self):
        registry = Registry()
        registry.define("x", Dimension(length=1))
        with self.assertRaises(UnitError):
            registry.define("x", Dimension(length=1))


class Dimensions(unittest.TestCase):
    def test_product(self):
        self.assertEqual(Dimension(length=1) * Dimension(length=1), Dimension(length=2))

    def test_quotient_vanishes(self):
        self.assertFalse(Dimension(length=1) / Dimension(length=1))
