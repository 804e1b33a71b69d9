import unittest
from fractions import Fraction

from ledger import CurrencyMismatch, Money, Rates, allocate, split


class MoneyTest(unittest.TestCase):
    def test_parse(self):
        self.assertEqual(Money.parse("1,234.50"), Money(123450))
        self.assertEqual(Money.parse("-3"), Money(-300))

    def test_parse_currency(self):
        self.assertEqual(Money.parse("12.5 usd"), Money(1250, "USD"))

    def test_parse_refuses_words(self):
        with self.assertRaises(ValueError):
            Money.parse("twelve")

    def test_add(self):
        self.assertEqual(Money(150) + Money(75), Money(225))

    def test_add_other_currency(self):
        with self.assertRaises(CurrencyMismatch):
            Money(1) + Money(1, "USD")

    def test_str(self):
        self.assertEqual(str(Money(-123405)), "-1,234.05 EUR")


class SplitTest(unittest.TestCase):
    def test_even(self):
        self.assertEqual(sum(split(1000, 4)), 1000)

    def test_remainder_first(self):
        self.assertEqual(split(100, 3), [34, 33, 33])

    def test_no_parts(self):
        with self.assertRaises(ValueError):
            split(100, 0)

    def test_allocate(self):
        self.assertEqual(allocate(100, [1, 1, 1]), [34, 33, 33])
        self.assertEqual(allocate(10, [5, 3, 2]), [5, 3, 2])


class RatesTest(unittest.TestCase):
    def test_convert(self):
        rates = Rates("EUR")
        rates.set("USD", "1.25")
        self.assertEqual(rates.convert(Money(1000), "USD"), Money(1250, "USD"))

    def test_cross_rate(self):
        rates = Rates("EUR")
        rates.set("USD", "1.25")
        rates.set("CHF", "0.5")
        self.assertEqual(rates.rate("CHF", "USD"), Fraction(5, 2))

    def test_unknown(self):
        with self.assertRaises(LookupError):
            Rates().rate("EUR", "XXX")
