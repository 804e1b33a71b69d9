"""A recorded run as the source of a replay: its replies are served, and nothing is ever written into it."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dgm.archive.approvals import WaitingChild
from dgm.archive.events import AgentBorn, AgentStillborn, ChildProposed, Event, Recorded
from dgm.archive.history import find_unborn
from dgm.archive.objects import make_repository
from dgm.archive.repository import AgentRepository
from dgm.archive.run import Run
from dgm.archive.traces import Traces
from dgm.config import Settings
from dgm.domain import ActionId, CommitId, Snapshot, Usage
from dgm.errors import ArchiveCorrupt, DgmError
from dgm.gateway.journal import RunJournal
from dgm.messages import BegunCall, CutCall, PaidCall
from dgm.models.builtin import RecordedModel
from dgm.models.choose import drawing_of, names_by_role
from dgm.protocols import Model
from dgm.search.duplicate_index import map_contents
from dgm.search.orders import ExpandOrder
from dgm.search.run_controller import RunController

ROLES = ("solve", "improve", "diagnose", "probe")


class ReplayJournal(RunJournal):
    """The journal of a replay: it finds paid calls and records nothing."""

    def cut_calls(self, action: ActionId) -> Sequence[CutCall]:  # noqa: ARG002  (nothing is asked again)
        """Return none: a replay repeats no call."""
        return ()

    async def begin(self, call: BegunCall) -> None:
        """Refuse the call: a replay asks no model; raise as ``record``."""
        raise DgmError(f"action {call.key.action}: a replay asks no model")

    def book(self, action: ActionId, number: int, model: str, role: str, usage: Usage) -> None:
        """Book nothing."""

    def lose(self, call: BegunCall) -> None:
        """Book nothing."""

    def learned(
        self, model: str, abilities: Mapping[str, Any], words: str, usage: Usage | None = None
    ) -> None:
        """Keep nothing."""

    async def record(self, call: PaidCall, settles: Sequence[CutCall] = ()) -> None:  # noqa: ARG002
        """Refuse the call: the models of a replay do not answer.

        Raises:
            DgmError: always.
        """
        raise DgmError(f"action {call.key.action}: a replay pays for no call")

    def refuse(self, action: ActionId, role: str, status: int, code: str, message: str) -> None:
        """Keep nothing: the agent's refusals are in the record already."""


def make_recorded_models(run: Run, settings: Settings) -> Mapping[str, Model]:
    """Return models that answer under the recorded models' names, by the keys of ``open_models``."""
    wanted = names_by_role(settings)
    asked: dict[str, list[str]] = {}
    for role, name in run.tree.spend_by:
        asked.setdefault(role, []).append(name)
    several = [each.model for choices in drawing_of(settings).choices.values() for each in choices]
    return {name: RecordedModel(name) for name in several} | {
        role: RecordedModel(
            _choose_name(asked.get(role, [settings.model]), wanted.get(role, wanted["solve"]))
        )
        for role in {**dict.fromkeys(ROLES), **asked}
    }


def _choose_name(names: Sequence[str], wanted: str) -> str:
    """Return the name in the settings if the record has calls of it, else the last recorded name."""
    return wanted if wanted in names else names[-1]


class ReplayRun(Run):
    """A recorded run for a worker that makes things again; the results lie in another folder."""

    def __init__(self, recorded: Run, made: Run | None, folder: Path) -> None:
        """Write into a run of its own if there is one, else into a scratch folder.

        Args:
            recorded: the run to read from where ``made`` lacks something; stays the owner of its log.
            made: the run in which the work is recorded; None if the work is thrown away.
            folder: for commits if ``made`` is None; traces stay in memory then.
        """
        owner = made or recorded
        super().__init__(owner.folder, owner.config, owner.store)
        self.tree = owner.tree
        self.repository = (
            _CombinedRepository(made.folder / "agents.git", recorded)
            if made
            else _create_borrowing(folder / "agents.git", recorded)
        )
        self.traces = Traces(owner.store, recorded.traces)

    def append(self, event: Event) -> Recorded:
        """Refuse the event: a replay writes no events.

        Raises:
            DgmError: always.
        """
        return self.append_many((event,))[0]

    def append_many(self, events: Sequence[Event]) -> Sequence[Recorded]:
        """Refuse the events; raise as ``append``."""
        names = ", ".join(type(event).__name__ for event in events)
        raise DgmError(f"{self.name}: a replay writes nothing into the run that it replays ({names})")


class _CombinedRepository(AgentRepository):
    """A repository of its own that reads the recorded run's children in place, as not all have stand-ins."""

    def __init__(self, folder: Path, recorded: Run) -> None:
        super().__init__(folder)
        self._recorded = recorded.repository
        self._theirs = {
            *(agent.commit for agent in recorded.tree.agents),
            *(child.commit for child in find_unborn(recorded).values()),
        }

    def source(self, commit: CommitId) -> Snapshot:
        return self._recorded.source(commit) if commit in self._theirs else super().source(commit)

    def diff(self, before: CommitId, after: CommitId) -> bytes:
        both = {before, after} <= self._theirs
        return self._recorded.diff(before, after) if both else super().diff(before, after)


def _create_borrowing(folder: Path, recorded: Run) -> AgentRepository:
    """Create an empty repository that finds the recorded run's objects without copying them."""
    make_repository(folder)
    return AgentRepository(folder, recorded.folder / "agents.git")


class RecordedOrders:
    """The orders of a run's expansions, as the worker got them."""

    def __init__(self, run: Run, settings: Settings) -> None:
        self._run = run
        self._controller = RunController(run, settings)
        self._births: list[int] = []
        self._asked: list[tuple[int, ActionId, WaitingChild]] = []
        self._decided: dict[ActionId, int] = {}
        for recorded in run.store.select("kind IN ('agent_born', 'agent_stillborn', 'child_proposed')"):
            self._note(recorded)

    def expansion(self, action: ActionId) -> ExpandOrder:
        """Return the order of the last start of an expansion, which knows only the agents of that time.

        Raises:
            ArchiveCorrupt: the log has no start of it.
        """
        starts = self._run.store.starts_of_action(action)
        if not starts:
            raise ArchiveCorrupt(f"{self._run.store.path}: action {action} was never started")
        seq, what = starts[-1]
        order = self._controller.order(action, what)
        if not isinstance(order, ExpandOrder):
            raise ArchiveCorrupt(f"{self._run.store.path}: action {action} is no expansion")
        there = sum(born < seq for born in self._births)
        return replace(
            order,
            known=map_contents(self._run, self._run.tree.agents[:there]),
            known_syntax=self._controller.known.syntax(there) if order.known_syntax else {},
            siblings=self._controller.siblings(order.action, there, self._waiting(seq)),
        )

    def _note(self, recorded: Recorded) -> None:
        match recorded.event:
            case AgentBorn(action):
                self._births.append(recorded.seq)
                self._decided[action] = recorded.seq
            case AgentStillborn(action):
                self._decided[action] = recorded.seq
            case ChildProposed(action, child):
                self._asked.append((recorded.seq, action, WaitingChild(child, 0.0)))
            case _:
                pass

    def _waiting(self, seq: int) -> Mapping[ActionId, WaitingChild]:
        """Return the children that waited for a person at event ``seq``."""
        return {
            action: one
            for asked, action, one in self._asked
            if asked < seq < self._decided.get(action, sys.maxsize)
        }
