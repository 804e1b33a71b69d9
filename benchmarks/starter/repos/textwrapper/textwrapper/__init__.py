"""Plain text laid out for a fixed width."""

from .layout import boxed, bullets, columns, definitions, heading, numbered, rule, side_by_side, table
from .pages import paginate
from .paragraphs import justify, reflow, split_paragraphs, wrap
from .width import cut, display_width, pad

__all__ = [
    "boxed",
    "bullets",
    "columns",
    "cut",
    "definitions",
    "display_width",
    "heading",
    "justify",
    "numbered",
    "pad",
    "paginate",
    "reflow",
    "rule",
    "side_by_side",
    "split_paragraphs",
    "table",
    "wrap",
]
