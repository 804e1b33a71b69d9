"""An agent's work: its job and its results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from dgm.archive.conversations import Thread, main_conversation
from dgm.domain import Snapshot
from dgm.messages import Message, Reply, Request, WireProtocol, WireRequest
from dgm.protocols.sandbox import Completed, Mount


class JobKind(StrEnum):
    """The kind of an agent's job."""

    SOLVE = "solve"
    IMPROVE = "improve"


@dataclass(frozen=True, slots=True)
class InImage:
    """A workspace that is part of the sandbox's image, because it is too large to copy in and out."""

    source: str = "/opt/dgm/work"
    """Folder of the image from which the workdir is copied."""
    baseline: str = "/opt/dgm/baseline.git"
    """Bare repository in the image with the workspace as its only commit; the result is compared with that."""


@dataclass(frozen=True, slots=True)
class TaskEnvironment:
    """Packages that programs in a task's sandbox find, beside those of its image."""

    mount: Mount
    paths: tuple[str, ...]
    """Folders in the sandbox where Python looks for modules, in this order."""
    variables: tuple[tuple[str, str], ...] = ()
    """Names and values by which other languages find them."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of an agent in a sandbox (the agent contract, ``archive/seeds/README.md``)."""

    kind: JobKind
    problem: str
    source: Snapshot
    """The agent's own folder."""
    workspace: Snapshot | InImage
    """Content of the workdir before the agent starts."""
    image: str
    workdir: str
    time_limit_s: float
    evidence: Snapshot = field(default_factory=dict)
    environment: TaskEnvironment | None = None
    """Packages for the programs that the agent starts; None: only those of the image."""
    processor_s: float | None = None
    """Limit of processor time for a dry run. The workbench then chooses ``time_limit_s`` and may start the agent a
    second time. An agent that is still ``timed_out`` is at fault."""
    time_zone: str = ""
    """Name of the agent's time zone, such as ``Pacific/Kiritimati``; empty: the image's."""


@dataclass(frozen=True, slots=True)
class OwnTrajectory:
    """The trajectory that an agent itself wrote."""

    data: bytes
    """Content of its file, unchanged; several files as one JSON value a line."""
    threads: Sequence[Thread]
    """The messages that were read, a thread for each file; at least one."""


@dataclass(frozen=True, slots=True)
class DryCalls:
    """What an agent's calls in a dry run show of its calls in a search."""

    untranslatable: Mapping[WireProtocol, str]
    """Map of each protocol that the agent speaks to why its calls cannot be translated to others; empty if they can."""
    other_models: tuple[str, ...] = ()
    """Names of other models that it asked for and that the lent one answers for."""
    turn_tokens: int = 0
    """Estimated input tokens of its largest first turn: prompts, tools and instructions, sent again with each turn."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Map of code to first message of its refused requests."""
    left_out: tuple[str, ...] = ()
    """Names of what is left out of its requests to every model."""
    lost_in_translation: tuple[str, ...] = ()
    """Names of what is also left out where the model is asked in another protocol."""
    requests: tuple[WireRequest, ...] = ()
    """The answered requests, as they pass."""


@dataclass(frozen=True, slots=True)
class Work:
    """The results of an agent."""

    workspace: Snapshot
    """Final workdir as a person would commit it; empty for a workspace in the image."""
    patch: bytes
    """The host's own diff between the initial and the final workspace."""
    completed: Completed
    """The result of the agent's program."""
    threads: Sequence[Thread] = ()
    """The conversations with the model, put together from all answered calls."""
    calls: int = 0
    """Number of answered model calls."""
    refused: tuple[str, ...] = ()
    """Codes of refused requests of the agent (``context_length_exceeded`` …), each once, in order."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """New files left out of the patch because of their size → their bytes."""
    trajectory: OwnTrajectory | None = None
    """None if the agent writes none, or none that can be read."""
    own_failure: str = ""
    """Reason why the agent lacked answers of its model by its own fault; empty if there is none."""
    dry_calls: DryCalls | None = None
    """What the calls of a dry run show; None for a job with a model."""

    @property
    def conversation(self) -> Sequence[Message]:
        """The messages of the main conversation, without leading system prompts."""
        return main_conversation(self.threads)


class Workbench(Protocol):
    """The tools of an operator: agents in sandboxes, and the model behind the gateway.

    All calls are charged to the expansion. A repetition of it gets the answers that were already paid for.
    """

    async def work(self, job: Job) -> Work:
        """Run the agent's program on the job.

        Raises:
            AgentFault: its result is unusable.
            Infrastructure: the sandbox or the model failed.
        """
        ...

    async def ask(self, request: Request, role: str = "diagnose") -> Reply:
        """Ask the role's model once, without an agent; the gateway sets ``request.model``.

        Requests must be identical on a retry: no timestamps, set order or paths.

        Raises:
            RequestRefused: the request can never be answered, or a limit of the gateway is reached
                (``action_limit_exceeded``).
            Infrastructure: the model failed.
        """
        ...

    async def check(self, source: Snapshot) -> Completed:
        """Return the result of an agent's own check, run in a fresh sandbox and without a model.

        Raises:
            AgentFault: stage ``contract``: the agent has no check.
            Infrastructure: the sandbox failed.
        """
        ...
