"""How npm is called, and checks of what it installs: locks must name packages of a registry alone."""

import re
from typing import Any

from dgm.bounded_reading import parse_json
from dgm.errors import UserError

MANIFEST, LOCK = "package.json", "package-lock.json"
MODULES = "node_modules"
NPM = ("sh", "-c", f'npm "$@" && mkdir -p {MODULES}', "sh")
"""Start of a call; npm makes no folder where there is nothing to install."""
_FLAGS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--os=linux", "--libc=glibc")
_CPUS = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
"""Machine → npm's name for it."""
_REASON = re.compile(r"npm (?:error|ERR!) (?!code |syscall |path |errno )(.+)")


def npm_flags(machine: str) -> tuple[str, ...]:
    """Return the options of an installation for sandboxes on a machine; no script of a package is run."""
    return (*_FLAGS, f"--cpu={_CPUS.get(machine, machine)}")


def check_lock(data: bytes) -> None:
    """Refuse a lock that would make npm run git, read files of this machine, or take what no digest covers.

    Raises:
        UserError: it does, or is no lock of version 2 or later.
    """
    try:
        packages = parse_json(data.decode("utf-8")).get("packages")
    except (ValueError, AttributeError) as error:
        raise UserError(f"{LOCK}: cannot be read: {error}; make it anew: npm install") from error
    if not isinstance(packages, dict):
        raise UserError(f"{LOCK}: is of an old form; make it anew with npm 7 or later: npm install")
    for name, entry in packages.items():
        if name and not _is_from_registry(entry):
            raise UserError(
                f"{LOCK}: {name[:100]}: only packages of a registry, with their integrity, can be installed; publish "
                "it there, or leave it in the agent's folder"
            )


def _is_from_registry(entry: Any) -> bool:  # noqa: ANN401  (a value of a file)
    if not isinstance(entry, dict) or entry.get("link"):
        return False
    if entry.get("inBundle"):
        return True
    resolved = entry.get("resolved", "https://")
    return isinstance(resolved, str) and resolved.startswith("https://") and bool(entry.get("integrity"))


def first_error(said: str) -> str:
    """Return the first reason that npm prints for a failure."""
    lines = [line.strip() for line in said.splitlines()]
    reasons = [found[1] for line in lines if (found := _REASON.match(line))]
    return (reasons or lines or ["npm failed"])[0][:300]
