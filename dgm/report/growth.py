"""The middle of the page: the progress of the search, the tree that it grew, and the results of its operators."""

from dgm.analysis.operator_accounts import OperatorLine
from dgm.report import figures
from dgm.report.facts import RunReport
from dgm.report.markup import h
from dgm.report.section import PageSection, html_figure, html_table, lead_paragraph, points_text
from dgm.report.tree_picture import draw_tree_picture
from dgm.show.safe import one_line
from dgm.show.words import count_text
from dgm.stats.better import JUDGED

LEADER_OF_A_MOMENT = (
    "The highest lower bound of any agent at each moment, on the search tasks: one is 99 % sure that its rate is "
    "higher. A dot marks where another agent takes the lead. A bound falls when its agent fails, and a plain rate "
    "jumps after few evaluations: that is why nobody should trust it. The leader of a moment need not be the best "
    "agent (★), which is the one that the policy recommends."
)
HOW_TO_READ = (
    "Each mark is an agent, its children to the right. Its area is the number of verdicts on its clade (itself and all "
    "its descendants), its shade their rate: the clade's metaproductivity, CMP. The star is the best agent: the one "
    "that the policy recommends. Its line is thick."
)
HANDS_ON = "Point at an agent to read about it; zoom with the buttons or with Ctrl and the wheel, and drag."
BIASED = (
    f"Gain: own rate minus the better parent's, of children with at least {JUDGED} verdicts. Parents are chosen for "
    "high rates, so gains are biased down, for all operators alike."
)
BUTTONS = (("in", "+", "zoom in"), ("out", "−", "zoom out"), ("all", "whole", "show the whole tree"))


def build_progress(report: RunReport) -> PageSection:
    """Return the section of the highest lower bound of each moment."""
    drawn = (
        (figures.draw_progress_evaluations(report), "over evaluations"),
        (
            figures.draw_progress_spend(report),
            "over spend" if report.spend.usd else "over tokens (no money was spent)",
        ),
        (figures.draw_progress_time(report), "over wall time of the sessions"),
    )
    pictures = [
        h("figure", {}, drawing.html(), h("figcaption", {}, caption)) for drawing, caption in drawn if drawing
    ]
    if not pictures:
        return PageSection("progress", "Progress", [lead_paragraph("No evaluation yet.")])
    return PageSection(
        "progress", "Progress", [lead_paragraph(LEADER_OF_A_MOMENT), h("div", {"class": "grid"}, *pictures)]
    )


def build_tree(report: RunReport) -> PageSection:
    """Return the section of the tree's picture with zoom and tooltips."""
    buttons = [
        h("button", {"type": "button", "value": value, "aria-label": label}, sign)
        for value, sign, label in BUTTONS
    ]
    left_out = report.tree.left_out
    more = f" Not drawn: {count_text(left_out, 'agent')} of smaller clades." if left_out else ""
    hands_on = h("p", {"class": "lead screen"}, HANDS_ON)
    tools = h("div", {"class": "tools", "hidden": ""}, *buttons)
    zoom = h("div", {"class": "zoom"}, tools, draw_tree_picture(report).html())
    return PageSection("tree", "The tree of agents", [lead_paragraph(HOW_TO_READ + more), hands_on, zoom])


def build_operators(report: RunReport) -> PageSection:
    """Return the section of the results of each operator's expansions."""
    if not report.operators:
        return PageSection(
            "operators", "Operators", [lead_paragraph("No expansion yet: every agent there is was given.")]
        )
    rows = [_operator_row(line) for line in report.operators]
    head = ("operator", "tried", "born", "judged", "better", "mean gain, 95 %", "spent", "what else")
    parts = [html_table(head, rows, numbers=range(1, 7), text=(7,))]
    if sum(line.gain is not None for line in report.operators) > 1:
        parts.append(
            html_figure(figures.draw_operators(report), "Mean gain of each operator's judged children.")
        )
    parts.append(h("p", {"class": "soft small"}, BIASED))
    return PageSection("operators", "Operators", parts)


def _operator_row(line: OperatorLine) -> tuple[str, ...]:
    gain = line.gain
    said = "–"
    if gain:
        said = points_text(gain.mean)
        if gain.low is not None and gain.high is not None:
            said += f" ({points_text(gain.low).split()[0]} to {points_text(gain.high).split()[0]})"
    spent = f"{line.spend.usd:.4f} USD" if line.spend.usd else f"{line.spend.tokens:,} tokens"
    numbers = (line.tried, line.born, line.judged, line.better)
    return (h("bdi", {}, one_line(line.operator, 60)), *map(str, numbers), said, spent, _details_text(line))


def _details_text(line: OperatorLine) -> str:
    said = []
    if line.waiting:
        said.append(f"{line.waiting} wait for a person")
    if line.unfinished:
        said.append(f"{line.unfinished} unfinished")
    dead = sorted(line.stillborn.items(), key=lambda item: (-item[1], item[0]))
    if dead:
        said.append("stillborn: " + ", ".join(f"{one_line(stage, 40)} {count}" for stage, count in dead[:8]))
    aims = sorted(line.aims.items(), key=lambda item: (-item[1], item[0]))
    if aims:
        said.append("aims: " + ", ".join(f"{one_line(aim, 40)} {count}" for aim, count in aims[:8]))
    return "; ".join(said) or "–"
