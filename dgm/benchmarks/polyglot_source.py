"""The source of exercises: a folder, or one commit of a git repository, fetched once into the cache.

What is fetched is never checked out: its files are written as the objects are, and are only read.
"""

import hashlib
import logging
import re
import shutil
import tempfile
from pathlib import Path

from dgm.archive.git import REMOTE_S, LocalRepository, last_line, run_git, user_environment
from dgm.archive.repository import make_repository
from dgm.archive.snapshots import write_folder
from dgm.domain import CommitId
from dgm.errors import Infrastructure, UserError
from dgm.paths import asset, cache_folder

log = logging.getLogger(__name__)

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:|file:")
_TRANSPORTS = "https:http:ssh:git:file"
_COMMIT = re.compile(r"[0-9a-f]{40}")


def is_address(source: str) -> bool:
    """Return whether the source is a git URL rather than a folder."""
    return bool(_ADDRESS.match(source)) and not Path(source).expanduser().is_dir()


def exercises_folder(source: str) -> Path:
    """Return the folder of ``source``: the shipped exercises if empty, the folder itself, or the fetched copy of a URL.

    Args:
        source: nothing, a folder, ``URL`` (its default branch) or ``URL@REVISION``.

    Raises:
        UserError: the address or the revision is wrong.
        Infrastructure: the repository could not be fetched and is not in the cache.
    """
    if not source:
        return asset("benchmarks", "polyglot")
    if not is_address(source):
        return Path(source).expanduser()
    url, revision = _split(source)
    if url.startswith("-"):
        raise UserError(f"polyglot:{source}: not a git URL")
    place = cache_folder("polyglot", hashlib.sha256(url.encode()).hexdigest()[:16])
    commit = revision if _COMMIT.fullmatch(revision) else _resolved(url, revision, place)
    folder = place / commit
    if not folder.is_dir():
        _fetch(url, commit, folder)
    return folder


def _split(source: str) -> tuple[str, str]:
    url, at, revision = source.rpartition("@")
    if at and re.fullmatch(r"[\w.-]+", revision) and ("://" not in revision) and re.search(r"[:/]", url):
        # In https://user@host/… the part after the @ has a slash; this one has none, so it is a revision.
        return url, revision
    return source, "HEAD"


def _resolved(url: str, revision: str, place: Path) -> str:
    """Return the commit that a branch or tag names now; the last known one if the server does not answer."""
    noted = place / f"{revision}.commit"
    names = [f"refs/tags/{revision}^{{}}", f"refs/tags/{revision}", f"refs/heads/{revision}"]
    names += ["HEAD"] if revision == "HEAD" else []
    try:
        lines = _git("ls-remote", "--", url, *names, folder=place).splitlines()
    except Infrastructure as error:
        if not noted.is_file():
            raise
        log.warning("%s; taking the commit that %s named last", error, revision)
        return noted.read_text(encoding="ascii").strip()
    # Git also returns refs that only end with a requested name: refs/remotes/origin/HEAD, refs/x/refs/tags/v1.
    known = {name: commit for commit, _, name in (line.partition("\t") for line in lines)}
    commit = next((known[name] for name in names if name in known), "")
    if not _COMMIT.fullmatch(commit):
        raise UserError(
            f"polyglot:{url}@{revision}: no such branch or tag; give one, or a commit's 40 digits"
        )
    noted.write_text(commit + "\n", encoding="ascii")
    return commit


def _fetch(url: str, commit: str, folder: Path) -> None:
    """Fetch into a temporary folder and rename it: a folder with the commit's name is complete."""
    log.info("fetching %s at %s", url, commit[:12])
    made = Path(tempfile.mkdtemp(prefix="half-", dir=folder.parent))
    try:
        git = made / "repository.git"
        git.mkdir()
        make_repository(git)
        _git("fetch", "-q", "--depth=1", "--no-tags", "--", url, commit, folder=git)
        try:
            with LocalRepository(git, bare=True) as repository:
                exercises = repository.files(CommitId(commit))
        except UserError as error:
            raise UserError(f"polyglot:{url}@{commit}: not a commit") from error
        write_folder(exercises, made / "exercises")
        try:
            (made / "exercises").rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _git(*arguments: str, folder: Path) -> str:
    variables = user_environment(_TRANSPORTS) | {"GIT_CEILING_DIRECTORIES": str(folder.resolve().parent)}
    done = run_git(folder, variables, arguments, timeout_s=REMOTE_S)
    output = (done.stderr if done.returncode else done.stdout).decode("utf-8", "replace")
    if done.returncode:
        raise Infrastructure(f"polyglot: git: {last_line(output)}")
    return output
