"""Lays out a workspace and runs its named tests by a tool of their language inside the sandbox.

Standard library only (Python >= 3.9). dgm does not import it but puts it into the sandbox as a file, beside
``named_runner.py`` and ``exam_runner.py``, whose parts it uses, and the folder ``test_tools`` with what runs in the
tool itself. The host says which tool it is, what is restored and laid over, and which tests run.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgm.benchmarks import command_watcher, exam_runner, named_runner
else:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import command_watcher
    import exam_runner
    import named_runner

MODULES = "node_modules"
PACKAGES = f"/{MODULES}"
PROGRAMS = f"{PACKAGES}/.bin"
NODE_FILES = re.compile(r".*[._-]test\.[cm]?[jt]sx?|test(?:-.*)?\.[cm]?[jt]sx?")
MOCHA_FILES = re.compile(r"test/[^/]+\.[cm]?js")
BY_FILE = ("node", "mocha")
"""Tools that run each file in a process of its own."""
SCRIPTS = re.compile(r".*\.[cm]?[jt]sx?")
SOURCES = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
MESSAGE = 6000
"""Maximum characters of what a build says."""
RESULTS = 3
"""Descriptor by which the tool tells results."""
START = """\
import os, subprocess, sys
os.dup2(int(sys.argv[1]), {results})
done = subprocess.run({command!r}, cwd={cwd!r}, env={{**os.environ, **{env!r}}}, pass_fds=[{results}], check=False)
# Tools end with 1 where a test fails, and two tests always do.
os._exit(0 if done.returncode == 1 else done.returncode if done.returncode > 1 else -min(0, done.returncode))
"""


def main() -> None:
    """Read the assignment, prepare the workspace, build it, run the tests, report once."""
    exam_runner.hide_from_siblings()
    here = Path(__file__).resolve().parent
    parts = {file.name: file.read_text(encoding="utf-8") for file in (here / "test_tools").iterdir()}
    task = json.load(sys.stdin)
    workdir, place = Path(task["workdir"]), Path(task["place"])
    shutil.copytree(place / "start", workdir, symlinks=True, dirs_exist_ok=True)
    refusal, notes = exam_runner.apply(place / "runner" / "apply_patch.py", place / "patch", workdir)
    if refusal:
        exam_runner.report(task["nonce"], stage="refused", reason=refusal)
        return
    exam_runner.report(task["nonce"], stage="prepared", notes=notes)
    named_runner.put_back(place, workdir, task)
    run = ToolRun(task, workdir, parts)
    began = time.monotonic()
    run.perform(began + task["timeout_s"])
    done = {
        "outcomes": run.outcomes,
        "failures": run.failures,
        "problem": run.problem,
        "messages": run.messages,
        "broken": run.broken,
        "foreign": [],
    }
    text = base64.b64encode(run.log[: exam_runner.LOG_LIMIT]).decode("ascii")
    exam_runner.report(task["nonce"], stage="done", **done, log=text, seconds=time.monotonic() - began)


class ToolRun:
    """All processes of one grading, and what they said together."""

    def __init__(self, task: dict[str, Any], workdir: Path, parts: dict[str, str]) -> None:
        self._task = task
        self._tool: dict[str, Any] = task["tool"]
        self._workdir = workdir
        self._parts = parts
        self._held = self._read_held()
        self._own = exam_runner.OwnSource(self._read_sources())
        self._packages = find_packages(workdir)
        self.outcomes: dict[str, str] = {}
        self.failures: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        self.problem = ""
        self.log = b""

    def perform(self, deadline: float) -> None:
        """Build the workspace and run the tests, all within a time."""
        for command in self._tool["build"]:
            if self._build(command, deadline):
                return
        self._hold()
        named = self._tool["files"]
        files = named or self._find_files()
        for group in [[file] for file in files] if self._tool["kind"] in BY_FILE else [files]:
            if not self._run(group, deadline):
                return

    def _run(self, files: list[str], deadline: float) -> bool:
        """Run the tool once; return whether another run makes sense."""
        tests = self._task["tests"]
        wanted = None if tests is None else [test for test in tests if test.split("::", 1)[0] in files]
        process = ToolProcess(wanted)
        folder = Path("/tmp", f"dgm-{secrets.token_hex(8)}")
        folder.mkdir(mode=0o755)
        for name, text in self._parts.items():
            (folder / name).write_text(text, encoding="utf-8")
        command, env = tool_command(self._tool, str(folder), files)
        env = {**env, "PATH": f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{PROGRAMS}"}
        env = {**env, "DGM_CONTROLS": " ".join(process.control_names)}
        program = START.format(command=command, cwd=str(self._workdir), env=env, results=RESULTS)
        given = {
            "workdir": str(self._workdir),
            "files": files,
            "folder": str(folder),
            "survey": tests is None,
        }
        left = deadline - time.monotonic()
        # Where no file is named, the tool finds any number of them.
        left = min(left, self._tool["limit_s"] * len(files)) if files else left
        process.run(program, given, max(0.1, left))
        end_others()
        shutil.rmtree(folder, ignore_errors=True)
        self._take(process)
        return time.monotonic() < deadline

    def _take(self, process: ToolProcess) -> None:
        problem = process.problem or self._find_changes()
        self.outcomes |= process.outcomes
        self.failures |= {test: self._own.describe(said) for test, said in process.failures.items()}
        self.messages |= process.messages
        self.broken |= process.broken
        self.log += process.log()
        self.problem = self.problem or problem

    def _build(self, command: str, deadline: float) -> bool:
        """Run a command of the build; return whether it fails."""
        env = {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{PROGRAMS}"}
        with subprocess.Popen(
            ["sh", "-c", command], cwd=self._workdir, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        ) as process:  # fmt: skip
            said = b""
            try:
                said, _ = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
                code = process.returncode
            except subprocess.TimeoutExpired:
                code = -signal.SIGKILL
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        end_others()
        self.log += said[-exam_runner.LOG_HALF :]
        if code:
            end = said.decode("utf-8", "replace").strip()[-MESSAGE:]
            self.broken["(build)"] = end or f"exit status {code}"
            self.problem = f"the build fails (exit status {code})" if code > 0 else "the build was ended"
        return bool(code)

    def _hold(self) -> None:
        """Put tests and configuration back as they were before the build, and remove packages that it made."""
        if self._tool["build"]:
            for name, (data, mode) in self._held.items():
                path = self._workdir / name
                exam_runner.remove(path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                path.chmod(mode)
            for added in find_packages(self._workdir) - self._packages:
                exam_runner.remove(self._workdir / added)

    def _find_changes(self) -> str:
        """Return what a run changed that decides on tests; empty if it changed nothing of it."""
        if find_packages(self._workdir) - self._packages:
            return f"the tests were tampered with: packages appeared in {MODULES}"
        for name, (data, _) in self._held.items():
            path = self._workdir / name
            if not path.is_file() or path.read_bytes() != data:
                return "the tests were tampered with: one of their files was changed"
        return ""

    def _read_held(self) -> dict[str, tuple[bytes, int]]:
        """Return the files that configure the tests, or are tests, and their modes."""
        found = {}
        for name in named_runner.listed(self._workdir):
            path = self._workdir / name
            if not path.is_symlink() and named_runner.matches(name, self._task["restored"]):
                found[name] = (path.read_bytes(), path.stat().st_mode & 0o777)
        return found

    def _read_sources(self) -> dict[str, str]:
        """Return the code of the project, bytes as Latin-1; lines of it may be shown."""
        found = {}
        for name in named_runner.listed(self._workdir):
            path = self._workdir / name
            small = name.endswith(SOURCES) and name not in self._held and not path.is_symlink()
            if small and path.stat().st_size <= exam_runner.SOURCE_LIMIT:
                found[name] = path.read_bytes().decode("latin-1")
        return found

    def _find_files(self) -> list[str]:
        """Return the test files of node's own rules or patterns; those of other tools find their own."""
        if self._tool["kind"] not in BY_FILE:
            return []
        names = [name for name in named_runner.listed(self._workdir) if MODULES not in name.split("/")]
        if not self._tool["patterns"]:
            first = [name for name in names if self._tool["kind"] == "mocha" and MOCHA_FILES.fullmatch(name)]
            return first or [name for name in names if is_node_test(name)]
        found: list[str] = []
        for pattern in self._tool["patterns"]:
            plain = pattern.removeprefix("./").rstrip("/") if pattern != "." else ""
            below = [name for name in names if is_below(name, plain)]
            hits = sorted(self._workdir.glob(plain)) if plain and not below else []
            found += below or [
                str(hit.relative_to(self._workdir)) for hit in hits if SCRIPTS.fullmatch(hit.name)
            ]
        return list(dict.fromkeys(found))


class ToolProcess(named_runner.TestProcess):
    """One process of a tool; where it runs several files, the tests that must fail do so in each of them."""

    @property
    def control_names(self) -> list[str]:
        """The names of the tests that must fail."""
        return list(self._controls)

    def _said(self) -> list[dict[str, Any]]:
        """Add a line for each test that failed as it must in all files that told of any test."""
        found = super()._said()
        lines = self._lines()
        told = {str(said["test"]).split("::", 1)[0] for said in found if isinstance(said.get("test"), str)}
        for control in self._controls:
            failed = {str(said.get("file")) for said in lines if said.get("control") == control}
            if failed and told <= failed:
                found.append({"test": control, "outcome": "failed"})
        return found


def tool_command(tool: dict[str, Any], folder: str, files: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command and the variables by which a tool runs test files; none: all that it finds."""
    env = {"CI": "1", "NO_COLOR": "1", "FORCE_COLOR": "0", **dict(tool["env"])}
    node = ["node", *tool["flags"]]
    if tool["kind"] == "vitest":
        return [*node, f"{folder}/vitest_main.mjs", *tool["options"], *tool["patterns"]], env
    if tool["kind"] == "jest":
        own = [f"--reporters={folder}/jest_reporter.cjs", f"--testRunner={folder}/jest_runner.cjs"]
        own += ["--ci", "--coverage=false", "--watchman=false", "--colors=false", "--maxWorkers=2"]
        own += ["--cacheDirectory=/tmp/dgm-jest-cache"]
        named = ["--runTestsByPath", *files] if files else tool["patterns"]
        return [*node, f"{PACKAGES}/jest/bin/jest.js", *tool["options"], *own, *named], env
    if tool["kind"] == "mocha":
        return [*node, f"{folder}/mocha_entry.mjs", *tool["options"]], env
    reporter = [f"--test-reporter={folder}/node_reporter.mjs", "--test-reporter-destination=stdout"]
    return [*node, *reporter, f"{folder}/node_entry.mjs"], env


def is_node_test(name: str) -> bool:
    """Return whether node runs a file as a test where none is named."""
    *folders, file = name.split("/")
    return bool(NODE_FILES.fullmatch(file) or ("test" in folders and SCRIPTS.fullmatch(file)))


def is_below(name: str, folder: str) -> bool:
    """Return whether a folder that was named holds a file that node runs as a test."""
    within = not folder or name.startswith(f"{folder}/")
    rest = f"{folder.rpartition('/')[2]}/{name[len(folder) + 1 :]}" if folder else name
    return within and is_node_test(rest)


def find_packages(workdir: Path) -> set[str]:
    """Return the packages in the workspace; caches, whose names begin with a dot, are none."""
    found = set()
    for here, folders, names in os.walk(workdir):
        if here.rpartition("/")[2] == MODULES:
            found |= {
                os.path.relpath(f"{here}/{name}", workdir) for name in [*folders, *names] if name[0] != "."
            }
            folders[:] = []
    return found


def end_others() -> None:
    """End all other processes of this user but those that this one descends from."""
    if os.getuid():
        parents = command_watcher.ancestors()
        for pid in command_watcher.processes():
            if pid not in parents:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
