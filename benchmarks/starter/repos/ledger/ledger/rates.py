"""Exchange rates against one base currency."""

from fractions import Fraction

from .money import Money


class Rates:
    """``rates["USD"]`` is how many dollars one unit of ``base`` buys."""

    def __init__(self, base="EUR"):
        self.base = base
        self._rates = {base: Fraction(1)}

    def set(self, currency, rate):
        """Record a rate given as text, an integer or a Fraction."""
        value = Fraction(rate)
        if value <= 0:
            raise ValueError(f"rate must be positive: {rate}")
        self._rates[currency] = value

    def rate(self, source, target):
        """Return how many units of ``target`` one unit of ``source`` buys."""
        try:
            return self._rates[target] / self._rates[source]
        except KeyError as error:
            raise LookupError(f"no rate for {error.args[0]}") from error

    def convert(self, money, target):
        """Convert to ``target``, halves rounded away from zero."""
        exact = abs(money.cents) * self.rate(money.currency, target)
        cents = int(exact + Fraction(1, 2))
        return Money(cents if money.cents >= 0 else -cents, target)
