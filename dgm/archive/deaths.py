"""The stillborn children of one session since the last child that could be made.

``dgm.analysis.dead_ends`` judges what they mean for the search.
"""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dgm.archive.events import AgentStillborn
from dgm.archive.reasons import kind_of

CANNOT_GO_ON = "cannot go on"
"""The reason in ``RunStopped`` when a session ended because its children die."""
_MENDING = ("models", "providers", "limits", "sandbox")
"""Sections of the settings whose change may remove the cause of the stillbirths."""


@dataclass(slots=True)
class StillbornStreak:
    """A fold of the log. It becomes empty when a session begins, a child is born, or a child waits for a person."""

    _events: list[AgentStillborn] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: AgentStillborn) -> None:
        """Count a stillborn child.

        A child rejected by a person, or by a time-out in a person's place, does not count: it could be made.
        """
        if not event.outcome.decided:
            self._events.append(event)

    def forget(self) -> None:
        """Reset the count."""
        self._events.clear()

    def of_last_cause(self) -> Iterator[AgentStillborn]:
        """Yield the latest children in a row that died of one cause, the last one first.

        Two causes are equal if stage and kind of reason (``kind_of``) are equal. Text in brackets is ignored: a file
        and a line, or the tasks that were tried.
        """
        cause = None
        for event in reversed(self._events):
            own = (event.outcome.stage, kind_of(event.outcome.reason).partition(" (")[0])
            if own != (cause or own):
                return
            cause = own
            yield event


def may_mend(settings: Mapping[str, Any]) -> bool:
    """Return whether a change of settings, nested as in ``RunChanged``, may remove the cause of the stillbirths."""
    return any(section in settings for section in _MENDING)


def forget_all(barren: "array[int]") -> None:
    """Reset the count of stillborn children of every agent."""
    for agent in range(len(barren)):
        barren[agent] = 0
