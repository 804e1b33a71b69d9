"""Installs what a commit declares into a folder, by uv or pip: wheels only, so that none of their code runs here.

The project itself is never in it as a copy: only its name, version and entry points, for programs that ask for them.
"""

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dgm.benchmarks.environments import FOLDER, NAME_LENGTH, PACKAGES, environment_digest
from dgm.benchmarks.mining.declarations import Declarations, name_of, normalise
from dgm.benchmarks.mining.toml_writing import toml_text
from dgm.errors import UserError
from dgm.processes import run_apart

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


class CannotInstall(Exception):
    """The declared packages cannot be installed; the message is the installer's own."""


def find_installer() -> Sequence[str]:
    """Return the command of uv, from the extra ``dgm[mine]`` or the search path; else that of pip.

    Raises:
        UserError: there is neither.
    """
    if importlib.util.find_spec("uv"):
        return [importlib.import_module("uv").find_uv_bin(), "pip", "install"]
    if found := shutil.which("uv"):
        return [found, "pip", "install"]
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    raise UserError("neither uv nor pip is installed; install one: pip install 'dgm[mine]'")


def build_environment(
    declared: Declarations, more: Sequence[str], day: str, python: SandboxPython, suite: Path
) -> Installed:
    """Install an environment below the suite's ``environments/``, unless it is there.

    Args:
        declared: what is installed.
        more: names of further test libraries, which are left out where they do not fit.
        day: the newest day of packages, as ``2026-11-27``.
        python: what they are for.
        suite: the suite's folder.

    Raises:
        CannotInstall: no way to install it succeeds.
    """
    with _draft(suite) as packages:
        remark = _install_somehow(declared, more, day, python, packages)
        return Installed(_keep(packages, declared, python, suite), remark)


def run_setup(
    command: str, checkout: Path, declared: Declarations, python: SandboxPython, suite: Path
) -> Installed:
    """Build an environment by the user's own command, run by a shell in a checkout; ``$DGM_PACKAGES`` is its target.

    Raises:
        UserError: the command fails, or leaves no package.
    """
    with _draft(suite) as packages:
        packages.mkdir()
        env = {**os.environ, "DGM_PACKAGES": str(packages.absolute()), "DGM_PYTHON": python.version}
        done = _run(["sh", "-c", command], checkout, env)
        if done is None:
            raise UserError(f"--setup took more than {INSTALL_S:.0f} s")
        if done.returncode:
            said = (done.stderr or done.stdout).strip().rpartition("\n")[2][:_SAID]
            told = f": {said}" if said else ", and said nothing"
            raise UserError(f"--setup ended with exit status {done.returncode}{told}")
        if not any(packages.iterdir()):
            raise UserError(
                "--setup left nothing in $DGM_PACKAGES; let it install there: pip install --target …"
            )
        return Installed(_keep(packages, declared, python, suite), "by --setup")


@contextmanager
def _draft(suite: Path) -> Iterator[Path]:
    (suite / FOLDER).mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=suite / FOLDER))
    try:
        yield draft / PACKAGES
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _keep(packages: Path, declared: Declarations, python: SandboxPython, suite: Path) -> str:
    """Give a draft its name, and return it."""
    _tidy(packages, declared)
    (packages.parent / "environment.toml").write_text(_record(packages, declared, python), encoding="utf-8")
    name = environment_digest(packages.parent)[:NAME_LENGTH]
    if not (suite / FOLDER / name).exists():
        packages.parent.chmod(0o755)
        packages.parent.replace(suite / FOLDER / name)
    return name


def _run(
    words: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> "subprocess.CompletedProcess[str] | None":
    """Run an installer; return None if it takes too long."""
    try:
        done = run_apart(words, cwd=cwd, env=env, timeout_s=INSTALL_S)
    except subprocess.TimeoutExpired:
        return None
    out, errors = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, errors)


def _install_somehow(
    declared: Declarations, more: Sequence[str], day: str, python: SandboxPython, packages: Path
) -> str:
    failure, spare = "", {name_of(one) for one in declared.tests} | {*more}
    left_out: list[str] = []
    for requirements, until, remark in _attempts(declared, more, day):
        while True:
            shutil.rmtree(packages, ignore_errors=True)
            wanted = [one for one in requirements if name_of(one) not in left_out]
            failure = _install(wanted, until, python, packages)
            if not failure:
                without = f"without {', '.join(sorted(left_out))}" if left_out else ""
                return "; ".join(filter(None, [remark, without]))
            blamed = [
                name_of(one) for one in wanted if name_of(one) in spare and _is_blamed(name_of(one), failure)
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


def _install(requirements: Sequence[str], until: str, python: SandboxPython, packages: Path) -> str:
    """Return why it fails; empty if it does not."""
    words = list(find_installer())
    words += [
        "--target",
        str(packages),
        "--only-binary",
        ":all:",
        "--no-compile",
        "--python-version",
        python.version,
    ]
    if words[1] == "pip":
        words += [
            "--python",
            sys.executable,
            "--python-platform",
            f"{python.machine}-{_LIBC}",
            "--link-mode",
            "copy",
        ]
        words += ["--exclude-newer", until] if until else []
    else:
        tags = (_LIBC, "manylinux_2_17", "manylinux2014", "manylinux2010", "manylinux1", "linux")
        words += [word for tag in tags for word in ("--platform", f"{tag}_{python.machine}")]
    with tempfile.TemporaryDirectory(prefix="dgm-mine-") as nowhere:
        done = _run([*words, "--", *dict.fromkeys([*ALWAYS, *requirements])], Path(nowhere), os.environ)
    if done is None:
        return f"not installed within {INSTALL_S:.0f} s"
    said = " ".join(line.strip(" ×╰─▶│|`->") for line in done.stderr.splitlines() if line.strip())
    return (said or f"exit status {done.returncode}") if done.returncode else ""


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
    """Let a Python script start with whatever Python the sandbox has; remove what cannot."""
    data = script.read_bytes()
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
            re.fullmatch(r"[\w.-]+", name)
            and re.fullmatch(r"[\w.]+", module)
            and re.fullmatch(r"[\w.]+", attribute)
        ):
            script = packages / "bin" / name
            top = attribute.split(".")[0]
            script.write_text(
                f"#!/usr/bin/env python3\nimport sys\n\nfrom {module} import {top}\n\nsys.exit({attribute}())\n"
            )
            script.chmod(0o755)


def _record(packages: Path, declared: Declarations, python: SandboxPython) -> str:
    compiled = any(path.suffix == ".so" for path in packages.rglob("*.so*"))
    pins = [record.name.removesuffix(".dist-info") for record in packages.glob("*.dist-info")]
    listed = sorted("==".join(pin.rsplit("-", 1)) for pin in pins)
    return toml_text(
        {
            "python": python.version,
            "machine": python.machine if compiled else "",
            "roots": list(declared.roots),
            "requirements": listed,
        }
    )
