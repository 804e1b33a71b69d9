import unittest

from intervals import Day, common_free, peak


class DayTest(unittest.TestCase):
    def setUp(self):
        self.day = Day(480, 1080)
        self.day.book(540, 600, "dentist")
        self.day.book(720, 780, "lunch")

    def test_overlap_is_refused(self):
        with self.assertRaises(ValueError):
            self.day.book(590, 610)

    def test_outside_hours_is_refused(self):
        with self.assertRaises(ValueError):
            self.day.book(470, 490)

    def test_free(self):
        self.assertEqual(self.day.free(), [(480, 540), (600, 720), (780, 1080)])

    def test_free_minimum(self):
        self.assertEqual(self.day.free(100), [(600, 720), (780, 1080)])

    def test_first_free(self):
        self.assertEqual(self.day.first_free(90), 600)
        self.assertEqual(self.day.first_free(30, after=700), 780)

    def test_common_free(self):
        other = Day(600, 900)
        other.book(800, 820, "call")
        self.assertEqual(common_free([self.day, other]), [(600, 720), (780, 800), (820, 900)])


class PeakTest(unittest.TestCase):
    def test_peak(self):
        self.assertEqual(peak([(1, 5), (2, 6), (4, 9)]), (3, 4))

    def test_touching_is_no_overlap(self):
        self.assertEqual(peak([(1, 5), (5, 6)]), (1, 1))
