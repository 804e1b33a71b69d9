import unittest

from tabular import Table, convert, group, pivot, read, summary, to_text

TEXT = "shop, day, sold\nA, 1, 4\nA, 2,  \nB, 1, 0\nB, 2,\t\nA, 3, 0\n"


class Missing(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(group(read(TEXT), ["shop"], sold=("sum", "sold")).rows, [("A", 4), ("B", 0)])

    def test_count_keeps_zeros(self):
        self.assertEqual(group(read(TEXT), ["shop"], n=("count", "sold")).rows, [("A", 2), ("B", 1)])

    def test_mean_keeps_zeros(self):
        self.assertEqual(group(read(TEXT), ["shop"], mean=("mean", "sold")).rows, [("A", 2.0), ("B", 0.0)])

    def test_cells(self):
        self.assertEqual(read(TEXT).cells("sold"), [4, None, 0, None, 0])

    def test_convert(self):
        self.assertEqual([convert(text) for text in ("", " ", "   ", "\t ")], [None] * 4)

    def test_pivot(self):
        self.assertEqual(pivot(read(TEXT), "shop", "day", "sold").rows, [("A", 4, 0, 0), ("B", 0, 0, None)])

    def test_summary(self):
        self.assertEqual(summary(read(TEXT)).cells("column"), ["day", "sold"])

    def test_numbers_stay_to_the_right(self):
        self.assertEqual(to_text(read("k, n\na, 10\nb,  \n")).splitlines()[2:], ["a  10", "b"])

    def test_where_empty(self):
        self.assertEqual(read(TEXT).where(sold=None).rows, [("A", 2, None), ("B", 2, None)])

    def test_empty_texts_are_cells(self):
        table = Table(["k", "t"], [("a", ""), ("a", "x"), ("a", None)])
        self.assertEqual(group(table, ["k"], n=("count", "t")).rows, [("a", 2)])

    def test_quoted_blank(self):
        self.assertEqual(read('a,b\n" ",1\n"",2\n').cells("a"), [" ", ""])

    def test_nothing_missing(self):
        table = read("k,n\na,1\na,0\n")
        self.assertEqual(group(table, ["k"], n=("count", "n"), s=("sum", "n")).rows, [("a", 2, 1)])
