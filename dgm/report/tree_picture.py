"""The archive as a picture: depth to the right, a clade as area, its rate (CMP) as shade, the best one's line."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from dgm.domain import AgentId, Tally
from dgm.report.drawing import SHADES, SvgDrawing
from dgm.report.facts import ReportAgent, RunReport
from dgm.report.layout import TreeNode
from dgm.report.markup import number_text
from dgm.show.safe import cell_width, one_line
from dgm.show.words import BEST, count_text, given_up_text, interval_text, operator_text, tally_text

WIDTH = 960
MARGIN = 26
LEGEND_LINE = 34
"""Pixels of a line of the legend: its largest circle, and some room."""
ROW = 24
"""Pixels between leaves, where there is room."""
TALLEST = 820
"""Maximum height in pixels, without the legend."""
WIDEST_STEP = 130
LABELLED = 140
"""Maximum number of agents with an id beside each; above, only agents on the best one's line have one."""
LARGEST = 15
SMALLEST = 2.6
SHAPES = ("circle", "square", "diamond", "triangle", "hexagon", "cross")
"""Shapes by operator, in the order of their first children; the sixth is for all others."""


@dataclass(frozen=True, slots=True)
class PictureScale:
    """The scale that gives agents their places, sizes and shades."""

    x: float
    """Pixels of a step."""
    y: float
    """Pixels of a row."""
    largest: int
    """Verdicts of the largest clade."""
    radius: float
    """Radius of the largest clade, in pixels."""
    low: float
    """Lower end of the rates that are shaded; ``high`` is the upper end."""
    high: float
    shapes: Mapping[str, str]

    def place(self, node: TreeNode) -> tuple[float, float]:
        """Return the middle of a node, in pixels."""
        return MARGIN + node.depth * self.x, MARGIN + node.row * self.y

    def size(self, clade: Tally) -> float:
        """Return the radius in pixels; areas are proportional to the verdicts on a clade, except for the smallest."""
        return max(SMALLEST, self.radius * math.sqrt(clade.n / self.largest)) if self.largest else SMALLEST

    def shade(self, clade: Tally) -> str:
        """Return a class of ``drawing.STYLE``; ``none`` without a verdict."""
        if not clade.n:
            return "none"
        share = (clade.rate - self.low) / (self.high - self.low)
        return f"c{min(SHADES - 1, max(0, int(share * SHADES)))}"


def draw_tree_picture(report: RunReport) -> SvgDrawing:
    """Return the picture; its tooltips give the facts that ``dgm tree`` gives of an agent."""
    picture = report.tree
    scale = _make_scale(report)
    depth = max(node.depth for node in picture.nodes)
    height = 2 * MARGIN + max(0, picture.rows - 1) * scale.y
    width = max(640.0, min(WIDTH, 2 * MARGIN + depth * scale.x + 20))
    drawing = SvgDrawing("the tree of agents", width, height)
    places = {node.agent: scale.place(node) for node in picture.nodes}
    _draw_edges(drawing, report, places)
    on_line = set(picture.line)
    labelled = len(picture.nodes) <= LABELLED
    for node in picture.nodes:
        member = report.members[node.agent]
        x, y = places[node.agent]
        radius = scale.size(member.clade)
        kind = f"node {scale.shade(member.clade)}"
        form = scale.shapes.get(member.agent.operator, SHAPES[-1]) if member.agent.parents else SHAPES[0]
        _draw_mark(drawing, form, (x, y, radius), kind, _tip_text(member, node))
        if node.agent == report.best:
            star = _star_path(x, y - radius - 9, 7)
            drawing.add(
                "path",
                {"class": "star", "d": star},
                tip=f"agent {node.agent}: the best agent, which the policy recommends",
            )
        if labelled or node.agent in on_line:
            kind = "strong halo" if node.agent in on_line else "soft halo"
            if member.children > node.hidden:
                drawing.text(x, y + radius + 10.5, str(node.agent), kind, 10, "middle")
            else:
                drawing.text(x + radius + 4, y + 3.5, str(node.agent), kind, 10)
    drawing.height = _draw_legend(drawing, scale, height)
    return drawing


def _make_scale(report: RunReport) -> PictureScale:
    picture = report.tree
    depth = max(node.depth for node in picture.nodes)
    step = min(WIDEST_STEP, (WIDTH - 2 * MARGIN - 20) / max(1, depth))
    row = min(ROW, TALLEST / max(1, picture.rows - 1))
    clades = [report.members[node.agent].clade for node in picture.nodes]
    rates = [clade.rate for clade in clades if clade.n]
    low = math.floor(10 * min(rates, default=0)) / 10
    high = math.ceil(10 * max(rates, default=1)) / 10
    operators = dict.fromkeys(member.agent.operator for member in report.members if member.agent.parents)
    shapes = dict(zip(operators, SHAPES[:-1], strict=False))
    return PictureScale(
        step,
        row,
        max(clade.n for clade in clades),
        min(LARGEST, max(6.0, row * 0.75)),
        low,
        max(high, low + 0.1),
        shapes,
    )


def _draw_edges(
    drawing: SvgDrawing, report: RunReport, places: Mapping[AgentId, tuple[float, float]]
) -> None:
    thick = set(zip(report.tree.line, report.tree.line[1:], strict=False))
    thin: list[str] = []
    best: list[str] = []
    for node in report.tree.nodes:
        parents = report.members[node.agent].agent.parents
        if parents:
            path = _bend_path(places[parents[0]], places[node.agent])
            (best if (parents[0], node.agent) in thick else thin).append(path)
    second = [_bend_path(places[parent], places[child]) for parent, child in report.tree.second]
    for kind, paths, width in (("edge", thin, 1.1), ("edge2", second, 1.1), ("line", best, 2.6)):
        if paths:
            drawing.add("path", {"class": kind, "d": "".join(paths), "stroke-width": width})


def _bend_path(start: tuple[float, float], end: tuple[float, float]) -> str:
    middle = number_text((start[0] + end[0]) / 2, 1)
    y1, y2 = number_text(start[1], 1), number_text(end[1], 1)
    return f"M{number_text(start[0], 1)} {y1}C{middle} {y1} {middle} {y2} {number_text(end[0], 1)} {y2}"


def _tip_text(member: ReportAgent, node: TreeNode) -> str:
    agent = member.agent
    parents = f" of {' and '.join(map(str, agent.parents))}" if agent.parents else ""
    lines = [
        f"agent {agent.id}: {operator_text(agent.operator, member.aim)}{parents}",
        f"own {tally_text(member.own)}  {interval_text(member.own)}".rstrip(),
        given_up_text(member.given_up),
        f"clade (CMP) {tally_text(member.clade)}"
        + (f", {count_text(member.children, 'child', 'children')}" if member.children else ""),
        one_line(agent.rationale, 90),
    ]
    if node.hidden:
        lines.append(f"not drawn: {count_text(node.hidden, 'child', 'children')}")
    return "\n".join(line for line in lines if line)


def _draw_mark(
    drawing: SvgDrawing, form: str, where: tuple[float, float, float], kind: str, tip: str
) -> None:
    x, y, radius = where
    if form == "circle":
        drawing.add(
            "circle",
            {"class": kind, "cx": number_text(x, 1), "cy": number_text(y, 1), "r": number_text(radius, 1)},
            tip=tip,
        )
        return
    drawing.add("path", {"class": kind, "d": _shape_path(form, x, y, radius)}, tip=tip)


def _shape_path(form: str, x: float, y: float, radius: float) -> str:
    """Return the path of a shape with about the area of a circle of this radius."""
    if form == "cross":
        reach, half = radius * 1.1, radius * 0.4
        arm = [(-half, -reach), (half, -reach), (half, -half)]
        corners: list[tuple[float, float]] = []
        for _ in range(4):
            corners += [(x + dx, y + dy) for dx, dy in arm]
            arm = [(-dy, dx) for dx, dy in arm]
        return _polygon_path(corners)
    count, turn, grow = {
        "square": (4, math.pi / 4, 1.25),
        "diamond": (4, 0.0, 1.25),
        "triangle": (3, -math.pi / 2, 1.45),
        "hexagon": (6, 0.0, 1.1),
    }[form]
    angles = [turn + 2 * math.pi * n / count for n in range(count)]
    return _polygon_path([(x + grow * radius * math.cos(a), y + grow * radius * math.sin(a)) for a in angles])


def _star_path(x: float, y: float, radius: float) -> str:
    corners = []
    for n in range(10):
        reach = radius if n % 2 == 0 else radius * 0.42
        angle = -math.pi / 2 + math.pi * n / 5
        corners.append((x + reach * math.cos(angle), y + reach * math.sin(angle)))
    return _polygon_path(corners)


def _polygon_path(corners: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number_text(x, 1)} {number_text(y, 1)}" for x, y in corners) + "Z"


def _draw_legend(drawing: SvgDrawing, scale: PictureScale, top: float) -> float:
    """Draw the meaning of the marks, in as many lines as the picture's width needs; return its lower end in pixels."""
    x, y = float(MARGIN), top + 14
    for item in _legend_items(scale):
        if x > MARGIN and x + item.width > drawing.width - MARGIN / 2:
            x, y = float(MARGIN), y + LEGEND_LINE
        item.draw(drawing, x, y)
        x += item.width + 22
    return y + LEGEND_LINE


@dataclass(frozen=True, slots=True)
class _LegendItem:
    """One item of the legend; ``draw`` is given the place of its left upper corner."""

    width: float
    draw: Callable[[SvgDrawing, float, float], None]


def _legend_items(scale: PictureScale) -> Iterator[_LegendItem]:
    yield _LegendItem(108 + 34 + 16 * SHADES + 5 + _text_width("100%"), partial(_draw_shades, scale))
    for verdicts in dict.fromkeys((scale.largest // 16, scale.largest)):
        if verdicts:
            radius = scale.size(Tally(verdicts))
            said = count_text(verdicts, "verdict")
            yield _LegendItem(2 * radius + 5 + _text_width(said), partial(_draw_sized, radius, said))
    said = f"best agent ({BEST}, recommended), its line thick"
    yield _LegendItem(18 + _text_width(said), partial(_draw_starred, said))
    for operator, form in scale.shapes.items() if len(scale.shapes) > 1 else ():
        said = one_line(operator, 24)
        yield _LegendItem(17 + _text_width(said), partial(_draw_shaped, form, said))


def _draw_shades(scale: PictureScale, drawing: SvgDrawing, x: float, y: float) -> None:
    drawing.text(x, y + 10, "clade's rate (CMP)", "soft", 11)
    left = x + 108
    drawing.text(left, y + 10, f"{scale.low:.0%}", "soft", 11)
    for shade in range(SHADES):
        box = {"x": left + 34 + 16 * shade, "y": y, "width": 16, "height": 12}
        drawing.add("rect", {"class": f"node c{shade}", **box})
    drawing.text(left + 34 + 16 * SHADES + 5, y + 10, f"{scale.high:.0%}", "soft", 11)


def _draw_sized(radius: float, said: str, drawing: SvgDrawing, x: float, y: float) -> None:
    drawing.add("circle", {"class": "node none", "cx": x + radius, "cy": y + 6, "r": radius})
    drawing.text(x + 2 * radius + 5, y + 10, said, "soft", 11)


def _draw_starred(said: str, drawing: SvgDrawing, x: float, y: float) -> None:
    drawing.add("path", {"class": "star", "d": _star_path(x + 6, y + 6, 7)})
    drawing.text(x + 18, y + 10, said, "soft", 11)


def _draw_shaped(form: str, said: str, drawing: SvgDrawing, x: float, y: float) -> None:
    _draw_mark(drawing, form, (x + 6, y + 6, 5.5), "node none", "")
    drawing.text(x + 17, y + 10, said, "soft", 11)


def _text_width(text: str) -> float:
    """Return the approximate width of a legend's text in pixels."""
    return 6.4 * cell_width(text)
