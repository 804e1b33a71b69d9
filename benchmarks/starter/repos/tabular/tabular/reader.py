"""Text to tables, and tables to the same text.

A record is one line, unless a quoted field goes over several lines. Inside quotes a doubled quote
stands for one, and separators have no meaning. Fields without quotes lose the blanks around them
and are converted to the value they look like; quoted fields stay texts.
"""

from __future__ import annotations

import logging
import re
from typing import Iterator, Optional, Sequence

from .table import Cell, Table, TableError

log = logging.getLogger(__name__)

_WHOLE = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")
_TRUTH = {"yes": True, "no": False, "true": True, "false": False}


class ReadError(ValueError):
    """The text is not a table."""


def convert(text: str) -> Cell:
    """The value that a field looks like: empty, a truth value, a number, otherwise a text."""
    field = text.strip()
    if not field:
        return None
    if field.lower() in _TRUTH:
        return _TRUTH[field.lower()]
    if _WHOLE.fullmatch(field):
        return int(field)
    if _FLOAT.fullmatch(field):
        return float(field)
    return field


def _records(text: str, quote: str) -> Iterator[tuple[int, str]]:
    """The number of its first line and the text of each record."""
    pending: list[str] = []
    begin = 1
    for number, line in enumerate(text.splitlines(), start=1):
        if not pending:
            begin = number
        pending.append(line)
        if sum(part.count(quote) for part in pending) % 2 == 0:
            yield begin, "\n".join(pending)
            pending = []
    if pending:
        raise ReadError(f"line {begin}: a quote is never closed")


def split_record(record: str, separator: str = ",", quote: str = '"') -> list[tuple[str, bool]]:
    """The fields of a record, each with whether it was quoted."""
    fields: list[tuple[str, bool]] = []
    position = 0
    while True:
        start = position
        while start < len(record) and record[start] == " ":
            start += 1
        if record[start : start + 1] == quote:
            field, position = _quoted(record, start + 1, quote)
            fields.append((field, True))
            end = record.find(separator, position)
            rest = record[position:end] if end >= 0 else record[position:]
            if rest.strip():
                raise ReadError(f"{rest!r} behind a quoted field")
        else:
            end = record.find(separator, position)
            fields.append((record[position:end] if end >= 0 else record[position:], False))
        if end < 0:
            return fields
        position = end + len(separator)


def _quoted(record: str, position: int, quote: str) -> tuple[str, int]:
    """The content of a quoted field and the position behind its closing quote."""
    parts = []
    while True:
        end = record.find(quote, position)
        if end < 0:
            raise ReadError(f"a quote is never closed in {record!r}")
        parts.append(record[position:end])
        if record[end + 1 : end + 2] != quote:
            return quote.join(parts), end + 1
        position = end + 2


def _header(fields: Sequence[tuple[str, bool]]) -> list[str]:
    """Names for all columns: those without one are called after their number."""
    return [name.strip() or f"column{number}" for number, (name, _) in enumerate(fields, start=1)]


def read(
    text: str,
    separator: str = ",",
    quote: str = '"',
    comment: str = "#",
    skip_blank: bool = True,
    fill: bool = False,
) -> Table:
    """A table from text whose first record names the columns.

    Lines that begin with the comment sign are left out, and so are blank lines unless
    ``skip_blank`` is off; then they are rows without content. With ``fill``, records that are too
    short are filled up with empty cells.

    Raises:
        ReadError: The text has no header, a record does not fit or a quote is not closed.
    """
    columns: list[str] = []
    rows: list[list[Cell]] = []
    for number, record in _records(text, quote):
        if comment and record.startswith(comment):
            continue
        if not record.strip():
            if columns and not skip_blank:
                rows.append([None] * len(columns))
            continue
        try:
            fields = split_record(record, separator, quote)
        except ReadError as error:
            raise ReadError(f"line {number}: {error}") from error
        if not columns:
            columns = _header(fields)
            continue
        cells = [field if quoted else convert(field) for field, quoted in fields]
        if fill:
            cells += [None] * (len(columns) - len(cells))
        if len(cells) != len(columns):
            raise ReadError(f"line {number}: {len(cells)} fields, expected {len(columns)}")
        log.debug("line %d: %r", number, cells)
        rows.append(cells)
    if not columns:
        raise ReadError("there is no header")
    try:
        table = Table(columns, rows)
    except TableError as error:
        raise ReadError(str(error)) from error
    log.info("read %d rows of %s", len(table), ", ".join(columns))
    return table


def sniff(text: str, quote: str = '"') -> str:
    """The separator that splits the first records into the same, greatest number of fields."""
    records = [record for _, record in _records(text, quote) if record.strip()][:10]
    best, most = ",", 1
    for separator in (",", ";", "\t", "|"):
        counts = {len(split_record(record, separator, quote)) for record in records}
        if len(counts) == 1 and max(counts) > most:
            best, most = separator, max(counts)
    return best


def cell_text(cell: Cell, digits: Optional[int] = None) -> str:
    """A cell as people read it, floats with some digits behind the point."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and digits is not None:
        return f"{cell:.{digits}f}"
    return str(cell)


def _field(cell: Cell, separator: str) -> str:
    """A field that is read back as the same cell."""
    text = cell_text(cell)
    if not isinstance(cell, str):
        return text
    if convert(text) == text and not any(sign in text for sign in (separator, '"', "\n", "#")):
        return text
    return '"' + text.replace('"', '""') + '"'


def to_csv(table: Table, separator: str = ",") -> str:
    """Text from which `read` makes the same table."""
    records = [[_field(cell, separator) for cell in row] for row in (table.columns, *table.rows)]
    return "".join(separator.join(record) + "\n" for record in records)
