"""The top of the page: is the best agent better, how that is known, and the result of the search."""

from dgm.domain import Tally, Usage
from dgm.evaluation.exam import Comparison
from dgm.report.control import control_sentences
from dgm.report.drawing import short_number
from dgm.report.facts import RunReport
from dgm.report.headline import (
    POWERFUL,
    WORTH_FINDING,
    ExamFindings,
    HoldoutAnswer,
    difference_record,
    power_record,
    repeated_exam_note,
    usd_each,
)
from dgm.report.markup import Html, h, join_html
from dgm.report.section import PageSection, html_table, interval_bar, paragraph, points_text
from dgm.show.safe import one_line
from dgm.show.words import clock_text, given_up_text, interval_text, p_text, tally_text

BADGES = {
    HoldoutAnswer.BETTER: ("yes", "✓ shown to be better"),
    HoldoutAnswer.WORSE_SHOWN: ("no", "✗ shown to be worse"),
    HoldoutAnswer.NOT_SHOWN: ("unclear", "≈ not shown to be better"),
    HoldoutAnswer.NOT_EXAMINED: ("", "… not examined yet"),
}
FLATTERS = (
    ". It flatters: the best agent was chosen, among many, for its verdicts on these very tasks, so its luck "
    "counts as skill, and its descent was guided by them."
)


def build_answer(report: RunReport) -> PageSection:
    """Return the section with seed against best on the holdout, the naive number, and the search's result."""
    kind, said = BADGES[report.verdict.answer]
    parts = [
        h("span", {"class": f"badge {kind}".rstrip()}, said),
        h("p", {"class": "answer"}, report.verdict.sentence),
    ]
    if report.found and report.found.comparison.first.n:
        parts += _exam_parts(report, report.found)
    title = "Is the best agent better than the seed?"
    return PageSection("headline", title, [*parts, _naive_box(report), _tiles(report)])


def _exam_parts(report: RunReport, found: ExamFindings) -> list[Html]:
    pairs = found.comparison
    if found.missing:
        so_far = [("seed, 0", tally_text(pairs.first)), (f"best, {report.best}", tally_text(pairs.second))]
        so_far = so_far[:1] if found.itself else so_far
        return [html_table(("agent", "resolved so far"), so_far, kind="headline")]
    if found.itself:
        alone = [_tally_row("seed, 0", pairs.first, "seed")]
        return [html_table(("agent", "resolved", "95 %", ""), alone, kind="headline")]
    rows = [_tally_row("seed, 0", pairs.first, "seed"), _tally_row(f"best, {report.best}", pairs.second, "")]
    control = found.control
    if control and control.attempts > 1:
        rows.append(_tally_row(f"seed × {control.attempts}", control.pairs.first, "seed"))
    parts = [html_table(("agent", "resolved", "95 %", ""), rows, kind="headline")]
    changed = f"{len(pairs.gained)} gained and {len(pairs.lost)} lost"
    test = f"exact McNemar {p_text(pairs.p)}, mid-{p_text(pairs.mid_p)}"
    parts.append(paragraph(f"Task by task: {changed}; {test}. ", _difference_text(pairs)))
    further = (repeated_exam_note(found), _power_text(pairs), _cost_sentence(found), _ungraded_text(found))
    parts += [paragraph(text) for text in further if text]
    if pairs.gained or pairs.lost:
        parts.append(_changed_lists(pairs))
    said = control_sentences(control, report.run["run"], report.run["models"])
    if said:
        parts.append(h("div", {"class": "box"}, paragraph(" ".join(said))))
    return parts


def _tally_row(name: str, tally: Tally, kind: str) -> tuple[str, ...]:
    return name, tally_text(tally), interval_text(tally), interval_bar(tally, kind)


def _cost_sentence(found: ExamFindings) -> str:
    pairs = found.comparison
    seed, best = _cost_text(found.seed, pairs.first), _cost_text(found.best, pairs.second)
    return f"Each resolved holdout task cost {best} with the best agent and {seed} with the seed."


def _cost_text(usage: Usage, tally: Tally) -> str:
    each = usd_each(usage, tally)
    if each:
        return f"{each:.4f} USD"
    return f"{usage.tokens / tally.resolved:,.0f} tokens" if tally.resolved else "– (there is none)"


def _difference_text(pairs: Comparison) -> str:
    found = difference_record(pairs)
    if not found or not found["interval"]:
        return ""
    low, high = found["interval"]
    mean = points_text(found["mean"])
    return f"Difference: {mean} (95 % bootstrap over tasks: {points_text(low)} to {points_text(high)})."


def _power_text(pairs: Comparison) -> str:
    found = power_record(pairs)
    if not found:
        return ""
    return (
        f"Power: were the best agent truly {WORTH_FINDING * 100:.0f} points better, {pairs.first.n} tasks would "
        f"show it with a probability of {found['power']:.0%}; for {POWERFUL:.0%} it takes "
        f"{found['tasks_for_80_percent']} tasks (supposing that {found['gained']:.0%} are gained and "
        f"{found['lost']:.0%} lost)."
    )


def _ungraded_text(found: ExamFindings) -> str:
    if not found.ungraded:
        return ""
    return f"{found.ungraded} of {found.tasks} holdout tasks have no pair of verdicts: their evaluation was given up."


def _changed_lists(pairs: Comparison) -> Html:
    lists = []
    for name, tasks in (("Gained", pairs.gained), ("Lost", pairs.lost)):
        if tasks:
            shown = join_html(*(h("li", {}, h("bdi", {}, one_line(task, 160))) for task in tasks[:200]))
            more = [paragraph(f"and {len(tasks) - 200:,} more")] if len(tasks) > 200 else []
            lists += [h("h3", {}, f"{name} ({len(tasks):,})"), h("ul", {}, shown), *more]
    return h("details", {"data-p": ""}, h("summary", {}, "Which tasks were gained and lost"), *lists)


def _naive_box(report: RunReport) -> Html:
    seed, best = report.members[0].own, report.members[report.best].own
    seed_misses, misses = (report.members[agent].given_up for agent in (0, report.best))
    if not best.n:
        return h("div", {"class": "box"}, paragraph("The best agent has no verdict on a search task yet."))
    who = "the best agent" if report.best else "the best agent, the seed,"
    lines = [
        h("strong", {}, "The naive number: "),
        f"on the search tasks {who} resolves {tally_text(best)} ({interval_text(best)}{_besides_text(misses)})",
        f", the seed {tally_text(seed)} ({interval_text(seed)}{_besides_text(seed_misses)})"
        if seed.n and report.best
        else "",
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


def _besides_text(given_up: int) -> str:
    return f"; {given_up_text(given_up)}" if given_up else ""


def _tiles(report: RunReport) -> Html:
    run, graded, spend = report.run, report.run["evaluations"], report.spend
    dead, limit = sum(run["stillborn"].values()), run["budget"]["usd"]
    tokens = f"{short_number(spend.tokens)} tokens"
    money = f"{spend.usd:.2f} USD" if spend.usd >= 0.01 else tokens
    calls = f"{tokens}, {_models_text(report)}" if spend.usd >= 0.01 else _models_text(report)
    resolved = f"{graded['resolved']:,} resolved, on {report.tasks:,} tasks"
    workers = f"{run['workers']} steps at once, {one_line(run['sandbox'], 40)}"
    facts = [
        ("Agents", f"{run['agents']:,}", f"{dead:,} stillborn" if dead else "none stillborn"),
        ("Evaluations", f"{graded['graded']:,}", resolved),
        ("Model calls", f"{spend.calls:,}", calls),
        ("Spent on the search", money, f"limit {limit:g} USD" if limit else "no limit of money"),
        ("Wall time", clock_text(round(run["seconds"])), workers),
    ]
    tiles = [
        h("div", {}, h("dt", {}, name), h("dd", {}, value, h("small", {}, more)))
        for name, value, more in facts
    ]
    return h("dl", {"class": "tiles"}, *tiles)


def _models_text(report: RunReport) -> str:
    models = {model for _, model in report.by}
    return f"{len(models)} models" if len(models) > 1 else "1 model" if models else "no model"
