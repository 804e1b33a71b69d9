"""The common parts of the five screens: head, foot, the run's reader, and handlers of changes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from dgm.domain import AgentId
from dgm.errors import DgmError
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, join_lines, make_line
from dgm.show.words import BEST, count_text
from dgm.stats import lower_bound
from dgm.tui.bars import Block, Head
from dgm.tui.changes import RunChanges
from dgm.tui.keys import KeyScope, key_text, keys_of
from dgm.tui.reader import RunReader

if TYPE_CHECKING:
    from dgm.tui.app import Browser
    from dgm.tui.palette import Command

_TONES = {"running": Tone.GOOD, "paused": Tone.WARN, "interrupted": Tone.WARN}


class Page(Screen[None], inherit_bindings=False):
    """One of the five screens; a subclass fills ``body`` and overrides what it can of the rest."""

    NAME: ClassVar[str] = ""
    """The screen's name in ``bars.SCREENS``."""
    WHERE: ClassVar[tuple[KeyScope, ...]] = ()
    """The parts whose keys work here, beside those that work everywhere; the first is the screen itself."""

    @property
    def where(self) -> tuple[KeyScope, ...]:
        """The parts whose keys work where the cursor is."""
        return self.WHERE

    @property
    def browser(self) -> "Browser":
        """The app; ``browser.agent``, ``.task_id`` and ``.marks`` are the subject of a screen."""
        return cast("Browser", self.app)

    @property
    def reader(self) -> RunReader:
        """The reader of the run."""
        return self.browser.reader

    def compose(self) -> ComposeResult:
        """Yield head, body and foot."""
        yield Head(id="head")
        yield from self.body()
        yield Block(id="foot")

    def body(self) -> ComposeResult:
        """Yield the widgets between head and foot."""
        raise NotImplementedError

    def show_subject(self) -> None:
        """Show the agent or task of the app, which may be another than before; called when the screen is shown."""

    def changed(self, changed: RunChanges) -> None:
        """Draw the changes after the run grew, or was read; only called while the screen is shown."""

    def note(self) -> None:
        """Tell the app which agent the cursor is on, before the app uses it."""

    def follow(self) -> bool:
        """Put the cursor on the agent of the newest event; return False where the screen does not follow."""
        return False

    def identity(self) -> str:
        """Return the text that ``y`` copies."""
        self.note()
        return "" if self.browser.agent is None else str(self.browser.agent)

    def facts(self) -> Sequence[Line]:
        """Return further facts for the head."""
        return ()

    def find(self, words: str) -> None:  # noqa: ARG002
        """Search for words, and go to the next place where they are."""
        self.browser.say("there is nothing to search on this screen")

    def find_again(self, *, backwards: bool) -> None:  # noqa: ARG002
        """Go to the next place, or to the one before."""
        self.browser.say("nothing was searched for: / searches")

    def pages(self) -> str | None:
        """Return the text that ``o`` opens in a pager; None where there is none."""
        return None

    def meaning(self, verb: str, rest: str) -> "Command | None":  # noqa: ARG002
        """Return the meaning of a command that was typed on this screen; None where it means nothing here."""
        return None

    # Behaviour of all screens

    def redraw(self, changed: RunChanges) -> None:
        """Pass on the changes, and draw head and foot."""
        self.changed(changed)
        self.draw_bars()

    def draw_bars(self) -> None:
        """Draw head and foot."""
        for head in self.query(Head):
            head.facts(self._facts(), self.NAME)
        for foot in self.query("#foot").results(Block):
            said = self.reader.problem or self.browser.said or self.reader.pauses
            foot.set_class(bool(said), "said")
            foot.show([self._foot_line()])

    def in_thread(self, work: Callable[[], None], group: str, *, exclusive: bool = True) -> None:
        """Do some work beside the drawing; an error there is shown in the bottom line, and ends nothing.

        Args:
            work: done on another thread.
            group: the purpose of the work.
            exclusive: whether earlier work of the same group is cancelled.
        """
        self.run_worker(work, thread=True, exclusive=exclusive, group=group, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show an error of the work beside the drawing."""
        error = event.worker.error
        if event.state is WorkerState.ERROR:
            self.browser.say(str(error) if isinstance(error, DgmError) else f"cannot be read: {error!r}")

    def on_screen_resume(self, _: events.ScreenResume) -> None:
        """Enter the screen when it is shown, or shown again."""
        self.call_later(self._enter)

    def _enter(self) -> None:
        self.show_subject()
        self.draw_bars()

    def on_resize(self, _: events.Resize) -> None:
        """Fit head and foot to the new size."""
        self.call_after_refresh(self.draw_bars)

    def _facts(self) -> Line:
        reader = self.reader
        said = [make_line(Span(one_line(reader.name, 24), Tone.STRONG))]
        if reader.state:
            said.append(make_line(Span(one_line(reader.state, 30), _TONES.get(reader.state, Tone.PLAIN))))
        # Stands before the counts, which a narrow window may cut off.
        said += self.facts()
        if self.browser.following:
            words = "following" if self.NAME == "tree" else "the tree follows"
            said.append(make_line(Span(words, Tone.GOOD)))
        if reader.best is not None:
            said.append(make_line(Span(f"{BEST} {reader.best}", Tone.MARK), Span(self._bound(), Tone.DIM)))
        if reader.members is not None:
            said.append(make_line(count_text(reader.count, "agent")))
        if reader.run:
            said.append(make_line(count_text(reader.run.tree.evaluations, "evaluation")))
        elif reader.reading is not None:
            said.append(make_line(Span(f"reading {reader.reading:.0%}", Tone.WARN)))
        return join_lines(said, " · ")

    def _bound(self) -> str:
        """Return the best agent's lower bound; empty where it cannot be computed without a wait."""
        members, best = self.reader.members, self.reader.best
        if members is None or best is None or not self.reader.bounds or not members.own(best).n:
            return ""
        return f" ≥{lower_bound(members.own(best)):.2f}"

    def _foot_line(self) -> Line:
        if self.reader.problem:
            return make_line(Span(one_line(self.reader.problem, 300), Tone.BAD))
        if self.browser.said:
            return make_line(Span(self.browser.said, Tone.WARN))
        if self.reader.pauses:
            return make_line(Span(self.reader.pauses, Tone.WARN))
        named: dict[str, str] = {}
        for key in (*keys_of(*self.where), *keys_of(KeyScope.EVERYWHERE)):
            if key.short:
                named.setdefault(key_text(key.keys[0]), key.short)
        return join_lines([make_line(Span(key, Tone.KEY), f" {short}") for key, short in named.items()], "  ")


def agent_of(browser: "Browser") -> AgentId | None:
    """Return the subject of the screens: the chosen agent, else the best, else the seed."""
    if browser.page is not None:
        browser.page.note()
    if browser.agent is not None:
        return browser.agent
    if browser.reader.best is not None:
        return browser.reader.best
    return AgentId(0) if browser.reader.count else None


def reading_text(reader: RunReader) -> str:
    """Return the reading progress of a long run."""
    return f"the run is being read: {reader.reading or 0.0:.0%}"
