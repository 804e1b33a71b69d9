"""Exact physical quantities: parsing, converting, computing and printing."""

from .dimension import Dimension
from .errors import DimensionMismatch, ParseError, UnitError, UnknownUnit
from .quantity import Quantity, quantity
from .registry import STANDARD, Registry

__all__ = [
    "STANDARD",
    "Dimension",
    "DimensionMismatch",
    "ParseError",
    "Quantity",
    "Registry",
    "UnitError",
    "UnknownUnit",
    "quantity",
]
