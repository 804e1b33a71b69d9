"""An agent at work: what it is asked to do, and what it leaves."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from dgm.domain import Snapshot
from dgm.messages import Message
from dgm.protocols.sandbox import Completed


class JobKind(StrEnum):
    """What an agent is asked to do."""

    SOLVE = "solve"
    IMPROVE = "improve"


@dataclass(frozen=True, slots=True)
class InImage:
    """A workspace that stands in the sandbox's image already, too large to be carried in and out."""

    source: str = "/opt/dgm/work"
    """Folder of the image that the workdir starts as a copy of."""
    baseline: str = "/opt/dgm/baseline.git"
    """Bare repository in the image with the workspace as its only commit; what is left is compared with that."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of an agent in a sandbox (the agent contract, ``archive/seed/README.md``)."""

    kind: JobKind
    problem: str
    source: Snapshot
    """The agent's own folder."""
    workspace: Snapshot | InImage
    """What stands in the workdir before it starts."""
    image: str
    workdir: str
    time_limit_s: float
    evidence: Snapshot = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Work:
    """What an agent left."""

    workspace: Snapshot
    """The workdir afterwards, ``.git`` left out; empty for a workspace that stands in the image."""
    patch: bytes
    """The host's own diff of workspace against what was put in."""
    completed: Completed
    """How the agent's program ended."""
    conversation: Sequence[Message] = ()
    """The last request that the model was sent and its reply: all that was said, unless the scaffold trimmed it."""
    calls: int = 0
    """Model calls that were answered."""


class Workbench(Protocol):
    """Lets an agent work: a sandbox, the model behind the gateway, the host's own diff."""

    async def work(self, job: Job) -> Work:
        """Runs the agent's program on the job.

        Raises:
            AgentFault: what it left cannot be used.
            Infrastructure: the sandbox or the model failed.
        """
        ...
