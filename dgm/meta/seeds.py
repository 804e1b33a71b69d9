"""The agent that a search starts from: a shipped one, a folder, or a git repository at a path or an address."""

import re
import subprocess
import tempfile
from pathlib import Path

from dgm.archive.local_repository import LocalRepository
from dgm.archive.remote_git import run_remote_git
from dgm.archive.snapshots import from_folder
from dgm.config import Settings
from dgm.domain import Snapshot
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.meta.contract import FILE, read_contract
from dgm.meta.seed_origin import SeedOrigin, origin_of, read_origin
from dgm.models.choose import names_by_role
from dgm.paths import SEEDS, seed_folder

SEED_BYTES = 20_000_000
TRANSPORTS = ("https", "ssh", "git", "file")
"""Transports of git that a seed may come by; others run programs or are not encrypted."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(?:://|::)")
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
    scheme = _SCHEME.match(where)
    if scheme and (scheme[0].endswith("::") or scheme[1].lower() not in TRANSPORTS):
        raise UserError(
            f"{where}: a seed agent is a folder or a git repository at a path or an address of "
            f"{', '.join(TRANSPORTS)}"
        )
    path = Path(where.removeprefix("file://"))
    if path.is_dir():
        repository = LocalRepository.find(path)
        return _read_commit(repository if repository and repository.place == path.resolve() else None, where)
    with tempfile.TemporaryDirectory(prefix="dgm-seed-") as scratch:
        words = ["clone", "-q", "--bare", "--depth=1", "--no-tags", "--template=", "--", where, "seed.git"]
        try:
            run_remote_git(*words, folder=Path(scratch), transports=TRANSPORTS)
        except Infrastructure as error:
            if isinstance(error.__cause__, subprocess.TimeoutExpired):
                raise
            raise _explain_missing(where) from error
        return _read_commit(LocalRepository.find(Path(scratch, "seed.git")), where)


def _read_commit(repository: LocalRepository | None, where: str) -> tuple[Snapshot, SeedOrigin | None]:
    if repository is None:
        raise _explain_missing(where)
    return repository.files(repository.head, most_bytes=SEED_BYTES), origin_of(repository)


def _explain_missing(where: str) -> UserError:
    names = " and ".join(SEEDS)
    return UserError(
        f"{where}: neither a folder nor a git repository that can be cloned (shipped agents: {names})"
    )
