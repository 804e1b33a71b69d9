"""Tables as text."""

from __future__ import annotations

from typing import Optional

from .reader import cell_text
from .table import Cell, Table


def _is_numeric(cells: list[Cell]) -> bool:
    """Whether a column is set to the right: numbers only, and at least one."""
    there = [cell for cell in cells if cell is not None]
    return bool(there) and all(
        isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in there
    )


def _columns(table: Table, digits: Optional[int]) -> list[list[str]]:
    """The texts of each column, header first, padded to the same width."""
    result = []
    for name in table.columns:
        cells = table.cells(name)
        texts = [name] + [cell_text(cell, digits) for cell in cells]
        width = max(len(text) for text in texts)
        pad = str.rjust if _is_numeric(cells) else str.ljust
        result.append([pad(text, width) for text in texts])
    return result


def to_text(table: Table, digits: Optional[int] = None, gap: str = "  ") -> str:
    """Aligned columns under a header and a line."""
    columns = _columns(table, digits)
    lines = [gap.join(texts).rstrip() for texts in zip(*columns)]
    rule = gap.join("-" * len(texts[0]) for texts in columns)
    return "\n".join([lines[0], rule, *lines[1:]])


def to_markdown(table: Table, digits: Optional[int] = None) -> str:
    """A table of Markdown, numbers set to the right."""
    columns = _columns(table, digits)
    lines = ["| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |" for texts in zip(*columns)]
    rules = []
    for name, texts in zip(table.columns, columns):
        width = len(texts[0])
        rules.append("-" * (width + 1) + ":" if _is_numeric(table.cells(name)) else "-" * (width + 2))
    return "\n".join([lines[0], "|" + "|".join(rules) + "|", *lines[1:]])
