"""The run as a whole: state, budget, spend, what is being done, what happened and what failed; waiting children."""

import time
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from rich.console import RenderableType
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from dgm.archive.live import (
    ApprovalAnswer,
    UnreadableApproval,
    put_answer,
    read_answer,
)
from dgm.archive.run import Run
from dgm.archive.tree import WaitingChild
from dgm.domain import ActionId
from dgm.errors import DgmError, UserError
from dgm.render import fmt, safe
from dgm.render.text import LEVEL_STYLES, Facts, render_run
from dgm.tui.pane import Pane, TextView, patch_parts, prose
from dgm.tui.reader import ReaderClosed
from dgm.views.agents import decode
from dgm.views.events import EventView, read_events
from dgm.views.run import RunView

if TYPE_CHECKING:
    from dgm.tui.app import Browser

REFRESH_S = 2.0
_EVENTS = 400
"""Newest events that are searched for those with a sentence."""
_SHOWN = 15
_SHARE = 4
"""At most one part in so many of the time is used to refresh the panel."""
_BAR = 24


class RunPane(Pane):
    """The panel of the run."""

    def __init__(self) -> None:
        super().__init__("5 Run", id="run")
        self._due = 0.0
        self._seq = -1
        """Number of the last event when the panel was read."""

    def compose(self) -> ComposeResult:
        yield TextView(id="run-text")

    def on_mount(self) -> None:
        self.set_interval(REFRESH_S, self._refresh)

    def enter(self) -> None:
        self.focus_content()
        self._show()

    def _refresh(self) -> None:
        news = self.browser.news
        if news is None or not self.is_active or time.monotonic() < self._due:
            return
        if news.living or news.seq != self._seq:
            self.enter()

    @work(exclusive=True, group="load")
    async def _show(self) -> None:
        begun = time.monotonic()
        self._seq = self.browser.news.seq if self.browser.news else -1
        try:
            view = await self.browser.reader.view()
            events = await self.browser.reader.ask(lambda run: list(read_events(run, tail=_EVENTS)))
        except ReaderClosed:
            return
        except Exception as error:  # noqa: BLE001  (a trace may hold anything)
            await self.show_problem(f"the run cannot be read: {error}")
            return
        self._due = time.monotonic() + _SHARE * (time.monotonic() - begun)
        recent = [event for event in events if event.message][-_SHOWN:]
        await self.query_one(TextView).show(run_parts(view, recent), "run")


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


class ApprovalScreen(Screen[None]):
    """One waiting child after the other; y and n answer. Answers are files; the run's log is not written."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Let it live"),
        Binding("n", "reject", "Reject"),
        Binding("w", "skip", "Next"),
        Binding("escape", "app.back", "Close"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._child: ActionId | None = None
        self._seen: list[ActionId] = []

    def compose(self) -> ComposeResult:
        yield Static(classes="heading", markup=False)
        yield TextView()
        yield Input(placeholder="why not (may be empty)", id="reason")
        yield Footer(show_command_palette=False)

    async def on_mount(self) -> None:
        await self.action_skip()

    @property
    def _browser(self) -> "Browser":
        return cast("Browser", self.app)

    async def action_skip(self) -> None:
        try:
            child = await self._browser.reader.ask(lambda run: _read_child(run, self._seen))
        except DgmError as error:
            self._browser.say(str(error))
            return
        if child is None:
            self._browser.say("no other child waits")
            if self._child is None:
                self.dismiss()
            return
        self._child, waiting, patch = child
        self._seen.append(self._child)
        parents = " and ".join(map(str, waiting.child.parents))
        heading = f"child {self._child} of {parents} waits for approval: y or n"
        self.query_one(Static).update(Text(heading, "bold"))
        await self.query_one(TextView).show(_child_parts(waiting, patch))
        self.query_one(TextView).focus()

    def action_reject(self) -> None:
        reason = self.query_one("#reason", Input)
        reason.add_class("-open")
        reason.focus()

    @on(Input.Submitted, "#reason")
    async def _reject(self, event: Input.Submitted) -> None:
        event.input.remove_class("-open")
        await self.action_answer(False, event.value)

    async def action_answer(self, yes: bool, reason: str = "") -> None:
        child = self._child
        if child is None:
            return
        try:
            await self._browser.reader.ask(lambda run: _answer(run, child, ApprovalAnswer(yes, reason)))
        except DgmError as error:
            self._browser.say(str(error))
            return
        self._browser.say(f"child {child}: {'yes' if yes else 'no'}")
        self._child = None
        await self.action_skip()


def _read_child(run: Run, seen: Collection[ActionId]) -> tuple[ActionId, WaitingChild, str] | None:
    """Return the next child without an answer, and its patch."""
    for action, waiting in run.tree.waiting.items():
        if action not in seen and not _is_answered(run, action):
            parent = run.tree.agents[waiting.child.parents[0]]
            return action, waiting, decode(run.repository.diff(parent.commit, waiting.child.commit))
    return None


def _is_answered(run: Run, action: ActionId) -> bool:
    """Return whether there is an answer that the search has not read yet."""
    try:
        return read_answer(run.folder, action) is not None
    except UnreadableApproval:
        return False


def _answer(run: Run, action: ActionId, answer: ApprovalAnswer) -> None:
    if action not in run.tree.waiting:
        raise UserError(f"child {action} is not waiting any more")
    put_answer(run.folder, action, answer)


def _child_parts(waiting: WaitingChild, patch: str) -> Iterator[RenderableType]:
    facts = Facts()
    facts.add("operator", safe.one_line(waiting.child.operator, 80))
    facts.add("waits for", fmt.duration(time.time() - waiting.since))
    yield facts.table
    yield from prose(waiting.child.rationale)
    yield Text()
    yield from patch_parts(patch)
