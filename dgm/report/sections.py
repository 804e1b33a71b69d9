"""The first half of the page: the answer, how the search came to it, and the tree that it grew."""

from collections.abc import Sequence

from dgm.archive.operator_accounts import OperatorLine
from dgm.domain import Tally, Usage
from dgm.report import figures
from dgm.report.facts import Report
from dgm.report.headline import (
    POWERFUL,
    WORTH_FINDING,
    Answer,
    Findings,
    difference_record,
    p_text,
    power_record,
    usd_each,
)
from dgm.report.markup import Html, h, joined
from dgm.report.section import Section, figure, interval_bar, lead, paragraph, points, table
from dgm.report.tree_picture import tree_picture
from dgm.search.exam import Comparison
from dgm.show.safe import one_line
from dgm.show.words import clock, interval_text, tally_text
from dgm.stats.better import JUDGED

BADGES = {
    Answer.BETTER: ("yes", "✓ shown to be better"),
    Answer.WORSE_SHOWN: ("no", "✗ shown to be worse"),
    Answer.NOT_SHOWN: ("unclear", "≈ not shown to be better"),
    Answer.NOT_EXAMINED: ("", "… not examined yet"),
}


def all_of(report: Report) -> Sequence[Section]:
    """In their order."""
    return [headline(report), progress(report), tree(report), operators(report)]


def headline(report: Report) -> Section:
    """Seed against best on the holdout, the naive number, and what the search came to."""
    kind, said = BADGES[report.verdict.answer]
    parts = [
        h("span", {"class": f"badge {kind}".rstrip()}, said),
        h("p", {"class": "answer"}, report.verdict.sentence),
    ]
    if report.found and report.found.comparison.first.n:
        parts += _examined(report, report.found)
    return Section("headline", "Is the best agent better than the seed?", [*parts, _naive(report), _tiles(report)])


def _examined(report: Report, found: Findings) -> list[Html]:
    pairs = found.comparison
    rows = [
        _row("seed (agent 0)", pairs.first, "seed", _cost(found.seed, pairs.first)),
        _row(f"best (agent {report.best})", pairs.second, "", _cost(found.best, pairs.second)),
    ]
    parts = [table(("", "resolved", "95 %", "", "each resolved"), rows, numbers=(4,))]
    changed = f"{len(pairs.gained)} gained and {len(pairs.lost)} lost"
    test = f"exact McNemar {p_text(pairs.p)}, mid-p {p_text(pairs.mid_p).removeprefix('p ').removeprefix('= ')}"
    parts.append(paragraph(f"Task by task: {changed}; {test}. ", _difference(pairs)))
    parts += [paragraph(text) for text in (_power(pairs), _ungraded(found)) if text]
    if pairs.gained or pairs.lost:
        parts.append(_changed(pairs))
    return parts


def _row(name: str, tally: Tally, kind: str, cost: str) -> tuple[str, ...]:
    return name, tally_text(tally), interval_text(tally), interval_bar(tally, kind), cost


def _cost(usage: Usage, tally: Tally) -> str:
    each = usd_each(usage, tally)
    if each:
        return f"{each:.4f} USD"
    return f"{usage.tokens / tally.resolved:,.0f} tokens" if tally.resolved else "–"


def _difference(pairs: Comparison) -> str:
    found = difference_record(pairs)
    if not found or not found["interval"]:
        return ""
    low, high = found["interval"]
    return f"Difference: {points(found['mean'])} (95 % bootstrap over tasks: {points(low)} to {points(high)})."


def _power(pairs: Comparison) -> str:
    found = power_record(pairs)
    if not found:
        return ""
    return (
        f"Power: were the best agent truly {WORTH_FINDING * 100:.0f} points better, {pairs.first.n} tasks would show it "
        f"with a probability of {found['power']:.0%}; for {POWERFUL:.0%} it takes {found['tasks_for_80_percent']} tasks "
        f"(supposing that {found['gained']:.0%} are gained and {found['lost']:.0%} lost)."
    )


def _ungraded(found: Findings) -> str:
    if not found.ungraded:
        return ""
    return f"{found.ungraded} of {found.tasks} holdout tasks have no pair of verdicts: their evaluation was given up."


def _changed(pairs: Comparison) -> Html:
    lists = []
    for name, tasks in (("Gained", pairs.gained), ("Lost", pairs.lost)):
        if tasks:
            shown = joined(*(h("li", {}, h("bdi", {}, one_line(task, 160))) for task in tasks[:200]))
            more = [paragraph(f"and {len(tasks) - 200:,} more")] if len(tasks) > 200 else []
            lists += [h("h3", {}, f"{name} ({len(tasks):,})"), h("ul", {}, shown), *more]
    return h("details", {"data-p": ""}, h("summary", {}, "Which tasks were gained and lost"), *lists)


def _naive(report: Report) -> Html:
    seed, best = report.members[0].own, report.members[report.best].own
    if not best.n:
        return h("div", {"class": "box"}, paragraph("The best agent has no verdict on a search task yet."))
    lines = [
        h("strong", {}, "The naive number: "),
        f"on the search tasks the best agent resolves {tally_text(best)} ({interval_text(best)})",
        f", the seed {tally_text(seed)} ({interval_text(seed)})" if seed.n else "",
        ". It flatters: the best agent was chosen, among many, for its verdicts on these very tasks, so its luck "
        "counts as skill, and its descent was guided by them.",
    ]
    corrected = []
    if report.chosen:
        corrected = [
            paragraph(
                f"Corrected for choosing the best of {report.chosen['evaluated']:,} evaluated agents, its rate on the "
                f"search tasks is about {report.chosen['corrected_rate']:.0%} instead of {report.chosen['rate']:.0%}."
            )
        ]
    return h("div", {"class": "box"}, paragraph(*lines), *corrected)


def _tiles(report: Report) -> Html:
    run, graded = report.run, report.run["evaluations"]
    dead = sum(run["stillborn"].values())
    spend = report.spend
    money = f"{spend.usd:.2f} USD" if spend.usd >= 0.01 else f"{spend.tokens:,} tokens"
    under = f"{spend.tokens:,} tokens, " if spend.usd >= 0.01 else ""
    facts = [
        ("Agents", f"{run['agents']:,}", f"{dead:,} stillborn" if dead else "none stillborn"),
        ("Evaluations", f"{graded['graded']:,}", f"{graded['resolved']:,} resolved, on {report.tasks:,} tasks"),
        ("Model calls", f"{spend.calls:,}", f"{under}{_models(report)}"),
        ("Spent on the search", money, f"limit {run['budget']['usd']:g} USD" if run["budget"]["usd"] else "no limit of money"),
        ("Wall time", clock(run["seconds"]), f"{run['workers']} steps at once, {one_line(run['sandbox'], 40)}"),
    ]
    tiles = [h("div", {}, h("dt", {}, name), h("dd", {}, value, h("small", {}, more))) for name, value, more in facts]
    return h("dl", {"class": "tiles"}, *tiles)


def _models(report: Report) -> str:
    models = {model for _, model in report.by}
    return f"{len(models)} models" if len(models) > 1 else "1 model" if models else "no model"


def progress(report: Report) -> Section:
    """How good the best agent of each moment was believed to be."""
    if not report.curve:
        return Section("progress", "Progress", [lead("No evaluation yet.")])
    pictures = [
        h("figure", {}, drawing.html(), h("figcaption", {}, caption))
        for drawing, caption in (
            (figures.progress_evaluations(report), "over evaluations"),
            (figures.progress_spend(report), "over spend" if report.spend.usd else "over tokens (no money was spent)"),
            (figures.progress_time(report), "over wall time of the sessions"),
        )
        if drawing
    ]
    return Section(
        "progress",
        "Progress",
        [
            lead(
                "The best agent of each moment: the one with the highest rate that it exceeds with a probability of 99 % "
                "(lower bound, on the search tasks). A dot marks a change of the best agent. A bound falls when the "
                "best agent fails, and its plain rate jumps after few evaluations: that is why nobody should trust it."
            ),
            h("div", {"class": "grid"}, *pictures),
        ],
    )


def tree(report: Report) -> Section:
    """The picture with zoom and tooltips."""
    left_out = report.tree.left_out
    buttons = [
        h("button", {"type": "button", "value": value, "aria-label": label}, sign)
        for value, sign, label in (("in", "+", "zoom in"), ("out", "−", "zoom out"), ("all", "whole", "show the whole tree"))
    ]
    shown = f" {left_out:,} agents of smaller clades are not drawn." if left_out else ""
    return Section(
        "tree",
        "The tree of agents",
        [
            lead(
                "Each mark is an agent, its children to the right. Its area is the number of verdicts on its clade (itself "
                "and all its descendants), its shade their rate: the clade's metaproductivity, CMP. The line of the best "
                f"agent is thick.{shown} Point at an agent to read about it; zoom with the buttons or with Ctrl and the "
                "wheel, and drag."
            ),
            h(
                "div",
                {"class": "zoom"},
                h("div", {"class": "tools", "hidden": ""}, *buttons),
                tree_picture(report).html(),
            ),
        ],
    )


def operators(report: Report) -> Section:
    """What came of each operator's expansions."""
    if not report.operators:
        return Section("operators", "Operators", [lead("No expansion yet: every agent there is was given.")])
    rows = [_operator_row(line) for line in report.operators]
    head = ("operator", "tried", "born", "judged", "better", "mean gain, 95 %", "spent", "what else")
    parts = [table(head, rows, numbers=(1, 2, 3, 4))]
    if sum(line.gain is not None for line in report.operators) > 1:
        parts.append(figure(figures.operators(report), "Mean gain of each operator's judged children."))
    parts.append(
        h(
            "p",
            {"class": "soft small"},
            f"Gain: own rate minus the best parent's, of children with {JUDGED} verdicts. Parents are chosen for high rates, "
            "so gains are biased down, for all operators alike.",
        )
    )
    return Section("operators", "Operators", parts)


def _operator_row(line: OperatorLine) -> tuple[str, ...]:
    gain = line.gain
    said = "–"
    if gain:
        said = points(gain.mean)
        if gain.low is not None and gain.high is not None:
            said += f" ({points(gain.low).split()[0]} to {points(gain.high).split()[0]})"
    spent = f"{line.spend.usd:.4f} USD" if line.spend.usd else f"{line.spend.tokens:,} tokens"
    numbers = (line.tried, line.born, line.judged, line.better)
    return (h("bdi", {}, one_line(line.operator, 60)), *map(str, numbers), said, spent, _further(line))


def _further(line: OperatorLine) -> str:
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
