"""An amount of money in one currency, kept in whole cents."""

from dataclasses import dataclass


class CurrencyMismatch(ValueError):
    """Two amounts of different currencies met in one calculation."""


@dataclass(frozen=True)
class Money:
    """``cents`` of ``currency``; negative amounts are debts."""

    cents: int
    currency: str = "EUR"

    @classmethod
    def parse(cls, text, currency="EUR"):
        """Read ``"1,234.50"``, ``"-3"`` or ``"12.5 USD"``."""
        number, _, suffix = text.strip().partition(" ")
        if suffix.strip():
            currency = suffix.strip().upper()
        sign = -1 if number.startswith("-") else 1
        whole, _, fraction = number.lstrip("+-").replace(",", "").partition(".")
        if len(fraction) > 2 or not (whole + fraction).isdigit():
            raise ValueError(f"not an amount: {text!r}")
        return cls(sign * (int(whole or "0") * 100 + int(fraction.ljust(2, "0"))), currency)

    def _same(self, other):
        if self.currency != other.currency:
            raise CurrencyMismatch(f"{self.currency} and {other.currency}")

    def __add__(self, other):
        self._same(other)
        return Money(self.cents + other.cents, self.currency)

    def __sub__(self, other):
        self._same(other)
        return Money(self.cents - other.cents, self.currency)

    def __neg__(self):
        return Money(-self.cents, self.currency)

    def __mul__(self, factor):
        return Money(self.cents * factor, self.currency)

    def __lt__(self, other):
        self._same(other)
        return self.cents < other.cents

    def __str__(self):
        sign = "-" if self.cents < 0 else ""
        whole, cents = divmod(abs(self.cents), 100)
        return f"{sign}{whole:,}.{cents:02d} {self.currency}"
