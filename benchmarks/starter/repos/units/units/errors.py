"""What can go wrong with units."""


class UnitError(Exception):
    """Any fault of a unit or of the text of a quantity."""


class UnknownUnit(UnitError, LookupError):
    """Nobody has defined a unit of that symbol."""


class ParseError(UnitError, ValueError):
    """A text is not a quantity, or not a unit."""


class DimensionMismatch(UnitError, TypeError):
    """Lengths and times cannot be added, compared or converted."""
