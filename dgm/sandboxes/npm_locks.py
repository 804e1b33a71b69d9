"""How npm is called, and checks of what it installs: manifests and locks name packages of a registry alone."""

import json
import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dgm.bounded_reading import parse_json
from dgm.domain import Snapshot
from dgm.protocols import BuildError

MANIFEST, LOCK = "package.json", "package-lock.json"
MODULES = "node_modules"
NPM = ("sh", "-c", f'npm "$@" && mkdir -p {MODULES}', "sh")
"""Start of a call; npm makes no folder where there is nothing to install."""
_FLAGS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--os=linux", "--libc=glibc")
_CPUS = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
"""Machine → npm's name for it."""
_REASON = re.compile(r"npm (?:error|ERR!) (?!code |syscall |path |errno )(.+)")
TABLES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "overrides")
_PUBLIC = "https://registry.npmjs.org"
_NAME = r"(?:@[\w.~-]+/)?(?!\.)[\w.~-]+"
_PLACE = re.compile(rf"{MODULES}/{_NAME}(?:/{MODULES}/{_NAME})*")
_RANGE = re.compile(r"(?!\.)(?!.*\.(?:tgz|tar\.gz|tar)$)[\w.*^~<>=| +-]*", re.ASCII | re.IGNORECASE)
"""Versions and tags; no path, address or archive."""
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-+][\w.+-]*)?", re.ASCII)
_ONLY = (
    "only packages of a registry, with their integrity, can be installed; publish it there, or leave it in the agent's "
    "folder"
)


def npm_flags(machine: str) -> tuple[str, ...]:
    """Return the options of an installation for sandboxes on a machine; no script of a package is run."""
    return (*_FLAGS, f"--cpu={_CPUS.get(machine, machine)}")


def is_registry_spec(spec: object) -> bool:
    """Return whether a version of a manifest is a range, a tag or an alias that the registry alone resolves."""
    text = spec.strip() if isinstance(spec, str) else "/"
    alias = re.fullmatch(rf"npm:({_NAME})(?:@(.*))?", text)
    return _RANGE.fullmatch((alias[2] or "") if alias else text) is not None


def keep_registry_specs(
    table: Mapping[str, object], own: Collection[str] = ()
) -> tuple[dict[str, object], list[str]]:
    """Return a manifest's table of packages without those that no registry is to be asked for, and their names.

    Args:
        table: name → version; in ``overrides`` further tables, and ``$NAME`` for the version of another package.
        own: names of packages that the repository holds itself.
    """
    kept: dict[str, object] = {}
    foreign: list[str] = []
    for name, spec in table.items():
        plain = re.match(rf"(?:{_NAME})(?=$|@)", name)
        by_name = name == "." or (plain and plain[0] not in own and is_registry_spec(name[plain.end() + 1 :]))
        if by_name and isinstance(spec, dict):
            kept[name], more = keep_registry_specs(spec, own)
            foreign += more
        elif by_name and (is_registry_spec(spec) or re.fullmatch(rf"\$(?:{_NAME})", str(spec))):
            kept[name] = spec
        else:
            foreign.append(name)
    return kept, foreign


def find_install_scripts(source: Snapshot) -> list[str]:
    """Return the names of the packages in an agent's lock that have install scripts, which dgm does not run."""
    try:
        packages = parse_json(source[LOCK].data.decode("utf-8"))["packages"]
        paths = [path for path, package in packages.items() if path and package.get("hasInstallScript")]
    except (KeyError, ValueError, AttributeError, TypeError):
        return []
    return sorted({path.rpartition(f"{MODULES}/")[2] for path in paths})


def check_manifest(data: bytes) -> None:
    """Refuse a manifest whose packages are not all named by versions of a registry.

    Raises:
        BuildError: one is not, or it cannot be read.
    """
    try:
        manifest = parse_json(data.decode("utf-8"))
        tables = [manifest.get(key) or {} for key in TABLES]
        foreign = [name for table in tables for name in keep_registry_specs(table)[1]]
    except (ValueError, AttributeError) as error:
        raise BuildError(f"{MANIFEST}: cannot be read: {error}") from error
    if foreign:
        raise BuildError(f"{MANIFEST}: {foreign[0][:100]}: {_ONLY}")


def check_lock(data: bytes) -> None:
    """Refuse a lock that would make npm run git, read files of this machine, or take what no digest covers.

    Raises:
        BuildError: it does, or is no lock of version 2 or later.
    """
    try:
        packages = parse_json(data.decode("utf-8")).get("packages")
    except (ValueError, AttributeError) as error:
        raise BuildError(f"{LOCK}: cannot be read: {error}; make it anew: npm install") from error
    if not isinstance(packages, dict):
        raise BuildError(f"{LOCK}: is of an old form; make it anew with npm 7 or later: npm install")
    registries = find_registries()
    for name in packages:
        if name and not (_PLACE.fullmatch(name) and _is_from_registry(name, packages, registries)):
            raise BuildError(f"{LOCK}: {name[:100]}: {_ONLY}")


def drop_missing_options(data: bytes) -> bytes:
    """Return a lock without optional packages that it only names.

    They are for other systems, and the registry did not have them when the lock was written. ``npm ci`` refuses that.
    """
    lock = parse_json(data.decode("utf-8"))
    there = {path.rpartition(f"{MODULES}/")[2] for path in lock["packages"]}
    for path, package in lock["packages"].items():
        options = package.get("optionalDependencies") if path else None
        if isinstance(options, dict):
            package["optionalDependencies"] = {name: options[name] for name in options if name in there}
    return json.dumps(lock).encode()


def _is_from_registry(name: str, packages: Mapping[str, Any], registries: Collection[str]) -> bool:
    entry = packages[name]
    if not isinstance(entry, dict) or entry.get("link"):
        return False
    # Without an address npm asks for NAME@VERSION, whatever these say.
    named = [entry.get("version"), entry.get("name", "a")]
    if not all(isinstance(one, str) for one in named) or not _VERSION.fullmatch(named[0]):
        return False
    if not re.fullmatch(_NAME, named[1]):
        return False
    if entry.get("inBundle"):
        # It comes with a package around it, or not at all.
        around = [name[: found.start()] for found in re.finditer(rf"/{MODULES}/", name)]
        bundlers = [packages[each] for each in around if isinstance(packages.get(each), dict)]
        return "resolved" not in entry and any(each.get("bundleDependencies") for each in bundlers)
    if not entry.get("integrity"):
        return False
    return "resolved" not in entry or _origin(entry["resolved"]) in registries


def find_registries() -> frozenset[str]:
    """Return the origins (``https://host``) of the public registry and of those that the user has set."""
    names = [value for key, value in os.environ.items() if key.lower() == "npm_config_registry"]
    settings = Path(os.environ.get("NPM_CONFIG_USERCONFIG") or Path.home() / ".npmrc")
    with suppress(OSError, UnicodeError):
        names += re.findall(
            r"(?m)^\s*(?:@[\w.-]+:)?registry\s*=\s*[\"']?([^\s\"']+)", settings.read_text("utf-8")
        )
    return frozenset({_PUBLIC, *map(_origin, names)} - {""})


def _origin(address: object) -> str:
    """Return scheme, host and port of an address of a registry; empty if it is none."""
    found = re.match(r"(?i)(https?://[\w.:-]+)(?:/|$)", address) if isinstance(address, str) else None
    return found[1].lower() if found else ""


def first_error(said: str) -> str:
    """Return the first reason that npm prints for a failure."""
    lines = [line.strip() for line in said.splitlines()]
    reasons = [found[1] for line in lines if (found := _REASON.match(line))]
    return (reasons or lines or ["npm failed"])[0][:300]
