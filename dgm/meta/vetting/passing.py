"""The stages in their order."""

import asyncio
from collections.abc import Callable

from dgm.config import LimitSettings
from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.meta.contract import read_contract
from dgm.meta.vetting.stages import Stages
from dgm.protocols import Proposal

IsKnown = Callable[[Snapshot], str | None]
"""Names an existing agent of the same content, if there is one."""


async def vet(
    proposal: Proposal, parent: Snapshot, known: IsKnown, limits: LimitSettings, stage: Stages
) -> None:
    """Passes a proposal through every stage.

    Raises:
        AgentFault: it failed; ``stage`` is one of ``unchanged``, ``protected``, ``size``, ``duplicate``,
            ``contract``, ``check``, ``improve``.
        Infrastructure: a sandbox failed.
    """
    child = proposal.source
    if child == parent:
        raise AgentFault("unchanged", "the child's source is the same as its parent's")
    forbidden = read_contract(parent).forbidden_changes(parent, child)
    if forbidden:
        raise AgentFault("protected", f"changed protected files: {', '.join(forbidden[:5])}")
    _check_size(child, limits)
    twin = await asyncio.to_thread(known, child)
    if twin:
        raise AgentFault("duplicate", f"the same content as {twin}")
    read_contract(child)
    await stage.check(child)
    await stage.start_improve(child)


def _check_size(child: Snapshot, limits: LimitSettings) -> None:
    total = sum(len(entry.data) for entry in child.values())
    if total > limits.agent_bytes:
        raise AgentFault("size", f"the agent's source has {total} bytes; {limits.agent_bytes} are allowed")
    if len(child) > limits.agent_files:
        raise AgentFault(
            "size", f"the agent's source has {len(child)} files; {limits.agent_files} are allowed"
        )
