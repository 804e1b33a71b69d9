"""A child that waits for approval: its change, and the user's answer."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from rich.console import RenderableType
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from dgm.archive.approvals import ApprovalAnswer, put_answer
from dgm.archive.run import Run
from dgm.domain import ActionId
from dgm.errors import DgmError, UserError
from dgm.render import fmt, safe
from dgm.render.text import Facts
from dgm.tui.pane import TextView, patch_parts, prose

if TYPE_CHECKING:
    from dgm.tui.app import Browser


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
        self._child: WaitingChild | None = None
        self._seen: list[ActionId] = []

    def compose(self) -> ComposeResult:
        """Yield heading, text, the reason, and the keys."""
        yield Static(classes="heading", markup=False)
        yield TextView()
        yield Input(placeholder="why not (may be empty)", id="reason")
        yield Footer(show_command_palette=False)

    async def on_mount(self) -> None:
        """Show the first child."""
        await self.action_skip()

    @property
    def _browser(self) -> "Browser":
        return cast("Browser", self.app)

    async def action_skip(self) -> None:
        """Go on to the next child that waits."""
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
        self._child = child
        self._seen.append(child.action)
        self.query_one(Static).update(Text(f"child {child.action} of {child.parents} waits for approval: y or n", "bold"))
        await self.query_one(TextView).show(_child_parts(child))
        self.query_one(TextView).focus()

    def action_reject(self) -> None:
        """Ask for the reason."""
        reason = self.query_one("#reason", Input)
        reason.add_class("-open")
        reason.focus()

    @on(Input.Submitted, "#reason")
    async def _reject(self, event: Input.Submitted) -> None:
        event.input.remove_class("-open")
        await self.action_answer(False, event.value)

    async def action_answer(self, yes: bool, reason: str = "") -> None:  # noqa: FBT001
        """Write the answer, and go on to the next child."""
        child = self._child
        if child is None:
            return
        try:
            await self._browser.reader.ask(lambda run: _answer(run, child.action, ApprovalAnswer(yes, reason)))
        except DgmError as error:
            self._browser.say(str(error))
            return
        self._browser.say(f"child {child.action}: {'yes' if yes else 'no'}")
        self._child = None
        await self.action_skip()


@dataclass(frozen=True, slots=True)
class WaitingChild:
    """A child that waits."""

    action: ActionId
    parents: str
    operator: str
    rationale: str
    since_s: float
    patch: str


def _read_child(run: Run, seen: Sequence[ActionId]) -> WaitingChild | None:
    run_children = run.tree.waiting
    action = next((action for action in run_children if action not in seen), None)
    if action is None:
        return None
    waiting = run_children[action]
    child = waiting.child
    patch = run.repository.diff(run.tree.agents[child.parents[0]].commit, child.commit)
    return WaitingChild(
        action,
        " and ".join(map(str, child.parents)),
        child.operator,
        child.rationale,
        time.time() - waiting.since,
        patch.decode("utf-8", "replace"),
    )


def _answer(run: Run, action: ActionId, answer: ApprovalAnswer) -> None:
    if action not in run.tree.waiting:
        raise UserError(f"child {action} waits no more")
    put_answer(run.folder, action, answer)


def _child_parts(child: WaitingChild) -> Iterator[RenderableType]:
    facts = Facts()
    facts.add("operator", safe.one_line(child.operator, 80))
    facts.add("waits for", fmt.duration(child.since_s))
    yield facts.table
    yield from prose(child.rationale)
    yield Text()
    yield from patch_parts(child.patch)
