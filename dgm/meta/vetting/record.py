"""The time and result of each stage of vetting: the trace ``vetting`` of an expansion.

JSON: ``{"stages": [{"stage": "patch", "seconds": 0.013, "result": "passed"}, …]}`` in the order in which they ran. The
result is ``passed``, ``failed`` (then the last one, with a ``reason``), ``skipped`` (nothing to check, with a ``note``)
or ``broken`` (the infrastructure failed). A stage that the settings turn off is not named.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dgm.errors import AgentFault


@dataclass(slots=True)
class StageRecord:
    """The record of one stage."""

    stage: str
    seconds: float = 0.0
    """Wall time in seconds."""
    result: str = "passed"
    reason: str = ""
    note: str = ""
    """Additional information."""
    tries: list[dict[str, Any]] = field(default_factory=list)
    """Tries of ``probe``: ``task``, ``verdict``, ``reason`` and ``seconds`` of each task that was tried."""

    def skip(self, why: str) -> None:
        """Mark the stage as skipped, with the reason."""
        self.result, self.note = "skipped", why

    def body(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        body: dict[str, Any] = {
            "stage": self.stage,
            "seconds": round(self.seconds, 6),
            "result": self.result,
        }
        further = {"reason": self.reason, "note": self.note, "tries": self.tries}
        return {**body, **{name: value for name, value in further.items() if value}}


class VettingTrace:
    """The stages that one child reached."""

    def __init__(self) -> None:
        self.stages: list[StageRecord] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[StageRecord]:
        """Time the stage inside the context, and note its result."""
        ran = StageRecord(name)
        self.stages.append(ran)
        began = time.perf_counter()
        try:
            yield ran
        except AgentFault as fault:
            ran.result, ran.reason = "failed", str(fault)
            raise
        except BaseException:
            ran.result = "broken"
            raise
        finally:
            ran.seconds = time.perf_counter() - began

    def data(self) -> bytes:
        """Return the trace as bytes."""
        return json.dumps({"stages": [ran.body() for ran in self.stages]}).encode()
