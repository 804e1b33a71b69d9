"""Creation of a child: the inputs and the output of an operator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from dgm.domain import NO_ACTION, ActionId, Agent, Evaluation, Snapshot, Tally, TaskId, Verdict
from dgm.protocols.work import Workbench


@dataclass(frozen=True, slots=True)
class Needs:
    """An operator's requirements on the archive before it can make a child."""

    parents: int = 1
    """Number of parents, 1 or 2; for 2, a mate is chosen."""
    failures: int = 0
    """Minimum number of unresolved evaluations of the first parent."""
    relatives: int = 0
    """Maximum number of agents near the first parent whose work is shown beside its own."""
    archive: int = 0
    """Minimum number of archive members to show: the best and the most different ones."""
    aims: tuple[str, ...] = ()
    """Possible goals of a child, of which one is chosen: parts of the scaffold, or kinds of failure."""


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
    ancestor: Snapshot | None = None
    """With two parents: source of the youngest agent from which both descend, or which is one of them."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A child's source before vetting."""

    source: Snapshot
    rationale: str
    """One line: the change and its reason."""
    log: bytes = b""
    stated: str = ""
    """Statement why the change is not specific to any task, if the operator asked for one."""


class Operator(Protocol):
    """A maker of children's source."""

    name: str

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Return one child of ``brief.parents``.

        Raises:
            AgentFault: the operator made no child.
            Infrastructure: the environment failed; the expansion will be repeated.
        """
        ...
