import unittest

from tabular import Table, TableError, join

from .orders import customers, orders


class Selecting(unittest.TestCase):
    def test_columns(self):
        self.assertEqual(orders().select("item", "order").rows[1], ("ink", 2))

    def test_cells(self):
        self.assertEqual(orders().where(customer="bob").cells("order"), [2, 5])

    def test_test(self):
        found = orders().where(lambda row: row["price"] > 4)
        self.assertEqual(found.cells("order"), [2, 6])

    def test_no_column(self):
        with self.assertRaises(TableError):
            orders().where(colour="red")

    def test_sorted(self):
        self.assertEqual(orders().sorted_by("price", "order").cells("order"), [1, 4, 5, 7, 3, 8, 2, 6])

    def test_empty_at_the_end(self):
        self.assertEqual(orders().sorted_by("pieces").cells("order")[-1], 5)

    def test_new_column(self):
        table = orders().head(1).with_column("sum", lambda row: row["pieces"] * row["price"])
        self.assertEqual(table.cells("sum"), [15.0])

    def test_distinct(self):
        self.assertEqual(
            orders().select("customer").distinct().cells("customer"), ["ann", "bob", "cat", "dan"]
        )

    def test_stacked(self):
        both = Table(["a", "b"], [(1, 2)]).stacked(Table(["b", "a"], [(4, 3)]))
        self.assertEqual(both.rows, [(1, 2), (3, 4)])


class Joining(unittest.TestCase):
    def test_same_name(self):
        cities = customers().renamed({"name": "customer"}).select("customer", "city")
        joined = join(orders().select("order", "customer"), cities, "customer")
        self.assertEqual(joined.rows[:2], [(1, "ann", "Bern"), (2, "bob", "Basel")])

    def test_other_name(self):
        joined = join(orders().select("order", "customer"), customers(), "customer", "name")
        self.assertEqual(joined.columns, ["order", "customer", "city", "price"])
        self.assertEqual(len(joined), 7)

    def test_left(self):
        cities = customers().renamed({"name": "customer"}).select("customer", "city")
        joined = join(orders().select("customer"), cities, "customer", kind="left")
        self.assertEqual(joined.rows[6], ("dan", None))

    def test_taken_name(self):
        right = Table(["k", "v"], [(1, "x")])
        self.assertEqual(join(Table(["k", "v"], [(1, "y")]), right, "k").columns, ["k", "v", "v_right"])
