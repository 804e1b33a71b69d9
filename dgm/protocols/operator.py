"""How a child is made: what an operator knows, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from dgm.domain import NO_ACTION, ActionId, Agent, Evaluation, Snapshot, Tally, TaskId, Verdict
from dgm.protocols.work import Workbench


@dataclass(frozen=True, slots=True)
class Needs:
    """What an operator wants of the archive before it can make a child."""

    parents: int = 1
    """2: a mate is chosen."""
    failures: int = 0
    """Unresolved evaluations of the first parent, at least."""
    relatives: int = 0
    """Agents near the first parent whose work is shown beside its own, at most."""
    archive: int = 0
    """Members of the archive to see, the best and the most different ones, at least."""
    aims: tuple[str, ...] = ()
    """What a child can be aimed at, of which one is chosen: parts of the scaffold, kinds of failure."""


@runtime_checkable
class Needing(Protocol):
    """An operator that says what it needs; one that does not needs one parent and nothing else."""

    needs: Needs


@dataclass(frozen=True, slots=True)
class Circumstances:
    """How the agent's program came to its end, beside what it left."""

    exit_code: int = 0
    timed_out: bool = False
    truncated: bool = False
    """Something that a tool printed was cut before the model saw it."""
    crashed: bool = False
    context: bool = False
    """The model was sent more than it can read."""


@dataclass(frozen=True, slots=True)
class Case:
    """One evaluation with what it left."""

    evaluation: Evaluation
    problem: str
    traces: Mapping[str, bytes]
    """``patch``, ``failures`` (names and last lines of failed tests), ``log`` (of the agent's program) and
    ``conversation``."""
    run: Circumstances
    action: ActionId = NO_ACTION
    """Of the evaluation."""


@dataclass(frozen=True, slots=True)
class Member:
    """An agent as an operator sees it; tallies and verdicts are those of the moment when the expansion was started."""

    agent: Agent
    source: Snapshot
    own: Tally = field(default_factory=Tally)
    """Over all its evaluations."""
    verdicts: Mapping[TaskId, Verdict] = field(default_factory=dict)
    """Of its first attempts, invalid ones left out."""
    change: bytes = b""
    """The diff against its first parent; empty for the seed."""


Parent = Member
"""The name of a member that has the child."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What an operator knows when it makes a child."""

    parents: Sequence[Member]
    evidence: Snapshot
    """Files about the first parent's own work on the search split."""
    facts: Mapping[str, int]
    """The same in numbers: ``resolved``, ``evaluations``, ``failures``, ``step_limit``, ``truncated`` …"""
    child_number: int
    """Expansions of the first parent that were started before this one."""
    members: Sequence[Member] = ()
    """Agents beside the parents whose work is shown."""
    cases: Sequence[Case] = ()
    """What was chosen of the work of parents and members, in the order of ``Expand.evidence``."""
    aim: str = ""
    """One of ``Needs.aims``; empty where there is none."""
    case: ActionId = NO_ACTION
    """The one of ``cases`` that this is about; 0: none in particular."""
    ancestor: Snapshot | None = None
    """Of two parents: the source of the youngest agent that both descend from, or that one of them is."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A child's source before vetting."""

    source: Snapshot
    rationale: str
    """One line: what was changed and why."""
    log: bytes = b""
    stated: str = ""
    """Why the change has nothing to do with any particular task, where the operator asked for that."""


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
