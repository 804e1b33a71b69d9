import unittest

from tabular import Table

TABLE = Table(["k", "n"], [("b", 2), ("a", 3), ("c", None), ("a", 1), ("d", 2)])


class Sorting(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(TABLE.sorted_by("n").cells("n"), [1, 2, 2, 3, None])

    def test_equal_rows_keep_their_order(self):
        self.assertEqual(TABLE.sorted_by("n").cells("k"), ["a", "b", "d", "a", "c"])

    def test_texts(self):
        self.assertEqual(TABLE.sorted_by("k").rows[:2], [("a", 3), ("a", 1)])

    def test_two_columns(self):
        self.assertEqual(TABLE.sorted_by("k", "n").rows[:3], [("a", 1), ("a", 3), ("b", 2)])

    def test_descending(self):
        self.assertEqual(TABLE.sorted_by("n", descending=True).cells("n"), [None, 3, 2, 2, 1])

    def test_said_otherwise(self):
        self.assertEqual(TABLE.sorted_by("n", descending=False).cells("n"), [1, 2, 2, 3, None])

    def test_mixed(self):
        table = Table(["x"], [("b",), (None,), (2,), ("a",), (10,)])
        self.assertEqual(table.sorted_by("x").cells("x"), [2, 10, "a", "b", None])
        self.assertEqual(table.sorted_by("x", descending=True).cells("x"), [None, "b", "a", 10, 2])

    def test_table_is_unchanged(self):
        TABLE.sorted_by("n", descending=True)
        self.assertEqual(TABLE.cells("n"), [2, 3, None, 1, 2])
