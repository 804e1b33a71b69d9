"""Dimensions: products of powers of length, mass, time and so on."""


class Dimension:
    """An immutable product of powers of base dimensions, such as ``length / time``."""

    def __init__(self, **powers):
        self._powers = {name: power for name, power in sorted(powers.items()) if power}

    def __mul__(self, other):
        powers = dict(self._powers)
        for name, power in other._powers.items():
            powers[name] = powers.get(name, 0) + power
        return Dimension(**powers)

    def __pow__(self, exponent):
        return Dimension(**{name: power * exponent for name, power in self._powers.items()})

    def __truediv__(self, other):
        return self * other**-1

    def __eq__(self, other):
        return isinstance(other, Dimension) and self._powers == other._powers

    def __hash__(self):
        return hash(tuple(self._powers.items()))

    def __bool__(self):
        return bool(self._powers)

    def __repr__(self):
        inner = ", ".join(f"{name}={power}" for name, power in self._powers.items())
        return f"Dimension({inner})"
