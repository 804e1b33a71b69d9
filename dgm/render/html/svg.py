"""SVG: shapes, axes with ticks, and a drawing as a part of a page or as a file.

On a page, colours follow its light or dark scheme, and its script shows tooltips. A file contains its style and has
``<title>`` elements instead.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from markupsafe import Markup, escape

from dgm.render import fmt
from dgm.render.safe import neutralise
from dgm.views.values import TallyView

SHADES, SERIES = 7, 8
"""Number of shades (``c0`` …) and of colours of curves (``s0`` …) in ``figure.css``."""
FONT = 'text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }\n'
Value = str | int | float | None
# Allowed in a text, but in no XML document.
_NONCHARACTERS = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}


def read_template(name: str) -> str:
    """Return a file of the page."""
    return files("dgm.render.html").joinpath("templates", name).read_text(encoding="utf-8")


def clean(text: object) -> str:
    """Return markup as it is, and any other text neutralised, for a template that escapes it."""
    return text if isinstance(text, Markup) else neutralise(str(text)).translate(_NONCHARACTERS)


def element(tag: str, attributes: Mapping[str, Value], *children: str) -> Markup:
    """Return an element; an attribute that is None is left out, and children that are no ``Markup`` are escaped."""
    names = "".join(
        f' {name}="{escape(clean(number_text(value) if isinstance(value, float) else value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{names}>{''.join(escape(clean(child)) for child in children)}</{tag}>")


@dataclass(slots=True)
class Drawing:
    """A picture of ``width`` × ``height`` pixels."""

    title: str
    width: float
    height: float
    shapes: list[tuple[str, Mapping[str, Value], str, str]] = field(default_factory=list)
    """Tag, attributes, text and tooltip of each shape."""

    def add(self, tag: str, attributes: Mapping[str, Value], text: str = "", tip: str = "") -> None:
        """Put a shape on top of the others."""
        self.shapes.append((tag, attributes, text, tip))

    def line(  # noqa: PLR0913  (ends and look)
        self, x1: float, y1: float, x2: float, y2: float, kind: str, width: float = 1, dash: str | None = None
    ) -> None:
        """Draw a straight line."""
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        self.add("line", {"class": kind, **ends, "stroke-width": width, "stroke-dasharray": dash})

    def text(
        self, x: float, y: float, text: str, kind: str = "", size: float = 11, anchor: str = "start"
    ) -> None:
        """Write a text whose base line is at ``y``; ``anchor`` is ``start``, ``middle`` or ``end``."""
        place = {"x": x, "y": y, "font-size": size, "text-anchor": None if anchor == "start" else anchor}
        self.add("text", {"class": kind or None, **place}, text)

    def markup(self) -> Markup:
        """Return the picture as an element of a page."""
        shapes = [
            element(tag, {**attributes, "data-t": tip or None}, text)
            for tag, attributes, text, tip in self.shapes
        ]
        return self._svg({"role": "img", "aria-label": self.title}, shapes)

    def file(self, about: str = "") -> bytes:
        """Return the picture as a file; ``about`` names the runs that it shows."""
        light = dict(re.findall(r"--(\w+): (#\w+)", read_template("palette.css").partition("@media")[0]))
        style = re.sub(r"var\(--(\w+)\)", lambda name: light[name[1]], read_template("figure.css"))
        size: dict[str, Value] = {"width": self.width, "height": self.height}
        head = [
            element("title", {}, self.title),
            element("desc", {}, about),
            element("style", {}, Markup(FONT + style)),
            element("rect", {**size, "fill": light["paper"]}),
        ]
        shapes = [
            element(tag, attributes, *([element("title", {}, tip)] if tip else []), text)
            for tag, attributes, text, tip in self.shapes
        ]
        return self._svg({"xmlns": "http://www.w3.org/2000/svg", **size}, [*head, *shapes]).encode() + b"\n"

    def _svg(self, attributes: Mapping[str, Value], shapes: Sequence[Markup]) -> Markup:
        box = f"0 0 {number_text(self.width)} {number_text(self.height)}"
        return element("svg", {"viewBox": box, **attributes}, *shapes)


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

    def draw(self, drawing: Drawing, x_name: str) -> None:
        """Draw lines at each quarter, ticks below, and the name of x."""
        foot = self.top + self.height
        for quarter in range(5):
            y = self.y(self.y_max * quarter / 4)
            drawing.line(self.left, y, self.left + self.width, y, "grid" if quarter else "axis")
            drawing.text(
                self.left - 6, y + 4, f"{number_text(25 * quarter * self.y_max)}%", "soft", 10, "end"
            )
        for tick in round_ticks(self.x_max):
            drawing.line(self.x(tick), foot, self.x(tick), foot + 4, "axis")
            drawing.text(self.x(tick), foot + 15, fmt.short_number(tick), "soft", 10, "middle")
        drawing.text(self.left + self.width / 2, foot + 30, x_name, "soft", 11, "middle")

    def draw_interval(self, drawing: Drawing, y: float, tally: TallyView, kind: str, radius: float) -> None:
        """Draw a rate as a dot of ``radius`` pixels on the line of its 95 % interval, at the pixel ``y``."""
        low, high = tally.interval
        drawing.line(self.x(low), y, self.x(high), y, f"{kind}line" if kind else "interval", 3)
        drawing.add("circle", {"class": f"{kind}dot", "cx": self.x(tally.rate), "cy": y, "r": radius})


def interval_bar(tally: TallyView, kind: str = "") -> Markup:
    """Return a rate as a dot and its 95 % interval as a line, between 0 and 1; empty without a verdict."""
    if not tally.n:
        return Markup()
    low, high = tally.interval
    drawing = Drawing(f"{tally.rate:.0%}, 95 % interval {low:.0%} to {high:.0%}", 170, 18)
    drawing.line(5, 9, 165, 9, "track", 1)
    Axes(5, 0, 160, 18, 1).draw_interval(drawing, 9, tally, kind, 4.5)
    return element("span", {"class": "bar"}, drawing.markup())


def round_ticks(highest: float, most: int = 5) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten) from 0 to ``highest``, at most ``most`` steps."""
    if not highest > 0 or not math.isfinite(highest):
        return [0.0]
    rough = highest / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [n * step for n in range(int(highest / step * (1 + 1e-9)) + 1)]


def number_text(value: float, digits: int = 2) -> str:
    """Return a number without an exponent and needless zeros."""
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def stairs_path(points: Sequence[tuple[float, float]]) -> str:
    """Return a path that keeps each height until the next point."""
    if not points:
        return ""
    start = f"M{number_text(points[0][0])} {number_text(points[0][1])}"
    return start + "".join(f"H{number_text(x)}V{number_text(y)}" for x, y in points[1:])


def band_path(low: Sequence[tuple[float, float]], high: Sequence[tuple[float, float]]) -> str:
    """Return a closed path between two lines that keep each height until the next point, over the same places."""
    back = "".join(f"V{number_text(y)}H{number_text(x)}" for x, y in reversed(low))
    return f"{stairs_path(high)}{back}Z" if low else ""
