import unittest

from ledger import Book, UnbalancedError, UnknownAccountError


def household():
    book = Book()
    for name, kind in [
        ("cash", "asset"),
        ("bank", "asset"),
        ("loan", "liability"),
        ("savings", "equity"),
        ("salary", "income"),
        ("rent", "expense"),
        ("fees", "expense"),
    ]:
        book.open(name, kind)
    return book


def year(book):
    """Post twelve months of pay and rent."""
    for month in range(1, 13):
        book.post(f"2023-{month:02d}-01", {"bank": 250000, "salary": -250000}, f"pay {month}")
        book.transfer(f"2023-{month:02d}-03", "bank", "rent", 90000, memo=f"rent {month}")
    return book


class PostingTest(unittest.TestCase):
    def test_balance(self):
        book = year(household())
        self.assertEqual(book.balance("bank"), 12 * 160000)

    def test_unbalanced(self):
        book = household()
        with self.assertRaises(UnbalancedError):
            book.post("2023-01-01", {"cash": 5, "bank": -4})

    def test_unknown_account(self):
        with self.assertRaises(UnknownAccountError):
            household().balance("moon")

    def test_failed_post_leaves_nothing(self):
        book = household()
        with self.assertRaises(UnknownAccountError):
            book.post("2023-01-01", {"cash": 5, "moon": -5})
        self.assertEqual(book.history("cash"), [])

    def test_transfer_with_fee(self):
        book = household()
        book.transfer("2023-05-01", "bank", "cash", 10000, fee=150)
        self.assertEqual((book.balance("bank"), book.balance("cash"), book.balance("fees")), (-10150, 10000, 150))

    def test_reverse(self):
        book = household()
        number = book.transfer("2023-05-01", "bank", "cash", 700)
        book.reverse(number, "2023-05-02")
        self.assertEqual(book.trial_balance(), {})

    def test_find(self):
        self.assertEqual(len(year(household()).find("RENT")), 12)


class ReadingTest(unittest.TestCase):
    def test_statement_of_a_month(self):
        statement = year(household()).statement("bank", "2023-03-01", "2023-03-31")
        self.assertEqual((statement.opening, statement.closing), (320000, 480000))
        self.assertEqual(len(statement.entries), 2)

    def test_balance_until(self):
        self.assertEqual(year(household()).balance("rent", "2023-02-03"), 180000)

    def test_totals(self):
        totals = year(household()).totals()
        self.assertEqual((totals["income"], totals["expense"]), (-3000000, 1080000))

    def test_accounts(self):
        self.assertEqual(household().accounts("asset"), ["bank", "cash"])


class ClosingTest(unittest.TestCase):
    def test_reconcile(self):
        book = household()
        book.transfer("2023-05-01", "bank", "cash", 700)
        missing, extra = book.reconcile("cash", [("2023-05-01", 700), ("2023-05-09", 20)])
        self.assertEqual((missing, extra), ([("2023-05-09", 20)], []))

    def test_close(self):
        book = year(household())
        self.assertEqual(book.close("2023-12-31", "savings"), 1920000)
        self.assertEqual(book.trial_balance(), {"bank": 1920000, "savings": -1920000})

    def test_closed_days(self):
        book = year(household())
        book.close("2023-12-31", "savings")
        with self.assertRaises(ValueError):
            book.transfer("2023-12-31", "bank", "cash", 1)
