import unittest

from tabular import Table, read, to_csv, to_markdown, to_text

from .orders import orders


class Rendering(unittest.TestCase):
    def test_text(self):
        table = Table(["name", "n"], [("a", 1), ("bcdef", None)])
        self.assertEqual(to_text(table), "name   n\n-----  -\na      1\nbcdef")

    def test_digits(self):
        self.assertEqual(to_text(Table(["x"], [(1.5,), (10,)]), digits=2).splitlines()[2:], ["1.50", "  10"])

    def test_markdown(self):
        table = Table(["name", "n"], [("a|b", 12)])
        self.assertEqual(to_markdown(table).splitlines()[1:], ["|------|---:|", "| a\\|b  | 12 |"])

    def test_csv_round_trip(self):
        table = orders()
        self.assertEqual(read(to_csv(table)), table)

    def test_csv_of_texts_that_look_like_numbers(self):
        table = Table(["a"], [("12",), (12,), (" x",), ("#1",)])
        self.assertEqual(read(to_csv(table)).rows, table.rows)
