"""HTML and SVG by one function that escapes, so that no text of a run can become a tag.

Models and authors of tasks wrote a run's texts. No other module of the report writes a ``<``.
"""

from collections.abc import Mapping
from html import escape

from dgm.show.safe import neutralise

Value = str | int | float | None
NOTHING: Mapping[str, Value] = {}
VOID = frozenset({"meta", "br"})
# Allowed in a text, but in no XML document; neutral() leaves them alone, for they are no control characters.
_NONCHARACTERS = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}


class Html(str):
    """Text that is markup already; apart from shipped files only ``h`` and ``join_html`` make it."""

    __slots__ = ()


def h(tag: str, attributes: Mapping[str, Value] = NOTHING, *children: str) -> Html:
    """Return an element.

    Args:
        tag: its name.
        attributes: those that are None are left out; an empty text stands without a value.
        *children: ``Html`` is inserted unchanged; any other text is neutralised and escaped.
    """
    said = "".join(_attribute_text(name, value) for name, value in attributes.items() if value is not None)
    if tag in VOID:
        return Html(f"<{tag}{said}>")
    return Html(f"<{tag}{said}>{join_html(*children)}</{tag}>")


def join_html(*children: str) -> Html:
    """Join texts, one behind the other; texts that are not ``Html`` are escaped."""
    return Html("".join(child if isinstance(child, Html) else escape_text(child) for child in children))


def escape_text(text: str) -> Html:
    """Return a text without markup, whatever it holds: for content and quoted attributes, in HTML and in XML."""
    return Html(escape(neutralise(text).translate(_NONCHARACTERS), quote=True))


def _attribute_text(name: str, value: Value) -> str:
    return f' {name}="{escape_text(number_text(value) if isinstance(value, float) else str(value))}"'


def number_text(value: float, digits: int = 2) -> str:
    """Return a number as SVG and people read it: no exponent, no needless zeros."""
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
