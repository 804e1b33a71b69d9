"""Installs what a commit declares into a folder, by uv in a build's sandbox: wheels only, so no code of theirs runs.

The project itself is never in it as a copy: only its name, version and entry points, for programs that ask for them.
"""

import asyncio
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dgm.benchmarks.environments import FOLDER, PACKAGES
from dgm.benchmarks.mining.declarations import Declarations, name_of, normalise
from dgm.benchmarks.mining.stored_environments import CannotInstall, store_environment
from dgm.plain_requirements import plain_requirement
from dgm.protocols import Builder, BuildSandbox

INSTALL_S = 900.0
ALWAYS = ("pytest", "coverage")
_LIBC = "manylinux_2_28"
"""Packages for any system with this C library, or a newer one."""
_SAID = 300
MOST_LEFT_OUT = 8
"""Maximum number of test libraries that are left out because no version of them fits."""


@dataclass(frozen=True, slots=True)
class SandboxPython:
    """The Python that the packages are for."""

    version: str
    machine: str


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment that was built."""

    name: str
    remark: str
    """Difference from what is declared; empty if there is none."""


async def build_environment(
    declared: Declarations,
    more: Sequence[str],
    day: str,
    python: SandboxPython,
    suite: Path,
    builder: Builder,
) -> Installed:
    """Install an environment below the suite's ``environments/``, unless it is there.

    Args:
        declared: what is installed.
        more: names of further test libraries, which are left out where they do not fit.
        day: the newest day of packages, as ``2026-11-27``.
        python: what they are for.
        suite: the suite's folder.
        builder: opens the sandbox of the installation.

    Raises:
        CannotInstall: no way to install it succeeds.
        Infrastructure: the sandbox failed.
    """
    with draft_folder(suite) as draft:
        remark = await _install_somehow(declared, more, day, python, builder, draft / PACKAGES)
        return Installed(
            await asyncio.to_thread(keep_packages, draft / PACKAGES, declared, python, suite), remark
        )


@contextmanager
def draft_folder(suite: Path) -> Iterator[Path]:
    """Yield a folder beside a suite's environments, which is removed at the end."""
    (suite / FOLDER).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=suite / FOLDER) as name:
        yield Path(name)


def keep_packages(packages: Path, declared: Declarations, python: SandboxPython, suite: Path) -> str:
    """Give a draft its name, and return it."""
    _tidy(packages, declared)
    return store_environment(packages, _record(packages, declared, python), suite)


async def _install_somehow(
    declared: Declarations,
    more: Sequence[str],
    day: str,
    python: SandboxPython,
    builder: Builder,
    packages: Path,
) -> str:
    failure, spare = "", {name_of(one) for one in declared.tests} | {*more}
    left_out: list[str] = []
    async with builder.open() as room:
        for number, (requirements, until, remark) in enumerate(_attempts(declared, more, day)):
            while True:
                named = {one: plain_requirement(one) for one in requirements}
                wanted = [plain for one, plain in named.items() if plain and name_of(one) not in left_out]
                target = f"{packages.name}-{number}-{len(left_out)}"
                failure = await _install(room, wanted, until, python, target)
                if not failure:
                    await room.fetch(target, packages)
                    foreign = [one[:_SAID] for one, plain in named.items() if not plain]
                    without = ", ".join([*sorted(left_out), *foreign])
                    return "; ".join(filter(None, [remark, without and f"without {without}"]))
                blamed = [
                    name_of(one)
                    for one in wanted
                    if name_of(one) in spare and _is_blamed(name_of(one), failure)
                ]
                if not blamed or len(left_out) >= MOST_LEFT_OUT:
                    break
                left_out.append(blamed[0])
    raise CannotInstall(failure[-_SAID:])


def _is_blamed(name: str, failure: str) -> bool:
    """Return whether the installer names a package as the cause: none of its versions fits."""
    spelled = re.escape(name).replace(r"\-", "[-_.]")
    no_version = rf"versions? of {spelled}(?:\[[^\]]*\])? (?:have|has|is|are)\b"
    blaming = rf"{no_version}|{spelled} was not found|for {spelled}(?![-\w])"
    return re.search(blaming, failure, re.IGNORECASE) is not None


def _attempts(
    declared: Declarations, more: Sequence[str], day: str
) -> Iterator[tuple[Sequence[str], str, str]]:
    needed, tests = declared.needed, declared.tests
    free = sorted({name_of(one) for one in (*needed, *tests)})
    known = {*free, *ALWAYS}
    others = [name for name in more if name not in known]
    yield (*needed, *tests, *others), day, ""
    yield (*needed, *tests), day, "without test libraries of other times" if others else ""
    yield (*needed, *sorted({name_of(one) for one in tests})), day, "test libraries of any version"
    yield free, day, "packages of any version"
    yield needed, day, "without test libraries"
    yield (*needed, *tests), "", "with the newest packages"
    yield free, "", "with the newest packages of any version"


async def _install(
    room: BuildSandbox, requirements: Sequence[str], until: str, python: SandboxPython, target: str
) -> str:
    """Return why it fails; empty if it does not."""
    words = ["uv", "pip", "install", "--no-config", "--only-binary", ":all:", "--python", "python3"]
    words += ["--python-version", python.version, "--python-platform", f"{python.machine}-{_LIBC}"]
    words += ["--exclude-newer", until] if until else []
    words += ["--target", f"../{target}", "--", *dict.fromkeys([*ALWAYS, *requirements])]
    done = await room.run(words, name="empty", timeout_s=INSTALL_S)
    said = " ".join(line.strip(" ×╰─▶│|`->") for line in done.output.splitlines() if line.strip())
    return done.explain(said or f"exit status {done.exit_code}") if done.exit_code else ""


def _tidy(packages: Path, declared: Declarations) -> None:
    """Make the folder the same wherever it is built, take the project's own copy out, and add what names it."""
    for found in sorted(packages.rglob("__pycache__")):
        shutil.rmtree(found)
    for name in (".lock", ".gitignore", "CACHEDIR.TAG"):
        (packages / name).unlink(missing_ok=True)
    for script in sorted((packages / "bin").glob("*")) if (packages / "bin").is_dir() else ():
        _make_portable(script)
    for record in sorted(packages.glob("*.dist-info")):
        if _project_of(record) in (declared.project, *declared.held) or _shadows_python(record):
            _remove_distribution(record)
    for record in sorted(packages.glob("*.dist-info/RECORD")):
        lines = [
            line
            for line in record.read_text(encoding="utf-8").splitlines()
            if not re.match(r"(?:\.\./)*bin/", line)
        ]
        record.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
    for made in packages.glob("*.dist-info/direct_url.json"):
        made.unlink()
    if declared.project:
        _name_project(packages, declared)
    for path in (packages, *packages.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _make_portable(script: Path) -> None:
    """Let a Python script start with whatever Python the sandbox has."""
    data = script.read_bytes() if script.is_file() else b""
    if not data.startswith(b"#!") or b"python" not in data[:_SAID]:
        return
    body = data.partition(b"\n'''\n")[2] if data.startswith(b"#!/bin/sh") else data.partition(b"\n")[2]
    script.write_bytes(b"#!/usr/bin/env python3\n" + body)


def _project_of(record: Path) -> str:
    return normalise(record.name.removesuffix(".dist-info").rpartition("-")[0])


def _shadows_python(record: Path) -> bool:
    """Return whether a package has a module under the name of one of Python's own, as backports have (``enum34``)."""
    file = record / "RECORD"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    tops = {line.split(",", 1)[0].split("/", 1)[0] for line in lines if ".py," in line}
    return any(top.removesuffix(".py") in sys.stdlib_module_names for top in tops)


def _remove_distribution(record: Path) -> None:
    top = record.parent.resolve()
    for line in (record / "RECORD").read_text(encoding="utf-8").splitlines():
        path = (top / line.rsplit(",", 2)[0].strip('"')).resolve()
        if path.is_relative_to(top) and path.is_file():
            path.unlink()
    shutil.rmtree(record, ignore_errors=True)


def _name_project(packages: Path, declared: Declarations) -> None:
    version = declared.version if re.match(r"\d[\w.!+-]*$", declared.version) else "0"
    folder = packages / f"{declared.project.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {declared.project}\nVersion: {version}\n")
    groups: dict[str, list[str]] = {}
    for group, name, what in declared.scripts:
        groups.setdefault(group, []).append(f"{name} = {what}\n")
    text = "".join(f"[{group}]\n{''.join(lines)}\n" for group, lines in sorted(groups.items()))
    (folder / "entry_points.txt").write_text(text, encoding="utf-8")
    (packages / "bin").mkdir(exist_ok=True)
    for name, what in sorted(
        (name, what) for group, name, what in declared.scripts if group == "console_scripts"
    ):
        module, _, attribute = what.partition("[")[0].strip().partition(":")
        if (
            re.fullmatch(r"\w[\w.-]*", name)
            and re.fullmatch(r"[\w.]+", module)
            and re.fullmatch(r"[\w.]+", attribute)
        ):
            script = packages / "bin" / name
            top = attribute.split(".")[0]
            script.write_text(
                f"#!/usr/bin/env python3\nimport sys\n\nfrom {module} import {top}\n\nsys.exit({attribute}())\n"
            )
            script.chmod(0o755)


def _record(packages: Path, declared: Declarations, python: SandboxPython) -> Mapping[str, object]:
    compiled = any(path.suffix == ".so" for path in packages.rglob("*.so*"))
    pins = [record.name.removesuffix(".dist-info") for record in packages.glob("*.dist-info")]
    listed = sorted("==".join(pin.rsplit("-", 1)) for pin in pins)
    return {
        "python": python.version,
        "machine": python.machine if compiled else "",
        "roots": list(declared.roots),
        "requirements": listed,
    }
