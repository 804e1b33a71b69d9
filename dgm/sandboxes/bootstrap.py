"""A base image made from Debian packages if no registry answers: ``debootstrap``, then one tar.

The mirror and the suite are the ones this machine uses itself, so an air-gapped site needs nothing new.
"""

import logging
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.recipes import Recipe

log = logging.getLogger(__name__)

_APT = Path("/etc/apt")
_EMPTIED = ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man")
_FOLDERS = ("work", "agent", "job")
_TAIL_LINES = 5
_FOLDERS_OF_ROOT = "/usr/sbin:/sbin"
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")


def obstacle() -> str:
    """Return why no image can be bootstrapped here, in one line; empty if it can."""
    if shutil.which("debootstrap", path=_program_path()) is None:
        return "debootstrap is not installed: install the package 'debootstrap'"
    if os.geteuid() != 0:
        return "debootstrap needs root: run 'dgm sandbox build' once as root"
    try:
        mirror()
    except UserError as error:
        return str(error)
    return ""


def bootstrap(recipe: Recipe, folder: Path) -> Path:
    """Make a tar file below ``folder`` with the root file system of the recipe, and return its path.

    Raises:
        UserError: this machine cannot bootstrap.
        Infrastructure: a package could not be fetched or unpacked.
    """
    reason = obstacle()
    if reason:
        raise UserError(f"no registry answers and {reason}")
    uri, suite = mirror()
    root = folder / "root"
    include = ",".join(recipe.packages)
    log.info("bootstrapping the image %s from Debian packages (%s); about a minute", recipe.tag, suite)
    _run(["debootstrap", "--variant=minbase", f"--include={include}", suite, str(root), uri])
    for name in _EMPTIED:
        shutil.rmtree(root / name, ignore_errors=True)
    for name in _FOLDERS:
        (root / name).mkdir(exist_ok=True)
    _add_user(root, recipe.user)
    archive = folder / "root.tar"
    _run(["tar", "-C", str(root), "--one-file-system", "-cf", str(archive), "."])
    return archive


def mirror(apt: Path = _APT, os_release: Path = Path("/etc/os-release")) -> tuple[str, str]:
    """Return the package mirror and the suite that this machine's own apt uses.

    Raises:
        UserError: apt's configuration names no mirror for this release.
    """
    suite = _codename(os_release)
    for uri, offered in [*_one_line_sources(apt), *_deb822_sources(apt)]:
        if offered == suite:
            return uri, suite
    raise UserError(
        f"{apt}: no package source offers the suite {suite!r} of {os_release}: add one for debootstrap"
    )


def _codename(os_release: Path) -> str:
    if os_release.exists():
        for line in os_release.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            if key == "VERSION_CODENAME":
                return value.strip().strip('"')
    raise UserError(f"{os_release}: no VERSION_CODENAME: debootstrap needs a Debian (or derived) host")


def _one_line_sources(apt: Path) -> Iterator[tuple[str, str]]:
    """Yield URI and suite of ``deb [options] URI suite components`` lines in ``*.list`` files."""
    for path in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list"))]:
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            kind, _, rest = line.strip().partition(" ")
            if kind == "deb":
                fields = (rest.partition("]")[2] if rest.lstrip().startswith("[") else rest).split()
                if len(fields) > 1:
                    yield fields[0], fields[1]


def _deb822_sources(apt: Path) -> Iterator[tuple[str, str]]:
    """Yield URI and suite of the paragraphs of ``Field: value`` in ``*.sources`` files."""
    for path in sorted((apt / "sources.list.d").glob("*.sources")):
        for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
            fields = _fields(paragraph)
            if "deb" in fields.get("types", "").split() and fields.get("enabled", "yes").lower() != "no":
                for uri in fields.get("uris", "").split():
                    for suite in fields.get("suites", "").split():
                        yield uri, suite


def _fields(paragraph: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in paragraph.splitlines():
        key, colon, value = line.partition(":")
        if colon and not line.startswith(("#", " ", "\t")):
            fields[key.strip().lower()] = value.strip()
    return fields


def _add_user(root: Path, uid: int) -> None:
    for name, line in {
        "passwd": f"agent:x:{uid}:{uid}::/tmp:/bin/bash\n",
        "group": f"agent:x:{uid}:\n",
    }.items():
        with (root / "etc" / name).open("a", encoding="ascii") as file:
            file.write(line)


def _program_path() -> str:
    """Return where programs are looked for: an ordinary user's own path need not name the folders of root's."""
    return f"{os.environ.get('PATH', '')}:{_FOLDERS_OF_ROOT}"


def _run(argv: list[str]) -> None:
    # Scripts of packages see it inside the new root, so nothing of the shell is passed but the way to the mirror.
    proxies = {name: value for name, value in os.environ.items() if name.lower() in _PROXIES}
    environment = {**proxies, "LC_ALL": "C", "PATH": _program_path()}
    tail: list[str] = []
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdout is not None
        for raw in process.stdout:
            line = raw.decode("utf-8", "replace").rstrip()
            log.debug("%s", line)
            tail = [*tail[-_TAIL_LINES:], line]
    if process.returncode:
        raise Infrastructure(f"{argv[0]} failed ({process.returncode}): {' | '.join(tail)}")
