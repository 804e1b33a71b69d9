"""A recorded run as the source of a replay: its replies are served, and nothing is ever written into it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dgm.archive.events import Event, Recorded
from dgm.archive.repository import AgentRepository, make_repository
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, Usage
from dgm.errors import DgmError
from dgm.gateway.journal import RunJournal
from dgm.messages import BegunCall, CutCall, PaidCall
from dgm.models.builtin import RecordedModel
from dgm.models.choose import drawing_of, names_by_role
from dgm.protocols import Model

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
