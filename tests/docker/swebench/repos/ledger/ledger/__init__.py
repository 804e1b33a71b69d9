"""Accounts and what is booked on them."""


class Ledger:
    """Balances by account, in cents."""

    def __init__(self):
        self.balances = {}

    def book(self, account, amount):
        """Adds an amount to an account."""
        self.balances[account] = self.balances.get(account, 0) + amount

    def transfer(self, source, target, amount):
        """Moves an amount from one account to another."""
        self.book(target, amount)

    def balance(self, account):
        """What is on an account."""
        return self.balances.get(account, 0)
