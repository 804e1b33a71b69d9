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


class Reversal(unittest.TestCase):
    def test_is_dated_as_asked(self):
        book = opened()
        number = book.transfer("2024-03-01", "bank", "till", 700, memo="float")
        book.reverse(number, "2024-03-09")
        self.assertEqual([entry.day for entry in book.history("till")], ["2024-03-01", "2024-03-09"])

    def test_earlier_balance_stays(self):
        book = opened()
        number = book.transfer("2024-03-01", "bank", "till", 700)
        book.reverse(number, "2024-03-09")
        self.assertEqual(book.balance("till", "2024-03-08"), 700)

    def test_after_closing(self):
        book = opened()
        number = book.transfer("2023-03-01", "bank", "wages", 700)
        book.close("2023-12-31", "owner")
        book.reverse(number, "2024-01-01")
        self.assertEqual(book.balance("wages"), -700)

    def test_closed_day_is_refused(self):
        book = opened()
        number = book.transfer("2023-03-01", "bank", "wages", 700)
        book.close("2023-12-31", "owner")
        with self.assertRaises(ValueError):
            book.reverse(number, "2023-12-31")

    def test_first_closed_day_after_posting(self):
        book = opened()
        book.close("2023-12-31", "owner")
        with self.assertRaises(ValueError):
            book.transfer("2023-06-01", "bank", "till", 700)

    def test_memo_names_the_original(self):
        book = opened()
        number = book.transfer("2024-03-01", "bank", "till", 700, memo="float")
        book.reverse(number, "2024-03-09")
        self.assertEqual(book.history("till")[1].memo, "reversal of #1 (2024-03-01) float")

    def test_unknown_number(self):
        with self.assertRaises(LookupError):
            opened().reverse(4, "2024-01-01")
