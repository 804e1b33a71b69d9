import unittest
from decimal import Decimal

from records import Amount, FieldError, Integer, Layout, Text, read


class Amounts(unittest.TestCase):
    layout = Layout([Text("id", 2), Amount("price", 6), Integer("count", 3)])

    def test_report(self):
        report = read([b"a   1250  1", b"b   12O5  1", b"c    990  2"], self.layout)
        self.assertEqual([str(problem) for problem in report.problems], ["line 2: price: '12O5' is not an amount"])
        self.assertEqual([record["price"] for record in report.records], [Decimal("12.50"), Decimal("9.90")])

    def test_field_alone(self):
        for text in ("x", "1 2", "--5", "12,50"):
            with self.assertRaises(FieldError) as caught:
                Amount("price", 6).parse(text)
            self.assertEqual(caught.exception.field, "price")

    def test_not_finite(self):
        for text in ("NaN", "inf", "1.5"):
            with self.assertRaises(FieldError):
                Amount("price", 6).parse(text)

    def test_whole_numbers_are_reported_as_before(self):
        report = read([b"a   1250  x"], self.layout)
        self.assertEqual([str(problem) for problem in report.problems], ["line 1: count: 'x' is not a whole number"])

    def test_blank(self):
        self.assertIsNone(Amount("price", 6).parse("      "))

    def test_negative(self):
        self.assertEqual(Amount("price", 6, places=1).parse("  -125"), Decimal("-12.5"))
