"""Wheels from the package index: resolved for one Python, kept once by their digests, unpacked into a folder.

pip resolves and unpacks; it never builds, so that no code of a package runs outside a sandbox.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.errors import UserError
from dgm.paths import cache_folder
from dgm.sandboxes.preparing import Preparation

INSTALL_S = 1800
_INTERPRETER = re.compile(
    rb"#![^\n]*python[^\n]*\n|#!/bin/sh\n'''exec' [^\n]*python[^\n]* \"\$0\" \"\$@\"\n' '''\n"
)
"""First lines of a package's command: with a path to Python, and with one that is too long for the kernel."""
_ANY_PYTHON = b"#!/usr/bin/env python3\n"
_NAME = re.compile(r"(?:Collecting|Downloading|Processing|Using cached) (?:\S*/)?([A-Za-z0-9_.]+)")


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel of a resolution."""

    name: str
    version: str
    url: str
    sha256: str
    """Empty if the index does not say it."""


def resolve_wheels(requires: Sequence[str], target: Sequence[str], told: Preparation) -> Sequence[Wheel]:
    """Return the wheels that requirements stand for, sorted by name.

    Args:
        requires: names and versions.
        target: pip's options for the Python that is to load them.
        told: hears of the progress.

    Raises:
        UserError: there are none; the message quotes pip.
    """
    told.say(f"looking up {', '.join(requires)}")
    with tempfile.TemporaryDirectory(prefix="dgm-resolve-") as scratch:
        report = Path(scratch, "report.json")
        words = ["install", "--dry-run", "--ignore-installed", "--report", str(report)]
        # Some versions of pip take options of another platform only together with a target.
        words += ["--target", str(Path(scratch, "unused")), *target]
        _run_pip([*words, "--", *requires], requires, lambda line: _note(told, "looking up", line))
        found = json.loads(report.read_bytes())
    return sorted((_read_wheel(entry) for entry in found["install"]), key=lambda wheel: wheel.name)


def fetch_wheels(wheels: Sequence[Wheel], target: Sequence[str], told: Preparation) -> Sequence[Path]:
    """Return the files of wheels; download those that are not kept yet.

    Raises:
        UserError: one cannot be had; the message quotes pip.
    """
    store = cache_folder("wheels")
    kept = {wheel: _find_kept(store, wheel.sha256) for wheel in wheels}
    missing = [wheel for wheel, file in kept.items() if file is None]
    if missing:
        told.say(f"downloading {len(missing)} of {len(wheels)} packages")
        with tempfile.TemporaryDirectory(prefix="draft-", dir=store) as draft:
            words = ["download", "--no-deps", "--dest", draft, *target, "--"]
            places = [f"{wheel.name} @ {_pin(wheel)}" for wheel in missing]
            _run_pip([*words, *places], places, lambda line: _note(told, "downloading", line))
            for file in Path(draft).glob("*.whl"):
                folder = store / _digest_of(file)
                folder.mkdir(exist_ok=True)
                file.replace(folder / file.name)
                kept |= {
                    wheel: folder / file.name
                    for wheel in missing
                    if wheel.sha256 in ("", folder.name) and _is_of(file.name, wheel)
                }
    files = [file for file in kept.values() if file is not None]
    if len(files) != len(wheels):
        lost = ", ".join(wheel.name for wheel, file in kept.items() if file is None)
        raise UserError(f"agent.toml: requires: not downloaded: {lost}; try again")
    return files


def unpack_wheels(
    files: Sequence[Path], folder: Path, target: Sequence[str], told: Preparation, *, compiled: bool
) -> None:
    """Install wheels into a folder.

    Raises:
        UserError: pip fails; the message quotes it.
    """
    told.say(f"installing {len(files)} packages, {sum(file.stat().st_size for file in files) / 1e6:.0f} MB")
    words = ["install", "--no-index", "--no-deps", "--target", str(folder), *target]
    # Bytecode of another version would be useless.
    words += ["--compile" if compiled else "--no-compile", "--", *map(str, files)]
    _run_pip(words, [file.name for file in files], lambda _: told.note("installing"))
    for script in sorted((folder / "bin").glob("*")):
        free_script(script)


def free_script(script: Path) -> None:
    """Let a package's command start with the Python of the sandbox; pip names the one that installed it."""
    if script.is_symlink() or not script.is_file():
        return
    found = _INTERPRETER.match(script.read_bytes())
    if found:
        script.write_bytes(_ANY_PYTHON + script.read_bytes()[found.end() :])


def _read_wheel(entry: dict[str, Any]) -> Wheel:
    place, said = entry["download_info"], entry["metadata"]
    sha256 = place.get("archive_info", {}).get("hashes", {}).get("sha256", "")
    return Wheel(str(said["name"]), str(said["version"]), str(place["url"]), str(sha256))


def _find_kept(store: Path, sha256: str) -> Path | None:
    found = sorted((store / sha256).glob("*.whl")) if sha256 else []
    return found[0] if found else None


def _digest_of(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _pin(wheel: Wheel) -> str:
    return f"{wheel.url}#sha256={wheel.sha256}" if wheel.sha256 else wheel.url


def _is_of(file: str, wheel: Wheel) -> bool:
    name, version = file.split("-")[:2]
    return (_canonical(name), version) == (_canonical(wheel.name), wheel.version.replace("-", "_"))


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _note(told: Preparation, doing: str, line: str) -> None:
    found = _NAME.match(line.strip())
    if found:
        told.note(f"{doing} {found[1]}")


def _environment(words: Sequence[str]) -> dict[str, str]:
    """Return the variables of pip; the user's constraints hold for the resolution alone, and wheels follow that."""
    hidden = () if "--dry-run" in words else ("PIP_CONSTRAINT",)
    given = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**given, "PYTHONUNBUFFERED": "1"}


def _run_pip(words: Sequence[str], requires: Sequence[str], hears: Callable[[str], None]) -> None:
    """Run pip; ``hears`` gets each line of its output.

    Raises:
        UserError: it fails, or takes more than ``INSTALL_S``.
    """
    # Use -P and an empty working folder: no file in the user's current folder is run or installed.
    command = [sys.executable, "-P", "-m", "pip", *words[:1], "--disable-pip-version-check"]
    command += ["--progress-bar", "off", *words[1:]]
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="dgm-pip-") as empty:
        process = subprocess.Popen(
            command,
            cwd=empty,
            env=_environment(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        late = threading.Timer(INSTALL_S, process.kill)
        late.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line.rstrip())
                hears(line)
        except BaseException:
            process.kill()
            raise
        finally:
            was_late = not late.is_alive()
            late.cancel()
            process.communicate()
    if was_late:
        raise UserError(f"agent.toml: requires: not installed within {INSTALL_S} s")
    if process.returncode:
        told = [line for line in lines if line.startswith("ERROR")] or ["pip failed"]
        raise UserError(f"agent.toml: requires = {list(requires)[:8]}: cannot be installed: {told[-1][:300]}")
