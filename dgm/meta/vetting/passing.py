"""The stages in their order."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dgm.archive.repository import applying_patch, patch
from dgm.archive.snapshots import tree_id
from dgm.config import GateSettings, LimitSettings, VettingSettings
from dgm.domain import Snapshot
from dgm.errors import AgentFault, ArchiveCorrupt, UserError
from dgm.meta.contract import read_contract
from dgm.meta.syntax_key import syntax_key
from dgm.meta.vetting.novelty import AgentEdit, Judge, check_novel
from dgm.meta.vetting.record import StageRecord, VettingTrace
from dgm.protocols import Proposal

IsKnown = Callable[[Snapshot], str | None]
"""Lookup of an existing agent with the same content; returns its name or None."""


class SandboxStages(Protocol):
    """The stages that need a sandbox."""

    async def check(self, child: Snapshot) -> object:
        """Run the stage ``check``."""
        ...

    async def start_improve(self, child: Snapshot) -> None:
        """Run the stage ``improve``."""
        ...

    async def probe(self, child: Snapshot, ran: StageRecord) -> None:
        """Run the stage ``probe``; note the tries, or that there was nothing to try."""
        ...


@dataclass(frozen=True, slots=True)
class VettingReference:
    """The reference data against which a child is vetted."""

    parent: Snapshot
    """The first parent's source."""
    known: IsKnown = lambda _: None
    syntax: Callable[[], dict[str, str]] = dict
    """Lookup of ``syntax_key`` of every agent's source → name of the agent; called once, when needed."""
    edits: Callable[[], Sequence[AgentEdit]] = tuple
    """Lookup of the edits of siblings and of agents that the operator was shown; called once, when needed."""
    limits: LimitSettings = field(default_factory=LimitSettings)
    vetting: VettingSettings = field(default_factory=VettingSettings)
    gates: GateSettings = field(default_factory=GateSettings)
    judge: Judge | None = None
    """Judge of the gate ``novelty``, if a model decides."""


async def vet(
    proposal: Proposal, subject: VettingReference, rooms: SandboxStages, record: VettingTrace
) -> str:
    """Pass a proposal through every stage that the settings ask for; ``record`` receives each result.

    Returns:
        The child's ``syntax_key``; empty where the settings do not ask for it.

    Raises:
        AgentFault: it failed; ``stage`` is one of ``patch``, ``unchanged``, ``protected``, ``size``, ``duplicate``,
            ``syntax``, ``contract``, ``novelty``, ``check``, ``improve``, ``probe``.
        Infrastructure: a sandbox or a model failed.
    """
    child, asks = proposal.source, subject.vetting
    if asks.patch:
        with record.stage("patch"):
            most = subject.limits.patch_bytes
            await asyncio.to_thread(_check_applies, subject.parent, child, most)
    await _compare(child, subject, record)
    key = await _check_syntax(child, subject, record) if asks.syntax else ""
    with record.stage("contract"):
        read_contract(child)
    if subject.gates.novelty != "off":
        with record.stage("novelty") as ran:
            edit = await asyncio.to_thread(patch, subject.parent, child)
            others = await asyncio.to_thread(subject.edits)
            await check_novel(edit, others, subject.gates.novelty_threshold, subject.judge, ran)
    with record.stage("check"):
        await rooms.check(child)
    with record.stage("improve"):
        await rooms.start_improve(child)
    if asks.probes:
        with record.stage("probe") as ran:
            await rooms.probe(child, ran)
    return key


def _check_applies(parent: Snapshot, child: Snapshot, most: int) -> None:
    """Make the patch from parent to child in its displayed, stored and reviewed form, and apply it.

    Args:
        parent: the first parent's source.
        child: the source to vet.
        most: maximum bytes of the patch.

    Raises:
        AgentFault: stage ``patch``: there is no such patch, it is too large, or its result differs from the child.
        UserError: git is not installed.
    """
    try:
        tree_id(child)
    except UserError as error:
        raise AgentFault("patch", f"it is no folder of files: {error}") from error
    try:
        diff = applying_patch(parent, child)
    except ArchiveCorrupt as error:
        raise AgentFault("patch", f"the change does not apply as a patch: {error}") from error
    if len(diff) > most:
        raise AgentFault("patch", f"the change has {len(diff)} bytes as a patch; {most} are allowed")


async def _compare(child: Snapshot, subject: VettingReference, record: VettingTrace) -> None:
    with record.stage("unchanged"):
        if child == subject.parent:
            raise AgentFault("unchanged", "the child's source is the same as its parent's")
    with record.stage("protected"):
        forbidden = read_contract(subject.parent).forbidden_changes(subject.parent, child)
        if forbidden:
            named = ", ".join(forbidden[:5])
            raise AgentFault("protected", f"changed files outside `editable` or in `protected`: {named}")
    with record.stage("size"):
        _check_size(child, subject.limits)
    with record.stage("duplicate"):
        twin = await asyncio.to_thread(subject.known, child)
        if twin:
            raise AgentFault("duplicate", f"the same content as {twin}")


async def _check_syntax(child: Snapshot, subject: VettingReference, record: VettingTrace) -> str:
    with record.stage("syntax"):
        key = await asyncio.to_thread(syntax_key, child)
        twin = (await asyncio.to_thread(subject.syntax)).get(key)
        if twin:
            raise AgentFault("syntax", f"but for comments, docstrings and layout the same as {twin}")
    return key


def _check_size(child: Snapshot, limits: LimitSettings) -> None:
    total = sum(len(entry.data) for entry in child.values())
    if total > limits.agent_bytes:
        raise AgentFault("size", f"the agent's source has {total} bytes; {limits.agent_bytes} are allowed")
    if len(child) > limits.agent_files:
        raise AgentFault(
            "size", f"the agent's source has {len(child)} files; {limits.agent_files} are allowed"
        )
