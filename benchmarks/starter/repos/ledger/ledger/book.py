"""The book: accounts, transactions that balance, statements and closing.

Amounts are whole cents. A positive entry is a debit, a negative one a credit, so the entries of each
transaction add up to nothing, and so do the balances of all accounts.
"""

import logging
from dataclasses import dataclass

log = logging.getLogger(__name__)

KINDS = ("asset", "liability", "equity", "income", "expense")


class UnknownAccountError(KeyError):
    """The account was never opened."""


class UnbalancedError(ValueError):
    """The entries of a transaction do not add up to nothing."""


@dataclass(frozen=True)
class Entry:
    """One line of an account: the day, the signed amount and why."""

    day: str
    cents: int
    memo: str
    number: int


@dataclass(frozen=True)
class Statement:
    """What happened to an account in a span of days."""

    opening: int
    entries: tuple
    closing: int


class Book:
    """A double-entry book. Days are ISO dates (``"2024-03-31"``), which sort as text."""

    def __init__(self):
        self._kinds = {}
        self._entries = {}
        self._transactions = {}
        self._next_number = 1
        self._closed_until = ""

    # -- accounts

    def open(self, account, kind):
        """Add an account; opening it twice with the same kind changes nothing."""
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}, expected one of {', '.join(KINDS)}")
        if self._kinds.setdefault(account, kind) != kind:
            raise ValueError(f"{account} is already open as {self._kinds[account]}")
        self._entries.setdefault(account, [])
        log.info("open %s (%s)", account, kind)

    def accounts(self, kind=None):
        """Return the names of all accounts, or of those of one kind, sorted."""
        return sorted(name for name, its in self._kinds.items() if kind is None or its == kind)

    def _lines(self, account):
        try:
            return self._entries[account]
        except KeyError:
            raise UnknownAccountError(account) from None

    # -- posting

    def post(self, day, amounts, memo=""):
        """Record a transaction: a mapping of account to signed cents. Return its number.

        Nothing is recorded when an account is unknown, the day is closed or the amounts do not balance.
        """
        if day <= self._closed_until:
            raise ValueError(f"the book is closed until {self._closed_until}")
        for account in amounts:
            self._lines(account)
        difference = sum(amounts.values())
        if difference:
            raise UnbalancedError(f"amounts are off by {difference}")
        number = self._next_number
        self._next_number += 1
        self._transactions[number] = (day, dict(amounts), memo)
        for account, cents in amounts.items():
            if cents:
                self._entries[account].append(Entry(day, cents, memo, number))
        log.debug("#%d %s %s %s", number, day, memo, amounts)
        return number

    def transfer(self, day, source, target, cents, fee=0, fee_account="fees", memo=""):
        """Move ``cents`` between accounts; a fee is taken from the source on top."""
        if cents <= 0:
            raise ValueError("a transfer must be positive")
        amounts = {source: -(cents + fee), target: cents}
        if fee:
            amounts.setdefault(fee_account, 0)
            amounts[fee_account] += fee
        return self.post(day, amounts, memo)

    def reverse(self, number, day):
        """Undo a transaction by its mirror image on ``day``; return the new number."""
        if number not in self._transactions:
            raise LookupError(f"no transaction {number}")
        made_on, amounts, memo = self._transactions[number]
        mirrored = {account: -cents for account, cents in amounts.items()}
        reason = f"reversal of #{number} ({made_on}) {memo}".rstrip()
        return self.post(day, mirrored, reason)

    # -- reading

    def history(self, account):
        """Return an account's entries in the order of posting."""
        return list(self._lines(account))

    def balance(self, account, until=None):
        """Return the balance of an account, at the end of the day ``until`` if given."""
        total = 0
        for entry in self._lines(account):
            if until is None or entry.day <= until:
                total += entry.cents
        return total

    def statement(self, account, since=None, until=None):
        """Return the entries of the days ``since`` to ``until``, both included, by day.

        The opening balance is that of the evening before ``since``.
        """
        opening = closing = 0
        entries = []
        for entry in sorted(self._lines(account), key=lambda line: line.day):
            if until is not None and entry.day > until:
                continue
            closing += entry.cents
            if since is not None and entry.day < since:
                opening += entry.cents
            else:
                entries.append(entry)
        log.info("statement of %s: %d entries, %d to %d", account, len(entries), opening, closing)
        return Statement(opening, tuple(entries), closing)

    def trial_balance(self, until=None):
        """Return the balances of all accounts that are not level."""
        balances = {account: self.balance(account, until) for account in self._kinds}
        return {account: cents for account, cents in balances.items() if cents}

    def totals(self, until=None):
        """Return the sum of the balances of each kind of account."""
        sums = dict.fromkeys(KINDS, 0)
        for account, kind in self._kinds.items():
            sums[kind] += self.balance(account, until)
        return sums

    def find(self, text):
        """Return the numbers of the transactions with ``text`` in the memo, any case."""
        wanted = text.lower()
        return [number for number, (_, _, memo) in self._transactions.items() if wanted in memo.lower()]

    # -- checking and closing

    def reconcile(self, account, lines):
        """Compare an account with a bank's ``(day, cents)`` lines.

        Returns two lists: lines of the bank that the book lacks, and entries of the book that the bank
        lacks. Each line of the bank accounts for one entry only.
        """
        unmatched = list(self._lines(account))
        missing = []
        for day, cents in lines:
            for entry in unmatched:
                if entry.day == day and entry.cents == cents:
                    unmatched.remove(entry)
                    break
            else:
                missing.append((day, cents))
        log.info("reconcile %s: %d missing, %d extra", account, len(missing), len(unmatched))
        return missing, unmatched

    def close(self, day, into):
        """Empty the income and expense accounts into the equity account ``into``.

        Returns the profit in cents. Days up to and including ``day`` are closed afterwards.
        """
        if self._kinds.get(into) != "equity":
            raise ValueError(f"{into} is not an equity account")
        amounts = {}
        carried = 0
        for account, kind in self._kinds.items():
            if kind not in ("income", "expense"):
                continue
            balance = self.balance(account, day)
            if balance:
                amounts[account] = -balance
                carried += balance
        if amounts:
            amounts[into] = carried
            self.post(day, amounts, "closing")
        self._closed_until = day
        log.info("closed until %s, profit %d", day, -carried)
        return -carried
