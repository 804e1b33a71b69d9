"""What a person sees while a search runs: a live panel on a terminal, plain lines elsewhere."""

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from dgm.archive.events import Recorded
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.cli.output import console
from dgm.domain import AgentId
from dgm.policies.best_belief import best_belief
from dgm.search.budgets import budget_taken, evaluations_spent
from dgm.search.loop import Search
from dgm.show.events import agent_name, event_line
from dgm.show.spans import plain
from dgm.show.status import waiting_line
from dgm.show.words import bar, clock, interval_text, tally_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

RECENT = 8


class Progress:
    """Hears of every event; prints a line each, or keeps the last few for the panel."""

    def __init__(self, run: Run, *, quiet: bool, names: Mapping[AgentId, str]) -> None:
        self._run = run
        self._names = names
        self._quiet = quiet
        self._began = time.monotonic()
        self._spent_before = evaluations_spent(run.tree)
        self._recent: list[str] = []
        self._facts: list[str] = []
        self._search: Search | None = None
        self.live: Live | None = None

    def attach(self, search: Search) -> None:
        """The search whose slots the panel shows."""
        self._search = search

    def event(self, recorded: Recorded) -> None:
        """Takes note of one event."""
        self._facts = self._headline() if self.live is not None else []
        text = plain(event_line(recorded.event, self._run.tree, self._run.name, self._names, recorded.at))
        if text:
            self.say(text)

    def say(self, text: str) -> None:
        """Shows one line."""
        if self.live is not None:
            self._recent = [*self._recent, text][-RECENT:]
        elif not self._quiet:
            sys.stdout.write(time.strftime("%H:%M:%S  ") + text + "\n")
            sys.stdout.flush()

    def __rich__(self) -> "RenderableType":
        from rich.panel import Panel
        from rich.text import Text

        # Drawn by a thread of its own, so nothing of the tree is read here.
        elapsed = time.monotonic() - self._began
        slots = f"{self._search.running} running" if self._search else "starting"
        lines = [
            f"time         {clock(elapsed)}{self._eta(elapsed)}  {slots}",
            *self._facts,
            "",
            *self._recent,
        ]
        return Panel(
            Text("\n".join(lines), no_wrap=True, overflow="ellipsis"),
            title=self._run.name,
            title_align="left",
        )

    def _headline(self) -> list[str]:
        tree = self._run.tree
        goal = tree.budget.evaluations
        share = evaluations_spent(tree) / goal if goal else 0.0
        of_goal = f" of {goal} {bar(share)}" if goal else ""
        taken = budget_taken(tree)
        stillborn = sum(tree.stillborn.values())
        lines = [
            f"evaluations  {tree.evaluations}{of_goal}",
            *([f"budget       {taken}"] if taken else []),
            f"agents       {len(tree.agents)}  stillborn {stillborn}  invalid {tree.invalid}",
            f"spend        {tree.spend.calls} calls  {tree.spend.tokens:,} tokens  {_money(tree)}",
        ]
        if tree.waiting:
            lines.append(plain(waiting_line(len(tree.waiting), self._run.name)))
        if tree.evaluations:
            best = best_belief(tree)
            own = tree.own(best)
            lines.append(
                f"best bound   {agent_name(best, self._names)}  {tally_text(own)}  {interval_text(own)}"
            )
        return lines

    def _eta(self, elapsed: float) -> str:
        spent = evaluations_spent(self._run.tree)
        done = spent - self._spent_before
        goal = self._run.tree.budget.evaluations
        if not goal or done < 3:
            return ""
        return f", about {clock(elapsed / done * max(goal - spent, 0))} left"


def _money(tree: Tree) -> str:
    limit = tree.budget.usd
    return f"{tree.spend.usd:.4f}" + (f" of {limit:.2f} USD" if limit is not None else " USD")


@contextmanager
def progress(
    run: Run, *, quiet: bool, names: Mapping[AgentId, str] = MappingProxyType({})
) -> Iterator[Progress]:
    """Shows a run's progress until the context ends; ``quiet`` prints nothing.

    Args:
        run: open to write.
        quiet: whether nothing is printed.
        names: what agents are called that are not called by their number.
    """
    shown = Progress(run, quiet=quiet, names=names)
    logging.basicConfig(
        level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    if quiet or not sys.stdout.isatty():
        yield shown
        return
    from rich.live import Live

    with Live(shown, console=console(), refresh_per_second=4) as live:
        shown.live = live
        yield shown


def listen_for_signals(search: Search, shown: Progress) -> None:
    """Ctrl-C or SIGTERM once ends in good order, twice at once."""
    loop = asyncio.get_running_loop()
    session = asyncio.current_task()

    def interrupted() -> None:
        if search.stopping and session is not None:
            session.cancel()
            return
        shown.say(f"stopping: waiting for {search.running} running steps (once more to stop at once)")
        search.ask_to_stop("stopped as asked")

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
