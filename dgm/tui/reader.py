"""A run as the browser reads it: an outline at once, the whole tree when it is folded, then appended events.

All methods except ``ask`` and ``ask_tree`` are for the thread that draws. Those two are for threads beside it.
"""

import gc
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Self, TypeVar

from dgm.analysis.lookups import read_births
from dgm.analysis.outline import Members, Outline, has_indices
from dgm.archive.events import AgentBorn, Recorded, RunStopped
from dgm.archive.history import LIVING, writer
from dgm.archive.history import state as state_of_run
from dgm.archive.run import Run
from dgm.archive.store import EventStore
from dgm.domain import Agent, AgentId
from dgm.errors import DgmError, Infrastructure
from dgm.policies.limits import BARREN
from dgm.show.agents import AgentActivity, find_states
from dgm.tui.changes import RunChanges, find_newest_agent
from dgm.tui.gate import ReadingGate, RunUnavailable

SMALL = 20_000
"""Maximum number of events of a run that is folded before anything is shown."""
KEPT = 512
"""Number of births that are remembered before the tree is there."""
MOST = 500
"""Maximum number of events that are folded at once while a run is followed."""
STATE_EVERY_S = 2.0
SWITCH_S = 0.001
PATIENCE_S = 1.0
"""Seconds without following after which the reason is shown."""
LOOKED_BACK = 1_000
"""Number of events at the end of the log that are searched for the newest one about an agent."""
LEAVING_S = 2.0
"""Maximum seconds to wait for a thread that asks the tree when the run is closed."""
BEST_EVERY = 20
"""Divisor of the time: at most this part of it is used to find the best agent."""
_BITS = 64
"""Number of bits of an integer in SQLite, including its sign."""
Answer = TypeVar("Answer")


class RunReader:
    """One run, read while another process may write it. ``with`` closes it."""

    def __init__(self, folder: Path) -> None:
        """Begin to read; a small run has been read when this returns.

        Raises:
            UserError: there is no run, or a newer dgm made it.
            ArchiveCorrupt: its log is damaged.
        """
        self.folder = folder
        self.name = folder.resolve().name
        self.members: Members | None = None
        """An ``Outline`` or a ``Tree``; None until one is there."""
        self.run: Run | None = None
        """The run with its whole tree; None until it is folded."""
        self.best: AgentId | None = None
        self.state = ""
        """The result of ``history.state``; empty while it is not known."""
        self._lasting = self._unfollowed = self._unfound = ""
        """A lasting problem; then the last reasons why the run was not followed and the best agent not found."""
        self.bounds = False
        """Whether a lower bound can be computed at once."""
        self.gate = ReadingGate()
        # Makes threads in pure Python give up the interpreter more often than they would by default.
        sys.setswitchinterval(SWITCH_S)
        self._tree_lock = threading.Lock()
        self._outline: Future[Outline] | None = None
        self._folded: Future[Run] | None = None
        self._best: Future[AgentId] | None = None
        self._best_due = self._state_due = 0.0
        self._best_at = -1
        self._asked_since: float | None = None
        """Time since when the run cannot be followed because a thread asks the tree; None if it can."""
        self._under_way: Mapping[AgentId, AgentActivity] = {}
        self._births: OrderedDict[AgentId, AgentBorn] = OrderedDict()
        self._damaged: set[AgentId] = set()
        self._store = EventStore.open(folder / "events.db", write=False)
        self._inode = _read_inode(folder)
        self._rows = self._store.newest()
        try:
            self._begin()
        except DgmError:
            self._store.close()
            raise

    # State

    @property
    def count(self) -> int:
        """Number of known agents."""
        return len(self.members.own_resolved) if self.members else 0

    @property
    def until(self) -> int:
        """Number of the last event that the shown state includes."""
        return self.members.seq if self.members else 0

    @property
    def reading(self) -> float | None:
        """Share of the run that is folded, 0 to 1; None when all of it is."""
        return None if self.run else min(1.0, self.gate.rows / max(1, self._rows))

    @property
    def problem(self) -> str:
        """The problem with the run on disk, in one line; the part that was read stays."""
        return self._lasting or self._unfollowed or self._unfound

    @property
    def pauses(self) -> str:
        """The reason why the run is not followed for a while, though it may grow; empty where it is followed."""
        if self._asked_since is None or time.monotonic() - self._asked_since < PATIENCE_S:
            return ""
        what = "the best agent is worked out" if self._best is not None else "the tree is asked"
        return f"{what}: what is new will be shown afterwards"

    def born(self, agents: Sequence[AgentId]) -> Mapping[AgentId, Agent | AgentBorn]:
        """Return the records of some agents; unknown agents and damaged births are left out."""
        if self.run:
            members = self.run.tree.agents
            return {agent: members[agent] for agent in agents if 0 <= agent < len(members)}
        unknown = [agent for agent in agents if agent not in self._births and agent not in self._damaged]
        try:
            self._births.update(read_births(self._store, unknown))
        except DgmError:
            self._births.update(self._read_births(unknown))
        found = {agent: self._births[agent] for agent in agents if agent in self._births}
        while len(self._births) > KEPT:
            self._births.popitem(last=False)
        return found

    def _read_births(self, agents: Sequence[AgentId]) -> Mapping[AgentId, AgentBorn]:
        """Return the births read one by one; damage is reported when the whole log is read."""
        found: dict[AgentId, AgentBorn] = {}
        for agent in agents:
            try:
                found.update(read_births(self._store, [agent]))
            except DgmError:
                self._damaged.add(agent)
        return found

    def newest(self) -> AgentId | None:
        """Return the agent of the newest event that is about one; None before the whole run is read."""
        if self.run is None:
            return None
        try:
            begin = max(0, self.until - LOOKED_BACK)
            return find_newest_agent(list(self._store.read(begin, self.until - begin)))
        except DgmError:
            return None

    def explain_missing_agent(self, agent: AgentId) -> str:
        """Return a message that there is no such agent; empty while that is not known."""
        if self.run:
            there = f"there are 0 to {self.count - 1}" if self.count else "none is born yet"
            return "" if agent < self.count else f"run {self.name}: no agent {agent}; {there}"
        if agent.bit_length() < _BITS and not has_indices(self._store):
            return ""  # the search would take as long as reading the run
        there_is = agent.bit_length() < _BITS and (self.born([agent]) or agent in self._damaged)
        return "" if there_is else f"run {self.name}: no agent {agent}"

    def aim(self, agent: AgentId) -> str:
        """Return the aim of the agent; empty while it is not known."""
        return self.run.tree.aim(agent) if self.run else ""

    def activity_of(self, agent: AgentId) -> AgentActivity:
        """Return the present activity of the agent."""
        state = self._under_way.get(agent, AgentActivity.QUIET)
        if state is AgentActivity.QUIET and self.run and self.run.tree.barren[agent] >= BARREN:
            return AgentActivity.BARREN
        return state

    # Questions of threads

    def ask(self, question: Callable[[EventStore], Answer]) -> Answer:
        """Return the answer of the log, from a store of the asking thread's own."""
        with EventStore.open(self.folder / "events.db", write=False) as store:
            return question(store)

    def ask_tree(self, question: Callable[[Run], Answer]) -> Answer:
        """Return the answer of the folded run, which does not change meanwhile.

        Raises:
            RunUnavailable: it is not folded yet.
        """
        if self.run is None:
            raise RunUnavailable("the run is still being read")
        with self._tree_lock:
            return question(self.run)

    # Changes

    def advance(self) -> RunChanges:
        """Take in everything read, found and appended since; never wait. Called about twice a second."""
        before = self.problem, self.pauses
        whole = self._take_outline() or self._take_tree()
        known = self.count if not whole else 0
        events = self._follow_log()
        if any(isinstance(recorded.event, RunStopped) for recorded in events):
            self._state_due = 0.0
        facts = self._take_best() | self._update_state() | (before != (self.problem, self.pauses))
        if whole or events:
            self._under_way = self._compute_states()
        return RunChanges(events, range(known, self.count), whole, facts or self.run is None)

    def close(self) -> None:
        """End the reading. A store that a thread still uses after the timeout stays open until the process ends."""
        self.gate.close()
        self._store.close()
        # SQLite ends the whole process if a log is closed while another thread reads it.
        if self.run and self._tree_lock.acquire(timeout=LEAVING_S):
            self.run.close()
            self._tree_lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self) -> None:
        if self._rows <= SMALL:
            self._take(Run.open(self.folder))
        elif has_indices(self._store):
            self._outline = _start_thread(lambda: self.ask(Outline.read))
        else:
            self._fold()

    def _fold(self) -> None:

        def fold() -> Run:
            self._warm_up()
            return Run.open(self.folder, pause=self.gate.passed)

        self._folded = _start_thread(fold)

    def _warm_up(self) -> None:
        """Import the modules for the first lower bound, which takes longer than a key may."""
        import scipy.special  # noqa: F401

        self.bounds = True
        # The screens of an agent and of the run need this module.
        import dgm.analysis.summary  # noqa: F401

    def _take(self, run: Run) -> None:
        self.run, self.members = run, run.tree
        self._births.clear()
        self.state = state_of_run(run)
        self._under_way = self._compute_states()

    def _take_outline(self) -> bool:
        if self._outline is None or not self._outline.done():
            return False
        done, self._outline = self._outline, None
        try:
            outline = done.result()
        except DgmError as error:
            self._lasting = str(error)
            return True
        self.members = outline
        written = writer(self.folder) is not None
        self.state = "running" if written else ""
        self._under_way = find_states(outline.in_flight.values()) if written else {}
        self._fold()
        return True

    def _take_tree(self) -> bool:
        if self._folded is None or not self._folded.done():
            return False
        done, self._folded = self._folded, None
        # The tree is never garbage, and a collection over all of it would be felt between two keys.
        gc.freeze()
        try:
            self._take(done.result())
        except RunUnavailable:
            return False
        except DgmError as error:
            self._lasting = str(error)
        return True

    def _follow_log(self) -> Sequence[Recorded]:
        """Return the events that were followed; none while a thread asks the tree, which must not change under it."""
        if self.run is None or self._lasting:
            return ()
        if not self._tree_lock.acquire(blocking=False):
            self._asked_since = self._asked_since or time.monotonic()
            return ()
        self._asked_since = None
        self._unfollowed = ""
        try:
            return self.run.follow(MOST)
        except Infrastructure as error:
            self._unfollowed = str(error)
        except DgmError as error:
            self._lasting = str(error)
        finally:
            self._tree_lock.release()
        return ()

    def _take_best(self) -> bool:
        found = False
        if self._best is not None and self._best.done():
            done, self._best = self._best, None
            try:
                found, self.best = self.best != done.result(), done.result()
                self._unfound = ""
            except Infrastructure as error:
                self._unfound, self._best_at = str(error), -1
            except DgmError as error:
                self._lasting = str(error)
        stale = self.run is not None and self.count > 0 and self._best_at != self.until
        if self._best is None and stale and time.monotonic() >= self._best_due and not self._lasting:
            self._best_at = self.until
            self._best = _start_thread(self._look_for_best)
        return found

    def _look_for_best(self) -> AgentId:
        from dgm.analysis.best import best_of

        self._warm_up()
        begun = time.monotonic()
        try:
            return self.ask_tree(best_of)
        finally:
            self._best_due = time.monotonic() + BEST_EVERY * (time.monotonic() - begun)

    def _update_state(self) -> bool:
        now = time.monotonic()
        if now < self._state_due:
            return False
        self._state_due = now + STATE_EVERY_S
        before = self.state
        if _read_inode(self.folder) != self._inode:
            self._lasting = f"{self.folder.name}: the run was removed or replaced; what was read stays"
        if self.run:
            self.state = state_of_run(self.run)
            self._under_way = self._compute_states()
        return before != self.state

    def _compute_states(self) -> Mapping[AgentId, AgentActivity]:
        """Return the activity of the agents. A run without a writer has no action under way, whatever its log says."""
        if self.run is None:
            return self._under_way
        tree = self.run.tree
        under_way = tree.pending.values() if self.state in LIVING else ()
        return find_states(under_way, (one.child.parents[0] for one in tree.waiting.values()))


def _read_inode(folder: Path) -> int | None:
    try:
        return (folder / "events.db").stat().st_ino
    except OSError:
        return None


def _start_thread(work: Callable[[], Answer]) -> "Future[Answer]":
    """Start work on a daemon thread and return its result as a future."""
    result: Future[Answer] = Future()

    def perform() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  # raised where the result is asked for
            result.set_exception(error)

    threading.Thread(target=perform, daemon=True).start()
    return result
