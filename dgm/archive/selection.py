"""Events of a log by number and kind, read once or followed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.codec import KINDS, encode
from dgm.archive.events import Recorded
from dgm.archive.history import follow_log
from dgm.archive.store import EventStore
from dgm.errors import UserError


@dataclass(frozen=True, slots=True)
class EventSelection:
    """The events to read: all, those after a number, or the last ones; only of a kind if one is named."""

    after: int | None = None
    """Number of the event before the first one."""
    tail: int | None = None
    """Number of events, counted from the end."""
    kind: str | None = None
    """Such as ``task_graded``."""

    def __post_init__(self) -> None:
        """Check what is selected.

        Raises:
            UserError: there is no such kind, or both ``after`` and ``tail`` are given.
        """
        if self.kind is not None and self.kind not in KINDS:
            raise UserError(f"--kind {self.kind}: there are {', '.join(KINDS)}")
        if self.after is not None and self.tail is not None:
            raise UserError("--after and --tail both say where to begin; give one of them")

    def read(self, store: EventStore) -> Iterator[Recorded]:
        """Yield the events that there are, oldest first."""
        return self._of_kind(store.read(self._find_start(store)))

    def follow(self, store: EventStore, folder: Path) -> Iterator[Recorded]:
        """Yield the events that there are, then each as it comes, until no process writes the run in ``folder``."""
        return self._of_kind(follow_log(store, folder, self._find_start(store)))

    def _of_kind(self, events: Iterable[Recorded]) -> Iterator[Recorded]:
        return (each for each in events if self.kind is None or self.kind == encode(each.event)[0])

    def _find_start(self, store: EventStore) -> int:
        """Return the number of the event before the first one."""
        if self.tail is None:
            return self.after or 0
        if self.tail == 0:
            return store.newest()
        which = "WHERE kind = :kind" if self.kind else ""
        rows = store.query(
            f"SELECT min(seq) FROM (SELECT seq FROM events {which} ORDER BY seq DESC LIMIT :count)",
            {"count": self.tail, **({"kind": self.kind} if self.kind else {})},
        )
        first = rows[0][0]
        return store.newest() if first is None else int(first) - 1
