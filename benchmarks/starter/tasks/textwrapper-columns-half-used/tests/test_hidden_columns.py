import unittest

from textwrapper import columns


class Columns(unittest.TestCase):
    def test_six_in_three(self):
        self.assertEqual(columns(list("abcdef"), 7), ["a  c  e", "b  d  f"])

    def test_five_in_three(self):
        self.assertEqual(columns(list("abcde"), 7), ["a  c  e", "b  d"])

    def test_seven_in_three(self):
        self.assertEqual(columns(list("abcdefg"), 7), ["a  d  g", "b  e", "c  f"])

    def test_one_line(self):
        self.assertEqual(columns(list("abc"), 7), ["a  b  c"])

    def test_fewer_than_fit(self):
        self.assertEqual(columns(["a", "b"], 40), ["a  b"])

    def test_single_item(self):
        self.assertEqual(columns(["one"], 40), ["one"])

    def test_single_column(self):
        self.assertEqual(columns(["aaaa", "bb", "c"], 5), ["aaaa", "bb", "c"])

    def test_too_wide(self):
        self.assertEqual(columns(["abcdef", "g"], 4), ["abc…", "g"])

    def test_nothing(self):
        self.assertEqual(columns([], 10), [])
