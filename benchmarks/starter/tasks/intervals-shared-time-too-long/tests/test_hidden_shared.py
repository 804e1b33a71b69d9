import unittest

from intervals import Day, Interval, IntervalSet, common_free


class Shared(unittest.TestCase):
    def check(self, first, second, expected):
        self.assertEqual(IntervalSet(first) & IntervalSet(second), IntervalSet(expected))
        self.assertEqual(IntervalSet(second) & IntervalSet(first), IntervalSet(expected))

    def test_partly(self):
        self.check([(1, 6)], [(4, 9)], [(4, 6)])

    def test_inside(self):
        self.check([(0, 10)], [(2, 3), (5, 6)], [(2, 3), (5, 6)])

    def test_none(self):
        self.check([(0, 3)], [(3, 5)], [])

    def test_equal(self):
        self.check([(0, 3), (4, 5)], [(0, 3), (4, 5)], [(0, 3), (4, 5)])

    def test_chain(self):
        self.check([(0, 4), (6, 10)], [(3, 7), (9, 12)], [(3, 4), (6, 7), (9, 10)])

    def test_planner(self):
        first, second = Day(480, 720), Day(600, 900)
        second.book(630, 660)
        self.assertEqual(common_free([first, second], 40), [(660, 720)])

    def test_hull_is_untouched(self):
        self.assertEqual(Interval(1, 9).hull(Interval(2, 3)), (1, 9))

    def test_merging_is_untouched(self):
        self.assertEqual(IntervalSet([(1, 9), (2, 3)]).span(), (1, 9))
