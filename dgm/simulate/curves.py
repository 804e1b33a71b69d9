"""Anytime curves as SVG: the recommended agent's true score over the evaluations that were spent.

Lines differ in colour, in dashes, and in a number at their end that the legend repeats. So they can be told apart on a
print in black and white too.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a5195", "#b8860b", "#222222", "#2f8fb5")
"""Dark enough for a white ground, and apart for people who do not tell red from green (after Okabe and Ito)."""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4")
WIDE, HIGH = 760, 440
"""Of a panel that stands alone; else half as wide."""
SMALL_WIDE, SMALL_HIGH = 400, 280
LEFT, RIGHT, TOP, BOTTOM = 58, 26, 34, 46
"""Margins of a panel."""
LEGEND_WIDE = 250
LINE_HIGH = 17
HEAD = 44
TITLE = ' font-size="16" font-weight="bold"'
BOLD = ' font-weight="bold"'
NUMBER = ' font-size="10" font-weight="bold"'


@dataclass(frozen=True, slots=True)
class Curve:
    """One line; points are (evaluations spent, true score)."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves on common axes."""

    title: str
    curves: tuple[Curve, ...]


def svg(title: str, panels: Sequence[Panel]) -> str:
    """Return the SVG document.

    Args:
        title: stands above all panels.
        panels: the order of the first panel's curves numbers them; a curve of one name looks the same in all panels.
    """
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    columns = 1 if len(panels) == 1 else 2
    wide, high = (WIDE, HIGH) if columns == 1 else (SMALL_WIDE, SMALL_HIGH)
    rows = math.ceil(len(panels) / columns)
    width = columns * wide + LEGEND_WIDE
    height = HEAD + max(rows * high, 3 * LINE_HIGH + LINE_HIGH * len(names))
    body = [
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(LEFT, 26, title, style=TITLE),
    ]
    for number, panel in enumerate(panels):
        x, y = number % columns * wide, HEAD + number // columns * high
        inside = "".join(_panel(panel, names, wide, high))
        body.append(f'<g transform="translate({x},{y})">{inside}</g>')
    body += _legend(names, columns * wide, HEAD + TOP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#222222" role="img">'
        f"<title>{escape(title)}</title>" + "\n".join(body) + "</svg>\n"
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """The conversion from values to pixels, on both axes."""

    most: float
    low: float
    high: float
    wide: int
    tall: int

    def x(self, value: float) -> float:
        return LEFT + value / self.most * (self.wide - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.tall - BOTTOM - share * (self.tall - TOP - BOTTOM)


def _panel(panel: Panel, names: Sequence[str], wide: int, high: int) -> Iterable[str]:
    scores = [score for curve in panel.curves for _, score in curve.points]
    steps = ticks(min(scores, default=0.0), max(scores, default=1.0))
    most = max((spent for curve in panel.curves for spent, _ in curve.points), default=1.0)
    scale = _Scale(most, steps[0], steps[-1], wide, high)
    yield _text(LEFT, TOP - 12, panel.title, style=BOLD)
    yield from _axes(scale, steps, ticks(0.0, most))
    for curve in panel.curves:
        yield _line(curve, names.index(curve.name), scale)
    yield from _numbers(panel.curves, names, scale)


def _axes(scale: _Scale, scores: Sequence[float], spent: Sequence[float]) -> Iterable[str]:
    left, right, bottom = LEFT, scale.wide - RIGHT, scale.tall - BOTTOM
    digits = max(0, -math.floor(math.log10(scores[1] - scores[0]) + 1e-9))
    for score in scores:
        y = scale.y(score)
        yield f'<path d="M{left} {y:.1f}H{right}" stroke="#dddddd"/>'
        yield _text(left - 6, y + 4, f"{score:.{digits}f}", anchor="end")
    for value in spent:
        if value <= scale.most:
            x = scale.x(value)
            yield f'<path d="M{x:.1f} {bottom}v5" stroke="#333333"/>'
            yield _text(x, bottom + 18, f"{value:,.0f}", anchor="middle")
    yield f'<path d="M{left} {TOP}V{bottom}H{right}" fill="none" stroke="#333333"/>'
    yield _text((left + right) / 2, bottom + 36, "budget spent (evaluations)", anchor="middle")
    middle = (TOP + bottom) / 2
    label = _text(0, 0, "true score (share of tasks)", anchor="middle")
    yield f'<g transform="translate(14,{middle:.1f}) rotate(-90)">{label}</g>'


def _line(curve: Curve, number: int, scale: _Scale) -> str:
    path = "L".join(f"{scale.x(spent):.1f} {scale.y(score):.1f}" for spent, score in curve.points)
    return f'<path d="M{path}" fill="none" {_look(number)}><title>{escape(curve.name)}</title></path>'


def _numbers(curves: Sequence[Curve], names: Sequence[str], scale: _Scale) -> Iterable[str]:
    """Yield each curve's number at its end; numbers that would overlap are moved apart."""
    ends = sorted((scale.y(curve.points[-1][1]), curve.name) for curve in curves)
    gap = min(11.0, (scale.tall - TOP - BOTTOM) / max(len(ends), 1))
    places: list[float] = []
    for y, _ in ends:
        places.append(max(y, places[-1] + gap) if places else y)
    over = places[-1] - (scale.tall - BOTTOM) if places else 0.0
    if over > 0:
        places = _pushed_up(places, scale.tall - BOTTOM, gap)
    for (_, name), y in zip(ends, places, strict=True):
        number = names.index(name)
        style = f'{NUMBER} fill="{COLOURS[number % len(COLOURS)]}"'
        yield _text(scale.wide - RIGHT + 4, y + 3.5, str(number + 1), style=style)


def _pushed_up(places: Sequence[float], bottom: float, gap: float) -> list[float]:
    pushed: list[float] = []
    for y in reversed(places):
        bottom = min(y, bottom)
        pushed.append(bottom)
        bottom -= gap
    return pushed[::-1]


def _legend(names: Sequence[str], x: float, y: float) -> Iterable[str]:
    for number, name in enumerate(names):
        at = y + number * LINE_HIGH
        yield f'<path d="M{x + 10} {at}h38" fill="none" {_look(number)}/>'
        yield _text(x + 70, at + 4, str(number + 1), anchor="end", style=BOLD)
        yield _text(x + 78, at + 4, name)


def _look(number: int) -> str:
    dash = DASHES[number % len(DASHES)]
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="2"{dashes}'


def _text(x: float, y: float, text: str, anchor: str = "start", style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(text)}</text>'


def ticks(low: float, high: float) -> list[float]:
    """Return four to nine round numbers, the first at most ``low``, the last at least ``high``."""
    span = max(high - low, 1e-6)
    power = 10.0 ** math.floor(math.log10(span))
    step = next(power * factor for factor in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0) if span / (power * factor) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(n * step, 12) for n in range(first, max(last, first + 1) + 1)]
