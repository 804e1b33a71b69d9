"""The seams of dgm: what a policy, an operator, a benchmark, a sandbox and a model each promise.

Only shapes live here, no behaviour. Everything that crosses a seam is a value of ``domain`` or ``messages``.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Protocol

from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.domain import Action, ActionId, Agent, Snapshot, Split, Task, TaskId, Verdict
from dgm.messages import Exchange, Message, PaidCall, Reply, Request


class Policy(Protocol):
    """Decides what happens next; a decision is a function of the log and the random stream alone."""

    name: str
    keeps_state: bool
    """Whether ``observe`` does anything: if not, a long log need not be read again at a resume."""

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """The next step, or ``None`` to wait until something that is pending finishes.

        ``None`` with nothing pending means that nothing is left to do. ``Expand.evidence`` is left empty: the
        search fills it in. ``rng`` is seeded per decision, so no state of it survives. An expansion that the budget
        has no room for is not started, as if the answer were ``None``: ask ``limits.may_expand`` first.
        """
        ...

    def observe(self, event: Recorded) -> None:
        """Folds one event into whatever state the policy keeps; called for every event, in order, once."""
        ...


@dataclass(frozen=True, slots=True)
class Completed:
    """What one command in a sandbox left."""

    exit_code: int
    """As a shell gives it: 128 + signal when killed; 124 when ``timed_out``; 137 when out of memory."""
    output: bytes
    """Stdout and stderr merged in order, cut at the limit."""
    truncated: bool = False
    timed_out: bool = False
    out_of_memory: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Mount:
    """A host folder shown read-only inside a sandbox."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What a sandbox may have. There is never a network, and never a variable of the host's environment."""

    image: str
    """Name of a recipe under ``sandboxes/``, or ``docker:`` and an image that the engine has (Docker only)."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """``dgm.run``, ``dgm.action``, ``dgm.host``: what the reaper looks for."""
    mounts: Sequence[Mount] = ()
    filled: Mapping[str, str] = field(default_factory=dict)
    """Further writable folders → the folder of the image that each starts as a copy of (Docker only)."""
    cpus: float = 1.0
    memory_mb: int = 1024
    pids: int = 128
    disk_mb: int = 256
    """All that the sandbox may write, over all folders together."""
    lifetime_s: float = 3600.0
    """After this it ends, even if the host's process died."""


class Sandbox(Protocol):
    """One throw-away machine: commands run as an unprivileged user in a folder tree of their own.

    ``/work``, ``/agent``, ``/job`` and ``/tmp`` are writable and executable, everything else is read-only.
    Every method raises ``Infrastructure`` when the sandbox itself (not the command) failed.
    """

    async def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cwd: str = "/work",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        output_limit: int = 1_000_000,
    ) -> Completed:
        """Runs a command to its end, kills all of it at ``timeout_s``, and keeps ``output_limit`` bytes of output.

        A command that writes more than the limit is let run on with its output discarded. Not promised: that what
        it started in the background is gone afterwards (it is under bubblewrap, not under docker).
        """
        ...

    async def put(self, files: Snapshot, target: str) -> None:
        """Writes the files below the absolute folder ``target`` (made if missing), owned by the sandbox's user."""
        ...

    async def halt(self) -> None:
        """Ends every program that still runs in the sandbox; its files stay.

        Raises:
            AgentFault: stage ``processes``: so many run that they cannot be ended.
        """
        ...

    async def get(self, source: str, *, limit_bytes: int, exclude: Sequence[str] = ()) -> Snapshot:
        """Reads a folder back as a snapshot; links are kept as links, devices, pipes and sockets left out.

        ``exclude`` names entries directly under ``source`` to leave out (``.git``).

        Raises:
            AgentFault: stage ``size``: more than ``limit_bytes``, or more than 20,000 files.
        """
        ...


class SandboxEngine(Protocol):
    """Opens sandboxes and cleans up after a dead process."""

    name: str
    """``docker`` or ``bubblewrap``."""

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """A fresh sandbox, removed with everything in it when the context ends, however it ends.

        Raises:
            Infrastructure: it could not be started.
        """
        ...

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Removes every sandbox of this host that carries all of ``labels``; returns how many there were."""
        ...


class Model(Protocol):
    """Answers requests. One instance serves a whole run, concurrently."""

    name: str
    """As users type it: ``openai/gpt-5.2``, ``offline`` …"""

    async def reply(self, request: Request) -> Reply:
        """One answer; its usage is in tokens, and what that costs is left to the gateway.

        Raises:
            RequestRefused: this request can never be answered (context length, malformed): the agent is told.
            ProviderRefuses: the provider takes nothing from us any more (wrong key, no credit).
            Infrastructure: the provider failed after all retries.
        """
        ...

    async def check(self) -> None:
        """Asks the provider, at no cost, whether it would answer now.

        Raises:
            UserError: it never will: the key is wrong, there is no such model.
            Infrastructure: not now.
        """
        ...

    async def close(self) -> None:
        """Ends its connections."""
        ...


class Journal(Protocol):
    """Where the gateway finds and leaves what was paid for."""

    def exchanges(self, action: ActionId) -> Sequence[Exchange]:
        """What the action was answered so far, in the order of its calls."""
        ...

    async def record(self, call: PaidCall) -> None:
        """Makes the exchange durable; returns only when it is on disk."""
        ...

    def refuse(self, action: ActionId, role: str, status: int, code: str, message: str) -> None:
        """Notes that the agent was refused something, and what."""
        ...


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


@dataclass(frozen=True, slots=True)
class Parent:
    """A parent as an operator sees it."""

    agent: Agent
    source: Snapshot


@dataclass(frozen=True, slots=True)
class Brief:
    """What an operator knows when it makes a child."""

    parents: Sequence[Parent]
    evidence: Snapshot
    """Files about the first parent's own work on the search split."""
    facts: Mapping[str, int]
    """The same in numbers: ``resolved``, ``evaluations``, ``failures``, ``step_limit``, ``truncated`` …"""
    child_number: int
    """Expansions of the first parent that were started before this one."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A child's source before vetting."""

    source: Snapshot
    rationale: str
    """One line: what was changed and why."""
    log: bytes = b""


class Operator(Protocol):
    """Makes a child's source."""

    name: str

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """One child of ``brief.parents``.

        Raises:
            AgentFault: no child came of it.
            Infrastructure: the world failed; the expansion will be performed again.
        """
        ...


@dataclass(frozen=True, slots=True)
class Grade:
    """What the hidden tests say of a patch."""

    verdict: Verdict
    reason: str
    score: float
    """Share of FAIL_TO_PASS tests that passed, 0.0 when a PASS_TO_PASS test broke or nothing ran."""
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    log: bytes = b""
    """Output of the tests, for people only: graded code may have printed anything into it."""
    shown: bytes = b""
    """Names of failed tests with one short line each: all of this that may become an agent's evidence."""


class Benchmark(Protocol):
    """Tasks and their hidden grading."""

    name: str
    version: str
    """A digest of everything that can change a verdict."""

    def tasks(self, split: Split) -> Sequence[Task]:
        """The split's tasks, in a fixed order."""
        ...

    def task(self, task: TaskId) -> Task:
        """One task by id.

        Raises:
            UserError: there is no such task.
        """
        ...

    def workspace(self, task: TaskId) -> Snapshot | InImage:
        """What stands in the task's workdir before the agent starts."""
        ...

    def again(self, task: TaskId, grade: Grade, tried: int) -> str:
        """The problem of one more try, which goes on from what the last one left; empty where its grade stands.

        Args:
            task: the task.
            grade: of the last try.
            tried: how many there were.
        """
        ...

    async def grade(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Applies the patch to a fresh workspace in a *fresh* sandbox and runs the hidden tests there.

        Raises:
            Infrastructure: the sandbox failed; says nothing of the patch.
        """
        ...


OpenSandbox = Callable[[SandboxSpec], AbstractAsyncContextManager[Sandbox]]
Sleep = Callable[[float], Awaitable[None]]
