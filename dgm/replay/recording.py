"""A recorded run as the source of a replay: its replies are served, and nothing is ever written into it."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dgm.archive.approvals import WaitingChild
from dgm.archive.events import AgentBorn, AgentStillborn, ChildProposed, Event, Recorded
from dgm.archive.objects import make_repository
from dgm.archive.repository import AgentRepository
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, Usage
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


def make_recorded_models(
    run: Run, settings: Settings, unanswered: dict[ActionId, tuple[int, str]]
) -> Mapping[str, Model]:
    """Return models that answer under the recorded models' names, by the keys of ``open_models``.

    Args:
        run: the recorded run.
        settings: of the run.
        unanswered: as for ``RecordedModel``.
    """
    wanted = names_by_role(settings)
    asked: dict[str, list[str]] = {}
    for role, name in run.tree.spend_by:
        asked.setdefault(role, []).append(name)
    several = [choice.model for choices in drawing_of(settings).choices.values() for choice in choices]
    names = {name: name for name in several} | {
        role: _choose_name(asked.get(role, [settings.model]), wanted.get(role, wanted["solve"]))
        for role in {**dict.fromkeys(ROLES), **asked}
    }
    return {key: RecordedModel(name, unanswered) for key, name in names.items()}


def _choose_name(names: Sequence[str], wanted: str) -> str:
    """Return the name in the settings if the record has calls of it, else the last recorded name."""
    return wanted if wanted in names else names[-1]


class ReplayRun(Run):
    """A recorded run for a worker that makes things again; new commits and traces lie in another folder."""

    def __init__(self, recorded: Run, folder: Path) -> None:
        """Read what ``folder`` lacks from the recorded run, which stays the owner of its log."""
        super().__init__(recorded.folder, recorded.config, recorded.store)
        self.tree = recorded.tree
        make_repository(folder / "agents.git")
        # It finds the recorded objects without copying them.
        self.repository = AgentRepository(folder / "agents.git", recorded.folder / "agents.git")

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
