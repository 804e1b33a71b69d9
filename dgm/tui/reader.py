"""A run, opened, followed and questioned by one thread of its own, so that the display never waits for it."""

import asyncio
import gc
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dgm.archive.log import FILE
from dgm.domain import AgentId, Tally
from dgm.errors import DgmError, Infrastructure

if TYPE_CHECKING:
    from dgm.archive.run import Run
    from dgm.views.agents import AgentRow, AgentState
    from dgm.views.run import RunReader, RunView

Answer = TypeVar("Answer")
_SWITCH_S = 0.001
"""Seconds after which the reading thread lets the display have the interpreter."""
_CLOSE_S = 2.0
"""Maximum seconds to wait for an answer under way when the browser is left."""


class ReaderClosed(DgmError):
    """The browser is being left."""


@dataclass(frozen=True, slots=True)
class News:
    """What is new in a run since the last look at it."""

    rows: "Sequence[AgentRow]"
    """New and changed agents, parents first."""
    newest: AgentId | None
    """The youngest agent that was born or evaluated; None if there is none."""
    state: str
    living: bool
    """Whether a process writes the run."""
    agents: int
    evaluations: int
    waiting: int
    """Children that wait for the user's approval."""
    seq: int
    """Number of the last event that was read."""


class BackgroundReader:
    """The run of a browser. Its thread alone touches the run; questions are answered in their order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events_read = 0
        """Number of events that were read while the run is opened."""
        self._questions: queue.SimpleQueue[Callable[[], bool]] = queue.SimpleQueue()
        self._run: RunReader | None = None
        self._closing = False
        self._inode = _read_inode(folder)
        self._state = ""
        self._facts: list[tuple[Tally, Tally, tuple[float, int], int, AgentState | None, bool]] = []
        """By agent: its own tally, that of its clade, the clade's gain, the number of its children, its state, and
        whether it is on the front."""
        sys.setswitchinterval(_SWITCH_S)
        self._thread = threading.Thread(target=self._work, name="run-reader", daemon=True)
        self._thread.start()

    async def load(self) -> None:
        """Import the modules that panes need, which takes longer than a key may wait."""
        await asyncio.wrap_future(self._submit(_import_panes))

    async def open(self) -> None:
        """Open the run and read all of its events.

        Raises:
            UserError: there is no run, or a newer dgm made it.
            ArchiveCorrupt: a part of it is damaged.
        """
        await asyncio.wrap_future(self._submit(self._open))

    async def ask(self, question: "Callable[[Run], Answer]") -> Answer:
        """Return the answer to a question about the run; a cancelled question that waits is never asked."""
        return await asyncio.wrap_future(self._submit(lambda: question(self._reader.run)))

    async def follow(self) -> News:
        """Read what was appended to the run.

        Raises:
            Infrastructure: the run was removed or replaced, or cannot be read now.
            ArchiveCorrupt: an event is damaged.
        """
        return await asyncio.wrap_future(self._submit(self._follow))

    async def find_best(self) -> AgentId | None:
        """Return the recommended agent; finding it can take seconds in a long run."""
        return await asyncio.wrap_future(self._submit(self._reader.best))

    async def view(self) -> "RunView":
        """Return the run at this moment."""
        return await asyncio.wrap_future(self._submit(self._reader.view))

    def close(self) -> None:
        """Close the run and end the thread, after the answer under way."""
        self._closing = True
        self._questions.put(lambda: False)
        self._thread.join(_CLOSE_S)

    def _submit(self, work: Callable[[], Answer]) -> Future[Answer]:
        future: Future[Answer] = Future()

        def answer() -> bool:
            if not future.set_running_or_notify_cancel():
                return True
            try:
                future.set_result(work())
            except Exception as error:  # noqa: BLE001  (it is raised where the question was asked)
                future.set_exception(error)
            return True

        self._questions.put(answer)
        return future

    def _open(self) -> None:
        from dgm.archive.run import Run
        from dgm.views.run import RunReader

        self._run = RunReader(Run.open(self.folder, pause=self._pause))
        # The tree is never garbage, and a collection over all of it would be felt between two keys.
        gc.freeze()

    @property
    def _reader(self) -> "RunReader":
        if self._run is None:
            raise ReaderClosed("the run is not open")
        return self._run

    def _follow(self) -> News:
        from dgm.archive.run import LIVING, state
        from dgm.views.agents import AgentRow, agent_states

        if _read_inode(self.folder) != self._inode:
            raise Infrastructure("the run was removed or replaced; what was read is still shown")
        run, before = self._reader.run, self._facts
        events, tree = self._reader.follow(), run.tree
        label, states = state(run), agent_states(run)
        if events or label != self._state:
            self._state = label
            self._facts = [
                (
                    tree.own(agent.id),
                    tree.clade(agent.id),
                    tree.clade_gain(agent.id),
                    len(tree.children(agent.id)),
                    states.get(agent.id),
                    agent.id in tree.front,
                )
                for agent in tree.agents
            ]
        changed = [
            agent
            for agent in tree.agents
            if agent.id >= len(before) or self._facts[agent.id] != before[agent.id]
        ]
        evaluated = [
            agent.id
            for agent in changed
            if agent.id >= len(before) or self._facts[agent.id][0] != before[agent.id][0]
        ]
        return News(
            rows=[AgentRow.of(tree, agent, None, states) for agent in changed],
            newest=evaluated[-1] if evaluated else None,
            state=label,
            living=label in LIVING,
            agents=len(tree.agents),
            evaluations=tree.evaluations,
            waiting=len(tree.waiting),
            seq=tree.seq,
        )

    def _pause(self) -> None:
        self.events_read += 256
        if self._closing:
            raise ReaderClosed("the browser was left")

    def _work(self) -> None:
        while not self._closing and self._questions.get()():
            pass
        if self._run is not None:
            self._run.run.close()


def _import_panes() -> None:
    from dgm.tui import agent, compare, run, tasks, tree  # noqa: F401


def _read_inode(folder: Path) -> int | None:
    try:
        return (folder / FILE).stat().st_ino
    except OSError:
        return None
