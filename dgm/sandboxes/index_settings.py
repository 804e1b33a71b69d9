"""The package indexes and the certificates that this machine's user has chosen: all that a build knows of them."""

import configparser
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from dgm.plain_requirements import plain_requirement
from dgm.protocols import Mount

_PORTS = {"http": 80, "https": 443}
_FOUND = "/opt/dgm-index"
"""Folders of the user's packages (``--find-links``) in a build's sandbox, by their numbers."""
BUNDLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
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


class Place(NamedTuple):
    """A host and a port of it."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """A user's choice of indexes."""

    env: Mapping[str, str]
    """Variables by which package managers use them."""
    places: frozenset[Place]
    """Where they are."""
    mounts: Sequence[Mount] = ()
    """Folders of packages."""
    npmrc: str = ""
    """Lines of npm's settings that name registries."""
    maven_mirror: str = ""
    """The mirror of Maven's repository; empty if there is none."""
    constraints: bytes = b""
    """Versions of Python packages (``PIP_CONSTRAINT``)."""


def place_of(url: str) -> Place:
    """Return where a URL leads.

    Raises:
        ValueError: nowhere.
    """
    parts = urlsplit(url)
    if not parts.hostname or parts.scheme not in _PORTS:
        raise ValueError(f"{url[:100]!r} leads to no host")
    return Place(parts.hostname.lower().rstrip("."), parts.port or _PORTS[parts.scheme])


def read_index_settings(image: str, given: Mapping[str, str], home: Path) -> IndexSettings:
    """Return the choice that variables and settings files of the package managers make.

    Args:
        image: recipe of the build's sandbox, which decides whose settings file is read.
        given: variables of this process.
        home: the user's folder.
    """
    pip = _read_pip(given, home) if image == "python" else {}
    index = given.get("UV_DEFAULT_INDEX") or given.get("UV_INDEX_URL") or given.get("PIP_INDEX_URL")
    index = next(iter(_web(index or pip.get("index-url", ""))), "")
    more = [given.get(name, "") for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL")]
    extra = _web(" ".join([*more, pip.get("extra-index-url", "")]))
    npm = given.get("NPM_CONFIG_REGISTRY") or given.get("npm_config_registry") or ""
    npmrc = Path(given.get("NPM_CONFIG_USERCONFIG") or home / ".npmrc")
    scopes = dict(_REGISTRY.findall(_read(npmrc))) if image == "npm" else {}
    go = [each for each in re.split(r"[,|]", given.get("GOPROXY", "")) if _web(each)]
    mirrors = _MIRROR.findall(_read(home / ".m2" / "settings.xml")) if image == "jvm" else []
    mirror = mirrors[0] if mirrors else ""
    linked = f"{given.get('PIP_FIND_LINKS', '')} {given.get('UV_FIND_LINKS', '')}"
    pages = _web(linked)
    folders = [Path(each).absolute() for each in re.split(r"[\s,]+", linked) if each and Path(each).is_dir()]
    mounts = [Mount(folder, f"{_FOUND}/{number}") for number, folder in enumerate(dict.fromkeys(folders))]
    places = [*(mount.target for mount in mounts), *pages]
    env = {
        "UV_DEFAULT_INDEX": index, "PIP_INDEX_URL": index,
        "UV_INDEX": " ".join(extra), "PIP_EXTRA_INDEX_URL": " ".join(extra),
        "UV_FIND_LINKS": ",".join(places), "PIP_FIND_LINKS": " ".join(places),
        "npm_config_registry": npm, "GOPROXY": ",".join(go),
    }  # fmt: skip
    urls = [url for url in (index, *extra, *pages, npm, *scopes.values(), *go, mirror) if url]
    return IndexSettings(
        {name: value for name, value in env.items() if value},
        frozenset(_places(urls)),
        mounts,
        "".join(f"{name}={url}\n" for name, url in scopes.items()),
        mirror,
        _read_constraints(given.get("UV_CONSTRAINT") or given.get("PIP_CONSTRAINT", "")),
    )


def read_certificates(given: Mapping[str, str]) -> bytes:
    """Return the certificates of authorities that this machine's user or system trusts; empty: those of the programs.

    Nothing but certificates is taken from such a file.
    """
    paths = [given[name] for name in BUNDLES if given.get(name)]
    paths += _SYSTEM_BUNDLES
    for path in paths:
        try:
            with Path(path).open("rb") as file:
                found = _CERTIFICATE.findall(file.read(_BUNDLE_BYTES))
        except OSError:
            continue
        if found:
            return b"\n".join([*found, b""])
    return b""


def read_java_certificates() -> bytes:
    """Return the authorities that this machine trusts, as Java keeps them; empty if it has no Java."""
    found = next((file for file in map(Path, _JAVA_BUNDLES) if file.is_file()), None)
    return found.read_bytes() if found else b""


def _places(urls: Sequence[str]) -> Iterator[Place]:
    for url in urls:
        try:
            yield place_of(url)
        except ValueError:
            continue


def _web(text: str) -> list[str]:
    """Return the addresses of a list; uv lets a name stand before one."""
    words = [re.sub(r"^[\w.-]+=", "", each) for each in re.split(r"[\s,]+", text)]
    return [each for each in words if each.startswith(("http://", "https://"))]


def _read_pip(given: Mapping[str, str], home: Path) -> Mapping[str, str]:
    files = [Path("/etc/pip.conf"), home / ".pip/pip.conf", home / ".config/pip/pip.conf"]
    files += [Path(given["PIP_CONFIG_FILE"])] if given.get("PIP_CONFIG_FILE") else []
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(files, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeError):
        return {}
    return dict(parser["global"]) if parser.has_section("global") else {}


def _read_constraints(places: str) -> bytes:
    """Return what files of constraints say of packages by name."""
    lines: list[str] = []
    for place in places.split():
        with contextlib.suppress(OSError, UnicodeError):
            text = Path(unquote(urlsplit(place).path)).read_text(encoding="utf-8")
            lines += [line for line in text.splitlines() if plain_requirement(line.partition(" #")[0])]
    return "\n".join([*lines, ""]).encode() if lines else b""


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return ""
