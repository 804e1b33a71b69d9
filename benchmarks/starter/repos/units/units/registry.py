"""Units, and the tables in which they are found by their symbols."""

import re
from dataclasses import dataclass
from fractions import Fraction

from .dimension import Dimension
from .errors import ParseError, UnitError, UnknownUnit

PREFIXES = {
    "G": Fraction(10**9),
    "M": Fraction(10**6),
    "k": Fraction(1000),
    "c": Fraction(1, 100),
    "m": Fraction(1, 1000),
    "u": Fraction(1, 10**6),
    "n": Fraction(1, 10**9),
}
_FACTOR = re.compile(r"([A-Za-z%]+)(?:\^(.+))?$")


@dataclass(frozen=True)
class Unit:
    """A unit: ``base = amount * factor + offset``, where base units have the factor 1."""

    symbol: str
    dimension: Dimension
    factor: Fraction
    offset: Fraction = Fraction(0)


class Registry:
    """A table of units."""

    def __init__(self):
        self._units = {}
        self._prefixable = set()
        self._compound = {}

    def define(self, symbol, dimension, factor=1, offset=0, prefixes=False):
        """Add a unit; with ``prefixes`` also ``k`` and the like may stand before it."""
        if symbol in self._units:
            raise UnitError(f"unit {symbol!r} is already defined")
        self._units[symbol] = Unit(symbol, dimension, Fraction(factor), Fraction(offset))
        if prefixes:
            self._prefixable.add(symbol)
        self._compound.clear()

    def get(self, text):
        """Return the unit for ``km``, ``m/s^2`` or ``kg*m``."""
        text = text.strip()
        if text not in self._compound:
            self._compound[text] = self._units.get(text) or self._parse(text)
        return self._compound[text]

    def _parse(self, text):
        dimension, factor = Dimension(), Fraction(1)
        sign, count, unit = 1, 0, None
        for part in re.split(r"([*/])", text):
            if part in "*/" and part:
                sign = 1 if part == "*" else -1
                continue
            unit, exponent = self._power(part.strip(), text)
            dimension = dimension * unit.dimension ** (sign * exponent)
            factor *= unit.factor ** (sign * exponent)
            count += 1
        if count == 1 and exponent == 1:
            return unit
        return Unit(text, dimension, factor)

    def _power(self, part, text):
        match = _FACTOR.match(part)
        if match is None:
            raise ParseError(f"cannot read the unit {text!r}")
        try:
            exponent = int(match.group(2) or 1)
        except ValueError as error:
            raise ParseError(f"the exponent in {text!r} is no whole number") from error
        return self._simple(match.group(1)), exponent

    def _simple(self, symbol):
        if symbol in self._units:
            return self._units[symbol]
        prefix, rest = symbol[:1], symbol[1:]
        if prefix in PREFIXES and rest in self._prefixable:
            unit = self._units[rest]
            return Unit(symbol, unit.dimension, unit.factor * PREFIXES[prefix])
        raise UnknownUnit(f"unknown unit {symbol!r}")


def _standard():
    registry = Registry()
    length, mass, time = Dimension(length=1), Dimension(mass=1), Dimension(time=1)
    temperature = Dimension(temperature=1)
    registry.define("m", length, prefixes=True)
    registry.define("in", length, "0.0254")
    registry.define("ft", length, "0.3048")
    registry.define("mi", length, "1609.344")
    registry.define("g", mass, "0.001", prefixes=True)
    registry.define("t", mass, 1000)
    registry.define("lb", mass, "0.45359237")
    registry.define("s", time, prefixes=True)
    registry.define("min", time, 60)
    registry.define("h", time, 3600)
    registry.define("d", time, 86400)
    registry.define("K", temperature)
    registry.define("degC", temperature, 1, "273.15")
    registry.define("degF", temperature, Fraction(5, 9), Fraction(45967, 180))
    registry.define("l", length**3, "0.001", prefixes=True)
    registry.define("N", mass * length / time**2, prefixes=True)
    registry.define("J", mass * length**2 / time**2, prefixes=True)
    registry.define("W", mass * length**2 / time**3, prefixes=True)
    registry.define("%", Dimension(), "0.01")
    return registry


STANDARD = _standard()
