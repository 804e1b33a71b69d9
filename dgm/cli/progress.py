"""The progress of a session on the terminal: a live panel, or plain lines if standard output is no terminal."""

import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from dgm.analysis.agents import best_of
from dgm.analysis.budgets import describe_budget_use, sum_evaluations_spent
from dgm.api.watcher import Counts
from dgm.archive.events import ChildProposed, Recorded, TaskGraded
from dgm.archive.live import read_live
from dgm.archive.run import Run
from dgm.cli.signals import leave_closed_terminal, print_line
from dgm.domain import AgentId
from dgm.render import fmt
from dgm.render.safe import one_line
from dgm.search.loop import Search
from dgm.stats import lower_bound
from dgm.views.events import Level, describe
from dgm.views.progress import BudgetUse, tree_budget_uses
from dgm.views.values import TallyView

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.text import Text

RECENT = 8
BEST_EVERY = 20
"""Pause between two queries for the best agent, as a multiple of the last query's duration."""
COUNTS_EVERY_S = 15.0
"""Interval between two lines with the counts, where no panel shows them."""
NAMED = 4
"""Maximum number of named agents whose tallies are shown."""
BAR_CELLS = 20
MESSAGE_CELLS = 300
WARN_SHARE, ALARM_SHARE = 0.8, 0.95
"""Used shares of a limit from which its bar is yellow and red."""
GOALS = ("evaluations", "agents")
"""Limits that a search is meant to reach, so that their bars stay green."""
STYLES = {Level.GOOD: "green", Level.BAD: "red", Level.WARNING: "yellow", Level.INFO: "", Level.DETAIL: "dim"}
LEAST_EVALUATIONS = 3
"""Fewer evaluations of a session tell nothing of its pace."""


class RunProgress:
    """Hears of every event; prints a line for each, or keeps the last few for the panel."""

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
        self._recent: list[Text] = []
        self._facts: Sequence[Text] = ()
        self._search: Search | None = None
        self._told_how_to_answer = False
        self._best: AgentId | None = None
        self._best_due = 0.0
        self.live: Live | None = None

    def attach(self, search: Search) -> None:
        """Set the search whose actions the panel counts."""
        self._search = search
        self._read_tree()

    def event(self, recorded: Recorded) -> None:
        """Show one event."""
        self._done, self._total = self._count()
        self._read_tree()
        event = recorded.event
        level, message = describe(event, recorded.at)
        if isinstance(event, TaskGraded) and event.outcome.agent in self._names:
            message = message.replace(f"agent {event.outcome.agent}", self._names[event.outcome.agent], 1)
        if message:
            self.say(message, STYLES[level])
        now = time.monotonic()
        if self.live is None and isinstance(event, TaskGraded) and now >= self._counts_due:
            self._counts_due = now + COUNTS_EVERY_S
            if counts := self._counts_text():
                self.say(counts)
        if isinstance(event, ChildProposed) and not self._told_how_to_answer:
            self._told_how_to_answer = True
            self.say(f"answer for it, and for those that follow, with: dgm approve {self._run.name}")

    def say(self, message: str, style: str = "") -> None:
        """Show one line."""
        line = one_line(message, MESSAGE_CELLS)
        if self.live is not None:
            from rich.text import Text

            self._recent = [*self._recent, Text(line, style)][-RECENT:]
        elif not self._quiet:
            self._print(time.strftime("%H:%M:%S  ") + line)

    def announce(self, text: str) -> None:
        """Show one line that stays: above the panel, or on standard error if nothing else is printed."""
        if self.live is not None:
            from rich.text import Text

            self.live.console.print(Text(text))
        elif self._quiet:
            sys.stderr.write(text + "\n")
        else:
            self.say(text)

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
        seconds = self._seconds_before + time.monotonic() - self._began
        use = BudgetUse(used=seconds, limit=limit, left=max(limit - seconds, 0), share=seconds / limit) if (
            limit := self._limit_s
        ) else None  # fmt: skip
        slots = f"{self._search.running} running" if self._search else "starting"
        left = "" if self._counts else self._left_text()
        more = f"{left and ', '}{left}  {slots}"
        lines = [limit_line("time", use, fmt.duration(seconds), more), *self._facts, Text(), *self._recent]
        shown = Text("\n", no_wrap=True, overflow="ellipsis").join(lines)
        return Panel(shown, title=Text(one_line(self._run.name, 100)), title_align="left")

    def _read_tree(self) -> None:
        if self.live is None:
            return
        tree = self._run.tree
        self._limit_s = tree.budget.seconds
        self._facts = list(panel_lines(self._run, self._names, self._find_best(), self._counts_text()))

    def _find_best(self) -> AgentId | None:
        """Return the recommended agent; None before a verdict, and if agents are evaluated by name.

        The policy takes at most one part in ``BEST_EVERY`` of the time.
        """
        if self._names or not self._run.tree.evaluations:
            return None
        began = time.monotonic()
        if self._best is None or began >= self._best_due:
            self._best = best_of(self._run)
            now = time.monotonic()
            self._best_due = now + BEST_EVERY * (now - began)
        return self._best

    def _count(self) -> tuple[float, float]:
        """Return the evaluations done, and all of them; 0 for all if their number is unknown."""
        if self._counts is None:
            return sum_evaluations_spent(self._run.tree), self._run.tree.budget.evaluations or 0
        counts = self._counts().values()
        return sum(done for done, _ in counts), sum(total for _, total in counts)

    def _left_text(self) -> str:
        """Return the time left at the pace of this session; empty while it is unknown."""
        done = self._done - self._done_before
        if not self._total or done < LEAST_EVALUATIONS:
            return ""
        seconds = (time.monotonic() - self._began) / done * max(self._total - self._done, 0)
        return f"about {fmt.duration(seconds)} left"

    def _counts_text(self) -> str:
        """Return ``seed 12/20 · best (37) 3/20 · about 2 min left``; empty without counts."""
        counts = self._counts() if self._counts else {}
        parts = [f"{name} {done}/{total}" for name, (done, total) in counts.items()]
        return " · ".join([*parts, *filter(None, [self._left_text()])]) if parts else ""


def panel_lines(
    run: Run, names: Mapping[AgentId, str], best: AgentId | None, counts: str = ""
) -> Iterator["Text"]:
    """Yield the panel without time and recent events.

    Args:
        run: as far as its tree has read.
        names: names of the agents that are evaluated by name.
        best: the agent that the policy recommends; None if there is none to show.
        counts: evaluations by agent.
    """
    from rich.text import Text

    tree, uses = run.tree, tree_budget_uses(run.tree)
    if counts:
        yield Text(counts)
    yield limit_line("evaluations", uses.get("evaluations"), f"{tree.evaluations:,}")
    if taken := describe_budget_use(tree):
        yield _fact("budget", taken)
    dead = f"; stillborn {sum(tree.stillborn.values())}, invalid {tree.invalid}"
    yield limit_line("agents", uses.get("agents"), f"{len(tree.agents):,}", dead)
    yield limit_line("money", uses.get("usd"), fmt.money(tree.spend.usd))
    yield limit_line(
        "tokens", uses.get("tokens"), f"{tree.spend.tokens:,}", f" in {tree.spend.calls:,} calls"
    )
    if tree.waiting:
        children = fmt.count(len(tree.waiting), "child waits", "children wait")
        yield _fact("waiting", f"{children} for approval (dgm approve)", "yellow")
    if best is not None:
        own = tree.own(best)
        bound = f", lower bound {lower_bound(own):.2f}" if own.n else ""
        yield _fact(
            "best", f"{fmt.BEST} agent {best}: {fmt.tally_interval(TallyView.of(own))}{bound}", "bold yellow"
        )
        yield Text(f"  {fmt.BEST_MEANS}", "dim")
    for agent, name in list(names.items())[:NAMED]:
        if tree.own(agent).n:
            yield _fact(
                "resolved", f"{one_line(name, 60)}  {fmt.tally_interval(TallyView.of(tree.own(agent)))}"
            )
    if nodes := read_live(run.folder).nodes:
        busy, slots = sum(node.busy for node in nodes), sum(node.slots for node in nodes)
        yield _fact("nodes", f"{busy:,} of {slots:,} slots busy on {fmt.count(len(nodes), 'node')}")


def limit_line(name: str, use: BudgetUse | None, value: str, more: str = "") -> "Text":
    """Return a limit with the used share as a bar; only the value if there is no limit."""
    from rich.text import Text

    if use is None:
        return _fact(name, value + more)
    style = "green" if name in GOALS or use.share < WARN_SHARE else "yellow"
    style = "red" if style == "yellow" and use.share >= ALARM_SHARE else style
    unit = {"money": "usd", "time": "seconds"}.get(name, name)
    text = fmt.use_of_limit(unit, use.used, use.limit).removesuffix(f" {name}")
    bar = (fmt.bar(use.share, BAR_CELLS), style)
    return Text.assemble((f"{name:<13}", "cyan"), bar, f" {text}", (f" {use.share:.0%}", style), more)


def _fact(name: str, value: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text.assemble((f"{name:<13}", "cyan"), (value, style))


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
        counts: evaluations by agent; None: the run's budget has their number.
    """
    progress = RunProgress(run, quiet=quiet, names=names, counts=counts)
    logging.basicConfig(
        level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    if quiet or not sys.stdout.isatty():
        yield progress
        return
    from rich.console import Console
    from rich.live import Live

    with Live(progress, console=Console(highlight=False), refresh_per_second=4) as live:
        progress.live = live
        try:
            yield progress
        finally:
            leave_closed_terminal()
