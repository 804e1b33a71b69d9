"""The model calls of a run, as its log tells of them, each with its conversation."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.events import CallBooked, CallStarted, ModelCalled, ModelLearned
from dgm.archive.journal import CallReader
from dgm.archive.run import Run
from dgm.messages import WireRequest
from tests.support.streaming_provider import conversation

Key = tuple[int, int]
"""Action and number of a call."""


@dataclass(frozen=True)
class Log:
    """The calls that a run's log tells of, each with its conversation."""

    started: Mapping[Key, str]
    answered: Mapping[Key, str]
    bookings: Sequence[CallBooked]
    tokens: Mapping[str, int]
    """Of all calls with the same conversation."""
    checks: int
    """Of the model, those that were cut off included."""

    @classmethod
    def read(cls, folder: Path) -> "Log":
        """Read a run's log."""
        started: dict[Key, str] = {}
        answered: dict[Key, str] = {}
        bookings: list[CallBooked] = []
        tokens: Counter[str] = Counter()
        checks = 0
        with Run.open(folder) as run:
            reader = CallReader(run.store)
            for recorded in run.store.read():
                match recorded.event:
                    case CallStarted(action, number) as call:
                        started[action, number] = _asked(reader, call)
                    case ModelCalled(action, number, usage=usage) as call:
                        answered[action, number] = _asked(reader, call)
                        tokens[answered[action, number]] += usage.tokens
                    case CallBooked(action, number, usage=usage):
                        bookings.append(recorded.event)
                        tokens[started[action, number]] += usage.tokens
                    case ModelLearned(usage=usage):
                        checks += usage.calls
        return cls(started, answered, bookings, tokens, checks)


def _asked(reader: CallReader, call: CallStarted | ModelCalled) -> str:
    request = reader.request(call)
    return conversation(request.body) if isinstance(request, WireRequest) else str(request)
