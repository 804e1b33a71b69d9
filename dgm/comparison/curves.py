"""The curves of several runs' best agents: one table, and one picture of them over evaluations and over money."""

import io
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean

from dgm.comparison.subjects import ComparedRun
from dgm.exports.tables import Cell, ColumnKind, write_csv
from dgm.report.curve import CurvePoint
from dgm.report.drawing import Axes, SvgDrawing, stairs_path
from dgm.show.safe import one_line
from dgm.show.words import count_text

COLUMNS = (
    ("run", ColumnKind.TEXT),
    ("policy", ColumnKind.TEXT),
    ("seed", ColumnKind.WHOLE),
    ("evaluations", ColumnKind.WHOLE),
    ("usd", ColumnKind.NUMBER),
    ("agent", ColumnKind.WHOLE),
    ("score", ColumnKind.NUMBER),
    ("lower_bound", ColumnKind.NUMBER),
    ("tokens", ColumnKind.WHOLE),
    ("seconds", ColumnKind.NUMBER),
    ("group", ColumnKind.TEXT),
)
"""Columns of the table.

``agent`` is the one recommended after ``evaluations``; ``score`` is its rate on the search tasks until then.
"""
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f")
"""Colours that everyone can tell apart; grey for yellow.

Source: M. Okabe and K. Ito, Color Universal Design (2008).
"""
DASHES = (None, "7 3", "2 3", "8 3 2 3")
"""Dash patterns of the first, second, third and fourth eight groups."""
WIDTH, PANEL, LEFT, TOP, FOOT = 860, 260, 48, 52, 52
POINTS = 400
"""Maximum number of points of a mean curve."""


@dataclass(frozen=True, slots=True)
class CurveGroup:
    """Runs that are drawn in one colour."""

    name: str
    subjects: Sequence[ComparedRun]


def curve_rows(lines: Sequence[CurveGroup], *, grouped: bool) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each moment of each run's curve."""
    for line in lines:
        for subject in line.subjects:
            own = subject.identity
            for point in subject.curve:
                yield (
                    own.run,
                    own.policy,
                    own.seed,
                    point.evaluations,
                    round(point.usd, 9),
                    point.agent,
                    point.raw,
                    point.lower,
                    point.tokens,
                    round(point.seconds, 3),
                    line.name if grouped else "",
                )


def curve_csv(lines: Sequence[CurveGroup], *, grouped: bool) -> tuple[bytes, int]:
    """Return the table as CSV in UTF-8, and the number of its rows."""
    text = io.StringIO()
    count = write_csv(COLUMNS, curve_rows(lines, grouped=grouped), text)
    return text.getvalue().encode(), count


def curve_picture(lines: Sequence[CurveGroup]) -> SvgDrawing:
    """Draw the lower bound of each run's recommended agent over evaluations and over money; for groups the mean, thick.

    Tokens stand in place of money where no run spent any.
    """
    paid = any(subject.facts["spend"]["usd"] for line in lines for subject in line.subjects)
    unit: tuple[str, Callable[[CurvePoint], float]] = (
        ("USD spent", lambda point: point.usd)
        if paid
        else ("tokens used (no money was spent)", lambda point: point.tokens)
    )
    legend = (len(lines) + 1) // 2
    drawing = SvgDrawing("the best agents of several runs", WIDTH, TOP + PANEL + FOOT + 18 * legend + 8)
    drawing.text(LEFT, 20, "Lower bound of the recommended agent's rate on the search tasks", "strong", 13)
    said = "thin: one run; thick: mean of the runs of a group, as far as all of them go"
    if any(len(line.subjects) > 1 for line in lines):
        drawing.text(LEFT, 36, said, "soft", 11)
    width = (WIDTH - 2 * LEFT - 56) / 2
    _panel(drawing, lines, "evaluations", lambda point: point.evaluations, (LEFT, width))
    _panel(drawing, lines, *unit, (LEFT + width + 64, width))
    for number, line in enumerate(lines):
        x, y = LEFT + (number % 2) * (WIDTH / 2), TOP + PANEL + FOOT + 18 * (number // 2)
        drawing.add("line", {**_stroke(number), "x1": x, "x2": x + 26, "y1": y, "y2": y, "stroke-width": 2.6})
        more = f" ({count_text(len(line.subjects), 'run')})" if len(line.subjects) > 1 else ""
        drawing.text(x + 34, y + 4, one_line(line.name, 48) + more, "", 12)
    return drawing


def mean_curve(
    subjects: Sequence[ComparedRun], x: Callable[[CurvePoint], float]
) -> Sequence[tuple[float, float]]:
    """Return the mean of several runs' lower bounds over x, from the latest begin to the earliest end.

    A run without a verdict is left out.
    """
    curves = [subject.curve for subject in subjects if subject.curve]
    if not curves:
        return []
    start, end = max(x(each[0]) for each in curves), min(x(each[-1]) for each in curves)
    places = sorted(
        {x(point) for each in curves for point in each if start <= x(point) <= end} | {start, end}
    )
    if len(places) > POINTS:
        places = [places[round(n * (len(places) - 1) / (POINTS - 1))] for n in range(POINTS)]
    if end < start:
        return []
    return [(place, fmean(_lower_at(each, place, x) for each in curves)) for place in places]


def _lower_at(curve: Sequence[CurvePoint], place: float, x: Callable[[CurvePoint], float]) -> float:
    return curve[max(0, bisect_right(curve, place, key=x) - 1)].lower


def _panel(
    drawing: SvgDrawing,
    lines: Sequence[CurveGroup],
    name: str,
    x: Callable[[CurvePoint], float],
    place: tuple[float, float],
) -> None:
    """Draw axes and every line; ``place`` is the panel's left edge and its width, in pixels."""
    ends = [x(subject.curve[-1]) for line in lines for subject in line.subjects if subject.curve]
    highest = max(
        (point.lower for line in lines for each in line.subjects for point in each.curve), default=1
    )
    axes = Axes(place[0], TOP, place[1], PANEL - 16, max(ends, default=0), max(0.2, ceil(5 * highest) / 5))
    axes.draw(drawing, name)
    for number, line in enumerate(lines):
        several = len(line.subjects) > 1
        for subject in line.subjects:
            steps = [(axes.x(x(point)), axes.y(point.lower)) for point in subject.curve]
            _draw_path(drawing, number, steps, (1.1, 0.5) if several else (2.4, 1.0), subject.name)
        if several:
            steps = [(axes.x(at), axes.y(lower)) for at, lower in mean_curve(line.subjects, x)]
            _draw_path(drawing, number, steps, (2.6, 1.0), f"mean of {line.name}")


def _draw_path(
    drawing: SvgDrawing,
    number: int,
    steps: Sequence[tuple[float, float]],
    drawn: tuple[float, float],
    tip: str,
) -> None:
    """Add a line of stairs; ``drawn`` is its width in pixels and its opacity."""
    if steps:
        shape = {**_stroke(number), "d": stairs_path(steps), "fill": "none", "stroke-linejoin": "round"}
        shape |= {"stroke-width": drawn[0], "stroke-opacity": drawn[1]}
        drawing.add("path", shape, tip=one_line(tip, 120))


def _stroke(number: int) -> Mapping[str, str | int | float | None]:
    return {
        "stroke": PALETTE[number % len(PALETTE)],
        "stroke-dasharray": DASHES[number // len(PALETTE) % len(DASHES)],
    }
