import unittest

from intervals import RangeSyntaxError, format_ranges, parse_ranges


class Steps(unittest.TestCase):
    def check(self, text, expected):
        self.assertEqual(format_ranges(parse_ranges(text)), expected)

    def test_exact(self):
        self.check("10-20/5", "10,15,20")

    def test_short_of_the_last(self):
        self.check("1-9/3", "1,4,7")

    def test_step_of_one(self):
        self.check("4-7/1", "4-7")

    def test_step_beyond_the_range(self):
        self.check("4-7/100", "4")

    def test_mixed(self):
        self.check("0-4/2, 3, 8-9", "0,2-4,8-9")

    def test_step_of_zero(self):
        with self.assertRaises(RangeSyntaxError):
            parse_ranges("1-9/0")

    def test_single_number_takes_none(self):
        with self.assertRaises(RangeSyntaxError):
            parse_ranges("9/3")

    def test_step_needs_a_number(self):
        with self.assertRaises(RangeSyntaxError):
            parse_ranges("1-9/")
