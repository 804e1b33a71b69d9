"""Fixed-width records: read, check, write."""

from .errors import FieldError, LayoutError, RecordError
from .fields import Amount, Choice, Date, Field, Flag, Integer, Stamp, Text
from .layout import Layout
from .reader import Problem, Report, read
from .record import Record
from .rules import ascending, limit, unique

__all__ = [
    "Amount",
    "Choice",
    "Date",
    "Field",
    "FieldError",
    "Flag",
    "Integer",
    "Layout",
    "LayoutError",
    "Problem",
    "Record",
    "RecordError",
    "Report",
    "Stamp",
    "Text",
    "ascending",
    "limit",
    "read",
    "unique",
]
