"""A URL routing table."""

from .errors import BuildError, MethodNotAllowed, NotFound, PatternError, RoutingError
from .pattern import Pattern
from .table import Match, Redirect, Table

__all__ = [
    "BuildError",
    "Match",
    "MethodNotAllowed",
    "NotFound",
    "Pattern",
    "PatternError",
    "Redirect",
    "RoutingError",
    "Table",
]
