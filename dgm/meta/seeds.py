"""The agent that a search starts from: a shipped one, a folder, or a git repository at a path or an address."""

import tempfile
from pathlib import Path

from dgm.archive.git import LocalRepository, clone_repository
from dgm.archive.snapshots import from_folder
from dgm.config import Settings
from dgm.domain import Snapshot
from dgm.errors import AgentFault, UserError
from dgm.meta.contract import FILE, read_contract
from dgm.meta.seed_origin import SeedOrigin, origin_of, read_origin
from dgm.models.choose import names_by_role
from dgm.paths import SEEDS, seed_folder

SEED_BYTES = 20_000_000
TRANSPORTS = "https:ssh:git:file"
"""Transports of git that a seed may come by; others run programs or are not encrypted."""
OFFLINE = "offline"


def seed_of(settings: Settings) -> str:
    """Return the agent that a search starts from: its shipped name, its folder or its git repository.

    The offline model can improve the plain one; every other model starts from the solid one.
    """
    return settings.seed_agent or ("plain" if names_by_role(settings)["solve"] == OFFLINE else "solid")


def read_seed(where: str = "plain") -> Snapshot:
    """Return the source of an agent that a search starts from; raise as ``read_seed_with_origin``."""
    return read_seed_with_origin(where)[0]


def read_seed_with_origin(where: str) -> tuple[Snapshot, SeedOrigin | None]:
    """Return the source of an agent that a search starts from, and the commit that it came from, if any.

    Args:
        where: the name of a shipped agent, a folder, or a git repository (path or URL).

    Raises:
        UserError: there is nothing there, or it is no agent.
        Infrastructure: a repository is not cloned within ten minutes.
    """
    folder = seed_folder(where) if where in SEEDS else Path(where)
    try:
        if folder.is_dir() and not (folder / "HEAD").is_file():
            source = _read_agent_folder(folder)
            origin = None if where in SEEDS else read_origin(folder)
        else:
            source, origin = _clone_repository(where)
        read_contract(source)
    except AgentFault as error:
        raise UserError(f"{where}: not an agent: {error}") from error
    except UserError:
        raise
    except ValueError as error:  # a null character in the path
        raise UserError(f"{where!r}: {error}") from error
    return source, origin


def _read_agent_folder(folder: Path) -> Snapshot:
    # Check the contract first: a wrong path may name a folder too large to read.
    return from_folder(folder, limit_bytes=SEED_BYTES) if (folder / FILE).is_file() else {}


def _clone_repository(where: str) -> tuple[Snapshot, SeedOrigin | None]:
    path = Path(where.removeprefix("file://"))
    if path.is_dir():
        repository = LocalRepository.find(path)
        if repository is None or repository.place != path.resolve():
            raise _explain_missing(where)
        return _read_commit(repository)
    with tempfile.TemporaryDirectory(prefix="dgm-seed-") as scratch:
        clone = Path(scratch, "seed.git")
        try:
            clone_repository(where, clone, TRANSPORTS)
        except UserError as error:
            raise _explain_missing(where, error.problem.removeprefix(f"{where}: ")) from error
        return _read_commit(LocalRepository(clone, bare=True))


def _read_commit(repository: LocalRepository) -> tuple[Snapshot, SeedOrigin | None]:
    with repository:
        return repository.files(repository.head, SEED_BYTES), origin_of(repository)


def _explain_missing(where: str, reason: str = "") -> UserError:
    names = " and ".join(SEEDS)
    return UserError(
        f"{where}: neither a folder nor a git repository at a path or an address of {TRANSPORTS.replace(':', ', ')}"
        f"{f' ({reason})' if reason else ''}; shipped agents: {names}"
    )
