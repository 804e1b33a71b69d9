"""Tables from text, and questions about them."""

from .aggregate import AGGREGATES, group, pivot, summary
from .join import join
from .reader import ReadError, convert, read, sniff, split_record, to_csv
from .render import to_markdown, to_text
from .table import Table, TableError

__all__ = [
    "AGGREGATES",
    "ReadError",
    "Table",
    "TableError",
    "convert",
    "group",
    "join",
    "pivot",
    "read",
    "sniff",
    "split_record",
    "summary",
    "to_csv",
    "to_markdown",
    "to_text",
]
