"""An agent at work: what it is asked to do, and what it leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from dgm.domain import Snapshot
from dgm.messages import Message, Reply, Request
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
    processor_s: float | None = None
    """Of a dry run: the processor time that it may take. The workbench then chooses ``time_limit_s`` and may start the
    agent a second time; one that is ``timed_out`` at the end is at fault."""


@dataclass(frozen=True, slots=True)
class Work:
    """What an agent left."""

    workspace: Snapshot
    """The workdir afterwards as a person would commit it; empty for a workspace that stands in the image."""
    patch: bytes
    """The host's own diff of workspace against what was put in."""
    completed: Completed
    """How the agent's program ended."""
    conversation: Sequence[Message] = ()
    """The last request that the model was sent and its reply: all that was said, unless the scaffold trimmed it."""
    calls: int = 0
    """Model calls that were answered."""
    refused: tuple[str, ...] = ()
    """What requests of the agent were refused for (``context_length_exceeded`` …), each word once, in order."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """New files that are no part of the patch for their size → their bytes."""


class Workbench(Protocol):
    """What an operator works with: agents in sandboxes, and the model behind the gateway.

    All calls are put down to the expansion, and a repetition of it is served what was already paid for.
    """

    async def work(self, job: Job) -> Work:
        """Runs the agent's program on the job.

        Raises:
            AgentFault: what it left cannot be used.
            Infrastructure: the sandbox or the model failed.
        """
        ...

    async def ask(self, request: Request, role: str = "diagnose") -> Reply:
        """Asks the role's model once, without an agent; ``request.model`` is the gateway's to say.

        Whoever repeats the expansion must ask the same: nothing of the clock, of an order of sets or of a path belongs
        into a request.

        Raises:
            RequestRefused: the request can never be answered, or a limit of the gateway is reached
                (``action_limit_exceeded``).
            Infrastructure: the model failed.
        """
        ...

    async def check(self, source: Snapshot) -> Completed:
        """How an agent's own check ends, in a fresh sandbox and without a model.

        Raises:
            AgentFault: stage ``contract``: it has no check.
            Infrastructure: the sandbox failed.
        """
        ...
