"""The nouns of a search as immutable values: agents, tasks, verdicts, actions and their outcomes.

No behaviour beyond arithmetic lives here, and nothing of the outside world. Everything on disk and everything a
policy sees is made of these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

AgentId = NewType("AgentId", int)
"""0, 1, 2 … in order of birth; 0 is the seed, and a parent's id is below its child's."""
TaskId = NewType("TaskId", str)
ActionId = NewType("ActionId", int)
"""1, 2, 3 … in order of the first start; an action that is performed again keeps its id. 0 is the seed's birth."""
CommitId = NewType("CommitId", str)
Digest = NewType("Digest", str)
"""SHA-256 in hex of a trace's uncompressed bytes."""

SEED = AgentId(0)
NO_ACTION = ActionId(0)


class Split(StrEnum):
    """Who may learn from a task."""

    SEARCH = "search"
    """Policies and operators learn from it."""
    PROMOTION = "promotion"
    """Only accept or reject ever comes back from it."""
    HOLDOUT = "holdout"
    """Reports only."""


class Verdict(StrEnum):
    """What became of one evaluation."""

    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    INVALID = "invalid"
    """The infrastructure failed: tried again, and counted nowhere."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls took. Tokens are the provider's count (the offline model's: characters / 4)."""

    calls: int = 0
    input_tokens: int = 0
    """Cached ones included."""
    output_tokens: int = 0
    """Reasoning included."""
    usd: float = 0.0
    cached_tokens: int = 0
    """Of the input: read from the provider's cache."""
    written_tokens: int = 0
    """Of the input: written to the provider's cache."""
    reasoning_tokens: int = 0
    """Of the output: reasoning."""

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

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of verdicts; ``invalid`` ones are in neither."""

    resolved: int = 0
    unresolved: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.resolved + other.resolved, self.unresolved + other.unresolved)

    @property
    def n(self) -> int:
        """Evaluations that count."""
        return self.resolved + self.unresolved

    @property
    def rate(self) -> float:
        """Resolved / n; 0.0 where nothing was evaluated."""
        return self.resolved / self.n if self.n else 0.0


@dataclass(frozen=True, slots=True)
class Agent:
    """A member of the archive: a commit of scaffold source and where it came from."""

    id: AgentId
    parents: tuple[AgentId, ...]
    """One, or two for a crossover (the first is the lineage parent); none for the seed."""
    commit: CommitId
    operator: str
    rationale: str
    action: ActionId


@dataclass(frozen=True, slots=True)
class Task:
    """Exactly what an agent may see. Hidden tests, gold patches and the split stay inside the benchmark."""

    id: TaskId
    benchmark: str
    prompt: str
    image: str
    """As in ``SandboxSpec.image``."""
    workdir: str
    """Absolute path inside the sandbox."""
    timeout_s: float
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a snapshot. A symbolic link's ``data`` is its target."""

    data: bytes
    mode: int = 0o100644
    """As git writes it: 0o100644, 0o100755 or 0o120000."""


Snapshot = Mapping[str, Entry]
"""A folder as a value: ``/``-separated relative path (undecodable bytes surrogate-escaped) → file. No empty folders."""


@dataclass(frozen=True, slots=True)
class Expand:
    """Make a child of ``parents`` with ``operator``."""

    parents: tuple[AgentId, ...]
    operator: str
    evidence: tuple[ActionId, ...] = ()
    """The evaluations whose traces the operator may see; chosen when the action starts, so that it can be repeated.
    The same holds for all that follows."""
    shown: tuple[AgentId, ...] = ()
    """Agents beside the parents whose source, diffs and verdicts the operator may see."""
    aim: str = ""
    """What the child is to be better at, in a word of the operator's: a part of the scaffold, a kind of failure."""
    case: ActionId = NO_ACTION
    """The one evaluation of ``evidence`` that the child is made for; 0: none in particular."""
    probes: tuple[TaskId, ...] = ()
    """Tasks that every parent has always resolved, for the child to be tried on."""


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Let ``agent`` work on ``task``; ``attempt`` counts from 0."""

    agent: AgentId
    task: TaskId
    attempt: int = 0


Action = Expand | Evaluate


@dataclass(frozen=True, slots=True)
class Cost:
    """What an action took: model usage, wall seconds, and the traces it left (``patch``, ``log``, ``tests`` …)."""

    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    traces: Mapping[str, Digest] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Born:
    """An expansion gave a child; its commit is in ``agents.git`` before this value exists."""

    parents: tuple[AgentId, ...]
    operator: str
    commit: CommitId
    rationale: str
    cost: Cost = field(default_factory=Cost)
    syntax: str = ""
    """``meta.syntax_key`` of its source; empty where nobody looked."""


@dataclass(frozen=True, slots=True)
class Stillborn:
    """An expansion gave nothing usable; ``stage`` names where it failed."""

    parents: tuple[AgentId, ...]
    operator: str
    stage: str
    reason: str
    cost: Cost = field(default_factory=Cost)
    decided: str = ""
    """Who said so, where a child waited for an answer: ``a person`` or ``time-out``."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One agent's work on one task, graded."""

    agent: AgentId
    task: TaskId
    attempt: int
    verdict: Verdict
    reason: str
    """One line that a person understands."""
    score: float = 0.0
    """1.0 resolved, else the share of FAIL_TO_PASS tests that passed."""
    cost: Cost = field(default_factory=Cost)

    @property
    def tally(self) -> Tally:
        """What this adds to its agent and to every clade it is in."""
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
    """Limits of a run; ``None`` is no limit. Failed and stillborn work counts."""

    evaluations: int | None = None
    """Graded evaluations (``invalid`` ones do not count)."""
    agents: int | None = None
    """Members of the archive, the seed included."""
    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    """Wall time over all of the run's sessions."""
    expansion_cost: float = 0.0
    """Evaluations of the budget that one expansion takes, whatever comes of it."""
    score: float | None = None
    """Lower bound of the best agent at which the search has reached its goal, above 0 and below 1."""
    patience: int | None = None
    """Graded evaluations without a better recommendation after which the search ends."""
