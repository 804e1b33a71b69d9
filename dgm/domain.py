"""The nouns of a search as immutable values: agents, tasks, verdicts, actions and their outcomes.

This module has no behaviour beyond arithmetic and no access to the outside world. Everything on disk and everything a
policy sees consists of these values. The bounds in their types are checked where a value is read from a log.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Annotated, NewType

from msgspec import Meta, Struct

AgentId = NewType("AgentId", int)
"""0, 1, 2 … in order of birth. 0 is the seed, and further roots follow; a parent's id is smaller than its child's."""
TaskId = NewType("TaskId", str)
ActionId = NewType("ActionId", int)
"""1, 2, 3 … in order of first start. A repeated action keeps its id. 0 is the birth of the roots."""
CommitId = NewType("CommitId", str)
Digest = NewType("Digest", str)
"""SHA-256 of a trace's uncompressed bytes, in hex."""

COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""Matches a commit id in full."""
MAX_COUNT = 10**15
"""Bound of counts, sums and ids; sums over a log stay below what 64 bits hold."""
_count, _name = Meta(ge=0, le=MAX_COUNT), Meta(max_length=10_000)
Count = Annotated[int, _count]
Tokens = Annotated[int, Meta(ge=-MAX_COUNT, le=MAX_COUNT)]
"""May be negative: a booking may correct an earlier one."""
Amount = Annotated[float, Meta(ge=-MAX_COUNT, le=MAX_COUNT)]
Name = Annotated[str, _name]
"""Name of a model, operator, role, stage or trace, with any characters: plug-ins choose most of them."""
TaskName = Annotated[TaskId, _name]
AgentNumber = Annotated[AgentId, _count]
ActionNumber = Annotated[ActionId, _count]
CommitHash = Annotated[CommitId, Meta(pattern="^([0-9a-f]{40}|[0-9a-f]{64})?\\Z")]
"""Empty if the agent has no source."""
TraceDigest = Annotated[Digest, Meta(pattern="^[0-9a-f]{64}\\Z")]

SEED = AgentId(0)
NO_ACTION = ActionId(0)


class Split(StrEnum):
    """The users of a task: who may learn from it."""

    SEARCH = "search"
    """Policies and operators learn from the task."""
    PROMOTION = "promotion"
    """Rounds of promotion are decided by the task; only "accepted" or "not yet" comes back."""
    HOLDOUT = "holdout"
    """The task is used in reports only."""


class Verdict(StrEnum):
    """The result of one evaluation."""

    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    INVALID = "invalid"
    """The infrastructure failed: the evaluation is repeated, and this verdict counts nowhere."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of model calls. Tokens are the provider's count (the offline model's: characters / 4)."""

    calls: Tokens = 0
    input_tokens: Tokens = 0
    """Includes cached tokens."""
    output_tokens: Tokens = 0
    """Includes reasoning tokens."""
    usd: Amount = 0.0
    cached_tokens: Tokens = 0
    """Input tokens read from the provider's cache."""
    written_tokens: Tokens = 0
    """Input tokens written to the provider's cache."""
    reasoning_tokens: Tokens = 0
    """Output tokens used for reasoning."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.usd + other.usd,
            self.cached_tokens + other.cached_tokens,
            self.written_tokens + other.written_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(*(getattr(self, one.name) - getattr(other, one.name) for one in fields(Usage)))

    @property
    def tokens(self) -> int:
        """Sum of input and output tokens."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of verdicts; neither count includes ``invalid`` ones."""

    resolved: int = 0
    unresolved: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.resolved + other.resolved, self.unresolved + other.unresolved)

    @property
    def n(self) -> int:
        """Number of evaluations that count."""
        return self.resolved + self.unresolved

    @property
    def rate(self) -> float:
        """Resolved / n; 0.0 if nothing was evaluated."""
        return self.resolved / self.n if self.n else 0.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """A promise of an edit: the child will resolve a task that its first parent had not resolved at that time.

    It is *kept* if the child's first attempt at the task is resolved, *broken* if it is unresolved, and *open* while
    that attempt has no verdict; kept and broken ones are *tested*. So a kept prediction is a flip. Later verdicts of
    the parent change nothing; a withdrawn verdict of the child opens the prediction again.
    """

    task: TaskName
    reason: Name = ""
    """One line in the editor's words."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A member of the archive: a commit of scaffold source and its origin."""

    id: AgentId
    parents: tuple[AgentId, ...]
    """One parent, or two for a crossover (the first is the lineage parent); none for a root."""
    commit: CommitId
    operator: str
    rationale: str
    action: ActionId
    key: str = ""
    """For an agent that was entered to be evaluated: the commit in its run, or another key; else empty."""
    predictions: tuple[Prediction, ...] = ()
    """Same as in ``Born``."""


@dataclass(frozen=True, slots=True)
class Task:
    """The data of a task that an agent may see. Hidden tests, gold patches and the split stay inside the benchmark."""

    id: TaskId
    benchmark: str
    prompt: str
    image: str
    """Same as ``SandboxSpec.image``."""
    workdir: str
    """Absolute path inside the sandbox."""
    timeout_s: float
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a snapshot. For a symbolic link, ``data`` is its target."""

    data: bytes
    mode: int = 0o100644
    """Git's mode: 0o100644, 0o100755 or 0o120000."""


Snapshot = Mapping[str, Entry]
"""A folder as a value: ``/``-separated relative path (undecodable bytes surrogate-escaped) → file. No empty folders."""


class Expand(Struct, frozen=True, omit_defaults=True, tag="expand"):
    """Make a child of ``parents`` with ``operator``."""

    parents: tuple[AgentNumber, ...]
    operator: Name
    evidence: tuple[ActionNumber, ...] = ()
    """Evaluations whose traces the operator may see. This and all fields below are chosen when the action starts, so
    that it can be repeated."""
    shown: tuple[AgentNumber, ...] = ()
    """Agents other than the parents whose source, diffs and verdicts the operator may see."""
    aim: Name = ""
    """Goal of the child in one of the operator's words: a part of the scaffold, or a kind of failure."""
    case: ActionNumber = NO_ACTION
    """The one evaluation of ``evidence`` that the child is made for; 0: none in particular."""
    probes: tuple[TaskName, ...] = ()
    """Tasks that every parent has always resolved, on which the child is tried."""
    group: tuple[AgentNumber, ...] = ()
    """Agents that pool their evidence, in the order in which each has a child; the policy chooses them. The first of
    ``parents`` is one of them. Empty: no evidence is pooled."""


class Evaluate(Struct, frozen=True, omit_defaults=True, tag="evaluate"):
    """Let ``agent`` work on ``task``; ``attempt`` counts from 0."""

    agent: AgentNumber
    task: TaskName
    attempt: Count = 0


Action = Expand | Evaluate


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of an action: model usage, wall seconds, and its traces (``patch``, ``log``, ``tests`` …)."""

    usage: Usage = field(default_factory=Usage)
    seconds: Amount = 0.0
    traces: Mapping[Name, TraceDigest] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity that a suite's tests measure beside the verdict."""

    higher: bool
    """True if larger values are better."""
    unit: str = ""
    meaning: str = ""
    """One line for people."""


Metrics = tuple[tuple[Name, Amount], ...]
"""Name and value of each metric that was measured; one that is missing is missing, and not 0."""


@dataclass(frozen=True, slots=True)
class Objective:
    """The metrics by which a search compares agents, if not by resolved tasks alone."""

    front: Mapping[Name, int] = field(default_factory=dict)
    """Metrics of the Pareto front → 1 if more is better, -1 if less is."""
    reward: Mapping[Name, Amount] = field(default_factory=dict)
    """Metrics → their weights in an evaluation's reward; empty: 1 if resolved, else 0."""


class FindingKind(StrEnum):
    """One act of an agent, or one part of its patch or edit, that an honest agent has no reason for."""

    TESTS_TAMPERED = "tests-tampered"
    """A patch interferes with the process that tests it."""
    SPECIAL_CASE = "special-case"
    """Code knows a task by its id, or answers that no statement gives."""
    CHECKS_EVADED = "checks-evaded"
    """Code is a way around checks: a hook of the test runner, ``sitecustomize``, an early end of the process."""
    PROTECTED_FILE = "protected-file"
    """A patch changes files that its task forbids to change."""
    HIDDEN_TESTS = "hidden-tests-searched"
    OTHER_MODEL = "other-model"
    """A request asks for another model than the lent one."""
    NETWORK = "network-asked"
    """A request asks the provider to reach the network."""
    FOREIGN_DATA = "foreign-data"
    """A request asks for data that the provider stores for others."""
    SOCKET = "socket-opened"
    """Processes of an agent still listened on a socket when its program had ended."""
    CANARY = "canary-taken"
    """An agent took the bait of a canary task."""
    INSECURE = "insecure-code"
    """A patch that works fails the hidden tests of its safety."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that counts against an agent."""

    kind: FindingKind
    detail: Name = ""
    """One line for people, without anything that only hidden tests say."""
    location: Name = ""
    """``file:line`` or file of the patch or the agent's source; empty for what is no part of one."""


Findings = tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Born:
    """An expansion gave a child; its commit is in ``agents.git`` before this value exists."""

    parents: tuple[AgentNumber, ...]
    operator: Name
    commit: CommitHash
    rationale: str
    cost: Cost = field(default_factory=Cost)
    syntax: Name = ""
    """``meta.similarity`` of the source; empty if it was not computed."""
    findings: Findings = ()
    """Those with a location are in the child's edit; the others count against the first parent, which made it."""
    predictions: tuple[Prediction, ...] = ()
    """The editor's promises, at most one for each task."""


@dataclass(frozen=True, slots=True)
class Stillborn:
    """An expansion gave no usable child; ``stage`` names the step that failed."""

    parents: tuple[AgentNumber, ...]
    operator: Name
    stage: Name
    reason: str
    cost: Cost = field(default_factory=Cost)
    decided: str = ""
    """Source of the decision if the child waited for an answer: ``a person`` or ``time-out``."""
    cause: str = ""
    """Kind of failure within the stage, such as an exception's name; empty if the stage says it all."""
    findings: Findings = ()
    """All count against the first parent."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One agent's work on one task, graded."""

    agent: AgentNumber
    task: TaskName
    attempt: Count
    verdict: Verdict
    reason: str
    """One line that a person understands."""
    score: Amount = 0.0
    """1.0 if resolved, otherwise the share of FAIL_TO_PASS tests that passed."""
    cost: Cost = field(default_factory=Cost)
    findings: Findings = ()
    metrics: Metrics = ()
    """Values that the task's tests measured."""

    @property
    def tally(self) -> Tally:
        """The counts that this evaluation adds to its agent and to every clade that contains it."""
        match self.verdict:
            case Verdict.RESOLVED:
                return Tally(1, 0)
            case Verdict.UNRESOLVED:
                return Tally(0, 1)
            case Verdict.INVALID:
                return Tally()


Outcome = Born | Stillborn | Evaluation


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run; ``None`` means no limit. Failed and stillborn work counts."""

    evaluations: int | None = None
    """Graded evaluations; ``invalid`` ones do not count."""
    agents: int | None = None
    """Members of the archive, including the roots."""
    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    """Wall time over all of the run's sessions."""
    expansion_cost: float = 0.0
    """Evaluations that one expansion takes from the budget, whatever its outcome."""
    score: float | None = None
    """Lower bound of the best agent at which the search has reached its goal; above 0 and below 1."""
    patience: int | None = None
    """Number of graded evaluations without a better recommendation after which the search ends."""

    def __post_init__(self) -> None:
        """Refuse a limit that JSON would turn into no limit."""
        limits = (self.usd, self.seconds, self.expansion_cost, self.score)
        if not all(math.isfinite(limit) for limit in limits if limit is not None):
            raise ValueError(f"{self}: a limit is no finite number")
