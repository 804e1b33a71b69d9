"""A curve in a few rows of text: dots of braille, eight to a cell, and marks where a second curve runs."""

from collections.abc import Callable, Sequence

from dgm.show.safe import Side, fit
from dgm.show.spans import Line, Span, Tone, make_line, merge_spans
from dgm.views.curve import CurvePoint

WIDTH, HEIGHT = 60, 8
"""Width and height of the curves' field in cells."""
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bits of a braille character by column and row; Unicode standard, section 21.1."""
RAW = "·"
_AXIS = 6


def curve_lines(
    points: Sequence[CurvePoint] | None, width: int = WIDTH, height: int = HEIGHT
) -> Sequence[Line]:
    """Draw the highest lower bound over evaluations in braille, that agent's rate as ``·``, and two axes.

    Args:
        points: as ``report.curve`` gives them; None while they are computed.
        width: cells of the field, at least 2.
        height: rows of the field, at least 2.
    """
    if points is None:
        return [make_line(Span("  being worked out …", Tone.DIM))]
    if not points:
        return [make_line(Span("  no evaluation yet", Tone.DIM))]
    top = _scale_end(max(max(point.rate, point.lower_bound) for point in points))
    last = max(1, points[-1].evaluations)
    bound = _sample_values(points, last, 2 * width, lambda point: point.lower_bound)
    rate = _sample_values(points, last, width, lambda point: point.rate)
    dots = _stair_dots(bound, 4 * height, top)
    rows = []
    for row in range(height):
        spans = (_cell_span(dots, rate, top, row, column, height) for column in range(width))
        label = next((f"{each:.0%}" for each in (top, top / 2, 0.0) if _row_of(each, height, top) == row), "")
        gutter = fit(label, _AXIS - 2, Side.RIGHT)
        rows.append(make_line(Span(f" {gutter}┤", Tone.DIM), *merge_spans(spans)))
    return [*rows, *_axis_lines(points[-1], last, width)]


def _scale_end(most: float) -> float:
    """Return the upper end of the scale: the next tenth."""
    return min(1.0, max(0.1, -(-most * 10 // 1) / 10))


def _sample_values(
    points: Sequence[CurvePoint], last: int, count: int, value: Callable[[CurvePoint], float]
) -> Sequence[float | None]:
    """Return the value at ``count`` places between 0 and the last evaluation; None before the first point."""
    found: list[float | None] = []
    place = -1
    for column in range(count):
        until = (column + 1) * last / count
        while place + 1 < len(points) and points[place + 1].evaluations <= until:
            place += 1
        found.append(value(points[place]) if place >= 0 else None)
    return found


def _stair_dots(values: Sequence[float | None], rows: int, top: float) -> set[tuple[int, int]]:
    """Return the dots of a stepped line: column from the left, row from above."""
    dots: set[tuple[int, int]] = set()
    before: int | None = None
    for column, value in enumerate(values):
        if value is None:
            continue
        row = _row_of(value, rows, top)
        start = row if before is None else before
        dots |= {(column, each) for each in range(min(start, row), max(start, row) + 1)}
        before = row
    return dots


def _row_of(value: float, rows: int, top: float) -> int:
    return rows - 1 - round(min(max(value, 0.0), top) / top * (rows - 1))


def _cell_span(
    dots: set[tuple[int, int]], rate: Sequence[float | None], top: float, row: int, column: int, height: int
) -> Span:
    bits = sum(_DOTS[x][y] for x in range(2) for y in range(4) if (2 * column + x, 4 * row + y) in dots)
    if bits:
        return Span(chr(_BRAILLE + bits), Tone.GOOD)
    value = rate[column]
    if value is not None and _row_of(value, height, top) == row:
        return Span(RAW, Tone.WARN)
    return Span(" ")


def _axis_lines(end: CurvePoint, last: int, width: int) -> Sequence[Line]:
    right = f"{last:,} evaluations"
    scale = f"{'0':<{max(1, width - len(right))}}{right}"
    return [
        make_line(Span(f"{'':{_AXIS - 1}}└{'─' * width}", Tone.DIM)),
        make_line(Span(f"{'':{_AXIS}}{scale}", Tone.DIM)),
        make_line(
            f"{'':{_AXIS}}",
            Span("⠤⠤", Tone.GOOD),
            f" lower bound {end.lower_bound:.2f}   ",
            Span(RAW * 2, Tone.WARN),
            f" its rate {end.rate:.2f}   now agent {end.agent}",
        ),
    ]
