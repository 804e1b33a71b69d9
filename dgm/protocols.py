"""The seams of dgm: the promises of a policy, an operator, a benchmark, a sandbox and a model.

There are interfaces only, no behaviour. Values that cross a seam come from ``domain`` or ``messages``.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any, Protocol, runtime_checkable

from dgm.archive.conversations import Thread, main_conversation
from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.archive.volatile_text import Conditions
from dgm.conduct import Bait, Secrets
from dgm.domain import (
    NO_ACTION,
    Action,
    ActionId,
    Agent,
    AgentId,
    Evaluation,
    Finding,
    Findings,
    Metric,
    Metrics,
    Prediction,
    Snapshot,
    Split,
    Tally,
    Task,
    TaskId,
    Usage,
    Verdict,
)
from dgm.errors import UserError
from dgm.messages import (
    BegunCall,
    CutCall,
    Exchange,
    Message,
    PaidCall,
    Reply,
    Request,
    WireProtocol,
    WireReply,
    WireRequest,
)


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of one command in a sandbox."""

    exit_code: int
    """Exit code as in a shell: 128 + signal if killed; 124 if ``timed_out``; 137 if out of memory."""
    output: bytes
    """Stdout and stderr merged in order, cut at the limit."""
    truncated: bool = False
    timed_out: bool = False
    out_of_memory: bool = False
    seconds: float = 0.0
    out_of_processor: bool = False
    """The command's first process reached its limit of processor time; ``timed_out`` is then true, too."""
    processor_s: float | None = None
    """Processor time used by all processes of the command; None if the engine does not measure it."""

    @property
    def bad_end(self) -> str:
        """How the command ended, in words, if it failed; else an empty text."""
        if self.timed_out:
            return "ran out of time"
        if self.out_of_memory:
            return "ran out of memory"
        return f"exits {self.exit_code}" if self.exit_code else ""


@dataclass(frozen=True, slots=True)
class Mount:
    """A host folder whose contents a sandbox shows read-only, as they are when it is opened."""

    source: Path
    target: str
    digest: str = ""
    """Name of its contents, where they never change, so that an engine may keep them for further sandboxes."""


@dataclass(frozen=True, slots=True)
class SharedSocket:
    """A unix socket of the host that programs in a sandbox can connect to."""

    source: Path
    target: str
    """Absolute path in the sandbox; its folder holds nothing else, and its name is that of ``source``."""


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """The resources of a sandbox. It never has a network, and never a variable of the host's environment."""

    image: str
    """Name of a recipe under ``sandboxes/``, or ``docker:`` and an image of the engine (Docker only)."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels ``dgm.run``, ``dgm.action`` and ``dgm.host``, by which the reaper finds the sandbox."""
    mounts: Sequence[Mount] = ()
    socket: SharedSocket | None = None
    """The gateway's, for an agent at work."""
    runtime: str = ""
    """Image, as in ``image``, whose files are shown read-only at ``/opt/dgm-runtime``, so that its commands work there.

    Under bubblewrap a recipe stands for the host's own programs, which are there already.
    """
    filled: Mapping[str, str] = field(default_factory=dict)
    """Further writable folders → the folder of the image from which each is copied (Docker only)."""
    cpus: float = 1.0
    memory_mb: int = 1024
    pids: int = 128
    disk_mb: int = 256
    """Maximum that the sandbox may write, over all folders together."""
    lifetime_s: float = 3600.0
    """Seconds after which the sandbox ends, even if the host's process died."""


class Sandbox(Protocol):
    """One disposable machine: commands run as an unprivileged user in a separate folder tree.

    ``/work``, ``/agent``, ``/job`` and ``/tmp`` are writable and executable; everything else is read-only. Every method
    raises ``Infrastructure`` if the sandbox itself (not the command) failed.
    """

    async def exec(  # noqa: PLR0913  (all but two have their usual value)
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cwd: str = "/work",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        output_limit: int = 1_000_000,
        processor_s: float | None = None,
    ) -> Completed:
        """Run a command to its end, kill all of it at ``timeout_s``, and keep ``output_limit`` bytes of output.

        ``processor_s`` limits the processor time of each process of the command. Output beyond the limit is discarded.
        Processes in the background are not guaranteed to end (they do under bubblewrap, not under docker).
        """

    async def put(self, files: Snapshot, target: str) -> None:
        """Write the files below the absolute folder ``target`` (created if missing), owned by the sandbox's user."""

    async def halt(self) -> None:
        """End every program that still runs in the sandbox; its files stay.

        Raises:
            AgentFault: stage ``processes``: too many run to be ended.
        """

    async def get(self, source: str, *, limit_bytes: int, exclude: Sequence[str] = ()) -> Snapshot:
        """Return a folder as a snapshot; links are kept as links, and devices, pipes and sockets left out.

        ``exclude`` names entries directly under ``source`` to leave out (``.git``).

        Raises:
            AgentFault: stage ``size``: more than ``limit_bytes``, or more than 20,000 files.
        """


class SandboxEngine(Protocol):
    """An engine that opens sandboxes and removes those of a dead process."""

    name: str
    """``docker`` or ``bubblewrap``."""

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """Return a fresh sandbox; it is removed with all its contents when the context ends in any way.

        Raises:
            Infrastructure: the sandbox could not be started.
        """

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove every sandbox of this host that carries all of ``labels``; return their number."""


OpenSandbox = Callable[[SandboxSpec], AbstractAsyncContextManager[Sandbox]]


class BuildError(UserError):
    """What an agent or a task needs cannot be installed or built, or the build left what cannot be used."""


@dataclass(frozen=True, slots=True)
class BuildRun:
    """The end of one command of a build."""

    exit_code: int
    """Exit code as in a shell; 124 if it took too long."""
    output: str
    """Stdout and stderr, merged."""
    refused: str = ""
    """What it asked for and did not get, in one line; empty if there is nothing."""

    def explain(self, reason: str) -> str:
        """Return a reason for its failure, with what it was refused."""
        return "; ".join(filter(None, [reason, self.refused]))


class BuildSandbox(Protocol):
    """A sandbox that reaches package indexes, and knows nothing of the user's variables and files.

    All methods raise ``Infrastructure`` if the sandbox failed.
    """

    folder: str
    """Folder that a build may fill."""

    async def put(self, files: Snapshot, name: str) -> None:
        """Write files below the subfolder ``name``; raise ``BuildError`` if they do not fit."""

    async def run(
        self, command: Sequence[str], *, name: str, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> BuildRun:
        """Run a command in the subfolder ``name``, which is made if it is missing.

        Raises:
            BuildError: it cannot be started.
            Infrastructure: it failed and a package index could not be reached.
        """

    async def fetch(self, name: str, target: Path) -> None:
        """Copy the subfolder ``name`` to a new folder: its files, and the links that stay within it.

        Raises:
            BuildError: it is missing, or too large.
        """


class Builder(Protocol):
    """Opens sandboxes for builds."""

    def open(self, *, public: bool = False) -> AbstractAsyncContextManager[BuildSandbox]:
        """Return a fresh sandbox; ``public``: it reaches all public addresses, for a command that the user typed."""


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
    findings: Sequence[Finding] = ()
    """Findings in its requests and its sandbox."""
    asked_models: tuple[str, ...] = ()
    """Names of other models that it asked for."""

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

    async def ask(self, request: Request, role: str = "diagnose") -> Reply:
        """Ask the role's model once, without an agent; the gateway sets ``request.model``.

        Requests must be identical on a retry: no timestamps, set order or paths.

        Raises:
            RequestRefused: the request can never be answered, or a limit of the gateway is reached
                (``action_limit_exceeded``).
            Infrastructure: the model failed.
        """

    async def check(self, source: Snapshot) -> Completed:
        """Return the result of an agent's own check, run in a fresh sandbox and without a model.

        Raises:
            AgentFault: stage ``contract``: the agent has no check.
            Infrastructure: the sandbox failed.
        """


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of the hidden tests for a patch."""

    verdict: Verdict
    reason: str
    score: float
    """Share of FAIL_TO_PASS tests that passed; 0.0 if a PASS_TO_PASS test broke or nothing ran."""
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    log: bytes = b""
    """Output of the tests, for people only: graded code may have printed anything into it."""
    shown: bytes = b""
    """Names of failed tests with one short line each: the only part that may become an agent's evidence."""
    findings: Findings = ()
    """Findings against the agent whose patch it is."""
    metrics: Metrics = ()
    """Values that the hidden tests measured."""


class Benchmark(Protocol):
    """Tasks and their hidden grading."""

    name: str
    version: str
    """A digest of everything that can change a verdict."""

    def tasks(self, split: Split) -> Sequence[Task]:
        """Return the split's tasks in a fixed order."""

    def task(self, task: TaskId) -> Task:
        """Return one task by id.

        Raises:
            UserError: there is no such task.
        """

    def workspace(self, task: TaskId) -> Snapshot | InImage:
        """Return the content of the task's workdir before the agent starts."""

    def again(self, task: TaskId, grade: Grade, tried: int) -> str:
        """Return the problem of another try, which continues from the last one; empty if its grade is final.

        Args:
            task: the task.
            grade: the grade of the last try.
            tried: the number of tries so far.
        """

    async def grade(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Apply the patch to a fresh workspace in a *fresh* sandbox and run the hidden tests there.

        Raises:
            Infrastructure: the sandbox failed; this says nothing about the patch.
        """


@runtime_checkable
class HasConduct(Protocol):
    """A benchmark that knows how agents could cheat on its tasks."""

    def bait(self, task: TaskId) -> Bait:
        """Return what taking a task's bait looks like."""

    def secrets(self) -> Secrets:
        """Return the texts of all tasks; used in a thread, read once."""


@runtime_checkable
class HasMetrics(Protocol):
    """A benchmark whose tests measure more than whether a patch works."""

    def metrics(self) -> Mapping[str, Metric]:
        """Return name → metric."""


@runtime_checkable
class HasEnvironments(Protocol):
    """A benchmark whose tasks have packages of their own, beside those of their images."""

    async def environment(self, task: TaskId, labels: Mapping[str, str]) -> TaskEnvironment | None:
        """Return the packages for the programs that an agent starts on a task; None if it has none.

        Raises:
            UserError: they do not fit the sandbox.
            Infrastructure: a sandbox failed.
        """


@dataclass(frozen=True, slots=True)
class Needs:
    """An operator's requirements on the archive before it can make a child."""

    parents: int = 1
    """Number of parents, 1 or 2; for 2, a mate is chosen."""
    failures: int = 0
    """Minimum number of unresolved evaluations of the first parent."""
    successes: int = 0
    """Minimum number of resolved evaluations of all agents together."""
    relatives: int = 0
    """Maximum number of agents near the first parent whose work is shown beside its own."""
    ancestors: int = 0
    """Minimum number of the first parent's nearest ancestors to show."""
    archive: int = 0
    """Minimum number of archive members to show: the best and the most different ones."""
    overview: int = 0
    """Maximum number of agents to show, the best and the newest ones in turn; a table of all agents and the rest of the
    budget stand beside them. 0: no overview."""
    attempts: int = 0
    """Maximum number of tasks of the first parent of which attempts by several agents are shown."""
    aims: tuple[str, ...] = ()
    """Possible goals of a child, of which one is chosen: parts of the scaffold, or kinds of failure."""
    group: int = 1
    """Number of agents that pool their evidence and have a child each; fewer if the archive has no more."""


@runtime_checkable
class Needing(Protocol):
    """An operator that states its requirements; any other needs one parent and nothing else."""

    needs: Needs


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """The circumstances in which the agent's program ended."""

    exit_code: int = 0
    timed_out: bool = False
    truncated: bool = False
    """True if a tool's output was cut before the model saw it."""
    crashed: bool = False
    context: bool = False
    """True if the model was sent more than its context holds."""


@dataclass(frozen=True, slots=True)
class Case:
    """One evaluation and its traces."""

    evaluation: Evaluation
    problem: str
    traces: Mapping[str, bytes]
    """The traces ``patch``, ``failures`` (names and last lines of failed tests), ``log`` (of the agent's program)
    and ``conversation``."""
    run: ProgramEnd
    action: ActionId = NO_ACTION
    """Id of the evaluation."""


@dataclass(frozen=True, slots=True)
class Member:
    """An agent as an operator sees it. Tallies and verdicts are those at the start of the expansion."""

    agent: Agent
    source: Snapshot
    own: Tally = field(default_factory=Tally)
    """Tally over all its evaluations."""
    verdicts: Mapping[TaskId, Verdict] = field(default_factory=dict)
    """Verdicts of its first attempts, without invalid ones."""
    change: bytes = b""
    """The diff against its first parent; empty for the seed."""


@dataclass(frozen=True, slots=True)
class Brief:
    """The inputs of an operator: parents, evidence and limits."""

    parents: Sequence[Member]
    evidence: Snapshot
    """Files about the first parent's own work on the search split."""
    facts: Mapping[str, int]
    """The evidence in numbers: ``resolved``, ``evaluations``, ``failures``, ``step_limit``, ``truncated`` …"""
    child_number: int
    """Number of expansions of the first parent that were started before this one."""
    members: Sequence[Member] = ()
    """Agents other than the parents whose work is shown."""
    cases: Sequence[Case] = ()
    """Chosen evaluations of parents and members, in the order of ``Expand.evidence``."""
    aim: str = ""
    """One of ``Needs.aims``; empty if there is none."""
    case: ActionId = NO_ACTION
    """The one of ``cases`` that the child is made for; 0: none in particular."""
    group: Sequence[AgentId] = ()
    """The first parent and the ``members`` with which it pools its evidence; empty if it does not."""
    ancestor: Snapshot | None = None
    """With two parents: source of the youngest agent from which both descend, or which is one of them; None: they
    descend from different roots."""
    notes: bytes = b""
    """People's notes about the parents and their ancestors, a line each; also a file of the evidence."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A child's source before vetting."""

    source: Snapshot
    rationale: str
    """One line: the change and its reason."""
    log: bytes = b""
    stated: str = ""
    """Statement why the change is not specific to any task, if the operator asked for one."""
    predictions: tuple[Prediction, ...] = ()
    """Tasks that the first parent failed and the child is expected to resolve, each once."""


class Operator(Protocol):
    """A maker of children's source."""

    name: str

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Return one child of ``brief.parents``.

        Raises:
            AgentFault: the operator made no child.
            Infrastructure: the environment failed; the expansion will be repeated.
        """


class Policy(Protocol):
    """A chooser of actions; a decision is a function of the log and the random stream alone."""

    name: str
    keeps_state: bool
    """Whether ``observe`` does anything; if not, a resume need not read a long log again."""

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """Return the next action, or ``None`` to wait until a pending action ends.

        ``None`` without a pending action means that nothing is left to do. Leave ``Expand.evidence`` empty: the search
        fills it in. ``rng`` is seeded per decision, so its state does not persist. An expansion that exceeds the budget
        is not started, as if the answer were ``None``; ask ``limits.may_expand`` first.
        """

    def observe(self, event: Recorded) -> None:
        """Fold one event into the policy's state; called for every event, once, in order."""


Sleep = Callable[[float], Awaitable[None]]


class Model(Protocol):
    """A model that answers in dgm's own form: a built-in model or a plug-in. One instance serves a whole run."""

    name: str
    """The name that users type: ``offline``, or a plug-in's."""

    async def reply(self, request: Request) -> Reply:
        """Return one answer with its usage in tokens; the gateway computes the price.

        Raises:
            RequestRefused: this request can never be answered (context length, malformed); the agent is told.
            ProviderRefuses: the provider refuses all requests (wrong key, no credit).
            Infrastructure: the provider failed after all retries.
        """

    async def check(self) -> None:
        """Ask the provider, free of charge, whether it would answer now.

        Raises:
            UserError: it will never answer: the key is wrong, or the model does not exist.
            Infrastructure: it does not answer now.
        """

    async def close(self) -> None:
        """Close its connections."""


class Delivery(Protocol):
    """One call on its way to a provider and back; a ``WireModel`` reports its steps here."""

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context in which the call waits: nothing is billed, and the time does not count for the agent."""

    async def begin(self) -> None:
        """Note that a try is about to be sent; return when that is durable."""

    def sending(self) -> None:
        """Note that the whole request is sent from now on, and may be billed; ``begin`` has returned."""

    def pass_on(self, data: bytes) -> None:
        """Hand bytes of the answer to the agent as they arrive."""

    def take_back(self, wasted: Usage) -> None:
        """Abort the answer that was handed on so far: it broke, and the next try gives another.

        Args:
            wasted: estimated usage that the provider bills for the broken try.
        """


class ModelListener(Protocol):
    """A receiver of what a model learns and when it waits; the journal of a run is one."""

    def learned(
        self, model: str, abilities: Mapping[str, Any], words: str, usage: Usage | None = None
    ) -> None:
        """Note all known abilities of a model from now on; ``usage`` is that of a check, with its price."""

    def waits(self, model: str, words: str, until: float) -> None:
        """Note that a model's calls wait until a Unix time, and why."""

    def overran(self, model: str, asked: int, billed: int) -> None:
        """Note that a model billed more output tokens than requested."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a model's check."""

    model: str
    abilities: Mapping[str, Any]
    """All known abilities, in the form that ``dgm.models.abilities`` writes."""
    words: tuple[str, ...] = ()
    """Messages for people: newly learned abilities, and whether the model calls tools."""
    usage: Usage = field(default_factory=Usage)
    """Usage in tokens, without a price; the caller adds it."""


@runtime_checkable
class WireModel(Protocol):
    """A model that is asked in its provider's own protocol. One instance serves a whole run."""

    name: str
    """The name that users type: ``openai/gpt-5.2`` …"""
    own_name: str
    """The provider's name for the model."""
    protocol: WireProtocol
    """The protocol of dgm's own questions, and of agents whose own protocol it does not speak."""
    protocols: Collection[WireProtocol]
    """All protocols that it speaks: an agent is passed through in its own."""

    @property
    def takes_tools(self) -> bool:
        """Whether the model is known to call tools, or nothing is known against it."""

    @property
    def takes_form(self) -> bool:
        """Requests may hold a form of the answer (``Request.form``), by settings and documents alone."""

    async def send(self, request: WireRequest, delivery: Delivery) -> WireReply:
        """Return the whole answer; ``delivery.pass_on`` has handed on its bytes except for its last records.

        Args:
            request: the request to send; the model replaces its name and removes what its abilities forbid.
            delivery: receives every step.

        Raises:
            RequestRefused: this request is refused.
            ProviderRefuses: the provider refuses all requests.
            Infrastructure: the provider failed after all retries, or asks for a long wait.
        """

    def adopt(self, listener: ModelListener, abilities: Mapping[str, Any] | None) -> None:
        """Start with previously learned abilities, and tell the listener what is learned from now on.

        Args:
            listener: receives abilities, waits and overruns.
            abilities: as recorded by an earlier session; None: nothing is known.
        """

    async def check(self) -> Checked:
        """Make one small real call with a tool to learn the model's abilities.

        Raises:
            ProviderRefuses: a person must act.
            Infrastructure: the model does not answer now.
        """

    async def close(self) -> None:
        """Close its connections."""


LentModel = Model | WireModel


class Journal(ModelListener, Protocol):
    """The gateway's store of paid calls."""

    def numbers(self, action: ActionId) -> tuple[int, Collection[int]]:
        """Return the highest number of the action's calls, or 0, and the numbers of those that are answered."""

    def recall(self, action: ActionId, numbers: Collection[int]) -> tuple[Sequence[Exchange], Conditions]:
        """Return answered calls of an action in order, and its calls' days and kernels; used in a thread."""

    def cut_calls(self, action: ActionId) -> Sequence[CutCall]:
        """Return the action's calls that the death of a process cut off."""

    async def begin(self, call: BegunCall) -> None:
        """Record durably that the call is about to be sent; return only when it is on disk."""

    async def record(self, call: PaidCall, settles: Sequence[CutCall] = ()) -> None:
        """Record the exchange durably; return only when it is on disk.

        Args:
            call: the answered call.
            settles: cut-off calls with the same request, with the usage that is counted for them from now on.
        """

    def book(self, action: ActionId, number: int, model: str, role: str, usage: Usage) -> None:
        """Note the usage that is counted for a call that was sent and got no answer."""

    def lose(self, call: BegunCall) -> None:
        """Count a cut-off call at its worst case until it is answered; do nothing if its answer is recorded."""

    def refuse(self, action: ActionId, role: str, status: int, code: str, message: str) -> None:
        """Note a refusal that the agent received, or, with the status 200, what was left out of its requests."""
