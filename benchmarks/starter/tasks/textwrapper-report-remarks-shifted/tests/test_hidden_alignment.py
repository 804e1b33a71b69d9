import unittest

from textwrapper import table


class Alignment(unittest.TestCase):
    def test_remark_in_the_middle(self):
        self.assertEqual(table([("1",), ("none",), ("20",)]), ["1", "none", "20"])

    def test_remark_at_the_end(self):
        self.assertEqual(table([("1", "x"), ("n/a", "y")]), ["1    x", "n/a  y"])

    def test_remark_first(self):
        self.assertEqual(table([("n/a", "x"), ("1", "y")]), ["n/a  x", "1    y"])

    def test_amounts(self):
        self.assertEqual(table([("1", "x"), ("200", "y")]), ["  1  x", "200  y"])

    def test_amounts_and_empty_cells(self):
        self.assertEqual(table([("", "x"), ("1", "y"), ("", "z"), ("-20%", "w")]), ["      x", "   1  y", "      z", "-20%  w"])

    def test_empty_then_remark(self):
        self.assertEqual(table([("", "x"), ("5", "y"), ("five", "z")]), ["      x", "5     y", "five  z"])

    def test_empty_column(self):
        self.assertEqual(table([("", "x"), ("", "y")], header=("h", "i")), ["h  i", "-  -", "   x", "   y"])

    def test_wanted_alignment(self):
        self.assertEqual(table([("1",), ("none",)], align="r"), ["   1", "none"])
