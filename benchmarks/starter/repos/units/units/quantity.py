"""Amounts with a unit, and what can be computed with them."""

import re
from fractions import Fraction

from .errors import DimensionMismatch, ParseError
from .printing import plain_number
from .registry import STANDARD

_TEXT = re.compile(r"\s*([-+]?\d+(?:\.\d+)?(?:/\d+)?)\s*(.*?)\s*$")


class Quantity:
    """An immutable amount of a unit, for example 3 km."""

    __slots__ = ("_amount", "_registry", "_unit")

    def __init__(self, amount, unit, registry=STANDARD):
        if isinstance(amount, float):
            amount = str(amount)
        self._amount = Fraction(amount)
        self._unit = registry.get(unit) if isinstance(unit, str) else unit
        self._registry = registry

    @property
    def amount(self):
        """The exact amount, in the quantity's own unit."""
        return self._amount

    @property
    def unit(self):
        """The unit's symbol."""
        return self._unit.symbol

    @property
    def dimension(self):
        return self._unit.dimension

    @property
    def base(self):
        """The exact amount in base units."""
        return self._amount * self._unit.factor + self._unit.offset

    def _find(self, unit):
        target = self._registry.get(unit) if isinstance(unit, str) else unit
        if target.dimension != self._unit.dimension:
            raise DimensionMismatch(f"{self._unit.symbol} is not convertible to {target.symbol}")
        return target

    def _new(self, amount, unit=None):
        return Quantity(amount, self._unit if unit is None else unit, self._registry)

    def to(self, unit):
        """Return the same quantity in another unit."""
        target = self._find(unit)
        return self._new((self.base - target.offset) / target.factor, target)

    def __add__(self, other):
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._new(self._amount + self._difference(other))

    def __sub__(self, other):
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._new(self._amount - self._difference(other))

    def _difference(self, other):
        """The other amount in this unit, taken as a difference: offsets play no part."""
        target = other._find(self._unit)
        return other._amount * other._unit.factor / target.factor

    def __neg__(self):
        return self._new(-self._amount)

    def __abs__(self):
        return self._new(abs(self._amount))

    def __mul__(self, other):
        if isinstance(other, Quantity):
            return self._combine(other, "*")
        return self._new(self._amount * Fraction(other))

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, Quantity):
            if other.dimension == self.dimension:
                return self.base / other.base
            return self._combine(other, "/")
        return self._new(self._amount / Fraction(other))

    def _combine(self, other, sign):
        left, right = self._unit.symbol, other._unit.symbol
        if sign == "/":
            amount = self._amount / other._amount
            right = re.sub(r"[*/]", lambda match: "/" if match.group() == "*" else "*", right)
        else:
            amount = self._amount * other._amount
        return self._new(amount, f"{left}{sign}{right}")

    def __eq__(self, other):
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.dimension == other.dimension and self.base == other.base

    def __hash__(self):
        return hash((self.dimension, self.base))

    def __lt__(self, other):
        return self.base < self._comparable(other)

    def __le__(self, other):
        return self.base <= self._comparable(other)

    def __gt__(self, other):
        return self.base > self._comparable(other)

    def __ge__(self, other):
        return self.base >= self._comparable(other)

    def _comparable(self, other):
        if not isinstance(other, Quantity):
            raise DimensionMismatch(f"cannot compare {self._unit.symbol} with a plain {type(other).__name__}")
        other._find(self._unit)
        return other.base

    def __bool__(self):
        return bool(self._amount)

    def round(self, places=0):
        """Round to decimal places of the own unit, halves away from zero."""
        scale = 10**places
        scaled = abs(self._amount) * scale
        whole = (scaled + Fraction(1, 2)) // 1
        return self._new(Fraction(whole, scale) * (-1 if self._amount < 0 else 1))

    def best(self, *units):
        """Return the quantity in the largest of the units in which it is at least one.

        If it is smaller than one in all of them, the smallest of the units is taken.
        """
        if not units:
            raise ValueError("no units to choose from")
        ordered = sorted((self._find(unit) for unit in units), key=lambda unit: unit.factor, reverse=True)
        for unit in ordered:
            converted = self.to(unit)
            if abs(converted.amount) >= 1:
                return converted
        return self.to(ordered[-1])

    def parts(self, *units):
        """Split into whole amounts of falling units; the last one takes the rest.

        A negative quantity has all parts negative.
        """
        if not units:
            raise ValueError("no units to split into")
        sign = -1 if self._amount < 0 else 1
        targets = [self._find(unit) for unit in units]
        for larger, smaller in zip(targets, targets[1:]):
            if larger.factor <= smaller.factor:
                raise ValueError(f"{smaller.symbol} is not smaller than {larger.symbol}")
        total = abs(self.base)
        amounts, rest = [], total
        for target in targets[:-1]:
            count = rest // target.factor
            amounts.append(plain_number(sign * count))
            rest -= count * target.factor
        last = rest / targets[-1].factor
        amounts.append(plain_number(sign * last))
        return amounts

    def steps(self, stop, step):
        """Return the quantities from this one up to and including ``stop``, in this unit."""
        width = self._difference(step)
        if width <= 0:
            raise ValueError("the step must be positive")
        last = stop.to(self._unit).amount
        found, amount = [], self._amount
        while amount <= last:
            found.append(self._new(amount))
            amount += width
        return found

    def __str__(self):
        return f"{plain_number(self._amount)} {self._unit.symbol}".rstrip()

    def __repr__(self):
        return f"Quantity({str(self)!r})"


def quantity(text, registry=STANDARD):
    """Read a quantity such as ``"2.5 km/h"`` or ``"1/3 l"``."""
    match = _TEXT.match(text)
    if match is None:
        raise ParseError(f"{text!r} does not start with a number")
    number, unit = match.groups()
    if not unit:
        raise ParseError(f"{text!r} has no unit")
    try:
        amount = Fraction(number)
    except (ValueError, ZeroDivisionError) as error:
        raise ParseError(f"{number!r} is not a number") from error
    return Quantity(amount, unit, registry)
