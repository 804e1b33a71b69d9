"""Package managers at work: in an ordinary sandbox that reaches package indexes and nothing else.

A build has no network, no variable and no file of this machine, but the user's choice of indexes and certificates. Its
one way out is the socket of an ``IndexProxy``, by which its result comes back too: a stranger's folder, of which only
files and inner links are kept.
"""

import configparser
import contextlib
import importlib.metadata
import os
import re
import shutil
import struct
import sys
import tempfile
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from dgm.bounded_reading import plain_requirement
from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.folders import resolve_below
from dgm.paths import cache_folder
from dgm.protocols import (
    BuildError,
    BuildRun,
    BuildSandbox,
    Mount,
    Sandbox,
    SandboxEngine,
    SandboxSpec,
    SharedSocket,
)
from dgm.sandboxes.building_inside import ENTRY, PORT, TOOLS
from dgm.sandboxes.index_proxy import NAME, IndexProxy, Place, place_of
from dgm.sandboxes.threads import finish_work

CPUS, MEMORY_MB, DISK_MB, PIDS, LIFETIME_S = 1.0, 4096, 8192, 512, 3600.0
RESULT_BYTES = 4_000_000_000
RESULT_ENTRIES, RESULT_LINKS = 400_000, 100_000
_FOLDER, _CACHE, _HELPERS = "/work/build", "/work/cache", "/job"
_SOCKET = f"/run/dgm/{NAME}"
_HELPER, _CONSTRAINTS = "build.py", "constraints.txt"
_CERTIFICATES, _JAVA_CERTIFICATES = "certificates.pem", "cacerts"
_OUTPUT_BYTES = 200_000
_SEND_S = 900.0
_NAME_BYTES, _DEPTH = 1024, 100
_LINKED = "/opt/dgm-index"
"""Folders of the user's packages (``--find-links``) in a build's sandbox, by their numbers."""
_BUNDLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
"""Variables that name a file of certificates."""
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""Where distributions keep the authorities that they trust."""
_JAVA_BUNDLES = ("/etc/ssl/certs/java/cacerts", "/etc/pki/java/cacerts")
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[\w+/=\s]+-----END CERTIFICATE-----")
_BUNDLE_BYTES = 4_000_000
_REGISTRY = re.compile(r"^\s*((?:@[\w.-]+:)?registry)\s*=\s*[\"']?(https?://[^\s\"'$]+)", re.M)
_MIRROR = re.compile(r"<mirror>.*?<url>\s*(https?://[^\s<$]+)\s*</url>", re.S)


class SandboxBuilder:
    """Opens sandboxes of one recipe for builds.

    Attributes:
        tools: mounts with uv's program; a sandbox in which it does not run gets one by pip.
    """

    def __init__(
        self, engine: SandboxEngine, labels: Mapping[str, str], image: str, *, passwords: bool = True
    ) -> None:
        """Keep the engine, the labels of its sandboxes, and the recipe.

        Args:
            engine: opens the sandboxes.
            labels: of the sandboxes.
            image: their recipe.
            passwords: whether builds see passwords in the addresses of the user's indexes; not to be where a build
                runs code of a repository that the user did not ask to run.
        """
        self._passwords = passwords
        self._engine = engine
        self._labels = labels
        self._image = image
        self.tools: Sequence[Mount] = (find_uv(),) if sys.platform == "linux" else ()

    @asynccontextmanager
    async def open(self, *, public: bool = False) -> AsyncIterator[BuildSandbox]:
        """Return a fresh sandbox, which is removed with the context.

        Args:
            public: if true, all public addresses can be reached.

        Raises:
            UserError: there is no such recipe, or the host lacks what it needs.
            Infrastructure: the sandbox could not be started.
        """
        settings = read_index_settings(self._image, os.environ, Path.home())
        if not self._passwords:
            settings = without_passwords(settings)
        with tempfile.TemporaryDirectory(prefix="dgm-index-") as private:
            async with IndexProxy(Path(private, "socket"), settings.places, public=public) as proxy:
                spec = SandboxSpec(
                    image=self._image,
                    labels=self._labels,
                    mounts=(*self.tools, *settings.mounts),
                    socket=SharedSocket(proxy.path, _SOCKET),
                    cpus=CPUS,
                    memory_mb=MEMORY_MB,
                    pids=PIDS,
                    disk_mb=DISK_MB,
                    lifetime_s=LIFETIME_S,
                )
                async with self._engine.open(spec) as sandbox:
                    helpers = {
                        _HELPER: files("dgm.sandboxes").joinpath("building_inside.py").read_bytes(),
                        _CERTIFICATES: read_certificates(os.environ),
                        _JAVA_CERTIFICATES: _read_java_certificates() if self._image == "jvm" else b"",
                        _CONSTRAINTS: settings.constraints,
                    }
                    there = {name: Entry(data) for name, data in helpers.items() if data}
                    await sandbox.put(there, _HELPERS)
                    await sandbox.put(_home_of(self._image, settings), "/tmp")
                    yield _Build(sandbox, proxy, _environment(settings, there))


class _Build:
    """An open sandbox, with the proxy that it reaches."""

    folder = _FOLDER

    def __init__(self, sandbox: Sandbox, proxy: IndexProxy, env: Mapping[str, str]) -> None:
        self._sandbox = sandbox
        self._proxy = proxy
        self._env = env

    async def put(self, files: Snapshot, name: str) -> None:
        """Write files below a subfolder."""
        try:
            await self._sandbox.put(files, f"{_FOLDER}/{name}")
        except AgentFault as error:
            raise BuildError(str(error)) from error

    async def run(
        self, command: Sequence[str], *, name: str, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> BuildRun:
        """Run a command in a subfolder."""
        done = await self._helper(
            "run", f"{_FOLDER}/{name}", *command, timeout_s=timeout_s, env={**self._env, **(env or {})}
        )
        if done.exit_code and self._proxy.unreachable:
            raise Infrastructure(f"a package index cannot be reached: {self._proxy.unreachable}")
        return BuildRun(done.exit_code, done.output, self._proxy.refused)

    async def fetch(self, name: str, target: Path) -> None:
        """Copy a subfolder to a new folder."""
        with tempfile.TemporaryFile(dir=target.parent) as file:
            with self._proxy.receiving(file, RESULT_BYTES):
                done = await self._helper("send", f"{_FOLDER}/{name}", timeout_s=_SEND_S)
            if done.exit_code:
                raise BuildError(f"what was installed cannot be read back: {done.output.strip()[-200:]}")
            file.seek(0)
            await finish_work(lambda: unpack_result(file, target))

    async def _helper(
        self, task: str, *words: str, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> BuildRun:
        try:
            done = await self._sandbox.exec(
                ["python3", "-I", f"{_HELPERS}/{_HELPER}", _SOCKET, task, *words],
                timeout_s=timeout_s,
                cwd="/work",
                env=env,
                output_limit=_OUTPUT_BYTES,
            )
        except AgentFault as error:
            raise BuildError(str(error)) from error
        text = done.output.decode("utf-8", "replace")
        if done.timed_out:
            text = f"it took more than {timeout_s:.0f} s"
        elif done.out_of_memory:
            text = f"it needs more than {MEMORY_MB} MB of memory"
        return BuildRun(done.exit_code, text)


def find_uv() -> Mount:
    """Return the folder with uv's program, as sandboxes show it: a copy in the cache, where nothing else lies."""
    from uv import find_uv_bin

    folder = cache_folder("packages") / f"uv-{importlib.metadata.version('uv')}"
    if not folder.exists():
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder.parent))
        shutil.copyfile(find_uv_bin(), draft / "uv")
        (draft / "uv").chmod(0o755)
        draft.chmod(0o755)
        try:
            draft.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(draft)
    return Mount(folder, TOOLS, digest=folder.name)


def unpack_result(file: IO[bytes], target: Path) -> None:
    """Make a folder of the entries that a build sent: folders, files, and links that stay within.

    No link is there before all files are written, so that nothing is written through one.

    Raises:
        BuildError: there are too many, or they are malformed.
    """
    links: dict[str, str] = {}
    count = size = 0
    try:
        target.mkdir(parents=True)
        while head := file.read(ENTRY.size):
            kind, name_length, length = ENTRY.unpack(head)
            count, size = count + 1, size + length
            if count > RESULT_ENTRIES or size > RESULT_BYTES or len(links) > RESULT_LINKS:
                limits = f"{RESULT_ENTRIES:,} files, {RESULT_LINKS:,} links or {RESULT_BYTES:,} bytes"
                raise ValueError(f"it is more than {limits}")  # noqa: TRY301
            name = _read_name(file, name_length)
            parts = name.split("/")
            if len(parts) > _DEPTH or not {"", ".", ".."}.isdisjoint(parts):
                raise ValueError(f"it has a file {name[:100]!r}")  # noqa: TRY301
            if kind == b"d":
                (target / name).mkdir()
            elif kind == b"l":
                links[name] = _read_name(file, length)
            else:
                _write_file(file, length, target / name)
                (target / name).chmod(0o755 if kind == b"x" else 0o644)
        _make_links(target, links)
    except (OSError, ValueError, struct.error) as error:
        raise BuildError(f"what was installed cannot be unpacked: {error}") from error


def _read_name(file: IO[bytes], length: int) -> str:
    if length > _NAME_BYTES:
        raise ValueError(f"a name has more than {_NAME_BYTES} bytes")
    return os.fsdecode(file.read(length))


def _write_file(file: IO[bytes], length: int, path: Path) -> None:
    with path.open("xb") as copy:
        while length:
            data = file.read(min(length, 1 << 20))
            if not data:
                raise ValueError("its end is missing")
            copy.write(data)
            length -= len(data)


def _make_links(target: Path, links: Mapping[str, str]) -> None:
    for name, to in links.items():
        path = target / name
        if not os.path.lexists(path) and resolve_below(target, name) == path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(to)
    for name in links:
        try:
            resolve_below(target, name)
        except UserError:
            (target / name).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """A user's choice of package indexes: all that a build knows of this machine's settings."""

    env: Mapping[str, str]
    """Variables by which package managers use the indexes."""
    places: frozenset[Place]
    """Hosts of the indexes."""
    mounts: Sequence[Mount]
    """Folders of packages."""
    npmrc: str
    """Lines of npm's settings that name registries."""
    maven_mirror: str
    """The mirror of Maven's repository; empty if there is none."""
    constraints: bytes
    """Versions of Python packages (``PIP_CONSTRAINT``)."""


def without_passwords(settings: IndexSettings) -> IndexSettings:
    """Return the settings with addresses that hold neither a user nor a password."""

    def strip(text: str) -> str:
        return re.sub(r"(https?://)[^\s/@,]*@", r"\1", text)

    return replace(
        settings,
        env={name: strip(value) for name, value in settings.env.items()},
        npmrc=strip(settings.npmrc),
        maven_mirror=strip(settings.maven_mirror),
    )


def read_index_settings(image: str, variables: Mapping[str, str], home: Path) -> IndexSettings:
    """Return the choice that variables and settings files of the package managers make.

    Args:
        image: recipe of the build's sandbox, which decides whose settings file is read.
        variables: of this process.
        home: the user's folder.
    """

    def first(*names: str) -> str:
        return next((variables[name] for name in names if variables.get(name)), "")

    pip = _read_pip(variables, home) if image == "python" else {}
    index = _web(first("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL") or pip.get("index-url", ""))[:1]
    more = [first(name) for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL")]
    extra = _web(" ".join([*more, pip.get("extra-index-url", "")]))
    npm = first("NPM_CONFIG_REGISTRY", "npm_config_registry")
    npmrc = _read(Path(first("NPM_CONFIG_USERCONFIG") or home / ".npmrc")) if image == "npm" else ""
    registries = dict(_REGISTRY.findall(npmrc))
    go = [url for url in re.split(r"[,|]", first("GOPROXY")) if _web(url)]
    maven = _MIRROR.findall(_read(home / ".m2" / "settings.xml"))[:1] if image == "jvm" else []
    linked = f"{first('PIP_FIND_LINKS')} {first('UV_FIND_LINKS')}"
    pages = _web(linked)
    folders = [Path(word).absolute() for word in re.split(r"[\s,]+", linked) if word and Path(word).is_dir()]
    mounts = [Mount(folder, f"{_LINKED}/{number}") for number, folder in enumerate(dict.fromkeys(folders))]
    links = [*(mount.target for mount in mounts), *pages]
    env = {
        "UV_DEFAULT_INDEX": "".join(index), "PIP_INDEX_URL": "".join(index),
        "UV_INDEX": " ".join(extra), "PIP_EXTRA_INDEX_URL": " ".join(extra),
        "UV_FIND_LINKS": ",".join(links), "PIP_FIND_LINKS": " ".join(links),
        "npm_config_registry": npm, "GOPROXY": ",".join(go),
    }  # fmt: skip
    places = set()
    for url in (*index, *extra, *pages, npm, *registries.values(), *go, *maven):
        with contextlib.suppress(ValueError):
            places.add(place_of(url))
    return IndexSettings(
        {name: value for name, value in env.items() if value},
        frozenset(places),
        mounts,
        "".join(f"{name}={url}\n" for name, url in registries.items()),
        "".join(maven),
        _read_constraints(first("UV_CONSTRAINT", "PIP_CONSTRAINT")),
    )


def read_certificates(variables: Mapping[str, str]) -> bytes:
    """Return the certificates of authorities that this machine's user or system trusts, and nothing else of the files.

    Without any, a build's programs trust their own.
    """
    for path in (*(variables[name] for name in _BUNDLES if variables.get(name)), *_SYSTEM_BUNDLES):
        with contextlib.suppress(OSError), Path(path).open("rb") as file:
            if certificates := _CERTIFICATE.findall(file.read(_BUNDLE_BYTES)):
                return b"\n".join([*certificates, b""])
    return b""


def _read_java_certificates() -> bytes:
    return next((file.read_bytes() for file in map(Path, _JAVA_BUNDLES) if file.is_file()), b"")


def _web(text: str) -> list[str]:
    """Return the addresses of a list; uv lets a name stand before one."""
    words = [re.sub(r"^[\w.-]+=", "", word) for word in re.split(r"[\s,]+", text)]
    return [word for word in words if word.startswith(("http://", "https://"))]


def _read_pip(variables: Mapping[str, str], home: Path) -> Mapping[str, str]:
    settings = [Path("/etc/pip.conf"), home / ".pip/pip.conf", home / ".config/pip/pip.conf"]
    settings += [Path(variables["PIP_CONFIG_FILE"])] if variables.get("PIP_CONFIG_FILE") else []
    parser = configparser.RawConfigParser(strict=False)
    with contextlib.suppress(configparser.Error, OSError, UnicodeError):
        parser.read(settings, encoding="utf-8")
        return dict(parser["global"]) if parser.has_section("global") else {}
    return {}


def _read_constraints(paths: str) -> bytes:
    """Return the lines of constraint files that name a package."""
    lines: list[str] = []
    for path in paths.split():
        text = _read(Path(unquote(urlsplit(path).path)))
        lines += [f"{line}\n" for line in text.splitlines() if plain_requirement(line.partition(" #")[0])]
    return "".join(lines).encode()


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return ""


def _environment(settings: IndexSettings, helpers: Collection[str]) -> Mapping[str, str]:
    """Return the variables of a build that has these helping files."""
    named = dict.fromkeys((*_BUNDLES, "CARGO_HTTP_CAINFO", "GIT_SSL_CAINFO"), _CERTIFICATES)
    named |= {"UV_CONSTRAINT": _CONSTRAINTS}
    java = f"-Djavax.net.ssl.trustStore={_HELPERS}/{_JAVA_CERTIFICATES} -Djavax.net.ssl.trustStorePassword=changeit"
    return {
        # Not "direct": it would let the repository name the host of a module.
        "GOPROXY": "https://proxy.golang.org",
        **settings.env,
        **{variable: f"{_HELPERS}/{name}" for variable, name in named.items() if name in helpers},
        **({"JAVA_TOOL_OPTIONS": java} if _JAVA_CERTIFICATES in helpers else {}),
        "XDG_CACHE_HOME": _CACHE,
        "npm_config_cache": f"{_CACHE}/npm",
        "npm_config_update_notifier": "false",
        "CARGO_HOME": f"{_CACHE}/cargo",
        "GOPATH": f"{_CACHE}/go",
        "GOCACHE": f"{_CACHE}/go-build",
        "GRADLE_USER_HOME": f"{_CACHE}/gradle",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _home_of(image: str, settings: IndexSettings) -> Snapshot:
    """Return the files of a build's home, which is empty but for what names the user's indexes and the proxy."""
    contents = {
        ".npmrc": settings.npmrc,
        ".m2/settings.xml": _maven_settings(settings) if image == "jvm" else "",
    }
    return {name: Entry(text.encode()) for name, text in contents.items() if text}


def _maven_settings(settings: IndexSettings) -> str:
    proxies = "".join(
        f"<proxy><id>{kind}</id><active>true</active><protocol>{kind}</protocol><host>127.0.0.1</host>"
        f"<port>{PORT}</port></proxy>"
        for kind in ("http", "https")
    )
    url = settings.maven_mirror
    mirror = f"<mirror><id>own</id><mirrorOf>*</mirrorOf><url>{url}</url></mirror>" if url else ""
    return f"<settings><proxies>{proxies}</proxies><mirrors>{mirror}</mirrors></settings>\n"
