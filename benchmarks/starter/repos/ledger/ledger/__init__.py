"""Double-entry bookkeeping in whole cents."""

from .book import Book, Entry, Statement, UnbalancedError, UnknownAccountError
from .money import CurrencyMismatch, Money
from .rates import Rates
from .report import render_statement, render_trial_balance
from .split import allocate, split

__all__ = [
    "Book",
    "CurrencyMismatch",
    "Entry",
    "Money",
    "Rates",
    "Statement",
    "UnbalancedError",
    "UnknownAccountError",
    "allocate",
    "render_statement",
    "render_trial_balance",
    "split",
]
