"""The agent that a search starts from: a shipped one, a folder, or a git repository."""

import tempfile
from pathlib import Path

from dgm.archive.snapshots import from_folder
from dgm.config import Settings
from dgm.domain import Snapshot
from dgm.errors import AgentFault, UserError
from dgm.meta.contract import FILE, read_contract
from dgm.models.choose import names_by_role
from dgm.paths import SEEDS, seed_folder

SEED_BYTES = 20_000_000
OFFLINE = "offline"


def seed_of(settings: Settings) -> str:
    """Return the agent that a search starts from: its shipped name, its folder or its git repository.

    The offline model can improve the plain one; every other model starts from the solid one.
    """
    return settings.seed_agent or ("plain" if names_by_role(settings)["solve"] == OFFLINE else "solid")


def read_seed(where: str = "plain") -> Snapshot:
    """Return the source of an agent that a search starts from.

    Args:
        where: the name of a shipped agent, a folder, or a git repository (path or URL).

    Raises:
        UserError: there is nothing there, or it is no agent.
    """
    folder = seed_folder(where) if where in SEEDS else Path(where)
    try:
        if folder.is_dir() and not (folder / "HEAD").is_file():
            source = _read_agent_folder(folder)
        else:
            source = _clone_repository(where)
        read_contract(source)
    except AgentFault as error:
        raise UserError(f"{where}: not an agent: {error} (see dgm docs agents)") from error
    return source


def _read_agent_folder(folder: Path) -> Snapshot:
    # Check the contract first: a wrong path may name a folder too large to read.
    return from_folder(folder, limit_bytes=SEED_BYTES) if (folder / FILE).is_file() else {}


def _clone_repository(where: str) -> Snapshot:
    from git import GitCommandError, Repo

    with tempfile.TemporaryDirectory(prefix="dgm-seed-") as scratch:
        try:
            Repo.clone_from(where, scratch, depth=1, no_tags=True)
        except GitCommandError as error:
            names = " and ".join(SEEDS)
            raise UserError(
                f"{where}: neither a folder nor a git repository that can be cloned (shipped agents: {names})"
            ) from error
        return from_folder(Path(scratch), limit_bytes=SEED_BYTES)
