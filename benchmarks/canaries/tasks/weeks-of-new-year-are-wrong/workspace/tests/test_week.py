import unittest

import week


class Week(unittest.TestCase):
    def test_may(self):
        self.assertEqual(week.number("2023-05-08"), 19)
