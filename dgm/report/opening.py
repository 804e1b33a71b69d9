"""What a report in a terminal begins with: is the best agent better, by how much, and what did that cost."""

from collections.abc import Sequence

from dgm.archive.run import Run
from dgm.domain import SEED, AgentId, Usage
from dgm.report.drawing import short
from dgm.report.headline import Answer, Findings, answer_of, difference_record, verdict
from dgm.search.best import Best, rate_best
from dgm.show.best import bound_text
from dgm.show.spans import Line, Span, Tone, line
from dgm.show.words import clock, counted, interval_text, tally_text
from dgm.simulate import PLAN as SIMULATION

_NAMES = 14
_TONES = {Answer.BETTER: Tone.GOOD, Answer.WORSE_SHOWN: Tone.BAD}


def opening_lines(run: Run, found: Findings | None, best: AgentId) -> Sequence[Line]:
    """Return the answer in three lines, and an empty one.

    Args:
        run: the search.
        found: what the examination of its seed and ``best`` says.
        best: the agent that it recommends.
    """
    said = verdict(found, best, run.name, simulated=SIMULATION in run.config)
    return [
        _named("better?", Span(said.sentence, _TONES.get(said.answer, Tone.WARN))),
        _named("by how much?", Span(_gain(run, found, rate_best(run.tree, best)))),
        _named("at what cost?", Span(_cost(run, found))),
        (),
    ]


def _named(name: str, text: Span) -> Line:
    return line(Span(f"{name:<{_NAMES}}", Tone.STRONG), text)


def _gain(run: Run, found: Findings | None, best: Best) -> str:
    if best.agent == SEED:
        own = f"{tally_text(best.own)} {interval_text(best.own)}".rstrip()
        tasks = (
            f"resolves {own} of the search tasks, {bound_text(best.own)}"
            if best.own.n
            else "has no verdict yet"
        )
        return f"by nothing: the best agent is the seed, which {tasks}"
    measured = (
        difference_record(found.comparison) if found and answer_of(found) is not Answer.NOT_EXAMINED else None
    )
    if measured:
        return f"{_points(measured['mean'])} on the holdout tasks, {_interval(measured['interval'])}"
    seed = run.tree.own(SEED)
    if not best.own.n or not seed.n:
        return "not known: the seed or the best agent has no verdict on the search tasks yet"
    return (
        f"not known yet; on the search tasks {_points(best.own.rate - seed.rate)} ({tally_text(best.own)} "
        f"{interval_text(best.own)} against {tally_text(seed)} {interval_text(seed)}), which flatters the best agent"
    )


def _interval(interval: Sequence[float] | None) -> str:
    if interval is None:
        return "without an interval, for all tasks went alike"
    low, high = interval
    return f"95 % interval {_points(low)} to {_points(high)}"


def _points(difference: float) -> str:
    return f"{round(100 * difference):+} points"


def _cost(run: Run, found: Findings | None) -> str:
    tree = run.tree
    search = (
        f"{_amount(tree.spend)} and {clock(tree.wall_seconds)} for {counted(tree.evaluations, 'evaluation')} "
    )
    made = len(tree.agents) - 1
    search += f"and {counted(made, 'new agent')}"
    return search + (f"; the examination {_amount(found.spend)}" if found and found.spend.calls else "")


def _amount(usage: Usage) -> str:
    return f"{usage.usd:.4f} USD, {short(usage.tokens)} tokens"
