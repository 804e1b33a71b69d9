"""The model calls and verdicts of a run, as its log tells of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dgm.archive.events import AgentStillborn, CallStarted, ModelCalled, TaskGraded
from dgm.archive.journal import CallReader
from dgm.archive.run import Run
from dgm.domain import Evaluation
from dgm.gateway.blame import QUESTION
from dgm.messages import Reply, WireRequest


@dataclass(frozen=True)
class Call:
    """One call that was answered."""

    action: int
    role: str
    messages: Sequence[dict[str, Any]]
    reply: Reply


@dataclass(frozen=True)
class Record:
    """What a run's log holds."""

    calls: list[Call] = field(default_factory=list)
    """Without the neutral questions by which dgm finds out whose fault a refusal is."""
    graded: list[Evaluation] = field(default_factory=list)
    stillborn: list[AgentStillborn] = field(default_factory=list)
    started: list[tuple[int, int]] = field(default_factory=list)
    """Action and number of every call that was sent."""
    suite: str = ""
    """Version of the benchmark."""

    @classmethod
    def read(cls, folder: Path) -> "Record":
        """Read a run's log."""
        with Run.open(folder) as run:
            found = cls(suite=str(run.config["versions"]["benchmark"]))
            reader = CallReader(run.store)
            for recorded in run.store.read():
                match recorded.event:
                    case ModelCalled(action, _, role=role) as call:
                        request = reader.request(call)
                        assert isinstance(request, WireRequest)
                        if request.body["messages"][-1]["content"] == QUESTION:
                            continue
                        _, reply = reader.exchange(call)
                        found.calls.append(Call(action, role, request.body["messages"], reply))
                    case TaskGraded(_, outcome):
                        found.graded.append(outcome)
                    case CallStarted(action, number):
                        found.started.append((action, number))
                    case AgentStillborn() as event:
                        found.stillborn.append(event)
                    case _:
                        pass
        return found
