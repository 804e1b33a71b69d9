"""The beginning of a report in a terminal: is the best agent better, by how much, and at what cost."""

from collections.abc import Sequence

from dgm.analysis.best import BestAgent, rate_best
from dgm.archive.run import Run
from dgm.domain import SEED, AgentId, Usage
from dgm.report.control import exam_command
from dgm.report.drawing import short_number
from dgm.report.headline import ExamFindings, HoldoutAnswer, answer_of, difference_record
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import clock_text, interval_text, p_text, tally_text
from dgm.simulation import PLAN as SIMULATION

_NAMES = 14
ANSWER_TONES = {HoldoutAnswer.BETTER: Tone.GOOD, HoldoutAnswer.WORSE_SHOWN: Tone.BAD}
_SAID = {
    HoldoutAnswer.BETTER: "yes",
    HoldoutAnswer.WORSE_SHOWN: "no, it is worse",
    HoldoutAnswer.NOT_SHOWN: "not shown",
}


def opening_lines(run: Run, found: ExamFindings | None, best: AgentId) -> Sequence[Line]:
    """Return the answer in three lines, and an empty one.

    Args:
        run: the search.
        found: the examination of its seed and ``best``.
        best: the agent that it recommends.
    """
    tone = Tone.WARN if best == SEED else ANSWER_TONES.get(answer_of(found), Tone.WARN)
    return [
        _named_line("better?", Span(_answer_text(run, found, best), tone)),
        _named_line("by how much?", Span(_gain_text(run, found, rate_best(run.tree, best)))),
        _named_line("at what cost?", Span(_cost_text(run, found))),
        (),
    ]


def _named_line(name: str, text: Span) -> Line:
    return make_line(Span(f"{name:<{_NAMES}}", Tone.STRONG), text)


def _answer_text(run: Run, found: ExamFindings | None, best: AgentId) -> str:
    if best == SEED:
        return "no agent is: the policy recommends the seed itself"
    if SIMULATION in run.config:
        return "not known: a simulated search has no holdout tasks"
    if found is None or not found.tasks:
        return f"not known: no holdout task was tried ({exam_command(run.name)} does it)"
    pairs, answer = found.comparison, answer_of(found)
    if answer is HoldoutAnswer.NOT_EXAMINED:
        return f"not known: {pairs.first.n} of {found.tasks} holdout tasks done ({exam_command(run.name)} goes on)"
    return (
        f"{_SAID[answer]}: {pairs.second.resolved} of {pairs.first.n} holdout tasks, the seed {pairs.first.resolved} "
        f"(McNemar {p_text(pairs.p)})"
    )


def _gain_text(run: Run, found: ExamFindings | None, best: BestAgent) -> str:
    if best.agent == SEED:
        own = f"{tally_text(best.own)} {interval_text(best.own)}".rstrip()
        tasks = f"resolves {own} of the search tasks" if best.own.n else "has no verdict yet"
        return f"by nothing: the best agent is the seed, which {tasks}"
    if found and answer_of(found) is not HoldoutAnswer.NOT_EXAMINED:
        measured = difference_record(found.comparison)
        if measured:
            mean = _points_text(measured["mean"])
            return f"{mean} points on the holdout tasks, {_interval_clause(measured['interval'])}"
    seed = run.tree.own(SEED)
    if not best.own.n or not seed.n:
        return "not known: the seed or the best agent has no verdict on the search tasks yet"
    return (
        f"{_points_text(best.own.rate - seed.rate)} points on the search tasks, which flatter: "
        f"{interval_text(best.own)} against {interval_text(seed)}"
    )


def _interval_clause(interval: Sequence[float] | None) -> str:
    if interval is None:
        return "without an interval: all tasks went alike"
    low, high = interval
    return f"{_points_text(low)} to {_points_text(high)} with 95 % confidence"


def _points_text(difference: float) -> str:
    return f"{round(100 * difference):+}"


def _cost_text(run: Run, found: ExamFindings | None) -> str:
    search = f"{_amount_text(run.tree.spend)}, {clock_text(run.tree.wall_seconds)}"
    return search + (
        f"; holdout evaluation {_amount_text(found.spend)}" if found and found.spend.calls else ""
    )


def _amount_text(usage: Usage) -> str:
    return f"{usage.usd:.4f} USD, {short_number(usage.tokens)} tokens"
