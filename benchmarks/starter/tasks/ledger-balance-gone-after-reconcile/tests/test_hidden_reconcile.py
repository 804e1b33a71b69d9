import unittest

from ledger import Book


def opened():
    book = Book()
    for name, kind in [
        ("till", "asset"),
        ("bank", "asset"),
        ("lender", "liability"),
        ("owner", "equity"),
        ("sales", "income"),
        ("wages", "expense"),
        ("charges", "expense"),
    ]:
        book.open(name, kind)
    return book


class Reconcile(unittest.TestCase):
    def setUp(self):
        self.book = opened()
        self.book.post("2024-01-05", {"bank": 1500, "sales": -1500}, "lamp")
        self.book.post("2024-01-05", {"bank": 1500, "sales": -1500}, "lamp")
        self.book.post("2024-01-07", {"bank": -400, "wages": 400}, "pay")

    def test_balance_stays(self):
        self.book.reconcile("bank", [("2024-01-05", 1500)])
        self.assertEqual(self.book.balance("bank"), 2600)

    def test_history_stays(self):
        before = self.book.history("bank")
        self.book.reconcile("bank", [("2024-01-07", -400), ("2024-01-05", 1500)])
        self.assertEqual(self.book.history("bank"), before)

    def test_twice_the_same(self):
        lines = [("2024-01-05", 1500), ("2024-01-05", 1500)]
        self.assertEqual(self.book.reconcile("bank", lines), self.book.reconcile("bank", lines))

    def test_result_is_not_the_book(self):
        missing, extra = self.book.reconcile("bank", [])
        extra.clear()
        self.assertEqual(self.book.balance("bank"), 2600)

    def test_history_is_a_copy(self):
        self.book.history("bank").clear()
        self.assertEqual(self.book.balance("bank"), 2600)

    def test_each_line_counts_once(self):
        missing, extra = self.book.reconcile("bank", [("2024-01-05", 1500)])
        self.assertEqual((missing, [entry.cents for entry in extra]), ([], [1500, -400]))

    def test_missing_in_the_book(self):
        missing, extra = self.book.reconcile("bank", [("2024-01-06", 1500)])
        self.assertEqual((missing, len(extra)), ([("2024-01-06", 1500)], 3))
