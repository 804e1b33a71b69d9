"""The notices of a run, as a function of its log.

The clock is the log's. So a process that was killed finds the same notices again, and knows which were delivered.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dgm.analysis.budgets import Reason
from dgm.archive.events import (
    AgentBorn,
    AgentStillborn,
    ChildProposed,
    ModelCalled,
    PromotionDecided,
    Recorded,
    RunPaused,
    RunStarted,
    RunStopped,
    TaskGraded,
)
from dgm.archive.run import Run
from dgm.config import NoticeKind
from dgm.domain import SEED, AgentId
from dgm.render import fmt
from dgm.render.safe import one_line
from dgm.sinks.feed import Feed
from dgm.stats import lower_bound
from dgm.views.progress import tree_budget_uses
from dgm.views.values import TallyView

FIRST_EVALUATIONS = 10
"""Evaluations after which a new best agent is a notice; before that the best changes all the time."""
BEST_EVERY_S = 300.0
"""Shortest time between two notices of a new best agent; further ones are left out."""
SHARES = (0.5, 0.9)
"""Used shares of a limit that are notices."""
PER_EVENT = 16
"""Bound on the notices of one event."""
REASON_CELLS = 200
_PROGRESS = (TaskGraded, AgentBorn, AgentStillborn, ChildProposed)


@dataclass(frozen=True, slots=True)
class Notice:
    """A message about a run."""

    position: int
    """``PER_EVENT`` times the number of its event, and the number of the notice among those of the event."""
    kind: NoticeKind
    title: str
    """One line."""
    text: str
    facts: Mapping[str, Any]
    """The same for programs, as JSON."""


@dataclass(slots=True)
class NoticeRules:
    """A fold of a run's events that yields its notices."""

    run: Run
    _paused: bool = False
    _levels: dict[str, int] = field(default_factory=dict)
    """Limit → number of ``SHARES`` that it has passed."""
    _announced: AgentId = SEED
    _announced_at: float = 0.0

    def observe(self, recorded: Recorded, feed: Feed) -> Iterator[Notice]:
        """Yield the notices of an event that the feed has folded."""
        for number, (kind, words) in enumerate(self._find(recorded, feed)):
            yield self._notice(recorded.seq * PER_EVENT + number, kind, words, feed)

    def interrupted(self, feed: Feed) -> Notice:
        """Return the notice that the process that wrote the run has died, after the last event."""
        position = feed.tree.seq * PER_EVENT + PER_EVENT - 1
        return self._notice(position, "interrupted", "its process died", feed)

    def _find(self, recorded: Recorded, feed: Feed) -> Iterator[tuple[NoticeKind, str]]:
        match recorded.event:
            case RunStarted():
                self._paused = False
            case RunPaused(reason) if not self._paused:
                self._paused = True
                yield "pause", f"paused: {one_line(reason, REASON_CELLS)}"
            case event if self._paused and isinstance(event, (*_PROGRESS, ModelCalled)):
                self._paused = False
                yield "continue", "goes on after a pause"
            case _:
                pass
        match recorded.event:
            case PromotionDecided(accepted=int() as agent):
                yield "certified", f"agent {agent} is certified to be better"
            case RunStopped(reason):
                yield "end", f"ended: {one_line(reason, REASON_CELLS)}"
            case event if isinstance(event, _PROGRESS):
                yield from self._find_progress(recorded.at, feed)
            case _:
                pass

    def _find_progress(self, at: float, feed: Feed) -> Iterator[tuple[NoticeKind, str]]:
        levels = self._count_levels(feed)
        for limit, level in levels.items():
            if level > self._levels.get(limit, 0):
                yield "budget", f"{SHARES[level - 1]:.0%} of the budget of {limit} is used"
        self._levels = levels
        is_due = at >= self._announced_at + BEST_EVERY_S and feed.tree.evaluations > FIRST_EVALUATIONS
        if is_due and feed.is_best_due and feed.best != self._announced:
            self._announced, self._announced_at = feed.best, at
            yield "best", f"agent {feed.best} is the new best"

    def _count_levels(self, feed: Feed) -> dict[str, int]:
        uses = tree_budget_uses(feed.tree)
        return {
            name: sum(use.share >= share for share in SHARES)
            for name, use in uses.items()
            if name != "agents"
        }

    def _notice(self, position: int, kind: NoticeKind, words: str, feed: Feed) -> Notice:
        tree, run = feed.tree, self.run
        tally = tree.own(feed.best) if tree.agents else None
        best = "no agent yet"
        if tally is not None:
            rate = fmt.tally_interval(TallyView.of(tally))
            best = f"best: agent {feed.best}, {rate}, lower bound {lower_bound(tally):.2f}"
        spend = (
            f"spent: {fmt.money(tree.spend.usd)} and {tree.spend.tokens:,} tokens on "
            f"{fmt.count(tree.evaluations, 'evaluation')} and {fmt.count(len(tree.agents), 'agent')}"
        )
        facts = {
            "event": kind,
            "id": f"{run.config['id']}/{position}",
            "run": run.name,
            "message": words,
            "best": feed.best if tally is not None else None,
            "resolved": tally.resolved if tally is not None else 0,
            "evaluated": tally.n if tally is not None else 0,
            "usd": tree.spend.usd,
            "tokens": tree.spend.tokens,
            "evaluations": tree.evaluations,
            "agents": len(tree.agents),
            "next": _next_step(kind, run.name, feed),
        }
        text = "\n".join((best, spend, f"next: {facts['next']}"))
        return Notice(position, kind, f"dgm {run.name}: {words}", text, facts)


def _next_step(kind: NoticeKind, name: str, feed: Feed) -> str:
    """Return the command that helps after a notice."""
    if kind == "end" and feed.tree.stop_reason in (Reason.GOAL, Reason.STANDSTILL):
        return f"dgm show {name} best"
    if kind in ("end", "interrupted"):
        return f"dgm resume {name}"
    return f"dgm show {name} {feed.best}" if kind in ("best", "certified") else f"dgm status {name}"
