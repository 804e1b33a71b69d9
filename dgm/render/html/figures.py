"""The figures of reports and comparisons, each a function of a view; None if there is nothing to draw yet."""

import csv
import io
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from dgm.archive.durable import write_durably
from dgm.domain import Verdict
from dgm.render import fmt
from dgm.render.html.svg import (
    SERIES,
    SHADES,
    Axes,
    Drawing,
    number_text,
    round_ticks,
    short_number,
    stairs_path,
)
from dgm.render.safe import neutralise, one_line
from dgm.views.agents import AgentRow
from dgm.views.comparison import ComparedRun, ComparisonView
from dgm.views.curve import CurvePoint
from dgm.views.report import ReportView

WIDTH, HEIGHT = 360, 236
Place = tuple[float, float]
Scale = Callable[[CurvePoint], float]


def draw_progress(view: ReportView, name: str, x: Scale) -> Drawing | None:
    """Draw the highest lower bound over ``x``, whose unit is ``name``; a dot marks a new leader."""
    if not view.curve:
        return None
    drawing = Drawing(f"highest lower bound over {name}", WIDTH, HEIGHT)
    axes = Axes(40, 30, WIDTH - 56, HEIGHT - 72, x(view.curve[-1]))
    axes.draw(drawing, name)
    drawing.line(40, 11, 58, 11, "lower", 2.2)
    drawing.text(63, 15, "lower bound", "lowertext", 10.5)
    drawing.line(136, 11, 154, 11, "raw", 1.2)
    drawing.text(159, 15, "rate so far", "soft", 10.5)
    if view.seed_agent.own.n:
        y = axes.y(view.seed_agent.own.rate)
        drawing.line(axes.left, y, axes.left + axes.width, y, "seed", dash="2 3")
        drawing.line(226, 11, 244, 11, "seed", dash="2 3")
        drawing.text(249, 15, "seed's rate now", "seedtext", 10.5)
    rate = [(axes.x(x(point)), axes.y(point.rate)) for point in view.curve]
    bound = [(axes.x(x(point)), axes.y(point.lower_bound)) for point in view.curve]
    drawing.add("path", {"class": "raw", "d": stairs_path(rate), "stroke-width": 1.2})
    drawing.add(
        "path", {"class": "lower", "d": stairs_path(bound), "stroke-width": 2.2, "stroke-linejoin": "round"}
    )
    leader = None
    for point, (left, y) in zip(view.curve, bound, strict=True):
        if point.agent != leader:
            tip = (
                f"agent {point.agent} has the highest lower bound\n{short_number(x(point))} {name}\n"
                f"rate {point.rate:.0%}, lower bound {point.lower_bound:.0%}"
            )
            drawing.add("circle", {"class": "dot", "cx": left, "cy": y, "r": 2.6}, tip=tip)
        leader = point.agent
    return drawing


def draw_progress_evaluations(view: ReportView) -> Drawing | None:
    """Draw the highest lower bound over evaluations."""
    return draw_progress(view, "evaluations", lambda point: point.evaluations)


def draw_progress_spend(view: ReportView) -> Drawing | None:
    """Draw the highest lower bound over money, or over tokens if none was paid."""
    if view.spend.usd:
        return draw_progress(view, "USD spent", lambda point: point.usd)
    return draw_progress(view, "tokens used", lambda point: point.tokens)


def draw_progress_time(view: ReportView) -> Drawing | None:
    """Draw the highest lower bound over wall time."""
    seconds = view.curve[-1].seconds if view.curve else 0
    unit, name = (
        (3600, "hours") if seconds >= 10_800 else (60, "minutes") if seconds >= 180 else (1, "seconds")
    )
    return draw_progress(view, name, lambda point: point.seconds / unit)


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
        x = axes.x(quarter / 4)
        drawing.line(x, axes.top, x, foot, "grid")
        drawing.text(x, foot + 18, f"{25 * quarter}%", "soft", 11, "middle")
    drawing.text(axes.left + axes.width / 2, foot + 38, "resolved", "soft", 12, "middle")
    for number, (name, tally, kind) in enumerate(rows):
        y = axes.top + 34 * number + 17
        drawing.text(axes.left - 10, y + 4, name, "strong", 13, "end")
        axes.draw_interval(drawing, y, tally, kind, 6)
        drawing.text(axes.left + axes.width + 12, y + 4, fmt.tally_interval(tally), "", 12)
    return drawing


def draw_operators(view: ReportView) -> Drawing | None:
    """Draw the mean gain of each operator's children with its 95 % interval, in points."""
    gains = [(line.operator, line.gain) for line in view.operators if line.gain]
    if not gains:
        return None
    ends = [abs(end) for _, gain in gains for end in (gain.mean, *(gain.interval or ()))]
    reach = max(0.1, *ends)
    drawing = Drawing("mean gain of each operator's children, in points", 640, 66 + 30 * len(gains))
    left, width, top = 190, 330, 10
    middle, foot = left + width / 2, top + 30 * len(gains)

    def x(gain: float) -> float:
        return middle + gain / reach * width / 2

    marks = round_ticks(100 * reach, 3)
    for mark in [*(-mark for mark in reversed(marks[1:])), *marks]:
        drawing.line(x(mark / 100), top, x(mark / 100), foot, "grid" if mark else "axis")
        drawing.text(x(mark / 100), foot + 16, f"{mark:+g}" if mark else "0", "soft", 11, "middle")
    drawing.text(middle, foot + 36, "own rate minus the better parent's, in points", "soft", 12, "middle")
    for number, (operator, gain) in enumerate(gains):
        y = top + 30 * number + 15
        drawing.text(left - 12, y + 4, one_line(operator, 24), "", 12, "end")
        if gain.interval:
            drawing.line(x(gain.interval[0]), y, x(gain.interval[1]), y, "interval", 3)
        drawing.add("circle", {"class": "dot", "cx": x(gain.mean), "cy": y, "r": 5})
    return drawing


def draw_matrix(view: ReportView) -> Drawing | None:
    """Draw the search tasks by agents of the best agent's line."""
    matrix = view.matrix
    if not matrix.tasks:
        return None
    left, top, side = 250, 30, 18
    height = top + side * len(matrix.tasks) + 10
    drawing = Drawing(
        "search tasks by agents on the best agent's line", left + side * len(matrix.agents) + 12, height
    )
    for column, agent in enumerate(matrix.agents):
        drawing.text(left + side * column + side / 2, top - 8, str(agent), "soft", 9, "middle")
    looks = {Verdict.RESOLVED: ("goodbox", "good"), Verdict.UNRESOLVED: ("badbox", "bad")}
    for number, row in enumerate(matrix.tasks):
        y = top + side * number
        drawing.text(left - 8, y + 13, one_line(row.task, 38), "", 11, "end")
        for column, verdict in enumerate(row.verdicts):
            x = left + side * column
            box, ink = looks[verdict] if verdict else ("nobox", "soft")
            drawing.add("rect", {"class": box, "x": x, "y": y, "width": side - 1, "height": side - 1})
            mark = fmt.VERDICT_MARKS[verdict] if verdict else "·"
            drawing.text(x + side / 2 - 0.5, y + 13, mark, ink, 11, "middle")
    return drawing


MARGIN, ROW, TALLEST, WIDEST_STEP = 26, 24, 820, 130
"""Pixels of a tree's margin, between leaves if there is room, of its height, and between generations."""
TREE_WIDTH, LARGEST, SMALLEST = 960, 15, 2.6
"""Width of a tree and radius of its largest and smallest mark, in pixels."""
LABELLED = 140
"""Maximum number of agents with an id beside each; above, only those of the best agent's line have one."""
CORNERS = {
    "square": (4, 45, 1.25),
    "diamond": (4, 0, 1.25),
    "triangle": (3, -90, 1.45),
    "hexagon": (6, 0, 1.1),
}
"""Number of corners, angle of the first one, and radius compared with a circle of the same area."""
FORMS = ("circle", *CORNERS)
"""Forms of marks by operator, in the order of their first children; all further operators have the last one."""


@dataclass(frozen=True, slots=True)
class _TreeScale:
    largest: int
    radius: float
    low: float
    high: float
    forms: Mapping[str, str]

    def size(self, verdicts: int) -> float:
        """Return a radius in pixels; areas are proportional to the verdicts on a clade, except for the smallest."""
        return max(SMALLEST, self.radius * math.sqrt(verdicts / self.largest)) if self.largest else SMALLEST

    def shade(self, agent: AgentRow) -> str:
        if not agent.clade.n:
            return "none"
        share = (agent.clade.rate - self.low) / (self.high - self.low)
        return f"c{min(SHADES - 1, max(0, int(share * SHADES)))}"


def draw_tree(view: ReportView) -> Drawing:
    """Draw the tree: depth to the right, a clade's verdicts as area, its rate (CMP) as shade, the best line thick."""
    agents = {agent.agent: agent for agent in view.tree.agents}
    places, rows, depth = _place_agents(agents)
    step = min(WIDEST_STEP, (TREE_WIDTH - 2 * MARGIN - 20) / max(1, depth))
    row = min(ROW, TALLEST / max(1, rows - 1))
    scale = _scale_tree(view, min(LARGEST, max(6.0, row * 0.75)))
    height = 2 * MARGIN + max(0, rows - 1) * row
    drawing = Drawing(
        "the tree of agents", max(640.0, min(TREE_WIDTH, 2 * MARGIN + depth * step + 20)), height
    )
    at = {agent: (MARGIN + x * step, MARGIN + y * row) for agent, (x, y) in places.items()}
    line = view.lineage.agents
    _draw_edges(drawing, agents, at, set(pairwise(line)))
    for number in places:
        _draw_agent(
            drawing, agents[number], at, scale, on_line=number in line, all_labelled=len(agents) <= LABELLED
        )
    drawing.height = _draw_legend(drawing, scale, height)
    return drawing


def _place_agents(agents: Mapping[int, AgentRow]) -> tuple[Mapping[int, Place], int, int]:
    """Return depth and row of each agent, parents first, with the number of rows and the largest depth.

    Leaves are at 0, 1, 2 …, a parent is in the middle of its children.
    """
    waiting = [agent.agent for agent in reversed([*agents.values()]) if not agent.parents]
    order: list[int] = []
    children = {
        agent.agent: [
            child for child in agent.children if child in agents and agents[child].parents[0] == agent.agent
        ]
        for agent in agents.values()
    }
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(children[order[-1]])
    leaves = [agent for agent in order if not children[agent]]
    rows = {agent: float(number) for number, agent in enumerate(leaves)}
    for agent in reversed(order):
        if below := children[agent]:
            rows[agent] = (rows[below[0]] + rows[below[-1]]) / 2
    places = {agent: (float(agents[agent].depth), rows[agent]) for agent in order}
    return places, len(leaves), max(agents[agent].depth for agent in order)


def _scale_tree(view: ReportView, radius: float) -> _TreeScale:
    agents = view.tree.agents
    rates = [agent.clade.rate for agent in agents if agent.clade.n]
    low, high = math.floor(10 * min(rates, default=0)) / 10, math.ceil(10 * max(rates, default=1)) / 10
    operators = dict.fromkeys(agent.operator for agent in agents if agent.parents)
    forms = dict(zip(operators, FORMS, strict=False))
    return _TreeScale(max(agent.clade.n for agent in agents), radius, low, max(high, low + 0.1), forms)


def _draw_edges(
    drawing: Drawing, agents: Mapping[int, AgentRow], at: Mapping[int, Place], thick: set[tuple[int, int]]
) -> None:
    paths: dict[str, list[str]] = {"edge": [], "edge2": [], "line": []}
    for agent in agents.values():
        for number, parent in enumerate(agent.parents):
            if parent in at and (number == 0 or parent != agent.parents[0]):
                kind = "edge2" if number else "line" if (parent, agent.agent) in thick else "edge"
                (x1, y1), (x2, y2) = at[parent], at[agent.agent]
                middle, top, foot = (number_text(value, 1) for value in ((x1 + x2) / 2, y1, y2))
                paths[kind].append(
                    f"M{number_text(x1, 1)} {top}C{middle} {top} {middle} {foot} {number_text(x2, 1)} {foot}"
                )
    for kind, curves in paths.items():
        if curves:
            width = 2.6 if kind == "line" else 1.1
            drawing.add("path", {"class": kind, "d": "".join(curves), "stroke-width": width})


def _draw_agent(
    drawing: Drawing,
    agent: AgentRow,
    at: Mapping[int, Place],
    scale: _TreeScale,
    *,
    on_line: bool,
    all_labelled: bool,
) -> None:
    x, y = at[agent.agent]
    radius = scale.size(agent.clade.n)
    form = scale.forms.get(agent.operator, FORMS[-1]) if agent.parents else FORMS[0]
    hidden = sum(child not in at for child in agent.children)
    _draw_mark(drawing, form, (x, y, radius), f"node {scale.shade(agent)}", _tip_text(agent, hidden))
    if agent.best:
        tip = f"agent {agent.agent}: the best agent, which the policy recommends"
        drawing.add("path", {"class": "star", "d": _star_path(x, y - radius - 9, 7)}, tip=tip)
    if all_labelled or on_line:
        kind = "strong halo" if on_line else "soft halo"
        if len(agent.children) > hidden:
            drawing.text(x, y + radius + 10.5, str(agent.agent), kind, 10, "middle")
        else:
            drawing.text(x + radius + 4, y + 3.5, str(agent.agent), kind, 10)


def _tip_text(agent: AgentRow, hidden: int) -> str:
    kind = (
        f"{one_line(agent.operator, 80)}:{one_line(agent.aim, 40)}"
        if agent.aim
        else one_line(agent.operator, 80)
    )
    parents = f" of {' and '.join(map(str, agent.parents))}" if agent.parents else ""
    children = f", {fmt.count(len(agent.children), 'child', 'children')}" if agent.children else ""
    lines = [
        f"agent {agent.agent}: {kind}{parents}",
        f"own {fmt.tally_interval(agent.own)}",
        f"{fmt.count(agent.abandoned, 'task')} abandoned" if agent.abandoned else "",
        f"clade (CMP) {fmt.tally(agent.clade)}{children}",
        one_line(agent.rationale, 90),
        f"not drawn: {fmt.count(hidden, 'child', 'children')}" if hidden else "",
    ]
    return "\n".join(line for line in lines if line)


def _draw_mark(
    drawing: Drawing, form: str, place: tuple[float, float, float], kind: str, tip: str = ""
) -> None:
    x, y, radius = place
    if form == "circle":
        circle = {"cx": number_text(x, 1), "cy": number_text(y, 1), "r": number_text(radius, 1)}
        drawing.add("circle", {"class": kind, **circle}, tip=tip)
        return
    corners, turn, grow = CORNERS[form]
    points = [(turn + 360 * number / corners, grow * radius) for number in range(corners)]
    drawing.add("path", {"class": kind, "d": _polygon_path(x, y, points)}, tip=tip)


def _star_path(x: float, y: float, radius: float) -> str:
    return _polygon_path(x, y, [(36 * n - 90, radius * (0.42 if n % 2 else 1)) for n in range(10)])


def _polygon_path(x: float, y: float, corners: Sequence[tuple[float, float]]) -> str:
    """Return a closed path of corners, each an angle in degrees and a distance from the middle."""
    points = [
        (x + reach * math.cos(math.radians(angle)), y + reach * math.sin(math.radians(angle)))
        for angle, reach in corners
    ]
    return "M" + "L".join(f"{number_text(a, 1)} {number_text(b, 1)}" for a, b in points) + "Z"


def _draw_legend(drawing: Drawing, scale: _TreeScale, top: float) -> float:
    """Draw the meaning of the marks, in as many lines as the width needs; return the lower end in pixels."""
    x, y = float(MARGIN), top + 14
    shades = [("", f"c{shade}", 16.0) for shade in range(SHADES)]
    items: list[tuple[str, str, float]] = [
        (f"clade's rate (CMP), {scale.low:.0%} to {scale.high:.0%}:", "text", 0)
    ]
    items += shades
    items += [
        (fmt.count(verdicts, "verdict"), "circle", scale.size(verdicts))
        for verdicts in dict.fromkeys((scale.largest // 16, scale.largest))
        if verdicts
    ]
    items.append((f"best agent ({fmt.BEST}, recommended), its line thick", "star", 7))
    if len(scale.forms) > 1:
        items += [(one_line(operator, 24), form, 5.5) for operator, form in scale.forms.items()]
    for text, kind, size in items:
        width = 6.4 * len(text) + (2 * size + 5 if kind != "text" else 0)
        if text and x > MARGIN and x + width > drawing.width - MARGIN / 2:
            x, y = float(MARGIN), y + 34
        if not text:
            drawing.add("rect", {"class": f"node {kind}", "x": x, "y": y, "width": size, "height": 12})
            x += size + (22 if kind == f"c{SHADES - 1}" else 0)
            continue
        if kind == "star":
            drawing.add("path", {"class": "star", "d": _star_path(x + size, y + 6, size)})
        elif kind != "text":
            _draw_mark(drawing, kind, (x + size, y + 6, size), "node none")
        drawing.text(x + width - 6.4 * len(text), y + 10, text, "soft", 11)
        x += width + (6 if kind == "text" else 22)
    return y + 34


FIGURES: Mapping[str, Callable[[ReportView], Drawing | None]] = {
    "holdout": draw_holdout,
    "progress-evaluations": draw_progress_evaluations,
    "progress-spend": draw_progress_spend,
    "progress-time": draw_progress_time,
    "tree": draw_tree,
    "operators": draw_operators,
    "matrix": draw_matrix,
}
"""The figures of a report by the names of their files."""
COLUMNS = (
    *("run", "policy", "seed", "evaluations", "usd", "agent"),
    *("rate", "lower_bound", "tokens", "seconds", "group"),
)
"""Columns of the table of curves; ``agent`` is the one recommended after ``evaluations``."""
DASHES = (None, "7 3", "2 3", "8 3 2 3")
"""Dash patterns of the first eight groups, the second eight, and so on."""
PANEL, LEFT, TOP, FOOT = 260, 48, 52, 52
POINTS = 400
"""Maximum number of points of a mean curve."""


def write_figures(view: ReportView | ComparisonView, folder: Path) -> Sequence[Path]:
    """Write each figure that can be drawn to ``folder/NAME.svg``, of a comparison also ``curves.csv``.

    Raises:
        Infrastructure: the disk is full or failing.
    """
    folder.mkdir(exist_ok=True)
    if isinstance(view, ReportView):
        about = f"run {view.run}, policy {view.policy}, seed {view.seed}"
        drawings = {name: draw(view) for name, draw in FIGURES.items()}
        files = {f"{name}.svg": drawing.file(about) for name, drawing in drawings.items() if drawing}
    else:
        about = "; ".join(f"run {run.run}, policy {run.policy}, seed {run.seed}" for run in view.runs)
        files = {"curves.svg": draw_comparison(view).file(about), "curves.csv": curve_table(view).encode()}
    for name, data in files.items():
        write_durably(folder / name, data)
    return [folder / name for name in files]


def curve_table(view: ComparisonView) -> str:
    """Return a row for each moment of each run's curve, as CSV."""
    groups = {run: name for name, runs in view.groups.items() for run in runs}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for run in view.runs:
        for point in run.curve:
            row = {**asdict(point), "run": run.run, "policy": run.policy, "seed": run.seed}
            table.writerow([_csv_cell(row.get(column, groups.get(run.run, ""))) for column in COLUMNS])
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
    paid = any(run.usd for run in view.runs)
    spend: tuple[str, Scale] = (
        ("USD spent", lambda point: point.usd)
        if paid
        else ("tokens used (no money was spent)", lambda point: point.tokens)
    )
    drawing = Drawing(
        "the best agents of several runs", 860, TOP + PANEL + FOOT + 18 * -(-len(groups) // 2) + 8
    )
    drawing.text(LEFT, 20, "Lower bound of the recommended agent's rate on the search tasks", "strong", 13)
    if any(len(members) > 1 for members in groups.values()):
        drawing.text(LEFT, 36, "thin: one run; thick: mean of a group, as far as all of its runs go", "soft")
    width = (drawing.width - 2 * LEFT - 56) / 2
    _draw_panel(drawing, groups, "evaluations", lambda point: point.evaluations, (LEFT, width))
    _draw_panel(drawing, groups, *spend, (LEFT + width + 64, width))
    for number, (name, members) in enumerate(groups.items()):
        x, y = LEFT + (number % 2) * (drawing.width / 2), TOP + PANEL + FOOT + 18 * (number // 2)
        drawing.line(x, y, x + 26, y, f"s{number % SERIES}", 2.6, DASHES[number // SERIES % len(DASHES)])
        more = f" ({fmt.count(len(members), 'run')})" if len(members) > 1 else ""
        drawing.text(x + 34, y + 4, one_line(name, 48) + more, "", 12)
    return drawing


def _draw_panel(
    drawing: Drawing, groups: Mapping[str, Sequence[ComparedRun]], name: str, x: Scale, place: Place
) -> None:
    """Draw axes and every curve; ``place`` is the panel's left edge and its width, in pixels."""
    curves = [run.curve for members in groups.values() for run in members if run.curve]
    highest = max((point.lower_bound for curve in curves for point in curve), default=1)
    end = max((x(curve[-1]) for curve in curves), default=0)
    axes = Axes(place[0], TOP, place[1], PANEL - 16, end, max(0.2, math.ceil(5 * highest) / 5))
    axes.draw(drawing, name)
    for number, (group, members) in enumerate(groups.items()):
        several = len(members) > 1
        look = {"class": f"s{number % SERIES}", "stroke-dasharray": DASHES[number // SERIES % len(DASHES)]}
        steps = [
            (run.run, 1.1 if several else 2.4, [(x(point), point.lower_bound) for point in run.curve])
            for run in members
        ]
        if several:
            steps.append((f"mean of {group}", 2.6, list(mean_curve(members, x))))
        for tip, thickness, points in steps:
            if points:
                path = stairs_path([(axes.x(at), axes.y(bound)) for at, bound in points])
                shape = {
                    **look,
                    "d": path,
                    "fill": "none",
                    "stroke-width": thickness,
                    "stroke-linejoin": "round",
                }
                opacity = 0.5 if several and thickness < 2 else None
                drawing.add("path", {**shape, "stroke-opacity": opacity}, tip=one_line(tip, 120))


def mean_curve(runs: Sequence[ComparedRun], x: Scale) -> Sequence[Place]:
    """Return the mean of the runs' lower bounds over x, from the latest begin to the earliest end.

    A run without a verdict is left out.
    """
    curves = [run.curve for run in runs if run.curve]
    if not curves:
        return []
    start, end = max(x(curve[0]) for curve in curves), min(x(curve[-1]) for curve in curves)
    if end < start:
        return []
    inside = {x(point) for curve in curves for point in curve if start <= x(point) <= end}
    places = sorted(inside | {start, end})
    if len(places) > POINTS:
        places = [places[round(n * (len(places) - 1) / (POINTS - 1))] for n in range(POINTS)]
    return [
        (place, fmean(curve[max(0, bisect_right(curve, place, key=x) - 1)].lower_bound for curve in curves))
        for place in places
    ]
