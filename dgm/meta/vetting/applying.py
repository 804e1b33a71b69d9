"""The stage ``patch``: whether a patch in its displayed, stored and reviewed form turns the parent into the child."""

from dgm.archive.repository import applying_patch, tree_id
from dgm.domain import Snapshot
from dgm.errors import AgentFault, ArchiveCorrupt, UserError


def check_applies(parent: Snapshot, child: Snapshot, most: int) -> None:
    """Make the patch from parent to child, and apply it.

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
