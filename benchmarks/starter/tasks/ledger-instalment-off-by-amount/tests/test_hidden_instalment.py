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


class Instalment(unittest.TestCase):
    def test_charge_on_the_target(self):
        book = opened()
        book.transfer("2024-02-01", "bank", "lender", 50000, fee=250, fee_account="lender")
        self.assertEqual((book.balance("bank"), book.balance("lender")), (-50250, 50250))

    def test_one_entry_for_both(self):
        book = opened()
        book.transfer("2024-02-01", "bank", "lender", 1, fee=2, fee_account="lender")
        self.assertEqual([entry.cents for entry in book.history("lender")], [3])

    def test_charge_back_on_the_source(self):
        book = opened()
        book.transfer("2024-02-01", "bank", "till", 1000, fee=30, fee_account="bank")
        self.assertEqual((book.balance("bank"), book.balance("till")), (-1000, 1000))

    def test_separate_account(self):
        book = opened()
        book.transfer("2024-02-01", "bank", "lender", 500, fee=25, fee_account="charges")
        self.assertEqual(book.trial_balance(), {"bank": -525, "lender": 500, "charges": 25})

    def test_no_charge(self):
        book = opened()
        book.transfer("2024-02-01", "bank", "lender", 500, fee_account="lender")
        self.assertEqual(book.trial_balance(), {"bank": -500, "lender": 500})

    def test_unbalanced_is_still_refused(self):
        with self.assertRaises(ValueError):
            opened().post("2024-02-01", {"bank": -500, "lender": 250})
