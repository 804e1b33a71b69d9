import unittest

from tide_table import highs, lows


class TideTableTest(unittest.TestCase):
    def test_nothing_written_down(self):
        self.assertEqual(highs([]), [])
        self.assertEqual(lows([]), [])

    def test_one_high_water(self):
        self.assertEqual(highs([10, 30, 20]), [1])

    def test_one_low_water(self):
        self.assertEqual(lows([10, -30, 20]), [1])

    def test_standing_water_counts_once(self):
        self.assertEqual(highs([1, 3, 3, 3, 2]), [1])
        self.assertEqual(lows([5, 4, 4, 6]), [1])

    def test_rising_after_standing_is_no_turn(self):
        self.assertEqual(highs([1, 3, 3, 4]), [])

    def test_ends_do_not_count(self):
        self.assertEqual(highs([9, 9, 1, 9]), [])
        self.assertEqual(lows([9, 9, 1, 9]), [2])

    def test_two_tides(self):
        self.assertEqual(highs([0, 5, 1, 1, 6, 6, 2, 3]), [1, 4])
        self.assertEqual(lows([0, 5, 1, 1, 6, 6, 2, 3]), [2, 6])
