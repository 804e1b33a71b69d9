"""Checks of what npm installs: locks must name packages of a registry alone; reasons that npm prints are found."""

from typing import Any

from dgm.bounded_reading import parse_json
from dgm.errors import UserError

MANIFEST, LOCK = "package.json", "package-lock.json"
MODULES = "node_modules"


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


def first_error(said: bytes) -> str:
    """Return the first reason that npm prints for a failure."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines()]
    told = [line for line in lines if line.startswith("npm error ") and not line.startswith("npm error code")]
    return (told or lines or ["npm failed"])[0].removeprefix("npm error ")[:300]
