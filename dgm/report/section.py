"""The parts of a section of the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dgm.domain import Tally
from dgm.report.drawing import Axes, SvgDrawing
from dgm.report.markup import NOTHING, Html, Value, h
from dgm.stats import wilson


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of the page with a heading that can be linked to."""

    id: str
    title: str
    parts: Sequence[Html]

    def html(self) -> Html:
        """Return the whole section."""
        return h("section", {"id": self.id}, h("h2", {}, self.title), *self.parts)


def paragraph(*pieces: str) -> Html:
    """Return a paragraph; pieces that are not ``Html`` are escaped."""
    return h("p", {}, *pieces)


def lead_paragraph(text: str) -> Html:
    """Return the introduction of a section, which stands below its heading."""
    return h("p", {"class": "lead"}, text)


def html_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[int] = (),
    text: Sequence[int] = (),
    kind: str = "",
) -> Html:
    """Return a table that scrolls by itself where the page is narrow.

    Args:
        head: names of the columns.
        rows: cells; ``Html`` is inserted unchanged.
        numbers: columns that stand to the right.
        text: columns of free text, which are given some width.
        kind: class of the table.
    """
    classes = {**dict.fromkeys(numbers, "n"), **dict.fromkeys(text, "text")}
    known: list[Mapping[str, Value]] = [
        {"class": classes[place]} if place in classes else NOTHING for place in range(len(head))
    ]
    names = h("tr", {}, *(h("th", each, name) for each, name in zip(known, head, strict=True)))
    lines = [
        h("tr", {}, *(h("td", each, cell) for each, cell in zip(known, row, strict=True))) for row in rows
    ]
    whole = h("table", {"class": kind or None}, h("thead", {}, names), h("tbody", {}, *lines))
    return h("div", {"class": "wide"}, whole)


def facts_table(pairs: Sequence[tuple[str, str]]) -> Html:
    """Return a table of names and values, without a head."""
    rows = [h("tr", {}, h("td", {"class": "key"}, name), h("td", {}, value)) for name, value in pairs]
    return h("div", {"class": "wide"}, h("table", {}, h("tbody", {}, *rows)))


def html_figure(drawing: SvgDrawing | None, caption: str) -> Html:
    """Return a picture with its caption; the caption alone where there is nothing to draw."""
    picture = [h("div", {"class": "wide"}, drawing.html())] if drawing else []
    return h("figure", {}, *picture, h("figcaption", {}, caption))


def interval_bar(tally: Tally, kind: str = "") -> Html:
    """Return a rate as a dot and its 95 % interval as a line, between 0 and 1; empty without a verdict."""
    if not tally.n:
        return h("span", {})
    low, high = wilson(tally)
    drawing = SvgDrawing(f"{tally.rate:.0%}, 95 % interval {low:.0%} to {high:.0%}", 170, 18)
    axes = Axes(5, 0, 160, 18, 1)
    drawing.line(axes.left, 9, axes.left + axes.width, 9, "track", 1)
    axes.draw_interval(drawing, 9, tally, kind, 4.5)
    return h("span", {"class": "bar"}, drawing.html())


def points_text(share: float) -> str:
    """Return a share as ``+8 points``, with a typographic minus."""
    said = round(100 * share)
    sign = "+" if said > 0 else "−" if said < 0 else "±"
    return f"{sign}{abs(said)} point{'' if abs(said) == 1 else 's'}"
