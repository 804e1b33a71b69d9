"""How a child is made: what an operator knows, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dgm.domain import Agent, Snapshot
from dgm.protocols.work import Workbench


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
