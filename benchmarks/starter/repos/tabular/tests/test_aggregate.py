import unittest

from tabular import TableError, group, pivot, summary

from .orders import orders


class Grouping(unittest.TestCase):
    def test_sum_and_count(self):
        table = group(orders(), ["customer"], pieces=("sum", "pieces"), orders=("count", "order"))
        self.assertEqual(table.rows, [("ann", 14, 3), ("bob", 2, 2), ("cat", 11, 2), ("dan", 2, 1)])

    def test_empty_cells_do_not_count(self):
        table = group(orders(), ["customer"], mean=("mean", "pieces"))
        self.assertEqual(table.where(customer="bob").cells("mean"), [2.0])

    def test_median(self):
        table = group(orders(), ["paid"], middle=("median", "pieces"))
        self.assertEqual(table.rows, [(True, 4.5), (False, 2)])

    def test_unknown(self):
        with self.assertRaises(TableError):
            group(orders(), ["paid"], x=("mode", "pieces"))

    def test_pivot(self):
        table = pivot(orders(), "customer", "paid", "pieces")
        self.assertEqual(table.columns, ["customer", "True", "False"])
        self.assertEqual(table.rows[0], ("ann", 13, 1))

    def test_summary(self):
        self.assertEqual(summary(orders()).cells("column"), ["order", "pieces", "price"])
