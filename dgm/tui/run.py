"""The run as a whole: state, budget, spend, what is being done, what happened and what failed."""

import time
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text
from textual.app import ComposeResult

from dgm.archive.run import Run
from dgm.render import fmt, safe
from dgm.render.text import LEVEL_STYLES, Facts, render_run
from dgm.tui.pane import Pane, TextView
from dgm.tui.reader import News
from dgm.views.events import EventView, read_events
from dgm.views.run import RunReader, RunView

REFRESH_S = 2.0
_EVENTS = 400
"""Newest events that are searched for those with a sentence."""
_SHOWN = 15
_BAR = 24


class RunPane(Pane):
    """The panel of the run."""

    def __init__(self) -> None:
        super().__init__("5 Run", id="run")
        self._facts: RunReader | None = None
        self._due = 0.0

    def compose(self) -> ComposeResult:
        """Yield one text."""
        yield TextView(id="run-text")

    def on_mount(self) -> None:
        """Keep ages and rates up to date."""
        self.set_interval(REFRESH_S, self._refresh)

    def enter(self) -> None:
        """Show the run."""
        self.focus_content()
        begun = time.monotonic()
        self.load("the run", self._read, lambda found: self._show(found, begun))

    def take(self, news: News) -> None:
        """Show what is new at the next refresh."""

    def _refresh(self) -> None:
        news = self.browser.news
        if self.is_active and news is not None and news.living and time.monotonic() >= self._due:
            self.enter()

    def _read(self, run: Run) -> tuple[RunView, Sequence[EventView]]:
        self._facts = self._facts or RunReader(run)
        return self._facts.view(), [event for event in read_events(run, tail=_EVENTS) if event.message][-_SHOWN:]

    async def _show(self, found: tuple[RunView, Sequence[EventView]], begun: float) -> None:
        view, events = found
        self._due = time.monotonic() + 10 * (time.monotonic() - begun)
        await self.query_one(TextView).show(list(run_parts(view, events)), "run")


def run_parts(view: RunView, events: Sequence[EventView]) -> Iterator[RenderableType]:
    """Yield the state of the run, its budget, recent events, and failures by kind."""
    yield render_run(view)
    yield from _budget_parts(view)
    yield Text()
    yield Text("Recent events", "bold")
    for event in reversed(events):
        at = f"{fmt.clock(event.at, view.now_unix_s)}  "
        yield Text.assemble((at, "dim"), (safe.one_line(event.message, 300), LEVEL_STYLES[event.level]))
    yield Text()
    yield from _failure_parts(view)


def _budget_parts(view: RunView) -> Iterator[RenderableType]:
    if not view.budget:
        return
    facts = Facts()
    for name, use in view.budget.items():
        style = "green" if use.share < 1 or name == "evaluations" else "yellow"
        words = f"  {fmt.percent(use.share)}  {fmt.use_of_limit(name, use.used, use.limit)}"
        facts.add(name, Text.assemble((fmt.bar(use.share, _BAR), style), words))
    yield Text()
    yield Text("Budget", "bold")
    yield facts.table


def _failure_parts(view: RunView) -> Iterator[RenderableType]:
    failures = view.failures
    rows = [(count.times, "stillborn", f"{count.operator}: {count.stage}") for count in failures.stillborn]
    for kind in ("invalid", "lost", "refused", "unresolved"):
        rows += [(count.times, kind, count.reason) for count in getattr(failures, kind)]
    yield Text("Failures" if rows else "Failures: none", "bold")
    for times, kind, reason in rows:
        yield Text.assemble((f"{times:>6} × ", "bold"), (f"{kind:<11}", "yellow"), safe.one_line(reason, 300))
