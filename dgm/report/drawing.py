"""Pictures as SVG: shapes, axes with ticks, and the two ways in which a picture is shown.

On the page, colours come from the page's style and tooltips from its script. A file of its own contains its style
and has ``<title>`` elements instead.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dgm.domain import Tally
from dgm.report.markup import Html, Value, h, join_html, number_text
from dgm.stats import wilson

STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1d2228 }
.grid { stroke: #dfe3e6 } .axis { stroke: #8a929a } .soft { fill: #5b646d } .strong { font-weight: 600 }
.halo { paint-order: stroke; stroke: #fff; stroke-width: 3px; stroke-linejoin: round } .track { stroke: #dfe3e6 }
.lower { fill: none; stroke: #1f5fa8 } .raw { fill: none; stroke: #9aa3ab }
.seed { stroke: #b0601f } .seedtext { fill: #94501a } .lowertext { fill: #1f5fa8 }
.edge { fill: none; stroke: #c3c9ce } .edge2 { fill: none; stroke: #c3c9ce; stroke-dasharray: 3 3; stroke-opacity: .55 }
.line { fill: none; stroke: #1d2228 } .node { stroke: #1d2228; stroke-width: .7 } .none { fill: #fff }
.star { fill: #d29a00; stroke: #1d2228; stroke-width: .6 }
.good { fill: #1a7f4b } .bad { fill: #b3402a } .goodbox { fill: #cfeadb } .badbox { fill: #f6d9d2 }
.nobox { fill: #f0f2f3 }
.interval { stroke: #1f5fa8 } .dot { fill: #1f5fa8 } .seeddot { fill: #b0601f } .seedline { stroke: #b0601f }
.c0 { fill: #00224e } .c1 { fill: #2b446e } .c2 { fill: #575d6d } .c3 { fill: #7d7c78 }
.c4 { fill: #a59c74 } .c5 { fill: #d2bf61 } .c6 { fill: #fee838 }
"""
"""The style of a picture in a file of its own, for white paper."""
SHADES = 7
"""Number of shades, ``c0`` to ``c6``: samples of the colour map cividis.

Its lightness rises evenly, so that everyone can read it, and in greys too. Source: J. R. Nuñez, C. R. Anderton and
R. S. Renslow, PLOS ONE 13(7):e0199239 (2018).
"""


@dataclass(frozen=True, slots=True)
class SvgShape:
    """One element; ``tip`` is the text of its tooltip."""

    tag: str
    attributes: Mapping[str, Value]
    text: str = ""
    tip: str = ""


@dataclass(slots=True)
class SvgDrawing:
    """A picture of ``width`` by ``height`` pixels in its natural size."""

    title: str
    width: float
    height: float
    shapes: list[SvgShape] = field(default_factory=list)

    def add(self, tag: str, attributes: Mapping[str, Value], text: str = "", tip: str = "") -> None:
        """Put a shape on top of the others."""
        self.shapes.append(SvgShape(tag, attributes, text, tip))

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str, width: float = 1) -> None:
        """Draw a straight line; coordinates and ``width`` are in pixels."""
        self.add("line", {"class": kind, "x1": x1, "y1": y1, "x2": x2, "y2": y2, "stroke-width": width})

    def text(
        self, x: float, y: float, text: str, kind: str = "", size: float = 11, anchor: str = "start"
    ) -> None:
        """Draw a text whose foot is at ``y``; ``anchor`` is ``start``, ``middle`` or ``end``."""
        where = None if anchor == "start" else anchor
        self.add(
            "text", {"class": kind or None, "x": x, "y": y, "font-size": size, "text-anchor": where}, text
        )

    def html(self) -> Html:
        """Return the picture as an element of the page."""
        return self._whole(
            {"role": "img", "aria-label": self.title}, [_page_element(shape) for shape in self.shapes]
        )

    def file(self, about: str = "") -> bytes:
        """Return the picture as a file of its own; ``about`` names the run or runs that it is from."""
        size = {"width": self.width, "height": self.height}
        known: dict[str, Value] = {"xmlns": "http://www.w3.org/2000/svg", **size}
        paper = h("rect", {"width": self.width, "height": self.height, "fill": "#fff"})
        described = [h("desc", {}, about)] if about else []
        shapes = [h("title", {}, self.title), *described, h("style", {}, Html(STYLE)), paper]
        return self._whole(known, [*shapes, *map(_file_element, self.shapes)]).encode() + b"\n"

    def _whole(self, attributes: Mapping[str, Value], shapes: Sequence[Html]) -> Html:
        box = f"0 0 {number_text(self.width)} {number_text(self.height)}"
        return h("svg", {"viewBox": box, **attributes}, join_html(*shapes))


def _page_element(shape: SvgShape) -> Html:
    tip = {"data-t": shape.tip} if shape.tip else {}
    return h(shape.tag, {**shape.attributes, **tip}, shape.text)


def _file_element(shape: SvgShape) -> Html:
    title = [h("title", {}, shape.tip)] if shape.tip else []
    return h(shape.tag, shape.attributes, *title, shape.text)


@dataclass(frozen=True, slots=True)
class Axes:
    """A field of a drawing in which x runs from 0 to ``x_max`` and y, a share, from 0 to ``y_max``."""

    left: float
    top: float
    width: float
    height: float
    x_max: float
    y_max: float = 1.0

    def x(self, value: float) -> float:
        """Return the pixel position of a value on the x axis."""
        return self.left + self.width * (value / self.x_max if self.x_max else 0)

    def y(self, share: float) -> float:
        """Return the pixel position of a share on the y axis."""
        return self.top + self.height * (1 - share / self.y_max)

    def draw(self, drawing: SvgDrawing, x_name: str) -> None:
        """Draw lines at each quarter, ticks below, and the name of x."""
        foot = self.top + self.height
        for quarter in range(5):
            y = self.y(self.y_max * quarter / 4)
            drawing.line(self.left, y, self.left + self.width, y, "axis" if quarter == 0 else "grid")
            drawing.text(
                self.left - 6, y + 4, f"{number_text(25 * quarter * self.y_max)}%", "soft", 10, "end"
            )
        for tick in round_ticks(self.x_max):
            drawing.line(self.x(tick), foot, self.x(tick), foot + 4, "axis")
            drawing.text(self.x(tick), foot + 15, short_number(tick), "soft", 10, "middle")
        drawing.text(self.left + self.width / 2, foot + 30, x_name, "soft", 11, "middle")

    def draw_interval(self, drawing: SvgDrawing, y: float, tally: Tally, kind: str, radius: float) -> None:
        """Draw a rate as a dot of ``radius`` pixels on the line of its 95 % interval, at the pixel ``y``."""
        low, high = wilson(tally)
        drawing.line(self.x(low), y, self.x(high), y, f"{kind}line" if kind else "interval", 3)
        look = f"{kind}dot" if kind else "dot"
        drawing.add("circle", {"class": look, "cx": self.x(tally.rate), "cy": y, "r": radius})


def round_ticks(highest: float, most: int = 5) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten) from 0 to ``highest``, at most ``most`` steps."""
    if not highest > 0 or not math.isfinite(highest):
        return [0.0]
    rough = highest / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [n * step for n in range(int(highest / step * (1 + 1e-9)) + 1)]


def short_number(value: float) -> str:
    """Return a number as ``0.05``, ``250``, ``1.5k``, ``2M``."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return number_text(value / limit, 1) + letter
    return number_text(value, 4) if value < 1 else number_text(value)


def stairs_path(points: Sequence[tuple[float, float]]) -> str:
    """Return a path that keeps each height until the next point."""
    if not points:
        return ""
    steps = [f"M{number_text(points[0][0])} {number_text(points[0][1])}"]
    steps += [f"H{number_text(x)}V{number_text(y)}" for x, y in points[1:]]
    return "".join(steps)
