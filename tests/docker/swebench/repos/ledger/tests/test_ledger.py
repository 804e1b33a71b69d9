import unittest

from ledger import Ledger


class Booking(unittest.TestCase):
    def test_balance_is_the_sum_of_what_is_booked(self):
        ledger = Ledger()
        ledger.book("cash", 100)
        ledger.book("cash", -30)
        self.assertEqual(ledger.balance("cash"), 70)

    def test_unknown_account_is_empty(self):
        self.assertEqual(Ledger().balance("cash"), 0)

    def test_transfer_reaches_its_target(self):
        ledger = Ledger()
        ledger.transfer("cash", "bank", 50)
        self.assertEqual(ledger.balance("bank"), 50)
