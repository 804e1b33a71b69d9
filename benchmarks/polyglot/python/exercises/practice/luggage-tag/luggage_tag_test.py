import unittest

from luggage_tag import is_valid, label


class LabelTest(unittest.TestCase):
    def test_number_is_padded(self):
        self.assertEqual(label("QX", 1234), "QX0012342")

    def test_largest_number(self):
        self.assertEqual(label("AZ", 999999), "AZ9999990")

    def test_zero(self):
        self.assertEqual(label("AA", 0), "AA0000000")

    def test_airline_in_lower_case(self):
        with self.assertRaises(ValueError) as caught:
            label("qx", 1)
        self.assertEqual(caught.exception.args[0], "an airline has two upper-case letters")

    def test_number_out_of_range(self):
        for number in (-1, 1000000):
            with self.subTest(number=number), self.assertRaises(ValueError):
                label("QX", number)


class IsValidTest(unittest.TestCase):
    def test_printed_tag(self):
        self.assertIs(is_valid("QX0012342"), True)

    def test_wrong_check_digit(self):
        self.assertIs(is_valid("QX0012343"), False)

    def test_too_long(self):
        self.assertIs(is_valid("QX00123420"), False)

    def test_line_break(self):
        self.assertIs(is_valid("QX0012342\n"), False)
