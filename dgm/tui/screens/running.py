"""The screen of the run as a whole, while it is performed and afterwards."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.worker import get_current_worker

from dgm.analysis.failures import FailureCounts, count_failures
from dgm.analysis.lookups import read_last_events
from dgm.archive.events import ActionStarted, ModelCalled, Recorded
from dgm.archive.history import LIVING
from dgm.archive.run import Run
from dgm.archive.store import EventStore
from dgm.domain import ActionId
from dgm.errors import DgmError
from dgm.tui.bodies import LineBody, notice_body
from dgm.tui.changes import RunChanges
from dgm.tui.keys import KeyScope, bindings_of
from dgm.tui.page import reading_text
from dgm.tui.run_facts import LogFacts, run_lines
from dgm.tui.text import TextView
from dgm.tui.text_page import TextPage
from dgm.views.curve import CurvePoint, compute_curve

COUNT_EVERY = 20
"""Divisor of the time: computing curve and failures takes at most this part of it, and ``AT_LEAST_S`` lie between."""
AT_LEAST_S = 2.0
CLOCK_S = 1.0
"""Seconds between drawings of the actions under way, for their clocks."""
KEPT = 400
"""Number of newest events that are kept; only events with a sentence are shown."""


class RunningScreen(TextPage):
    """The screen ``running``."""

    NAME = "running"
    WHERE = (KeyScope.RUNNING, KeyScope.LIST)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.RUNNING)]

    @dataclass
    class Counted(Message):
        """A message: curve and failures are there."""

        points: Sequence[CurvePoint]
        failed: FailureCounts
        took_s: float

    @dataclass
    class Failed(Message):
        """A message: curve and failures could not be read."""

        why: str

    def __init__(self) -> None:
        super().__init__()
        self._gathered = LogFacts()
        self._events: deque[Recorded] = deque(maxlen=KEPT)
        self._begun: dict[ActionId, float] = {}
        self._until = 0
        self._counting = False
        self._counted_at = -1
        self._due = 0.0

    def body(self) -> ComposeResult:
        """Yield one text."""
        yield TextView()

    def on_mount(self) -> None:
        """Keep the clocks going while nothing else happens."""
        self.set_interval(CLOCK_S, self._tick)

    def show_subject(self) -> None:
        """Take in the events that came while another screen was shown."""
        run = self.reader.run
        if run is not None and self._until < run.tree.seq:
            self._catch_up(run)
        self._draw()

    def changed(self, changed: RunChanges) -> None:
        """Draw the changes."""
        if changed.events and changed.events[0].seq == self._until + 1:
            self._take(changed.events)
            self._draw()
        else:
            self.show_subject()

    def identity(self) -> str:
        """Return the run's name."""
        return self.reader.name

    def on_running_screen_counted(self, event: Counted) -> None:
        """Draw the curve and the failures."""
        self._counting = False
        self._due = time.monotonic() + max(AT_LEAST_S, COUNT_EVERY * event.took_s)
        self._gathered.curve, self._gathered.failures = event.points, event.failed
        self._draw()

    def _tick(self) -> None:
        run = self.reader.run
        if not self.is_current or run is None:
            return
        clocks = run.tree.pending and self.reader.state in LIVING
        if clocks or self._counted_at != run.tree.seq:
            self._draw()

    def _catch_up(self, run: Run) -> None:
        """Read the end of the log, and the start times of the actions under way."""
        try:
            self._events.clear()
            self._take([each for each in read_last_events(run.store, KEPT) if each.seq <= run.tree.seq])
            for action in run.tree.pending.keys() - self._begun.keys():
                self._take_starts(run.store.events_of_action(action))
            self._until = run.tree.seq
        except DgmError as error:
            self.browser.say(str(error))

    def _take(self, events: Sequence[Recorded]) -> None:
        self._take_starts(events)
        self._events.extend(each for each in events if not isinstance(each.event, ModelCalled))
        self._until = events[-1].seq if events else self._until

    def _take_starts(self, events: Sequence[Recorded]) -> None:
        for each in events:
            if isinstance(each.event, ActionStarted):
                self._begun[each.event.id] = each.at

    def _draw(self) -> None:
        run = self.reader.run
        if run is None:
            self.put("reading", notice_body(reading_text(self.reader)))
            return
        pending = run.tree.pending
        self._begun = {action: at for action, at in self._begun.items() if action in pending}
        self._gathered.begun, self._gathered.recent = self._begun, list(self._events)
        self.put(
            "run", LineBody(run_lines(run, self.reader.best, self._gathered, time.time(), self.view.room))
        )
        self._count(run)

    def _count(self, run: Run) -> None:
        """Compute curve and failures on another thread, where they may have changed."""
        if self._counting or self._counted_at == run.tree.seq or time.monotonic() < self._due:
            return
        self._counting, self._counted_at = True, run.tree.seq

        def work() -> None:
            begun = time.monotonic()
            try:
                points, failed = self.reader.ask(
                    lambda store: _compute_facts(run, store, self.reader.gate.passed)
                )
            except DgmError as error:
                self.post_message(self.Failed(str(error)))
                return
            except Exception as error:
                self.post_message(self.Failed(repr(error)))
                raise
            if not get_current_worker().is_cancelled:
                self.post_message(self.Counted(points, failed, time.monotonic() - begun))

        self.in_thread(work, "count", exclusive=False)

    def on_running_screen_failed(self, event: Failed) -> None:
        """Show the reason, and try again later."""
        self._counting = False
        self._due = time.monotonic() + COUNT_EVERY
        self.browser.say(event.why)


def _compute_facts(
    run: Run, store: EventStore, pause: Callable[[], None]
) -> tuple[Sequence[CurvePoint], FailureCounts]:
    """Return curve and failures from a store of the thread's own, so that the run is still followed."""
    beside = Run(run.folder, run.config, store)
    beside.tree = run.tree
    return compute_curve(beside), count_failures(beside)
