"""A run as the browser reads it: an outline at once, the whole tree when it is folded, then what is appended.

All methods are for the thread that draws, but ``ask`` and ``ask_tree``, which are for threads beside it.
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

from dgm.archive.events import AgentBorn, Recorded, RunStopped
from dgm.archive.history import LIVING, writer
from dgm.archive.history import state as state_of_run
from dgm.archive.lookups import births
from dgm.archive.outline import Members, Outline, has_indices
from dgm.archive.run import Run
from dgm.archive.store import EventStore
from dgm.domain import Agent, AgentId
from dgm.errors import DgmError, Infrastructure
from dgm.policies.limits import BARREN
from dgm.show.agents import State, states
from dgm.tui.changes import Changed, newest_of
from dgm.tui.gate import Closed, Gate

SMALL = 20_000
"""Events up to which a run is folded before anything is shown."""
KEPT = 512
"""Births that are remembered before the tree is there."""
MOST = 500
"""Events that are folded at once while a run is followed."""
STATE_EVERY_S = 2.0
SWITCH_S = 0.001
PATIENCE_S = 1.0
"""After so long without following it is said why."""
LOOKED_BACK = 1_000
"""Events at the end of the log among which the newest that is about an agent is looked for."""
LEAVING_S = 2.0
"""How long a thread that asks the tree is waited for when the run is closed."""
BEST_EVERY = 20
"""The best agent is looked for at most one part in so many of the time."""
_BITS = 64
"""Of a number in SQLite, with its sign."""
Answer = TypeVar("Answer")


class Reader:
    """One run, read while somebody else may write it. ``with`` closes it."""

    def __init__(self, folder: Path) -> None:
        """Begins to read; a small run has been read when this returns.

        Raises:
            UserError: there is no run, or a newer dgm made it.
            ArchiveCorrupt: its log is damaged.
        """
        self.folder = folder
        self.name = folder.resolve().name
        self.members: Members | None = None
        """An ``Outline`` or a ``Tree``; None until one is there."""
        self.run: Run | None = None
        """With its whole tree; None until it is folded."""
        self.best: AgentId | None = None
        self.state = ""
        """As ``history.state`` says; empty while it is not known."""
        self._lasting = self._unfollowed = self._unfound = ""
        """What is wrong for good; and why the run could not be followed, or its best agent not be found, last time."""
        self.bounds = False
        """Whether a lower bound can be worked out at once."""
        self.gate = Gate()
        # Threads that work in pure Python are asked for the interpreter more often than by themselves they would be.
        sys.setswitchinterval(SWITCH_S)
        self._tree_lock = threading.Lock()
        self._outline: Future[Outline] | None = None
        self._folded: Future[Run] | None = None
        self._best: Future[AgentId] | None = None
        self._best_due = self._state_due = 0.0
        self._best_at = -1
        self._asked_since: float | None = None
        """Since when the run could not be followed because a thread asks the tree."""
        self._under_way: Mapping[AgentId, State] = {}
        self._births: OrderedDict[AgentId, AgentBorn] = OrderedDict()
        self._damaged: set[AgentId] = set()
        self._store = EventStore.open(folder / "events.db", write=False)
        self._inode = _inode(folder)
        self._rows = self._store.newest()
        try:
            self._begin()
        except DgmError:
            self._store.close()
            raise

    # What is there

    @property
    def count(self) -> int:
        """Agents that are known."""
        return len(self.members.own_resolved) if self.members else 0

    @property
    def until(self) -> int:
        """Number of the last event that what is shown knows of."""
        return self.members.seq if self.members else 0

    @property
    def reading(self) -> float | None:
        """Share of the run that is folded, 0 to 1; None when all of it is."""
        return None if self.run else min(1.0, self.gate.rows / max(1, self._rows))

    @property
    def problem(self) -> str:
        """What is wrong with the run on disk, in one line; what was read stays."""
        return self._lasting or self._unfollowed or self._unfound

    @property
    def pauses(self) -> str:
        """Why the run is not followed for a while, though it may grow; empty where it is."""
        if self._asked_since is None or time.monotonic() - self._asked_since < PATIENCE_S:
            return ""
        what = "the best agent is worked out" if self._best is not None else "the tree is asked"
        return f"{what}: what is new will be shown afterwards"

    @property
    def settled(self) -> bool:
        """Whether nothing is being read or worked out, until the run grows."""
        tree_read = self.run is not None and self._best is None
        return bool(self.problem) or (tree_read and (not self.count or self._best_at == self.until))

    def born(self, agents: Sequence[AgentId]) -> Mapping[AgentId, Agent | AgentBorn]:
        """Who some agents are; those that are not known, or whose birth is damaged in the log, are left out."""
        if self.run:
            members = self.run.tree.agents
            return {agent: members[agent] for agent in agents if 0 <= agent < len(members)}
        unknown = [agent for agent in agents if agent not in self._births and agent not in self._damaged]
        try:
            self._births.update(births(self._store, unknown))
        except DgmError:
            self._births.update(self._born_apart(unknown))
        found = {agent: self._births[agent] for agent in agents if agent in self._births}
        while len(self._births) > KEPT:
            self._births.popitem(last=False)
        return found

    def _born_apart(self, agents: Sequence[AgentId]) -> Mapping[AgentId, AgentBorn]:
        """The same one by one: what is wrong with the log is said when all of it is read."""
        found: dict[AgentId, AgentBorn] = {}
        for agent in agents:
            try:
                found.update(births(self._store, [agent]))
            except DgmError:
                self._damaged.add(agent)
        return found

    def newest(self) -> AgentId | None:
        """The agent of the newest event that is about one; None before the whole run is read."""
        if self.run is None:
            return None
        try:
            begin = max(0, self.until - LOOKED_BACK)
            return newest_of(list(self._store.read(begin, self.until - begin)))
        except DgmError:
            return None

    def lacking(self, agent: AgentId) -> str:
        """That there is no such agent, where that is known by now; else nothing."""
        if self.run:
            there = f"there are 0 to {self.count - 1}" if self.count else "none is born yet"
            return "" if agent < self.count else f"run {self.name}: no agent {agent}; {there}"
        if agent.bit_length() < _BITS and not has_indices(self._store):
            return ""  # to find it would take as long as to read the run
        there_is = agent.bit_length() < _BITS and (self.born([agent]) or agent in self._damaged)
        return "" if there_is else f"run {self.name}: no agent {agent}"

    def aim(self, agent: AgentId) -> str:
        """What the agent was made for; empty while that is not known."""
        return self.run.tree.aim(agent) if self.run else ""

    def doing(self, agent: AgentId) -> State:
        """What the agent is doing."""
        state = self._under_way.get(agent, State.QUIET)
        if state is State.QUIET and self.run and self.run.tree.barren[agent] >= BARREN:
            return State.BARREN
        return state

    # What threads ask

    def ask(self, question: Callable[[EventStore], Answer]) -> Answer:
        """The answer of the log, from a store of the asking thread's own."""
        with EventStore.open(self.folder / "events.db", write=False) as store:
            return question(store)

    def ask_tree(self, question: Callable[[Run], Answer]) -> Answer:
        """The answer of the folded run; it stays as it is meanwhile.

        Raises:
            Closed: it is not folded yet.
        """
        if self.run is None:
            raise Closed("the run is still being read")
        with self._tree_lock:
            return question(self.run)

    # What changes

    def advance(self) -> Changed:
        """Takes in what has been read, found and appended since; never waits. To be called twice a second or so."""
        before = self.problem, self.pauses
        whole = self._taken_outline() or self._taken_tree()
        known = self.count if not whole else 0
        events = self._followed()
        if any(isinstance(recorded.event, RunStopped) for recorded in events):
            self._state_due = 0.0
        facts = self._found_best() | self._looked_at_state() | (before != (self.problem, self.pauses))
        if whole or events:
            self._under_way = self._states()
        return Changed(events, range(known, self.count), whole, facts or self.run is None)

    def close(self) -> None:
        """Ends what is being read; what a thread is not done with in time stays open until the process ends."""
        self.gate.close()
        self._store.close()
        # SQLite ends the whole process where a log is closed while another thread reads it.
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
            self._outline = _beside(lambda: self.ask(Outline.read))
        else:
            self._fold()

    def _fold(self) -> None:

        def fold() -> Run:
            self._warm_up()
            return Run.open(self.folder, pause=self.gate.passed)

        self._folded = _beside(fold)

    def _warm_up(self) -> None:
        """Imports what the first lower bound needs, which takes longer than a key may."""
        import scipy.special  # noqa: F401

        self.bounds = True
        # And what the screens of an agent and of the run do.
        import dgm.search.summary  # noqa: F401

    def _take(self, run: Run) -> None:
        self.run, self.members = run, run.tree
        self._births.clear()
        self.state = state_of_run(run)
        self._under_way = self._states()

    def _taken_outline(self) -> bool:
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
        self._under_way = states(outline.in_flight.values()) if written else {}
        self._fold()
        return True

    def _taken_tree(self) -> bool:
        if self._folded is None or not self._folded.done():
            return False
        done, self._folded = self._folded, None
        # Nothing of the tree is ever garbage, and going through all of it would be felt between two keys.
        gc.freeze()
        try:
            self._take(done.result())
        except Closed:
            return False
        except DgmError as error:
            self._lasting = str(error)
        return True

    def _followed(self) -> Sequence[Recorded]:
        """Not while a thread asks the tree, which must not change under it."""
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

    def _found_best(self) -> bool:
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
            self._best = _beside(self._look_for_best)
        return found

    def _look_for_best(self) -> AgentId:
        from dgm.search.best import best_of

        self._warm_up()
        begun = time.monotonic()
        try:
            return self.ask_tree(best_of)
        finally:
            self._best_due = time.monotonic() + BEST_EVERY * (time.monotonic() - begun)

    def _looked_at_state(self) -> bool:
        now = time.monotonic()
        if now < self._state_due:
            return False
        self._state_due = now + STATE_EVERY_S
        before = self.state
        if _inode(self.folder) != self._inode:
            self._lasting = f"{self.folder.name}: the run was removed or replaced; what was read stays"
        if self.run:
            self.state = state_of_run(self.run)
            self._under_way = self._states()
        return before != self.state

    def _states(self) -> Mapping[AgentId, State]:
        """Of a run that nobody writes nothing is under way, whatever its log ends with."""
        if self.run is None:
            return self._under_way
        tree = self.run.tree
        under_way = tree.pending.values() if self.state in LIVING else ()
        return states(under_way, (one.child.parents[0] for one in tree.waiting.values()))


def _inode(folder: Path) -> int | None:
    try:
        return (folder / "events.db").stat().st_ino
    except OSError:
        return None


def _beside(work: Callable[[], Answer]) -> "Future[Answer]":
    """The result of some work, done by a thread that keeps nobody from leaving."""
    result: Future[Answer] = Future()

    def perform() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  # raised where the result is asked for
            result.set_exception(error)

    threading.Thread(target=perform, daemon=True).start()
    return result
