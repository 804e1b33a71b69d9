import unittest

from intervals import Interval, IntervalSet


class QuestionTest(unittest.TestCase):
    def setUp(self):
        self.set = IntervalSet([(10, 20), (30, 40), (15, 25)])

    def test_merges(self):
        self.assertEqual(self.set, IntervalSet([(10, 25), (30, 40)]))

    def test_contains(self):
        self.assertIn(10, self.set)
        self.assertNotIn(25, self.set)

    def test_find(self):
        self.assertEqual(self.set.find(24), (10, 25))
        self.assertIsNone(self.set.find(5))

    def test_covers(self):
        self.assertTrue(self.set.covers(Interval(11, 25)))
        self.assertFalse(self.set.covers(Interval(24, 31)))

    def test_isdisjoint(self):
        self.assertTrue(self.set.isdisjoint(IntervalSet([(25, 30), (40, 41)])))
        self.assertFalse(self.set.isdisjoint(IntervalSet([(25, 31)])))

    def test_length(self):
        self.assertEqual(self.set.length, 25)

    def test_nearest(self):
        self.assertEqual(self.set.nearest(26), (10, 25))

    def test_span(self):
        self.assertEqual(self.set.span(), (10, 40))
        self.assertIsNone(IntervalSet().span())


class AlgebraTest(unittest.TestCase):
    def test_or(self):
        self.assertEqual(IntervalSet([(1, 3)]) | IntervalSet([(2, 5)]), IntervalSet([(1, 5)]))

    def test_and(self):
        self.assertEqual(IntervalSet([(1, 6)]) & IntervalSet([(4, 9)]), IntervalSet([(4, 6)]))

    def test_sub(self):
        self.assertEqual(IntervalSet([(1, 9)]) - IntervalSet([(3, 4)]), IntervalSet([(1, 3), (4, 9)]))

    def test_sub_two_holes(self):
        holes = IntervalSet([(3, 4), (6, 7)])
        self.assertEqual(IntervalSet([(1, 9)]) - holes, IntervalSet([(1, 3), (4, 6), (7, 9)]))

    def test_xor(self):
        self.assertEqual(IntervalSet([(1, 5)]) ^ IntervalSet([(3, 8)]), IntervalSet([(1, 3), (5, 8)]))


class ShapeTest(unittest.TestCase):
    def test_gaps(self):
        self.assertEqual(IntervalSet([(1, 3), (5, 6)]).gaps(), IntervalSet([(3, 5)]))

    def test_gaps_within(self):
        self.assertEqual(IntervalSet([(3, 5)]).gaps(Interval(0, 9)), IntervalSet([(0, 3), (5, 9)]))

    def test_grown(self):
        self.assertEqual(IntervalSet([(3, 5), (7, 8)]).grown(1), IntervalSet([(2, 9)]))

    def test_closed_up(self):
        self.assertEqual(IntervalSet([(0, 3), (5, 8), (20, 30)]).closed_up(4), IntervalSet([(0, 8), (20, 30)]))

    def test_closed_up_exactly(self):
        self.assertEqual(len(IntervalSet([(0, 3), (5, 8)]).closed_up(2)), 1)

    def test_chopped(self):
        self.assertEqual(IntervalSet([(0, 5)]).chopped(2), [(0, 2), (2, 4), (4, 5)])
