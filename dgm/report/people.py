"""The report in a terminal: the search, the examination on held-out tasks, the cost of both."""

from collections.abc import Iterator, Sequence

from dgm.analysis.given_up import count_given_up
from dgm.analysis.summary import corrected_rate_record, models_of
from dgm.archive.run import Run
from dgm.domain import SEED, AgentId, Tally, Usage
from dgm.evaluation.exam import Comparison
from dgm.report.control import control_sentences, exam_command
from dgm.report.ending import saving_text
from dgm.report.facts import compute_cache_saving
from dgm.report.headline import (
    POWERFUL,
    WORDS,
    WORTH_FINDING,
    ExamFindings,
    answer_of,
    difference_record,
    make_verdict,
    power_record,
    repeated_exam_note,
    trust_note,
    usd_each,
)
from dgm.report.opening import ANSWER_TONES
from dgm.show.best import RECOMMENDED, bound_text
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import (
    BEST,
    count_text,
    given_up_text,
    interval_text,
    mcnemar_text,
    tally_text,
    usage_lines,
    usage_text,
)
from dgm.simulation import PLAN as SIMULATION


def search_lines(run: Run, best: AgentId) -> Sequence[Line]:
    """Return the lines about the search."""
    spent = [
        make_line(f"  spent on the search: {usage_text(run.tree.spend)}"),
        *map(make_line, usage_lines(run.tree.spend_by, "    ")),
        *([make_line(f"  {saving}")] if (saving := saving_text(compute_cache_saving(run))) else []),
    ]
    if best == SEED:
        return [
            make_line(Span("on the search tasks:", Tone.STRONG)),
            _own_line(run, "seed", SEED, best),
            *spent,
        ]
    lines = [
        make_line(
            Span("on the search tasks (chosen on these, so they flatter the best agent):", Tone.STRONG)
        ),
        _own_line(run, "seed", SEED, best),
        _own_line(run, "best", best, best),
    ]
    if chosen := corrected_rate_record(run, best):
        lines.append(
            make_line(
                f"  best agent's rate: naive {chosen['rate']:.0%}, corrected for having been chosen "
                f"among {chosen['evaluated']}: {chosen['corrected_rate']:.0%}"
            )
        )
    last = one_line(run.tree.agents[best].rationale, 80)
    return [*lines, make_line(f"  best agent's last step: {last}"), *spent]


def _own_line(run: Run, name: str, agent: AgentId, best: AgentId) -> Line:
    own = run.tree.own(agent)
    star = f"  {BEST} {bound_text(own)}; {RECOMMENDED}" if agent == best else ""
    if given_up := given_up_text(count_given_up(run.tree, agent)):
        star = f"  {given_up}{star}"
    return make_line(
        "  ", Span(name, Tone.KEY), f"  agent {agent:<4} {tally_text(own):<12} ", _interval_span(own), star
    )


def holdout_lines(run: Run, found: ExamFindings | None, best: AgentId) -> Sequence[Line]:
    """Return the lines about the examination; where the best agent is the seed, its tally alone."""
    if SIMULATION in run.config:
        return [
            make_line(
                Span("holdout tasks: none, for a simulated run has no benchmark to evaluate on", Tone.DIM)
            )
        ]
    if found is None:
        again = f"run: {exam_command(run.name)}"
        who = "these two agents" if best else "the seed"
        return [make_line(Span(f"holdout tasks: not evaluated for {who}; {again}", Tone.WARN))]
    pairs = found.comparison
    tasks = count_text(pairs.first.n, "holdout task")
    title = f"on {tasks}, which nothing in the search has seen (95 % Wilson intervals):"
    if found.missing:
        title = f"{make_verdict(found, best, run.name).sentence} So far:"
    candidates = [("seed", SEED, pairs.first, found.seed), ("best", best, pairs.second, found.best)]
    lines = [
        make_line(Span(title, Tone.STRONG)),
        *(
            _candidate_line(name, agent, tally, usage, interval=not found.missing)
            for name, agent, tally, usage in candidates[: 1 if found.itself else 2]
        ),
    ]
    spent = [
        make_line(f"  spent on the holdout tasks: {usage_text(found.spend)}"),
        *map(make_line, usage_lines(found.by, "    ")),
    ]
    if found.missing or found.itself:
        return [*lines, *spent]
    changed = f"{len(pairs.gained)} gained, {len(pairs.lost)} lost; {mcnemar_text(pairs.p, pairs.mid_p)}"
    return [
        *lines,
        *_difference_lines(pairs),
        make_line(f"  {changed}: the best agent is ", _answer_span(found)),
        *([make_line(Span(f"  {more}", Tone.WARN))] if (more := repeated_exam_note(found)) else []),
        *_power_lines(pairs),
        *_ungraded_lines(found),
        *_control_lines(run, found),
        *spent,
    ]


def note_line(run: Run) -> Line:
    """Return the line on how far the results are to be trusted."""
    return make_line(Span(f"note: {trust_note(run)}", Tone.WARN))


def _interval_span(tally: Tally, width: int = 0) -> Span:
    return Span(f"{interval_text(tally):<{width}}", Tone.DIM)


def _candidate_line(name: str, agent: int, tally: Tally, usage: Usage, *, interval: bool) -> Line:
    each = usd_each(usage, tally)
    cost = f"{usage.usd:.4f} USD" + (f", {each:.4f} for each resolved task" if each is not None else "")
    within = (_interval_span(tally, 8), " ") if interval else ()
    return make_line(
        "  ", Span(name, Tone.KEY), f"  agent {agent:<4} {tally_text(tally):<12} ", *within, cost
    )


def _answer_span(found: ExamFindings) -> Span:
    answer = answer_of(found)
    return Span(WORDS[answer], ANSWER_TONES.get(answer, Tone.WARN))


def _difference_lines(pairs: Comparison) -> Iterator[Line]:
    found = difference_record(pairs)
    if found and found["interval"]:
        low, high = (round(100 * end) for end in found["interval"])
        mean = round(100 * found["mean"])
        yield make_line(f"  difference: {mean:+} points, {low:+} to {high:+} by a 95 % bootstrap over tasks")


def _power_lines(pairs: Comparison) -> Iterator[Line]:
    found = power_record(pairs)
    if found:
        supposed = f"{found['gained']:.0%} gained, {found['lost']:.0%} lost"
        shown = f"{pairs.first.n} tasks show a true gain of {WORTH_FINDING * 100:.0f} points ({supposed})"
        needed = f"for {POWERFUL:.0%} it takes {found['tasks_for_80_percent']} tasks"
        yield make_line(f"  power: {shown} with probability {found['power']:.0%}; {needed}")


def _control_lines(run: Run, found: ExamFindings) -> Iterator[Line]:
    for text in control_sentences(found.control, run.name, models_of(run)):
        yield make_line(f"  {text[0].lower()}{text[1:]}")


def _ungraded_lines(found: ExamFindings) -> Iterator[Line]:
    if found.ungraded:
        yield make_line(
            Span(
                f"  {found.ungraded} of {found.tasks} holdout tasks have no pair of verdicts (given up)",
                Tone.WARN,
            )
        )
