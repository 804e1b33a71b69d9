"""The screen of a run: progress, budgets, spend, the curve, actions under way, recent events and failures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dgm.analysis.budgets import sum_evaluations_spent
from dgm.analysis.failures import FailureCounts
from dgm.analysis.summary import run_facts
from dgm.archive.events import Recorded
from dgm.archive.history import LIVING
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import Action, ActionId, AgentId, Evaluate
from dgm.show.events import event_line, time_text
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.status import status_lines
from dgm.show.words import clock_text, count_text, operator_text
from dgm.tui.bodies import heading_line
from dgm.tui.plot import WIDTH, curve_lines
from dgm.views.curve import CurvePoint

RECENT = 12
"""Maximum number of events that are shown, the newest first."""
BAR = 30
_NARROW = 20


@dataclass(slots=True)
class LogFacts:
    """The facts looked up in the log, beside the tree."""

    curve: Sequence[CurvePoint] | None = None
    failures: FailureCounts | None = None
    """Counts of failures. Both this and the curve are None while nobody has counted."""
    begun: Mapping[ActionId, float] = field(default_factory=dict)
    """Start times of actions, Unix time."""
    recent: Sequence[Recorded] = ()


def run_lines(run: Run, best: AgentId | None, gathered: LogFacts, now: float, width: int) -> Sequence[Line]:
    """Return the lines of the whole screen.

    Args:
        run: the run, with its tree.
        best: the best agent; None while it is not known.
        gathered: the facts looked up in the log.
        now: Unix time.
        width: cells of the window.
    """
    tree, facts = run.tree, run_facts(run, best)
    # A curve computed before the first verdict is outdated; it does not mean a run without verdicts.
    points = None if tree.evaluations and not gathered.curve else gathered.curve
    return [
        *status_lines(run, facts),
        *_budget_lines(tree, max(_NARROW, min(BAR, width - 50))),
        (),
        heading_line("highest lower bound of any agent, over evaluations"),
        *curve_lines(points, max(10, min(WIDTH, width - 8))),
        (),
        *_slot_lines(run, facts["state"], gathered.begun, now),
        (),
        heading_line("recent events"),
        *(
            _recent_lines(gathered.recent)
            or [make_line(Span("  none that tells more than a start", Tone.DIM))]
        ),
        (),
        *_error_lines(gathered.failures),
    ]


def _budget_lines(tree: Tree, width: int) -> Iterator[Line]:
    """Yield a bar for each limit that there is."""
    budget = tree.budget
    limits = (
        ("goal", sum_evaluations_spent(tree), budget.evaluations, "{:,.0f} of {:,.0f} evaluations"),
        ("most agents", float(len(tree.agents)), budget.agents, "{:,.0f} of {:,.0f} agents"),
        ("most money", tree.spend.usd, budget.usd, "{:,.4f} of {:,.2f} USD"),
        ("most tokens", float(tree.spend.tokens), budget.tokens, "{:,.0f} of {:,.0f} tokens"),
        ("most time", tree.wall_seconds, budget.seconds, ""),
    )
    for name, used, limit, form in limits:
        if limit is None:
            continue
        share = min(1.0, used / limit) if limit else 1.0
        full = round(share * width)
        said = form.format(used, limit) if form else f"{clock_text(used)} of {clock_text(limit)}"
        # A run is meant to reach its goal.
        tone = Tone.GOOD if share < 1 or name == "goal" else Tone.WARN
        yield make_line(
            Span(f"{name:<13}", Tone.KEY),
            Span("█" * full, tone),
            Span("░" * (width - full), Tone.DIM),
            f"  {share:.0%}  {said}",
        )


def _slot_lines(run: Run, how: str, begun: Mapping[ActionId, float], now: float) -> Iterator[Line]:
    tree, workers = run.tree, run.settings().get("workers", 0)
    living = how in LIVING
    if living:
        said = f"{len(tree.pending)} of {workers} in use"
    else:
        said = "the run was cut off" if how == "interrupted" else "the run has ended"
        said += "; under way then:" if tree.pending else ""
    yield heading_line("slots", f"  {said}")
    for action, what in tree.pending.items():
        since = clock_text(max(0.0, now - begun[action])) if action in begun else "–"
        usage = tree.spend_of(action)
        tries = tree.tries(action)
        again = f", try {tries}" if tries > 1 else ""
        took = f"{count_text(usage.calls, 'call')}, {usage.tokens:,} tokens{again}"
        yield make_line(
            Span(f"  {action:>6} ", Tone.DIM),
            *_action_spans(what, living=living),
            # The time at which the process died is unknown.
            Span(f"  for {since}, {took}" if living else f"  {took}", Tone.DIM),
        )
    for action in tree.to_redo():
        yield make_line(Span(f"  {action:>6} ", Tone.DIM), "to be performed again")
    for action, waits in tree.waiting.items():
        parents = " and ".join(map(str, waits.child.parents))
        yield make_line(
            Span(f"  {action:>6} ", Tone.DIM), Span(f"child of {parents} waits for you", Tone.WARN)
        )


def _action_spans(what: Action, *, living: bool) -> Sequence[str | Span]:
    """Return the activity of an action; in the past tense and without a mark of work if nobody writes the run."""
    if isinstance(what, Evaluate):
        mark, who, does = "●", str(what.agent), "works on" if living else "worked on"
        said = one_line(what.task, 80) + (f" (attempt {what.attempt + 1})" if what.attempt else "")
    else:
        mark, who = "✎", " and ".join(map(str, what.parents))
        does, said = "is changed by" if living else "was changed by", operator_text(what.operator, what.aim)
    return (Span(f"{mark} agent {who} ", Tone.GOOD) if living else f"agent {who} ", f"{does} {said}")


def _recent_lines(events: Sequence[Recorded]) -> Sequence[Line]:
    found: list[Line] = []
    for recorded in reversed(events):
        said = event_line(recorded.event, None, at=recorded.at)
        if said:
            found.append(make_line(Span(f"  {time_text(recorded.at)[11:]}  ", Tone.DIM), *said))
        if len(found) == RECENT:
            break
    return found


def _error_lines(failures: FailureCounts | None) -> Iterator[Line]:
    if failures is None:
        yield heading_line("errors", Span("  being counted …", Tone.DIM))
        return
    rows = [
        *(
            (count, "stillborn", f"{one_line(operator, 40)}: {one_line(stage, 60)}")
            for (operator, stage), count in failures.stillborn.items()
        ),
        *((count, "invalid", one_line(reason, 200)) for reason, count in failures.invalid),
        *((count, "lost", one_line(reason, 200)) for reason, count in failures.lost),
        *((count, "refused", one_line(code, 60)) for code, count in failures.refused.items()),
    ]
    yield heading_line("errors", "" if rows else "  none")
    for count, kind, words in rows:
        yield make_line(Span(f"  {count:>6} × ", Tone.STRONG), Span(f"{kind:<10}", Tone.WARN), words)
