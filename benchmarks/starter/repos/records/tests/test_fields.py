import unittest
from datetime import date, datetime, timezone
from decimal import Decimal

from records import Amount, Choice, Date, FieldError, Flag, Integer, LayoutError, Stamp, Text


class Plain(unittest.TestCase):
    def test_text(self):
        self.assertEqual(Text("a", 5).parse(" ab  "), "ab")

    def test_text_is_padded(self):
        self.assertEqual(Text("a", 5).format("ab"), "ab   ")

    def test_too_long(self):
        with self.assertRaises(FieldError):
            Text("a", 2).format("abc")

    def test_blank(self):
        self.assertEqual([Text("a", 2).parse("  "), Text("a", 2, default="x").parse("  ")], [None, "x"])

    def test_required(self):
        with self.assertRaises(FieldError):
            Text("a", 2, required=True).parse("  ")

    def test_no_width(self):
        with self.assertRaises(LayoutError):
            Text("a", 0)

    def test_choice(self):
        field = Choice("a", 1, {"M": "male", "F": "female"})
        self.assertEqual([field.parse("F"), field.format("male")], ["female", "M"])

    def test_unknown_choice(self):
        with self.assertRaises(FieldError):
            Choice("a", 1, {"M": 1}).parse("x")

    def test_flag(self):
        self.assertEqual([Flag("a").parse("N"), Flag("a").parse(" ")], [False, None])


class Numbers(unittest.TestCase):
    def test_integer(self):
        self.assertEqual([Integer("n", 4).parse("  -7"), Integer("n", 4).format(12)], [-7, "  12"])

    def test_no_integer(self):
        with self.assertRaises(FieldError):
            Integer("n", 4).parse("1.5")

    def test_bounds(self):
        field = Integer("n", 4, lowest=1, highest=9)
        self.assertEqual([field.parse("1"), field.parse("9")], [1, 9])
        for text in ("0", "10"):
            with self.assertRaises(FieldError):
                field.parse(text)

    def test_amount(self):
        self.assertEqual(Amount("n", 7).parse("  12345"), Decimal("123.45"))

    def test_amount_written(self):
        self.assertEqual(Amount("n", 7).format(Decimal("123.4")), "  12340")

    def test_amount_with_a_point(self):
        with self.assertRaises(FieldError):
            Amount("n", 7).parse("1.5")

    def test_amount_that_is_none(self):
        with self.assertRaises(FieldError):
            Amount("n", 7).parse("12O5")


class Times(unittest.TestCase):
    def test_date(self):
        self.assertEqual(Date("d").parse("20240229"), date(2024, 2, 29))

    def test_no_date(self):
        with self.assertRaises(FieldError):
            Date("d").parse("20230229")

    def test_date_written(self):
        self.assertEqual(Date("d", 10, "%d.%m.%Y").format(date(2024, 1, 5)), "05.01.2024")

    def test_stamp_in_utc(self):
        self.assertEqual(Stamp("t").parse("202401311200+000"), datetime(2024, 1, 31, 12, tzinfo=timezone.utc))

    def test_stamp_written(self):
        moment = datetime(2024, 1, 31, 11, tzinfo=timezone.utc)
        self.assertEqual(Stamp("t", offset_min=60).format(moment), "202401311200+060")

    def test_no_stamp(self):
        with self.assertRaises(FieldError):
            Stamp("t").parse("202401311200Z000")
