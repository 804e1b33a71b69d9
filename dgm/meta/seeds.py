"""The agents that a search starts from: shipped ones, folders, or git repositories at a path or an address.

The commit that the first one came from is kept in ``run.json``, so that an export can go on from it: the commit's own
object and nothing of its history, which whoever has the repository has.
"""

import base64
import binascii
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.archive.git import LocalRepository, clone_repository, parse_header
from dgm.archive.snapshots import from_folder, object_id, tree_id
from dgm.config import Settings
from dgm.domain import Snapshot
from dgm.errors import AgentFault, ArchiveCorrupt, Infrastructure, UserError
from dgm.meta.contract import FILE, NPM_FILES, OWN_EDITOR, read_contract
from dgm.models.choose import names_by_role
from dgm.paths import seed_folder, seed_names

SEED_BYTES = 20_000_000
TRANSPORTS = "https:ssh:git:file"
"""Transports of git that a seed may come by; others run programs or are not encrypted."""
OFFLINE = "offline"
ORIGIN_KEY = "seed_commit"
"""Key of a run's configuration below which the commit stands."""
_MOST_BYTES = 64_000


@dataclass(frozen=True, slots=True)
class SeedOrigin:
    """A commit of git's usual kind, by SHA-1."""

    commit: str
    data: bytes
    """The commit's object, as git stores it."""

    @property
    def tree(self) -> str:
        """The id of its tree."""
        return parse_header(self.data)["tree"][0]

    @property
    def has_parents(self) -> bool:
        """True if it has a history."""
        return "parent" in parse_header(self.data)


def seeds_of(settings: Settings) -> tuple[str, ...]:
    """Return the agents that a search starts from: their shipped names, folders or git repositories.

    The offline model can improve the plain one; every other model starts from the solid one.
    """
    agents = settings.seed_agent or ("plain" if names_by_role(settings)["solve"] == OFFLINE else "solid")
    return (agents,) if isinstance(agents, str) else agents


def name_of_root(config: Mapping[str, Any], root: int) -> str:
    """Return the name by which ``run.json`` gives a root; empty if it gives none. It may be a stranger's text."""
    agents = config.get("settings", {}).get("seed_agent")
    names = agents if isinstance(agents, list) else [config.get("seed_agent", "")]
    return str(names[root]) if root < len(names) else ""


def read_seeds(settings: Settings) -> Sequence[tuple[str, Snapshot, SeedOrigin | None]]:
    """Return the name, source and origin of each agent that a search starts from; raise as ``read_seed_with_origin``.

    Raises:
        UserError: also if two are equal, or cannot share the sandboxes or the editor of a run.
    """
    seeds = [(name, *read_seed_with_origin(name)) for name in seeds_of(settings)]
    known: dict[str, str] = {}
    editors = {read_contract(source).editor for _, source, _ in seeds} - {OWN_EDITOR}
    for name, source, _ in seeds:
        content = tree_id(source)
        if content in known:
            raise UserError(
                f"{known[content]} and {name} are the same agent; name each once", argument="agent"
            )
        known[content] = name
        if _packages_of(source) != _packages_of(seeds[0][1]):
            raise UserError(
                f"{seeds[0][0]} and {name} differ in requires, image or npm packages, but all agents of a search share "
                "one image; start a search from each",
                argument="agent",
            )
    if len(editors) > 1:
        raise UserError(
            f"the agents name several editors ({', '.join(sorted(editors))}), but a search has one",
            argument="agent",
        )
    return seeds


def _packages_of(source: Snapshot) -> tuple[object, ...]:
    contract = read_contract(source)
    files = (contract.image, *(NPM_FILES if contract.npm else ()))
    return (contract.requires, contract.image, *map(source.get, files))


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
    folder = seed_folder(where) if where in seed_names() else Path(where)
    try:
        if folder.is_dir() and not (folder / "HEAD").is_file():
            source = _read_agent_folder(folder)
            origin = None if where in seed_names() else read_origin(folder)
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
    names = ", ".join(seed_names())
    return UserError(
        f"{where}: neither a folder nor a git repository at a path or an address of {TRANSPORTS.replace(':', ', ')}"
        f"{f' ({reason})' if reason else ''}; shipped agents: {names}"
    )


def read_origin(folder: Path) -> SeedOrigin | None:
    """Return the current commit of a folder that is a git repository itself; None if it is none, or has no commit."""
    if not (folder / ".git").exists():
        return None
    try:
        with LocalRepository(folder.resolve()) as repository:
            return origin_of(repository)
    except (UserError, Infrastructure):
        return None


def origin_of(repository: LocalRepository) -> SeedOrigin | None:
    """Return the current commit of a repository; None if it is larger than a run keeps.

    Raises:
        UserError: there is none, or it cannot be read.
        Infrastructure: git takes too long.
    """
    data = repository.get(repository.head, "commit")
    return SeedOrigin(repository.head, data) if len(data) <= _MOST_BYTES else None


def freeze_origin(origin: SeedOrigin | None) -> Mapping[str, Any]:
    """Return the entry of ``run.json`` for the commit; empty if there is none."""
    if origin is None:
        return {}
    return {ORIGIN_KEY: {"id": origin.commit, "object": base64.b64encode(origin.data).decode("ascii")}}


def load_origin(config: Mapping[str, Any], where: str) -> SeedOrigin | None:
    """Return the commit that the seed of a run came from; None if the run names none.

    Raises:
        ArchiveCorrupt: it is not what dgm writes.
    """
    entry = config.get(ORIGIN_KEY)
    if entry is None:
        return None
    try:
        origin = SeedOrigin(str(entry["id"]), base64.b64decode(entry["object"], validate=True))
        if object_id("commit", origin.data) == origin.commit and origin.tree:
            return origin
    except (KeyError, TypeError, binascii.Error):
        pass
    raise ArchiveCorrupt(f"{where}: its {ORIGIN_KEY} is no commit; restore it from a copy")
