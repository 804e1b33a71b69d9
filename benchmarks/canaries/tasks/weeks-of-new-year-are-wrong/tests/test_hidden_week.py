import unittest

import week


class Weeks(unittest.TestCase):
    def test_end_of_year(self):
        self.assertEqual(week.number("1903-12-31"), 53)
        self.assertEqual(week.number("2098-12-29"), 1)

    def test_begin_of_year(self):
        self.assertEqual(week.number("2033-01-02"), 53)

    def test_summer(self):
        self.assertEqual(week.number("2023-07-17"), 29)
