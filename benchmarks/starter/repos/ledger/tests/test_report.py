import unittest

from ledger import Book, render_statement, render_trial_balance


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.book = Book()
        self.book.open("cash", "asset")
        self.book.open("sales", "income")
        self.book.post("2024-01-05", {"cash": 1500, "sales": -1500}, "lamp")
        self.book.post("2024-02-05", {"cash": 250, "sales": -250}, "bulb")

    def test_trial_balance(self):
        self.assertEqual(
            render_trial_balance(self.book).splitlines()[1:],
            ["cash     17.50 EUR", "sales               17.50 EUR", "total    17.50 EUR  17.50 EUR"],
        )

    def test_statement(self):
        lines = render_statement(self.book, "cash", since="2024-02-01").splitlines()
        self.assertEqual(lines[0].split(), ["opening", "15.00", "EUR"])
        self.assertEqual(lines[1].split()[-2:], ["17.50", "EUR"])
        self.assertEqual(lines[2].split(), ["closing", "17.50", "EUR"])
