"""The figures of reports and comparisons, each a function of a view; None if there is nothing to draw yet."""

import csv
import io
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from dgm.archive.durable import write_durably
from dgm.domain import Verdict
from dgm.render import fmt
from dgm.render.html.svg import (
    SERIES,
    SHADES,
    Axes,
    Drawing,
    band_path,
    number_text,
    round_ticks,
    stairs_path,
)
from dgm.render.safe import neutralise, one_line
from dgm.render.text import promises_text
from dgm.views.agents import AgentRow
from dgm.views.comparison import ComparedRun, ComparisonView
from dgm.views.curve import CurvePoint
from dgm.views.report import OperatorView, ReportView
from dgm.views.values import TallyView

WIDTH, HEIGHT = 360, 236
TREE_WIDTH, TALLEST, MARGIN, ROW, STEP = 960, 820, 26, 24, 130
"""Pixels of a tree's width, height and margin, and of a row and a generation if there is room."""
LARGEST, SMALLEST = 15, 2.6
"""Radius of a tree's largest and smallest mark, in pixels."""
LABELLED = 140
"""Maximum number of agents with an id beside each; above, only those of the best agent's line have one."""
PANEL, LEFT, TOP, FOOT = 260, 48, 52, 52
POINTS = 400
"""Maximum number of points of a mean curve."""
DASHES = (None, "7 3", "2 3", "8 3 2 3")
"""Dash patterns of the first groups that have a colour each, the next ones, and so on."""
COLUMNS = (
    *("run", "policy", "seed", "evaluations", "usd", "agent"),
    *("rate", "lower_bound", "tokens", "seconds", "group"),
)
"""Columns of the table of curves; ``agent`` is the one recommended after ``evaluations``."""
Place = tuple[float, float]
Scale = Callable[[CurvePoint], float]


def write_figures(view: ReportView | ComparisonView, folder: Path) -> Sequence[Path]:
    """Write each figure that can be drawn to ``folder/NAME.svg``, of a comparison also ``curves.csv``.

    Raises:
        Infrastructure: the disk is full or failing.
    """
    folder.mkdir(exist_ok=True)
    if isinstance(view, ReportView):
        about = f"run {view.run}, policy {view.policy}, seed {view.seed}"
        paid = bool(view.spend.usd)
        curves = draw_progress(view.curve, view.seed_agent.own, paid=paid)
        progress = {f"progress-{name}": drawing for name, drawing in curves.items()}
        drawings = {
            "holdout": draw_holdout(view),
            **progress,
            "tree": draw_tree(view.tree.agents, view.lineage.agents),
            "operators": draw_operators(view.operators),
            "drift": draw_drift(view),
            "front": draw_front(view),
            "matrix": draw_matrix(view),
        }
        files = {f"{name}.svg": drawing.file(about) for name, drawing in drawings.items() if drawing}
    else:
        about = "; ".join(f"run {run.run}, policy {run.policy}, seed {run.seed}" for run in view.runs)
        files = {"curves.svg": draw_comparison(view).file(about), "curves.csv": curve_table(view).encode()}
    for name, data in files.items():
        write_durably(folder / name, data)
    return [folder / name for name in files]


def draw_progress(curve: Sequence[CurvePoint], seed_agent: TallyView, *, paid: bool) -> Mapping[str, Drawing]:
    """Draw the highest lower bound over evaluations, over spend (tokens if no money was paid), and over time."""
    if not curve:
        return {}
    seconds = curve[-1].seconds
    unit, name = (
        (3600, "hours") if seconds >= 10_800 else (60, "minutes") if seconds >= 180 else (1, "seconds")
    )
    spend: tuple[str, Scale] = ("tokens used", lambda point: point.tokens)
    if paid:
        spend = "USD spent", lambda point: point.usd
    return {
        "evaluations": _draw_curve(curve, seed_agent, "evaluations", lambda point: point.evaluations),
        "spend": _draw_curve(curve, seed_agent, *spend),
        "time": _draw_curve(curve, seed_agent, f"{name} of wall time", lambda point: point.seconds / unit),
    }


def _draw_curve(curve: Sequence[CurvePoint], seed_agent: TallyView, name: str, x: Scale) -> Drawing:
    drawing = Drawing(f"highest lower bound over {name}", WIDTH, HEIGHT)
    axes = Axes(40, 30, WIDTH - 56, HEIGHT - 72, x(curve[-1]))
    axes.draw(drawing, name)
    legend = [(8, "lower bound", "lower", 2.2), (100, "rate, 95% interval", "raw", 1.2)]
    if seed_agent.n:
        y = axes.y(seed_agent.rate)
        drawing.line(axes.left, y, axes.left + axes.width, y, "seed", dash="2 3")
        legend.append((226, "seed's rate now", "seed", 1.0))
    for left, text, kind, width in legend:
        drawing.line(left, 11, left + 18, 11, kind, width, "2 3" if kind == "seed" else None)
        drawing.text(left + 23, 15, text, "soft" if kind == "raw" else f"{kind}text", 10.5)
    places = [axes.x(x(point)) for point in curve]
    low, high = (
        [(place, axes.y(point.interval[end])) for place, point in zip(places, curve, strict=True)]
        for end in (0, 1)
    )
    drawing.add("path", {"class": "band", "d": band_path(low, high)})
    rate = [(place, axes.y(point.rate)) for place, point in zip(places, curve, strict=True)]
    bound = [(place, axes.y(point.lower_bound)) for place, point in zip(places, curve, strict=True)]
    drawing.add("path", {"class": "raw", "d": stairs_path(rate), "stroke-width": 1.2})
    drawing.add("path", {"class": "lower", "d": stairs_path(bound), "stroke-width": 2.2})
    leader = None
    for point, (dot_x, dot_y) in zip(curve, bound, strict=True):
        if point.agent != leader:
            start, end = point.interval
            rates = (
                f"rate {point.rate:.0%} [{100 * start:.0f}–{end:.0%}], lower bound {point.lower_bound:.0%}"
            )
            tip = f"agent {point.agent} has the highest lower bound\n{fmt.short_number(x(point))} {name}\n{rates}"
            drawing.add("circle", {"class": "dot", "cx": dot_x, "cy": dot_y, "r": 2.6}, tip=tip)
        leader = point.agent
    return drawing


def draw_holdout(view: ReportView) -> Drawing | None:
    """Draw rates and 95 % intervals on the holdout tasks; None until the evaluation is complete."""
    holdout = view.holdout
    if holdout is None or holdout.missing or not holdout.seed_agent.n:
        return None
    rows = [("seed", holdout.seed_agent, "seed")]
    if not holdout.itself:
        rows.append((f"best ({view.best.agent})", holdout.best, ""))
        if holdout.control and holdout.control.attempts > 1:
            rows.append((f"seed × {holdout.control.attempts}", holdout.control.seed_any, "seed"))
    drawing = Drawing("rates on the holdout tasks with 95 % intervals", 640, 70 + 34 * len(rows))
    axes = Axes(90, 10, 380, 34 * len(rows), 1)
    foot = axes.top + axes.height
    for quarter in range(5):
        drawing.line(axes.x(quarter / 4), axes.top, axes.x(quarter / 4), foot, "grid")
        drawing.text(axes.x(quarter / 4), foot + 18, f"{25 * quarter}%", "soft", 11, "middle")
    drawing.text(axes.left + axes.width / 2, foot + 38, "resolved", "soft", 12, "middle")
    for number, (name, tally, kind) in enumerate(rows):
        y = axes.top + 34 * number + 17
        drawing.text(axes.left - 10, y + 4, name, "strong", 13, "end")
        axes.draw_interval(drawing, y, tally, kind, 6)
        drawing.text(axes.left + axes.width + 12, y + 4, fmt.tally_interval(tally), "", 12)
    return drawing


def draw_operators(operators: Sequence[OperatorView]) -> Drawing | None:
    """Draw the mean gain of each operator's children with its 95 % interval, in points."""
    gains = [(line.operator, line.gain) for line in operators if line.gain]
    if not gains:
        return None
    ends: list[float] = [abs(end) for _, gain in gains for end in (gain.mean, *(gain.interval or ()))]
    reach, foot = 100 * max(0.1, *ends), 10 + 30 * len(gains)
    drawing = Drawing("mean gain of each operator's children, in points", 640, 66 + 30 * len(gains))

    def x(points: float) -> float:
        return 355 + points / reach * 165

    marks = round_ticks(reach, 3)
    for mark in [*(-mark for mark in reversed(marks[1:])), *marks]:
        drawing.line(x(mark), 10, x(mark), foot, "grid" if mark else "axis")
        drawing.text(x(mark), foot + 16, f"{mark:+g}" if mark else "0", "soft", 11, "middle")
    drawing.text(x(0), foot + 36, "own rate minus the better parent's, in points", "soft", 12, "middle")
    for number, (operator, gain) in enumerate(gains):
        y = 25 + 30 * number
        drawing.text(178, y + 4, one_line(operator, 24), "", 12, "end")
        if gain.interval:
            drawing.line(x(100 * gain.interval[0]), y, x(100 * gain.interval[1]), y, "interval", 3)
        drawing.add("circle", {"class": "dot", "cx": x(100 * gain.mean), "cy": y, "r": 5})
    return drawing


def draw_drift(view: ReportView) -> Drawing | None:
    """Draw misconduct, size, cost, calls and refusals along the best agent's lineage; None for the seed alone."""
    steps = view.drift.steps
    if len(steps) < 2:
        return None
    money = any(step.usd_per_task for step in steps)
    rows: Sequence[tuple[str, Sequence[float]]] = (
        ("findings of misconduct", [step.findings for step in steps]),
        ("bytes of source", [step.source_bytes or 0 for step in steps]),
        ("USD per task", [step.usd_per_task for step in steps])
        if money
        else ("tokens per task", [step.tokens_per_task for step in steps]),
        ("calls per task", [step.calls_per_task for step in steps]),
        ("refused requests", [step.refusals for step in steps]),
    )
    left, width, band = 170, 400, 46
    drawing = Drawing("drift along the best agent's lineage", 640, 34 + band * len(rows))
    places = [left + width * number / (len(steps) - 1) for number in range(len(steps))]
    for number, (name, values) in enumerate(rows):
        foot, highest = 14 + band * (number + 1) - 12, max(values) or 1
        heights = [foot - 28 * value / highest for value in values]
        drawing.line(left, foot, left + width, foot, "axis")
        drawing.text(left - 12, foot - 6, name, "", 12, "end")
        drawing.text(left + width + 10, foot - 22, fmt.short_number(max(values)), "soft", 10.5)
        path = "M" + "L".join(
            f"{number_text(x)} {number_text(y)}" for x, y in zip(places, heights, strict=True)
        )
        drawing.add("path", {"class": "lower", "d": path, "stroke-width": 1.6})
        for x, y, value, step in zip(places, heights, values, steps, strict=True):
            tip = f"{fmt.short_number(value)} {name}, agent {step.agent}"
            drawing.add("circle", {"class": "dot", "cx": x, "cy": y, "r": 2.6}, tip=tip)
    for x, step in zip(places, steps, strict=True):
        if len(steps) <= 24 or step in (steps[0], steps[-1]):
            drawing.text(x, drawing.height - 8, str(step.agent), "soft", 9, "middle")
    return drawing


def draw_front(view: ReportView) -> Drawing | None:
    """Draw each agent's means of the front's first two metrics, and the front; None without a front."""
    objective = view.objective
    if objective is None or len(objective.front) < 2:
        return None
    up, right = objective.front[:2]
    measured = [each for each in objective.agents if {up, right} <= each.means.keys()]
    if not measured:
        return None
    drawing = Drawing(f"agents by {up} and {right}", 640, 330)
    axes = (
        _Span.of([each.means[right] for each in measured], 80, 610),
        _Span.of([each.means[up] for each in measured], 270, 20),
    )
    for number, (place, text) in enumerate(axes[0].ticks()):
        drawing.line(place, 20, place, 270, "grid" if number else "axis")
        drawing.text(place, 288, text, "soft", 10, "middle")
    for number, (place, text) in enumerate(axes[1].ticks()):
        drawing.line(80, place, 610, place, "grid" if number else "axis")
        drawing.text(74, place + 4, text, "soft", 10, "end")
    for name, x, y, anchor in ((right, 345.0, 312.0, "middle"), (up, 80.0, 12.0, "middle")):
        metric = objective.metrics[name]
        unit = f", {metric.unit}" if metric.unit else ""
        better = "higher" if metric.higher else "lower"
        drawing.text(x, y, one_line(f"{name}{unit} ({better} is better)", 60), "soft", 11, anchor)
    front = sorted((each.means[right], each.means[up]) for each in measured if each.front)
    path = "L".join(f"{number_text(axes[0].place(x))} {number_text(axes[1].place(y))}" for x, y in front)
    if len(front) > 1 and len(objective.front) == 2:
        drawing.add("path", {"class": "lower", "d": f"M{path}", "stroke-width": 1.6})
    for each in measured:
        x, y = axes[0].place(each.means[right]), axes[1].place(each.means[up])
        tip = f"agent {each.agent}, {fmt.count(each.tasks, 'task')}\n" + "\n".join(
            f"{name} {value:.4g}" for name, value in each.means.items()
        )
        kind = {
            "class": "dot" if each.front else "node none",
            "cx": x,
            "cy": y,
            "r": 5 if each.front else 3.5,
        }
        drawing.add("circle", kind, tip=one_line(tip, 400))
        if each.front or each.agent in (view.seed_agent.agent, view.best.agent):
            star = f" {fmt.BEST}" if each.agent == view.best.agent else ""
            drawing.text(
                x + 8, y - 6, f"{each.agent}{star}", "strong halo" if each.front else "soft halo", 10
            )
    return drawing


class _Span(NamedTuple):
    low: float
    high: float
    start: float
    end: float

    step: float
    """Distance of ticks."""

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float) -> "_Span":
        """Return the axis of values from one pixel to another, which begins and ends at a tick."""
        lowest, highest = min(values), max(values)
        size = max(abs(lowest), abs(highest))
        step = round_ticks(highest - lowest if highest - lowest > 1e-9 * size else size or 1.0)[1]
        low, high = step * math.floor(lowest / step), step * math.ceil(highest / step)
        return cls(low, high if high > low else low + step, start, end, step)

    def place(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield the pixel and the text of each tick, the lowest first."""
        for number in range(round((self.high - self.low) / self.step) + 1):
            value = self.low + number * self.step
            text = fmt.short_number(value) if abs(value) >= 100 else number_text(value, 6)
            yield self.place(value), text


def draw_matrix(view: ReportView) -> Drawing | None:
    """Draw the search tasks by agents of the best agent's line."""
    rows, agents, left, top, side = view.matrix.tasks, view.matrix.agents, 250, 30, 18
    if not rows:
        return None
    drawing = Drawing(
        "search tasks by agents on the best agent's line",
        left + side * len(agents) + 12,
        top + side * len(rows) + 10,
    )
    for column, agent in enumerate(agents):
        drawing.text(left + side * (column + 0.5), top - 8, str(agent), "soft", 9, "middle")
    looks = {Verdict.RESOLVED: ("goodbox", "good"), Verdict.UNRESOLVED: ("badbox", "bad")}
    for number, row in enumerate(rows):
        y = top + side * number
        drawing.text(left - 8, y + 13, one_line(row.task, 38), "", 11, "end")
        for column, verdict in enumerate(row.verdicts):
            box, ink = looks[verdict] if verdict else ("nobox", "soft")
            square = {"x": left + side * column, "y": y, "width": side - 1, "height": side - 1}
            drawing.add("rect", {"class": box, **square})
            mark = fmt.VERDICT_MARKS[verdict] if verdict else "·"
            drawing.text(left + side * (column + 0.5) - 0.5, y + 13, mark, ink, 11, "middle")
    return drawing


class _TreeScale(NamedTuple):
    largest: int
    """Verdicts of the largest clade."""
    radius: float
    low: float
    high: float

    def size(self, verdicts: int) -> float:
        """Return a radius; areas are proportional to the verdicts on a clade, except for the smallest."""
        return max(SMALLEST, self.radius * math.sqrt(verdicts / self.largest)) if self.largest else SMALLEST

    def shade(self, agent: AgentRow) -> str:
        """Return the class of a clade's rate."""
        share = (agent.clade.rate - self.low) / (self.high - self.low)
        return f"c{min(SHADES - 1, max(0, int(share * SHADES)))}" if agent.clade.n else "none"


def draw_tree(members: Sequence[AgentRow], line: Sequence[int]) -> Drawing:
    """Draw the tree: depth to the right, a clade's verdicts as area, its rate (CMP) as shade, the best line thick.

    Args:
        members: the agents to draw, parents first, each with its parents.
        line: the best agent's line, the seed first.
    """
    agents = {agent.agent: agent for agent in members}
    rows = _place_rows(agents)
    depth, leaves = max(agent.depth for agent in agents.values()), max(rows.values())
    step = min(STEP, (TREE_WIDTH - 2 * MARGIN - 20) / max(1, depth))
    row = min(ROW, TALLEST / max(1, leaves))
    places = {agent: (MARGIN + agents[agent].depth * step, MARGIN + y * row) for agent, y in rows.items()}
    rates = [agent.clade.rate for agent in agents.values() if agent.clade.n] or [0.0, 1.0]
    low, high = math.floor(10 * min(rates)) / 10, math.ceil(10 * max(rates)) / 10
    largest = max(agent.clade.n for agent in agents.values())
    scale = _TreeScale(largest, min(LARGEST, max(6.0, row * 0.75)), low, max(high, low + 0.1))
    width = max(640.0, min(TREE_WIDTH, 2 * MARGIN + depth * step + 20))
    drawing = Drawing("the tree of agents", width, 2 * MARGIN + leaves * row)
    _draw_edges(drawing, agents, places, set(pairwise(line)))
    for agent, place in places.items():
        labelled = len(agents) <= LABELLED or agent in line
        hidden = sum(child not in agents for child in agents[agent].children)
        _draw_agent(
            drawing, agents[agent], place, scale, "strong" if agent in line else "soft", hidden, labelled
        )
    _draw_legend(drawing, scale)
    return drawing


def _place_rows(agents: Mapping[int, AgentRow]) -> Mapping[int, float]:
    """Return the row of each agent, parents first: leaves are at 0, 1, 2 …, parents in the middle of their children."""
    children: dict[int, list[int]] = {agent: [] for agent in agents}
    for agent in agents.values():
        if agent.parents:
            children[agent.parents[0]].append(agent.agent)
    waiting = [agent.agent for agent in reversed([*agents.values()]) if not agent.parents]
    order: list[int] = []
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(children[order[-1]])
    leaves = [agent for agent in order if not children[agent]]
    rows = {agent: float(number) for number, agent in enumerate(leaves)}
    for number in reversed(order):
        if below := children[number]:
            rows[number] = (rows[below[0]] + rows[below[-1]]) / 2
    return {number: rows[number] for number in order}


def _draw_edges(
    drawing: Drawing, agents: Mapping[int, AgentRow], places: Mapping[int, Place], thick: set[tuple[int, int]]
) -> None:
    paths: dict[str, list[str]] = {"edge": [], "edge2": [], "line": []}
    for agent in agents.values():
        for number, parent in enumerate(dict.fromkeys(agent.parents)):
            if parent in places:
                kind = "edge2" if number else "line" if (parent, agent.agent) in thick else "edge"
                (x1, y1), (x2, y2) = places[parent], places[agent.agent]
                start, end, middle, top, foot = (number_text(v, 1) for v in (x1, x2, (x1 + x2) / 2, y1, y2))
                paths[kind].append(f"M{start} {top}C{middle} {top} {middle} {foot} {end} {foot}")
    for kind, curves in paths.items():
        if curves:
            width = 2.6 if kind == "line" else 1.1
            drawing.add("path", {"class": kind, "d": "".join(curves), "stroke-width": width})


def _draw_agent(  # noqa: PLR0913  (place and look)
    drawing: Drawing,
    agent: AgentRow,
    place: Place,
    scale: _TreeScale,
    label: str,
    hidden: int,
    labelled: bool,
) -> None:
    x, y, radius = *place, scale.size(agent.clade.n)
    circle = {"cx": number_text(x, 1), "cy": number_text(y, 1), "r": number_text(radius, 1)}
    tip = "\n".join(_tip_lines(agent, hidden))
    drawing.add("circle", {"class": f"node {scale.shade(agent)}", **circle}, tip=tip)
    if agent.best:
        tip = f"agent {agent.agent}: the best agent, which the policy recommends"
        drawing.add("path", {"class": "star", "d": _star_path(x, y - radius - 9)}, tip=tip)
    if labelled and len(agent.children) > hidden:
        drawing.text(x, y + radius + 10.5, str(agent.agent), f"{label} halo", 10, "middle")
    elif labelled:
        drawing.text(x + radius + 4, y + 3.5, str(agent.agent), f"{label} halo", 10)


def _tip_lines(agent: AgentRow, hidden: int) -> Iterator[str]:
    aim = f":{one_line(agent.aim, 40)}" if agent.aim else ""
    parents = f" of {' and '.join(map(str, agent.parents))}" if agent.parents else ""
    children = f", {fmt.count(len(agent.children), 'child', 'children')}" if agent.children else ""
    yield f"agent {agent.agent}: {one_line(agent.operator, 80)}{aim}{parents}"
    yield f"own {fmt.tally_interval(agent.own)}"
    if agent.abandoned:
        yield f"{fmt.count(agent.abandoned, 'task')} abandoned"
    yield f"clade (CMP) {fmt.tally(agent.clade)}{children}"
    if gain := fmt.clade_gain(agent):
        yield f"clade's gain per expansion {gain}"
    if agent.clade_findings:
        yield f"misconduct {agent.findings}, clade {agent.clade_findings}"
    if agent.clade_tested:
        yield f"predictions {promises_text(agent)}"
    if agent.rationale:
        yield one_line(agent.rationale, 90)
    if hidden:
        yield f"not drawn: {fmt.count(hidden, 'child', 'children')}"


def _star_path(x: float, y: float) -> str:
    turns = [(math.pi * (number / 5 - 0.5), 2.9 if number % 2 else 7) for number in range(10)]
    points = [(x + reach * math.cos(turn), y + reach * math.sin(turn)) for turn, reach in turns]
    return "M" + "L".join(f"{number_text(a, 1)} {number_text(b, 1)}" for a, b in points) + "Z"


def _draw_legend(drawing: Drawing, scale: _TreeScale) -> None:
    """Draw the meaning of the marks below the tree, on one line."""
    x, y = float(MARGIN), drawing.height + 14
    drawing.text(x, y + 10, f"clade's rate (CMP), {scale.low:.0%} to {scale.high:.0%}:", "soft")
    for shade in range(SHADES):
        square = {"x": x + 186 + 16 * shade, "y": y, "width": 16, "height": 12}
        drawing.add("rect", {"class": f"node c{shade}", **square})
    radius = scale.size(scale.largest)
    drawing.add("circle", {"class": "node none", "cx": x + 330, "cy": y + 6, "r": radius})
    drawing.text(x + 336 + radius, y + 10, fmt.count(scale.largest, "verdict"), "soft")
    drawing.add("path", {"class": "star", "d": _star_path(x + 448, y + 6)})
    drawing.text(x + 460, y + 10, "best, recommended", "soft")
    drawing.height = y + 34


def curve_table(view: ComparisonView) -> str:
    """Return a row for each moment of each run's curve, as CSV."""
    groups = {run: name for name, runs in view.groups.items() for run in runs}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for run in view.runs:
        group = groups.get(run.run, "")
        for point in run.curve:
            row = {**asdict(point), "run": run.run, "policy": run.policy, "seed": run.seed, "group": group}
            table.writerow([_csv_cell(row[column]) for column in COLUMNS])
    return text.getvalue()


def _csv_cell(value: float | str) -> float | str:
    if not isinstance(value, str):
        return value
    # A spreadsheet would compute a text that begins so.
    return f"'{neutralise(value)}" if value.startswith(("=", "+", "-", "@", "\t")) else neutralise(value)


def draw_comparison(view: ComparisonView) -> Drawing:
    """Draw the lower bound of each run's recommended agent over evaluations and money; for groups the mean, thick.

    Tokens stand for money if no run spent any.
    """
    runs = {run.run: run for run in view.runs}
    groups = {name: [runs[run] for run in members] for name, members in view.groups.items()}
    groups = groups or {run.run: [run] for run in view.runs}
    spend: tuple[str, Scale] = ("tokens used (no money was spent)", lambda point: point.tokens)
    if any(run.usd for run in view.runs):
        spend = "USD spent", lambda point: point.usd
    height = TOP + PANEL + FOOT + 18 * -(-len(groups) // 2) + 8
    drawing = Drawing("the best agents of several runs", 860, height)
    drawing.text(LEFT, 20, "Lower bound of the recommended agent's rate on the search tasks", "strong", 13)
    if any(len(members) > 1 for members in groups.values()):
        drawing.text(LEFT, 36, "thin: one run; thick: mean of a group, as far as all of its runs go", "soft")
    _draw_panel(drawing, groups, "evaluations", lambda point: point.evaluations, LEFT)
    _draw_panel(drawing, groups, *spend, LEFT + 418)
    for number, (name, members) in enumerate(groups.items()):
        x, y = LEFT + number % 2 * drawing.width / 2, TOP + PANEL + FOOT + 18 * (number // 2)
        drawing.line(x, y, x + 26, y, f"s{number % SERIES}", 2.6, DASHES[number // SERIES % len(DASHES)])
        more = f" ({fmt.count(len(members), 'run')})" if len(members) > 1 else ""
        drawing.text(x + 34, y + 4, one_line(name, 48) + more, "", 12)
    return drawing


def _draw_panel(
    drawing: Drawing, groups: Mapping[str, Sequence[ComparedRun]], name: str, x: Scale, left: float
) -> None:
    curves = [run.curve for members in groups.values() for run in members if run.curve]
    highest = max((point.lower_bound for curve in curves for point in curve), default=1)
    end = max((x(curve[-1]) for curve in curves), default=0)
    axes = Axes(left, TOP, 354, PANEL - 16, end, max(0.2, math.ceil(5 * highest) / 5))
    axes.draw(drawing, name)
    for number, (group, members) in enumerate(groups.items()):
        several, dash = len(members) > 1, DASHES[number // SERIES % len(DASHES)]
        curves_of = {run.run: [(x(point), point.lower_bound) for point in run.curve] for run in members}
        lines = [(tip, points, 1.1 if several else 2.4) for tip, points in curves_of.items()]
        lines += [(f"mean of {group}", [*mean_curve(members, x)], 2.6)] if several else []
        for tip, points, width in lines:
            path = stairs_path([(axes.x(place), axes.y(bound)) for place, bound in points])
            look = {"class": f"s{number % SERIES}", "stroke-dasharray": dash, "stroke-width": width}
            opacity = 0.5 if width < 2 else None
            drawing.add(
                "path", {**look, "stroke-opacity": opacity, "d": path, "fill": "none"}, tip=one_line(tip, 120)
            )


def mean_curve(runs: Sequence[ComparedRun], x: Scale) -> Sequence[Place]:
    """Return the mean of the runs' lower bounds over x, from the latest begin to the earliest end.

    A run without a verdict is left out.
    """
    curves = [run.curve for run in runs if run.curve]
    start = max((x(curve[0]) for curve in curves), default=0.0)
    end = min((x(curve[-1]) for curve in curves), default=-1.0)
    if end < start:
        return []
    places = sorted(
        {x(point) for curve in curves for point in curve if start <= x(point) <= end} | {start, end}
    )
    if len(places) > POINTS:
        places = [places[round(n * (len(places) - 1) / (POINTS - 1))] for n in range(POINTS)]
    return [
        (place, fmean(curve[max(0, bisect_right(curve, place, key=x) - 1)].lower_bound for curve in curves))
        for place in places
    ]
