"""The packages of a commit for the JVM: what ``--setup`` leaves, and how Maven finds it in a sandbox.

Maven and Gradle run plugins and programs of the repository, so that only the user can say that they may be run.
"""

import hashlib
import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from dgm.benchmarks.environments import TARGET
from dgm.benchmarks.mining.command_packages import CommandEpochs
from dgm.benchmarks.mining.languages import is_test_material
from dgm.benchmarks.mining.packages import Installed
from dgm.benchmarks.mining.stored_environments import CannotInstall
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError

POM = "pom.xml"
REPOSITORY = "m2"
"""Folder of Maven's local repository in ``$DGM_PACKAGES``."""
MAVEN_SETUP = f'mvn -B -q -Dmaven.repo.local="$DGM_PACKAGES/{REPOSITORY}" -Dmaven.test.failure.ignore test'
"""Command that fills it: only a run of the tests asks for all that the next one needs."""
MAVEN_CONFIG = ".mvn/maven.config"
_OPTIONS = f"-o\n-Dmaven.repo.local={TARGET}/{REPOSITORY}\n"
_VOLATILE = ("_remote.repositories", "resolver-status.properties", "*.lastUpdated", "*.lock", "*.part")
"""Notes of Maven on its downloads, with times and addresses; without them it takes files as they are."""
_VOLATILE_FOLDERS = (".cache", ".locks", ".meta")
_TIME = re.compile(rb"(<lastUpdated>)\d+(?=</lastUpdated>)")
_NAMES = frozenset({
    POM, "gradle.properties", "gradle.lockfile", "gradle-wrapper.properties", "maven-wrapper.properties", "build.sbt",
})  # fmt: skip
_ENDS = (".gradle", ".gradle.kts", ".versions.toml", ".mvn/extensions.xml")
_SBT = re.compile(r"(?:.*/)?project/[^/]+\.(?:sbt|properties|scala)")
_ABOUT = frozenset({
    "name", "description", "url", "inceptionYear", "organization", "licenses", "developers", "contributors",
    "mailingLists", "scm", "issueManagement", "ciManagement", "distributionManagement", "reporting",
})  # fmt: skip
"""Parts of a project in Maven that tell people of it, or publish it."""
_VERSIONS = frozenset({"revision", "changelist", "sha1", "project.build.outputTimestamp"})
"""Properties by which a project gives its own version, or the time of its release."""
_CAUSES = (
    re.compile(r"\[FATAL\] (.*?)(?: @ .*)?$", re.M),
    re.compile(r"\[ERROR\] (Failed to execute goal .*?)(?: -> \[Help \d+\])?$", re.M),
    re.compile(r"^> (.*)$", re.M),
    re.compile(r"(\berror: .*)$", re.M),
)
"""Lines in which Maven, Gradle and compilers say why a build failed."""


class JvmEpochs(CommandEpochs):
    """Environments by the digest of what commits declare, each by ``--setup``; without it one that is empty."""

    def _digest(self, files: Snapshot) -> str:
        return digest_builds(files) if self._setup else super()._digest(files)

    async def _set_up(self, files: Snapshot) -> Installed:
        try:
            return await super()._set_up(files)
        except UserError as error:
            # A build of years ago may fail with the tools of today; that is no reason to end.
            raise CannotInstall(str(error)) from error

    def _find_cause(self, said: str) -> str:
        return next((found[1] for cause in _CAUSES if (found := cause.search(said))), "")

    def _tidy(self, packages: Path) -> Sequence[str]:
        return tidy_repository(packages / REPOSITORY)


def check_maven(repo: Path, files: Snapshot, test: str, setup: str) -> None:
    """Refuse a project of Maven whose packages nobody gives.

    Args:
        repo: the repository, for the message.
        files: of the newest commit.
        test: the user's own command for the tests; with one nothing is asked of Maven.
        setup: the user's command for packages.

    Raises:
        UserError: there are none.
    """
    if POM in files and not test and not setup:
        raise UserError(
            f"{repo / POM}: Maven runs code of the repository to fetch its plugins and packages; let it, in a sandbox "
            f"that reaches the internet: --setup '{MAVEN_SETUP}'"
        )


def with_maven(files: Snapshot) -> Snapshot:
    """Return a commit's files with a configuration by which Maven takes packages from the environment."""
    if not any(PurePosixPath(name).name == POM and not is_test_material(name) for name in files):
        return files
    entry = files.get(MAVEN_CONFIG, Entry(b""))
    own = entry.data.rstrip()
    return {**files, MAVEN_CONFIG: replace(entry, data=own + (b"\n" if own else b"") + _OPTIONS.encode())}


def digest_builds(files: Snapshot) -> str:
    """Return the SHA-256 of what the builds of a commit declare, the project's own version left out."""
    digest = hashlib.sha256()
    names = [name for name in sorted(files) if _declares(name)]
    poms = [name for name in names if PurePosixPath(name).name == POM]
    own = {found for name in poms for found in _artifacts(files[name].data)}
    for name in names:
        data = files[name].data
        read = "\n".join(_pom_lines(data, own)).encode() if name in poms else data
        digest.update(f"{name} {len(read)}\n".encode() + read)
    return digest.hexdigest()


def _declares(name: str) -> bool:
    known = PurePosixPath(name).name in _NAMES or name.endswith(_ENDS) or _SBT.fullmatch(name)
    return bool(known) and not is_test_material(name)


def _artifacts(data: bytes) -> Iterator[str]:
    """Yield the name of a pom's own artifact."""
    root = _parse(data)
    name = None if root is None else _child(root, "artifactId")
    if name:
        yield name


def _pom_lines(data: bytes, own: Collection[str]) -> Iterator[str]:
    """Yield the elements of a pom, a line each, without what no build depends on; its text if it cannot be read.

    Args:
        data: the pom.
        own: artifacts of the repository, whose versions are left out.
    """
    root = _parse(data)
    if root is None:
        yield data.decode("utf-8", "replace")
        return
    waiting = [(0, root)]
    while waiting:
        depth, element = waiting.pop()
        yield f"{depth} {_tag(element)} {sorted(element.attrib.items())} {(element.text or '').strip()}"
        is_own = depth == 0 or _child(element, "artifactId") in own
        dropped = (_ABOUT if depth == 0 else frozenset()) | ({"version"} if is_own else frozenset())
        if _tag(element) == "properties":
            dropped |= _VERSIONS
        kept = [(depth + 1, each) for each in element if _tag(each) not in dropped]
        waiting += reversed(kept)


def _parse(data: bytes) -> ElementTree.Element | None:
    """Return the root of a pom; None for what is none, or declares a document type, which may expand to gigabytes."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data or b"\0" in data:
        return None
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError):
        return None
    for name in list(root.attrib):
        if "schemaLocation" in name:
            del root.attrib[name]
    return root


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _child(element: ElementTree.Element, tag: str) -> str:
    return next(((each.text or "").strip() for each in element if _tag(each) == tag), "")


def tidy_repository(repository: Path) -> Sequence[str]:
    """Remove from a local repository of Maven what two fillings do not share; return its packages, for people."""
    if repository.is_symlink() or not repository.is_dir():
        return ()
    for name in _VOLATILE_FOLDERS:
        if not (repository / name).is_symlink():
            shutil.rmtree(repository / name, ignore_errors=True)
    found: dict[str, None] = {}
    for path in sorted(path for path in repository.rglob("*") if path.is_file() and not path.is_symlink()):
        if any(path.match(pattern) for pattern in _VOLATILE):
            path.unlink()
        elif path.match("maven-metadata-*.xml"):
            data = _TIME.sub(rb"\g<1>0", path.read_bytes())
            path.unlink()  # it may be a hard link to one that the user keeps
            path.write_bytes(data)
        elif path.suffix == ".jar" and len(path.relative_to(repository).parts) > 3:
            *group, artifact, version, _ = path.relative_to(repository).parts
            found[f"{'.'.join(group)}:{artifact}:{version}"] = None
    return tuple(found)
