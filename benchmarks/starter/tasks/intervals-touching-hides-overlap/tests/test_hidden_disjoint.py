import unittest

from intervals import IntervalSet


class Disjoint(unittest.TestCase):
    def check(self, first, second, expected):
        self.assertIs(IntervalSet(first).isdisjoint(IntervalSet(second)), expected)
        self.assertIs(IntervalSet(second).isdisjoint(IntervalSet(first)), expected)

    def test_touch_then_overlap(self):
        self.check([(0, 3), (4, 6)], [(3, 5)], False)

    def test_two_touches_then_overlap(self):
        self.check([(0, 3), (5, 7), (8, 9)], [(3, 4), (7, 9)], False)

    def test_interleaved_and_touching(self):
        self.check([(0, 2), (4, 6)], [(2, 4), (6, 8)], True)

    def test_far_apart(self):
        self.check([(0, 2)], [(10, 12)], True)

    def test_inside(self):
        self.check([(0, 20)], [(5, 6)], False)

    def test_late_overlap(self):
        self.check([(0, 1), (2, 3), (10, 20)], [(5, 6), (19, 21)], False)

    def test_empty(self):
        self.check([], [(1, 2)], True)
