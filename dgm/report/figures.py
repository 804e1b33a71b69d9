"""The pictures of a report, each a function of its facts; None where there is nothing to draw yet."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dgm.archive.durable import write_durably
from dgm.domain import AgentId, Verdict
from dgm.report.curve import CurvePoint
from dgm.report.drawing import Axes, SvgDrawing, round_ticks, short_number, stairs_path
from dgm.report.facts import RunReport
from dgm.report.markup import Value
from dgm.report.section import points_text
from dgm.report.targets import check_folder
from dgm.report.tree_picture import draw_tree_picture
from dgm.show.safe import one_line
from dgm.show.words import UNTRIED, VERDICT_MARKS, interval_text, tally_text

WIDTH, HEIGHT = 360, 236


def draw_progress_evaluations(report: RunReport) -> SvgDrawing | None:
    """Draw the highest lower bound over evaluations."""
    return _draw_progress(report, "evaluations", lambda point: point.evaluations)


def draw_progress_spend(report: RunReport) -> SvgDrawing | None:
    """Draw the highest lower bound over the cost of the model calls: money, or tokens where none was paid."""
    if report.spend.usd:
        return _draw_progress(report, "USD spent", lambda point: point.usd)
    return _draw_progress(report, "tokens used", lambda point: point.tokens)


def draw_progress_time(report: RunReport) -> SvgDrawing | None:
    """Draw the highest lower bound over wall time."""
    seconds = report.curve[-1].seconds if report.curve else 0
    unit, name = (
        (3600, "hours") if seconds >= 3 * 3600 else (60, "minutes") if seconds >= 180 else (1, "seconds")
    )
    return _draw_progress(report, name, lambda point: point.seconds / unit)


def _draw_progress(report: RunReport, name: str, x: Callable[[CurvePoint], float]) -> SvgDrawing | None:
    points = report.curve
    if not points:
        return None
    drawing = SvgDrawing(f"highest lower bound over {name}", WIDTH, HEIGHT)
    axes = Axes(40, 30, WIDTH - 56, HEIGHT - 72, x(points[-1]))
    axes.draw(drawing, name)
    places = [axes.x(x(point)) for point in points]
    raw = [(at, axes.y(point.raw)) for at, point in zip(places, points, strict=True)]
    lower = [(at, axes.y(point.lower)) for at, point in zip(places, points, strict=True)]
    seed = report.members[0].own
    if seed.n:
        y = axes.y(seed.rate)
        drawing.add("line", _dotted_attributes(axes.left, axes.left + axes.width, y))
    drawing.add("path", {"class": "raw", "d": stairs_path(raw), "stroke-width": 1.2})
    drawing.add(
        "path", {"class": "lower", "d": stairs_path(lower), "stroke-width": 2.2, "stroke-linejoin": "round"}
    )
    _draw_spots(drawing, points, lower, x, name)
    _draw_key(drawing, bool(seed.n))
    return drawing


def _dotted_attributes(left: float, right: float, y: float) -> Mapping[str, Value]:
    return {"class": "seed", "x1": left, "x2": right, "y1": y, "y2": y, "stroke-dasharray": "2 3"}


def _draw_key(drawing: SvgDrawing, seed: bool) -> None:
    """Draw the key of the lines above them."""
    drawing.line(40, 11, 58, 11, "lower", 2.2)
    drawing.text(63, 15, "lower bound", "lowertext", 10.5)
    drawing.line(136, 11, 154, 11, "raw", 1.2)
    drawing.text(159, 15, "rate so far", "soft", 10.5)
    if seed:
        drawing.add("line", _dotted_attributes(226, 244, 11))
        drawing.text(249, 15, "seed's rate now", "seedtext", 10.5)


def _draw_spots(
    drawing: SvgDrawing,
    points: Sequence[CurvePoint],
    places: Sequence[tuple[float, float]],
    x: Callable[[CurvePoint], float],
    name: str,
) -> None:
    """Mark the points where another agent took the lead, with their tooltips."""
    before: AgentId | None = None
    for point, (at, y) in zip(points, places, strict=True):
        if point.agent != before:
            tip = (
                f"agent {point.agent} has the highest lower bound\n{short_number(x(point))} {name}\n"
                f"rate {point.raw:.0%}, lower bound {point.lower:.0%}"
            )
            drawing.add("circle", {"class": "dot", "cx": at, "cy": y, "r": 2.6}, tip=tip)
        before = point.agent


def draw_holdout(report: RunReport) -> SvgDrawing | None:
    """Draw rates and 95 % intervals of the examination; None until it is complete."""
    if report.found is None or report.found.missing or not report.found.comparison.first.n:
        return None
    pairs = report.found.comparison
    rows = [("seed", pairs.first, "seed")]
    if not report.found.itself:
        rows.append((f"best ({report.best})", pairs.second, ""))
    control = None if report.found.itself else report.found.control
    if control and control.attempts > 1:
        rows.append((f"seed × {control.attempts}", control.pairs.first, "seed"))
    drawing = SvgDrawing("rates on the holdout tasks with 95 % intervals", 640, 70 + 34 * len(rows))
    axes = Axes(90, 10, 380, 34 * len(rows), 1)
    for quarter in range(5):
        at = axes.x(quarter / 4)
        drawing.line(at, axes.top, at, axes.top + axes.height, "grid")
        drawing.text(at, axes.top + axes.height + 18, f"{25 * quarter}%", "soft", 11, "middle")
    drawing.text(axes.left + axes.width / 2, axes.top + axes.height + 38, "resolved", "soft", 12, "middle")
    for number, (name, tally, kind) in enumerate(rows):
        y = axes.top + 34 * number + 17
        drawing.text(axes.left - 10, y + 4, name, "strong", 13, "end")
        axes.draw_interval(drawing, y, tally, kind, 6)
        said = f"{tally_text(tally)}  ({interval_text(tally)})"
        drawing.text(axes.left + axes.width + 12, y + 4, said, "", 12)
    return drawing


def draw_operators(report: RunReport) -> SvgDrawing | None:
    """Draw the mean gain of each operator's children with its 95 % interval, in points."""
    lines = [line for line in report.operators if line.gain is not None]
    if not lines:
        return None
    gains = [line.gain for line in lines if line.gain]
    ends = [abs(end) for gain in gains for end in (gain.mean, gain.low, gain.high) if end is not None]
    reach = max(0.1, *ends)
    marks = round_ticks(100 * reach, 3)
    drawing = SvgDrawing("mean gain of each operator's children, in points", 640, 66 + 30 * len(lines))
    left, width, top = 190, 330, 10
    middle = left + width / 2
    foot = top + 30 * len(lines)
    for mark in [*(-mark for mark in reversed(marks[1:])), *marks]:
        at = middle + mark / (100 * reach) * width / 2
        drawing.line(at, top, at, foot, "grid" if mark else "axis")
        drawing.text(at, foot + 16, points_text(mark / 100).split()[0] if mark else "0", "soft", 11, "middle")
    drawing.text(middle, foot + 36, "own rate minus the better parent's, in points", "soft", 12, "middle")
    for number, (line, gain) in enumerate(zip(lines, gains, strict=True)):
        y = top + 30 * number + 15
        drawing.text(left - 12, y + 4, one_line(line.operator, 24), "", 12, "end")
        if gain.low is not None and gain.high is not None:
            ends = [middle + end / reach * width / 2 for end in (gain.low, gain.high)]
            drawing.line(ends[0], y, ends[1], y, "interval", 3)
        drawing.add("circle", {"class": "dot", "cx": middle + gain.mean / reach * width / 2, "cy": y, "r": 5})
        drawing.text(left + width + 14, y + 4, f"{line.better} of {line.judged} better", "soft", 12)
    return drawing


def draw_matrix(report: RunReport) -> SvgDrawing | None:
    """Draw search tasks × agents on the best one's line."""
    found = report.matrix
    if not found.rows:
        return None
    left, top, side = 250, 30, 18
    width = left + side * len(found.agents) + 12
    drawing = SvgDrawing(
        "search tasks by agents on the best one's line", width, top + side * len(found.rows) + 10
    )
    for column, agent in enumerate(found.agents):
        drawing.text(left + side * column + side / 2, top - 8, str(agent), "soft", 9, "middle")
    for number, row in enumerate(found.rows):
        y = top + side * number
        drawing.text(left - 8, y + 13, one_line(row.task, 38), "", 11, "end")
        for column, verdict in enumerate(row.verdicts):
            x = left + side * column
            box, ink = {Verdict.RESOLVED: ("goodbox", "good"), Verdict.UNRESOLVED: ("badbox", "bad")}.get(
                verdict or Verdict.INVALID, ("nobox", "soft")
            )
            drawing.add("rect", {"class": box, "x": x, "y": y, "width": side - 1, "height": side - 1})
            sign = VERDICT_MARKS[verdict] if verdict else UNTRIED
            drawing.text(x + side / 2 - 0.5, y + 13, sign, ink, 11, "middle")
    return drawing


FIGURES: Mapping[str, Callable[[RunReport], SvgDrawing | None]] = {
    "holdout": draw_holdout,
    "progress-evaluations": draw_progress_evaluations,
    "progress-spend": draw_progress_spend,
    "progress-time": draw_progress_time,
    "tree": draw_tree_picture,
    "operators": draw_operators,
    "matrix": draw_matrix,
}
"""The figures by the names of their files."""


def write_figures(report: RunReport, folder: Path) -> Sequence[Path]:
    """Write each figure that can be drawn to ``folder/NAME.svg``; files of other names stay.

    Raises:
        UserError: the folder cannot be made or written.
        Infrastructure: the disk is full or failing.
    """
    check_folder(folder, "--figures")
    drawn = {name: figure(report) for name, figure in FIGURES.items()}
    about = f"run {report.run['run']}, policy {report.run['policy']}, seed {report.run['seed']}"
    files = {folder / f"{name}.svg": drawing.file(about) for name, drawing in drawn.items() if drawing}
    for path, data in files.items():
        write_durably(path, data)
    return list(files)
