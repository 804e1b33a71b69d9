"""Children that were stillborn since the last one that could be made, in one session.

What they say of the search is for ``dgm.search.dead_ends`` to judge.
"""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dgm.archive.events import AgentStillborn
from dgm.archive.reasons import kind_of

CANNOT_GO_ON = "cannot go on"
"""The reason of ``RunStopped`` where a session ended because its children die."""
_MENDING = ("models", "limits", "sandbox")
"""Sections of the settings whose change may end what children died of."""


@dataclass(slots=True)
class Deaths:
    """A fold of the log: empty when a session begins, a child is born, or one waits for a person."""

    _events: list[AgentStillborn] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: AgentStillborn) -> None:
        """Count a child; not one that a person, or a time-out in a person's place, decided on: it could be made."""
        if not event.outcome.decided:
            self._events.append(event)

    def forget(self) -> None:
        """Begin anew."""
        self._events.clear()

    def of_last_cause(self) -> Iterator[AgentStillborn]:
        """Return those that died of one cause in a row, the last one first.

        One cause is the same stage and the same kind of reason (``kind_of``), what stands in brackets left out: a file
        and a line, tasks that were tried.
        """
        cause = None
        for event in reversed(self._events):
            own = (event.outcome.stage, kind_of(event.outcome.reason).partition(" (")[0])
            if own != (cause or own):
                return
            cause = own
            yield event


def may_mend(settings: Mapping[str, Any]) -> bool:
    """Return whether a change of settings, nested as in ``RunChanged``, may end what children died of."""
    return any(section in settings for section in _MENDING)


def forget_all(barren: "array[int]") -> None:
    """Begin the count of every agent's stillborn children anew."""
    for agent in range(len(barren)):
        barren[agent] = 0
