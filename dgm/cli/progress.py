"""The progress of a search for people: a live panel on a terminal, plain lines elsewhere."""

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING

from dgm.analysis.best import BestAgent, best_of, rate_best
from dgm.analysis.budgets import sum_evaluations_spent
from dgm.archive.events import ChildProposed, Recorded, TaskGraded
from dgm.archive.live_nodes import read_live_nodes
from dgm.archive.run import Run
from dgm.cli.output import make_console
from dgm.cli.panel import panel_lines, time_line
from dgm.cli.signals import leave_closed_terminal, print_line, stopping_signals
from dgm.domain import AgentId
from dgm.search.loop import Search
from dgm.show.events import event_line
from dgm.show.nodes import nodes_line
from dgm.show.spans import Line, make_line, plain_text
from dgm.show.terminal import colour_line
from dgm.show.times import rough_duration_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

RECENT = 8
BEST_EVERY = 20
"""Pause between two queries for the best agent, as a multiple of the last query's duration."""
COUNTS_EVERY_S = 15.0
"""Interval between two lines with the counts, where no panel shows them."""
Counts = Callable[[], Mapping[str, tuple[int, int]]]
"""Returns the name of an agent → its evaluations done, and all of them."""


class RunProgress:
    """A listener to every event; it prints a line each, or keeps the last few for the panel."""

    def __init__(
        self, run: Run, *, quiet: bool, names: Mapping[AgentId, str], counts: Counts | None = None
    ) -> None:
        self._run = run
        self._names = names
        self._quiet = quiet
        self._counts = counts
        self._counts_due = 0.0
        self._began = time.monotonic()
        self._done, self._total = self._count()
        self._done_before = self._done
        self._seconds_before = run.tree.wall_seconds
        self._limit_s = run.tree.budget.seconds
        self._recent: list[Line] = []
        self._facts: Sequence[Line] = ()
        self._search: Search | None = None
        self._told_how_to_answer = False
        self._best: AgentId | None = None
        self._best_due = 0.0
        self.live: Live | None = None

    def attach(self, search: Search) -> None:
        """Set the search whose slots the panel shows."""
        self._search = search
        self._read_tree()

    def event(self, recorded: Recorded) -> None:
        """Take note of one event."""
        self._done, self._total = self._count()
        self._read_tree()
        told = event_line(recorded.event, self._run.tree, self._names, recorded.at)
        if told:
            self.say(told)
        now = time.monotonic()
        if self.live is None and isinstance(recorded.event, TaskGraded) and now >= self._counts_due:
            self._counts_due = now + COUNTS_EVERY_S
            if told := self._counts_line():
                self.say(told)
        if isinstance(recorded.event, ChildProposed) and not self._told_how_to_answer:
            self._told_how_to_answer = True
            self.say(
                make_line(f"answer for it, and for those that follow, with: dgm approve {self._run.name}")
            )

    def say(self, told: Line) -> None:
        """Show one line."""
        if self.live is not None:
            self._recent = [*self._recent, told][-RECENT:]
        elif not self._quiet:
            self._print(time.strftime("%H:%M:%S  ") + plain_text(told))

    def announce(self, text: str) -> None:
        """Show one line that stays: above the panel, or on stderr if nothing else is printed."""
        if self.live is not None:
            from rich.text import Text

            self.live.console.print(Text(text))
        elif self._quiet:
            sys.stderr.write(text + "\n")
        else:
            self.say(make_line(text))

    def _print(self, text: str) -> None:
        try:
            print_line(text)
        except OSError:
            # The command reports the reason when it prints its result.
            self._quiet = True
            if self._search is not None:
                self._search.ask_to_stop("stopped because its output can no longer be written")

    def __rich__(self) -> "RenderableType":
        from rich.panel import Panel
        from rich.text import Text

        # A separate thread draws this, so it must not read the tree.
        slots = f"{self._search.running} running" if self._search else "starting"
        used = self._seconds_before + time.monotonic() - self._began
        left = "" if self._counts else self._left_text()
        lines = [
            time_line(used, self._limit_s, f"{left and ', '}{left}  {slots}"),
            *self._facts,
            (),
            *self._recent,
        ]
        shown = Text("\n", no_wrap=True, overflow="ellipsis").join(
            Text.from_ansi(colour_line(each), no_wrap=True, overflow="ellipsis") for each in lines
        )
        return Panel(shown, title=self._run.name, title_align="left")

    def _read_tree(self) -> None:
        if self.live is not None:
            nodes = [asdict(node) for node in read_live_nodes(self._run.folder)]
            facts = panel_lines(self._run.tree, self._names, self._best_now())
            counts = self._counts_line()
            self._facts = [*([counts] if counts else []), *facts, *([nodes_line(nodes)] if nodes else [])]
            self._limit_s = self._run.tree.budget.seconds

    def _best_now(self) -> BestAgent | None:
        """Return the recommended agent; None before a verdict, and if agents are evaluated by name.

        The policy takes at most one part in ``BEST_EVERY`` of the time. The tally is up to date.
        """
        tree = self._run.tree
        if self._names or not tree.evaluations:
            return None
        begun = time.monotonic()
        if self._best is None or begun >= self._best_due:
            self._best = best_of(self._run)
            now = time.monotonic()
            self._best_due = now + BEST_EVERY * (now - begun)
        return rate_best(tree, self._best)

    def _count(self) -> tuple[float, float]:
        """Return the evaluations done, and all of them; 0 for all where nothing tells their number."""
        if self._counts is None:
            return sum_evaluations_spent(self._run.tree), self._run.tree.budget.evaluations or 0
        counts = self._counts().values()
        return sum(done for done, _ in counts), sum(total for _, total in counts)

    def _left_text(self) -> str:
        """Return the time left at the pace of this session; empty while nothing tells it."""
        done = self._done - self._done_before
        if not self._total or done < 3:
            return ""
        seconds = (time.monotonic() - self._began) / done * max(self._total - self._done, 0)
        return f"about {rough_duration_text(seconds)} left"

    def _counts_line(self) -> Line:
        """Return ``seed 12/20 · best (37) 3/20 · about 2 min left``; empty without counts."""
        counts = self._counts() if self._counts else {}
        parts = [f"{name} {done}/{total}" for name, (done, total) in counts.items()]
        return make_line(" · ".join([*parts, *filter(None, [self._left_text()])])) if parts else ()


@contextmanager
def show_progress(
    run: Run,
    *,
    quiet: bool,
    names: Mapping[AgentId, str] = MappingProxyType({}),
    counts: Counts | None = None,
) -> Iterator[RunProgress]:
    """Show a run's progress until the context ends; ``quiet`` prints nothing.

    Args:
        run: open to write.
        quiet: whether nothing is printed.
        names: names of the agents that are not named by their number.
        counts: of the evaluations by agent; None: the run's budget has their number.
    """
    shown = RunProgress(run, quiet=quiet, names=names, counts=counts)
    logging.basicConfig(
        level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    if quiet or not sys.stdout.isatty():
        yield shown
        return
    from rich.live import Live

    with Live(shown, console=make_console(), refresh_per_second=4) as live:
        shown.live = live
        try:
            yield shown
        finally:
            leave_closed_terminal()


def listen_for_signals(search: Search, shown: RunProgress) -> None:
    """Stop the search on Ctrl-C, SIGTERM or SIGHUP: once in good order, twice at once.

    A signal that is ignored (nohup) stays ignored.
    """
    loop = asyncio.get_running_loop()
    session = asyncio.current_task()

    def interrupted(number: int) -> None:
        if number == signal.SIGHUP:
            leave_closed_terminal()
            if search.stopping:  # the kernel says it, and so does the shell
                return
        if search.stopping and session is not None:
            session.cancel()
            return
        waits = f"stopping: waiting for {search.running} running steps (once more to stop at once)"
        shown.say(make_line(waits))
        search.ask_to_stop("stopped as asked")

    for number in stopping_signals():
        loop.add_signal_handler(number, interrupted, number)
