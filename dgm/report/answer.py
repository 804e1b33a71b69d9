"""The top of the page: is the best agent better, how that is known, and the result of the search."""

from dgm.domain import Tally, Usage
from dgm.evaluation.exam import Comparison
from dgm.report.control import absent, sentences
from dgm.report.drawing import short
from dgm.report.facts import Report
from dgm.report.headline import (
    POWERFUL,
    WORTH_FINDING,
    Answer,
    Findings,
    difference_record,
    power_record,
    repeated,
    usd_each,
)
from dgm.report.markup import Html, h, joined
from dgm.report.section import Section, interval_bar, paragraph, points, table
from dgm.show.safe import one_line
from dgm.show.words import clock, interval_text, p_text, tally_text

BADGES = {
    Answer.BETTER: ("yes", "✓ shown to be better"),
    Answer.WORSE_SHOWN: ("no", "✗ shown to be worse"),
    Answer.NOT_SHOWN: ("unclear", "≈ not shown to be better"),
    Answer.NOT_EXAMINED: ("", "… not examined yet"),
}
FLATTERS = (
    ". It flatters: the best agent was chosen, among many, for its verdicts on these very tasks, so its luck "
    "counts as skill, and its descent was guided by them."
)


def answer(report: Report) -> Section:
    """Return the section with seed against best on the holdout, the naive number, and the search's result."""
    kind, said = BADGES[report.verdict.answer]
    parts = [
        h("span", {"class": f"badge {kind}".rstrip()}, said),
        h("p", {"class": "answer"}, report.verdict.sentence),
    ]
    if report.found and report.found.comparison.first.n:
        parts += _examined(report, report.found)
    title = "Is the best agent better than the seed?"
    return Section("headline", title, [*parts, _naive(report), _tiles(report)])


def _examined(report: Report, found: Findings) -> list[Html]:
    pairs = found.comparison
    if found.missing:
        so_far = [("seed, 0", tally_text(pairs.first)), (f"best, {report.best}", tally_text(pairs.second))]
        so_far = so_far[:1] if found.itself else so_far
        return [table(("agent", "resolved so far"), so_far, kind="headline")]
    if found.itself:
        alone = [_row("seed, 0", pairs.first, "seed")]
        return [table(("agent", "resolved", "95 %", ""), alone, kind="headline")]
    rows = [_row("seed, 0", pairs.first, "seed"), _row(f"best, {report.best}", pairs.second, "")]
    control = found.control
    offline = "offline" in report.run["models"].values()
    if control and control.attempts > 1:
        rows.append(_row(f"seed × {control.attempts}", control.pairs.first, "seed"))
    parts = [table(("agent", "resolved", "95 %", ""), rows, kind="headline")]
    changed = f"{len(pairs.gained)} gained and {len(pairs.lost)} lost"
    test = f"exact McNemar {p_text(pairs.p)}, mid-{p_text(pairs.mid_p)}"
    parts.append(paragraph(f"Task by task: {changed}; {test}. ", _difference(pairs)))
    further = (repeated(found), _power(pairs), _costs(found), _ungraded(found))
    parts += [paragraph(text) for text in further if text]
    if pairs.gained or pairs.lost:
        parts.append(_changed(pairs))
    said = sentences(control, offline=offline) if control else [absent(report.run["run"])]
    parts.append(h("div", {"class": "box"}, paragraph(" ".join(said))))
    return parts


def _row(name: str, tally: Tally, kind: str) -> tuple[str, ...]:
    return name, tally_text(tally), interval_text(tally), interval_bar(tally, kind)


def _costs(found: Findings) -> str:
    pairs = found.comparison
    seed, best = _cost(found.seed, pairs.first), _cost(found.best, pairs.second)
    return f"Each resolved holdout task cost {best} with the best agent and {seed} with the seed."


def _cost(usage: Usage, tally: Tally) -> str:
    each = usd_each(usage, tally)
    if each:
        return f"{each:.4f} USD"
    return f"{usage.tokens / tally.resolved:,.0f} tokens" if tally.resolved else "– (there is none)"


def _difference(pairs: Comparison) -> str:
    found = difference_record(pairs)
    if not found or not found["interval"]:
        return ""
    low, high = found["interval"]
    return (
        f"Difference: {points(found['mean'])} (95 % bootstrap over tasks: {points(low)} to {points(high)})."
    )


def _power(pairs: Comparison) -> str:
    found = power_record(pairs)
    if not found:
        return ""
    return (
        f"Power: were the best agent truly {WORTH_FINDING * 100:.0f} points better, {pairs.first.n} tasks would "
        f"show it with a probability of {found['power']:.0%}; for {POWERFUL:.0%} it takes "
        f"{found['tasks_for_80_percent']} tasks (supposing that {found['gained']:.0%} are gained and "
        f"{found['lost']:.0%} lost)."
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
    who = "the best agent" if report.best else "the best agent, the seed,"
    lines = [
        h("strong", {}, "The naive number: "),
        f"on the search tasks {who} resolves {tally_text(best)} ({interval_text(best)})",
        f", the seed {tally_text(seed)} ({interval_text(seed)})" if seed.n and report.best else "",
        FLATTERS,
    ]
    corrected = []
    if chosen := report.chosen:
        corrected = [
            paragraph(
                f"Corrected for having been chosen among {chosen['evaluated']:,} evaluated agents, its rate on the "
                f"search tasks is about {chosen['corrected_rate']:.0%} instead of {chosen['rate']:.0%}."
            )
        ]
    return h("div", {"class": "box"}, paragraph(*lines), *corrected)


def _tiles(report: Report) -> Html:
    run, graded, spend = report.run, report.run["evaluations"], report.spend
    dead, limit = sum(run["stillborn"].values()), run["budget"]["usd"]
    tokens = f"{short(spend.tokens)} tokens"
    money = f"{spend.usd:.2f} USD" if spend.usd >= 0.01 else tokens
    calls = f"{tokens}, {_models(report)}" if spend.usd >= 0.01 else _models(report)
    resolved = f"{graded['resolved']:,} resolved, on {report.tasks:,} tasks"
    workers = f"{run['workers']} steps at once, {one_line(run['sandbox'], 40)}"
    facts = [
        ("Agents", f"{run['agents']:,}", f"{dead:,} stillborn" if dead else "none stillborn"),
        ("Evaluations", f"{graded['graded']:,}", resolved),
        ("Model calls", f"{spend.calls:,}", calls),
        ("Spent on the search", money, f"limit {limit:g} USD" if limit else "no limit of money"),
        ("Wall time", clock(round(run["seconds"])), workers),
    ]
    tiles = [
        h("div", {}, h("dt", {}, name), h("dd", {}, value, h("small", {}, more)))
        for name, value, more in facts
    ]
    return h("dl", {"class": "tiles"}, *tiles)


def _models(report: Report) -> str:
    models = {model for _, model in report.by}
    return f"{len(models)} models" if len(models) > 1 else "1 model" if models else "no model"
