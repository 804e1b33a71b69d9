"""The stage ``patch``: does a child come out of its parent by a patch, as it is shown, kept and reviewed."""

from dgm.archive.repository import applying_patch, tree_id
from dgm.domain import Snapshot
from dgm.errors import AgentFault, ArchiveCorrupt, UserError


def check_applies(parent: Snapshot, child: Snapshot, most: int) -> None:
    """Makes the patch from parent to child, and applies it.

    Args:
        parent: the first parent's source.
        child: what is vetted.
        most: bytes that a patch may have.

    Raises:
        AgentFault: stage ``patch``: there is no such patch, it is too large, or something else comes out of it.
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
