import unittest

from intervals import Interval, RangeSyntaxError, format_ranges, parse_ranges


class IntervalTest(unittest.TestCase):
    def test_contains(self):
        self.assertIn(1, Interval(1, 3))
        self.assertNotIn(3, Interval(1, 3))

    def test_overlaps(self):
        self.assertTrue(Interval(1, 4).overlaps(Interval(3, 9)))
        self.assertFalse(Interval(1, 3).overlaps(Interval(3, 9)))

    def test_common(self):
        self.assertEqual(Interval(1, 5).common(Interval(3, 9)), (3, 5))
        self.assertIsNone(Interval(1, 3).common(Interval(3, 9)))

    def test_without(self):
        self.assertEqual(Interval(0, 10).without(Interval(4, 6)), [(0, 4), (6, 10)])


class RangesTest(unittest.TestCase):
    def test_parse(self):
        self.assertEqual([tuple(piece) for piece in parse_ranges("1-3, 7")], [(1, 4), (7, 8)])

    def test_parse_joins(self):
        self.assertEqual(format_ranges(parse_ranges("4-6,1-3")), "1-6")

    def test_step(self):
        self.assertEqual(format_ranges(parse_ranges("10-20/5")), "10,15,20")

    def test_step_of_zero(self):
        with self.assertRaises(RangeSyntaxError):
            parse_ranges("10-20/0")

    def test_backwards(self):
        with self.assertRaises(RangeSyntaxError):
            parse_ranges("3-1")

    def test_words(self):
        with self.assertRaises(RangeSyntaxError):
            parse_ranges("one")
