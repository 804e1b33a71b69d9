import unittest

from intervals import Day, IntervalSet


class FreeTime(unittest.TestCase):
    def test_no_booking(self):
        self.assertEqual(Day(100, 200).free(), [(100, 200)])

    def test_one_booking(self):
        day = Day(100, 200)
        day.book(120, 130)
        self.assertEqual(day.free(), [(100, 120), (130, 200)])

    def test_three_bookings(self):
        day = Day(100, 200)
        for start in (110, 150, 190):
            day.book(start, start + 10)
        self.assertEqual(day.free(), [(100, 110), (120, 150), (160, 190)])

    def test_full(self):
        day = Day(100, 200)
        day.book(100, 150)
        day.book(150, 200)
        self.assertEqual(day.free(), [])

    def test_first_free(self):
        day = Day(100, 200)
        day.book(100, 130)
        day.book(140, 180)
        self.assertEqual(day.first_free(15), 180)


class Difference(unittest.TestCase):
    def test_nothing_taken_away(self):
        self.assertEqual(IntervalSet([(1, 2), (5, 6)]) - IntervalSet(), IntervalSet([(1, 2), (5, 6)]))

    def test_pieces_before_the_holes(self):
        self.assertEqual(IntervalSet([(1, 2), (5, 9)]) - IntervalSet([(6, 7)]), IntervalSet([(1, 2), (5, 6), (7, 9)]))

    def test_symmetric(self):
        first, second = IntervalSet([(0, 10)]), IntervalSet([(2, 3), (5, 12)])
        self.assertEqual(first ^ second, IntervalSet([(0, 2), (3, 5), (10, 12)]))

    def test_all_taken_away(self):
        self.assertEqual(IntervalSet([(1, 4)]) - IntervalSet([(0, 9)]), IntervalSet())
