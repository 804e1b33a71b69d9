"""Grades a patch inside its sandbox: ``python3 -I -B sandbox_runner.py``; standard library only (Python >= 3.9).

dgm does not import it but puts it into the sandbox as a file. Standard input holds the assignment as JSON. It applies
the patch, puts tests and configuration back, adds the test that must fail, runs the tests, ends whatever they left
running, and prints a report with its HMAC under the assignment's key. No other process can read the key: this one
cannot be traced, and everything else is stopped before the results are read. The host decides what the results mean.
"""

from __future__ import annotations

import base64
import contextlib
import fnmatch
import hashlib
import hmac
import importlib.machinery
import json
import os
import re
import secrets
import shutil
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ctypes

MARK = "dgm-report"
CHUNK = 65536
LOG_HALF = 30_000
"""Bytes of the output's beginning, and of its end, that go to the host."""
OUTPUT_LIMIT = 64_000_000
"""Maximum bytes of an output, or of all reports together, that are read."""
PACKED_LIMIT = 8_000_000
REPORT_LIMIT = 2000
"""Maximum number of report files."""
DRAINED_S = 10.0
"""Seconds that the last output may take after all its writers were killed."""
MESSAGE = 6000
BUILD = "(build)"
BUILD_FOLDER, BUILD_PREFIX = "/tmp/dgm-build", "$DGM_BUILD/"
REWARD, PYTEST, JUNIT, JEST, GO_JSON, CARGO = "reward", "pytest", "junit", "jest", "go-json", "cargo"
PR_SET_DUMPABLE = 4
CLOSED_WRITTEN, OPENED, MOVED_TO, DELETED_SELF, MOVED_SELF, OVERFLOW = 0x8, 0x20, 0x80, 0x400, 0x800, 0x4000
NONBLOCKING_CLOSED_ON_EXEC = 0x80800
FATAL = (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
NOT_FOUND, NOT_STARTED = 127, 126
TAMPERED = "the tests were tampered with: "
LATE = "the tests did not end within {:g} s"
GO_CACHE, GO_WARM_CACHE = "/tmp/dgm-go-cache", "/opt/dgm/go-cache"
SETTINGS: dict[str, dict[str, str]] = {
    JUNIT: {
        "DGM_BUILD": BUILD_FOLDER,
        # A module with a failing test, as the control is, does not keep the next one from being built.
        "MAVEN_OPTS": "-Dmaven.test.failure.ignore=true -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    },
    CARGO: {
        "CARGO_HOME": "/tmp/dgm-cargo",
        # What a patch brings in the workspace's own target/ could pass for what was built.
        "CARGO_TARGET_DIR": "/tmp/dgm-target", "CARGO_NET_OFFLINE": "true", "CARGO_TERM_COLOR": "never",
        "CARGO_INCREMENTAL": "0", "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_TEST_DEBUG": "0",
        "RUST_BACKTRACE": "0",
    },
    GO_JSON: {
        "GOMODCACHE": "/opt/dgm-environment/mod", "GOCACHE": GO_CACHE, "GOPATH": "/tmp/dgm-go", "GOENV": "off",
        "GO111MODULE": "on", "GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOTELEMETRY": "off",
        "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0",
    },
}  # fmt: skip
UNHELD = ("Cargo.toml", "Cargo.lock", "*.class", "*.jar")
"""Restored files that a build may change."""
JVM_BUILDS = ("pom.xml", "build.gradle", "build.gradle.kts", "build.sbt", "build.xml")
JVM_BUILT = ("target", "build", "out")
"""Folders beside a build file that tools fill: what a patch brings in them could pass for what was built."""
TEST_MODULES = (
    "pytest", "_pytest", "pluggy", "iniconfig", "packaging", "exceptiongroup", "tomli", "pygments", "py",
    "attr", "nose", *sys.builtin_module_names,
)  # fmt: skip
"""Test runners of Python and what they import, and modules of Python that have no file."""
PROGRAMS = "/node_modules/.bin"
NODE_FILES = re.compile(r".*[._-]test\.[cm]?[jt]sx?|test(?:-.*)?\.[cm]?[jt]sx?")
SCRIPT = re.compile(r".*\.[cm]?[jt]sx?")
MODULE_SYNTAX = re.compile(r"^\s*(?:import\b(?!\s*\()|export\b)", re.M)
REPORTERS = {
    # In --test mode it runs in the process that starts the tests, apart from them.
    "node": ("reporter.mjs", """\
export default async function* (events) {
  const titles = [], assertionResults = [];
  for await (const { type, data } of events) {
    if (type === "test:start") titles.splice(data.nesting, Infinity, data.name);
    if (!["test:pass", "test:fail"].includes(type) || data.details?.type === "suite") continue;
    const left = data.skip !== undefined || data.todo !== undefined, error = data.details?.error;
    assertionResults.push({
      title: data.name,
      // Before node 20 a file is a test around its own.
      ancestorTitles: titles.slice(0, data.nesting).filter((title) => !title.endsWith(process.argv.at(-1))),
      status: left ? "skipped" : type === "test:pass" ? "passed" : "failed",
      failureMessages: error ? [String(error.cause?.stack ?? error.stack ?? error)] : [],
    });
  }
  yield JSON.stringify({ testResults: [{ assertionResults }] });
}
"""),
    "mocha": ("reporter.cjs", """\
const { writeFileSync } = require("node:fs");
module.exports = class {
  constructor(runner) {
    const results = {};
    const take = (status) => (test, error) => {
      const ancestorTitles = test.titlePath(), title = ancestorTitles.pop();
      results[test.file] ??= { name: test.file, assertionResults: [] };
      const failureMessages = error ? [String(error.stack)] : [];
      results[test.file].assertionResults.push({ title, ancestorTitles, status, failureMessages });
    };
    runner.on("pass", take("passed")).on("pending", take("skipped")).on("fail", take("failed"));
    runner.once("end", () => writeFileSync("{report}", JSON.stringify({ testResults: Object.values(results) })));
  }
};
"""),
}  # fmt: skip
"""Reporters of tools that have none in JSON with their titles, in the form of jest's."""
GO_FUNCTION = re.compile(r"^func (Test(?:[^\Wa-z]\w*)?)\(\s*(?:\w+\s+)?\*\s*(?:\w+\.)?T\s*\)", re.M)
GO_PACKAGE = re.compile(r"^package (\w+)", re.M)
GO_LEFT_OUT = ("vendor", "testdata", "node_modules")
GO_ROUNDS, GO_AT_ONCE = 12, 800
"""Maximum number of starts of a package whose tests end the program, and of tests that one start names."""
RUST_TESTS = re.compile(
    r"^(?:#\[[^\n]*\]\s*)*?#\[cfg\((?:test|all\((?![^\n]*\bnot\()[^\n]*\btest\b[^\n]*\))\)\]\s*(?:#\[[^\n]*\]\s*)*"
    r"(?:pub(?:\([^)]*\))?\s+)?mod\s+(?P<name>\w+)\s*\{(?:(?P<body>[ \t]*\n.*?^)|[^\n{}]*)\}[ \t]*\n?",
    re.M | re.S,
)
"""A module of tests at the top of a file, as rustfmt lays it out: its last brace begins a line."""
RUST_TEST = re.compile(r"#\[(?:\w+::)*(?:test|rstest|test_case)\b|\b(?:proptest|quickcheck)!")
GTEST = re.compile(r"^[ \t]*(GTEST_)?(?:TYPED_)?TEST(?:_F|_P)?\s*\(\s*\w+\s*,\s*\w+\s*\)", re.M)
CATCH = re.compile(
    r"^[ \t]*(CATCH_|DOCTEST_)?(?:TEMPLATE_(?:\w+_)?TEST_CASE|TEST_CASE|SCENARIO)\w*\s*\(", re.M
)
CPP_FILE = re.compile(r"\.(?:c|h|cc|hh|[ch]pp|[ch]xx)$")
CPP_FRAMEWORKS = (
    ("gtest", GTEST, re.compile(r"g(?:test|mock)/")),
    ("catch", CATCH, re.compile("catch|doctest")),
)
CTEST = re.compile(r"\bctest\b")
CTEST_DISCOVERS = re.compile(r"\b(?:gtest|catch|doctest)_discover_tests\s*\(|\bgtest_add_tests\s*\(", re.I)
LINES, LINE_LIMIT, SOURCE_LIMIT = 2, 120, 1_000_000
"""Maximum number of lines of the graded code that are shown of a failure, their length, and the size of a file."""
CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)", re.M)


def main() -> int:
    """Grade the patch, and print the reports."""
    task: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    if task["alone"] and os.getuid() == 0:
        sys.exit("it ends all other processes of its user: it runs in sandboxes only, and not as root")
    libc = protect()
    workdir, place, key = Path(task["workdir"]), Path(task["place"]), bytes.fromhex(task["key"])
    # Packages of the task are looked up last, so that none of them can break this program.
    sys.path += [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *task["pytest"][:1]]
    start = Path(task["start"])
    if start == place / "start" and start.is_dir():
        shutil.copytree(start, workdir, symlinks=True, dirs_exist_ok=True)
    refusal, notes = apply(place, workdir)
    if refusal:
        report(key, "refused", reason=refusal)
        return 0
    # From here on, what ends this program is the doing of the patch.
    report(key, "prepared", notes=notes, python="{}.{}".format(*sys.version_info[:2]))
    run = RUNS.get(task["results"], Run)(task, libc)
    try:
        run.lay_out(place, start)
        ended = {}
    except OSError as error:
        ended = {"problem": f"the tests cannot be put back in what the patch leaves: {error.strerror}"}
    began = time.monotonic()
    if not ended:
        run.perform(began + task["timeout_s"])
        ended = run.ended()
    run.output.finish()
    report(key, "done", seconds=time.monotonic() - began, **ended)
    return run.code


def report(key: bytes, stage: str, **about: object) -> None:
    """Print one line that only who knows the key can write."""
    text = json.dumps({"stage": stage, **about})
    seal = hmac.new(key, text.encode(), "sha256").hexdigest()
    write(f"\n{MARK} {seal} {text}\n".encode())


def apply(place: Path, workdir: Path) -> tuple[str, str]:
    """Apply the graded patch; return why it is refused, and notes on it. End this program where it cannot be tried."""
    program = place / "runner" / "apply_patch.py"
    done = subprocess.run(
        [sys.executable, "-I", "-B", program, place / "patch", workdir], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    line = done.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2]
    word, _, rest = line.partition(" ")
    if word not in ("applied", "refused"):
        reason = rest if word == "broken" else line[-200:]
        sys.exit(f"the patch could not be tried: {reason or done.returncode}")
    return (rest or "git gives no reason", "") if word == "refused" else ("", rest)


class Output:
    """The output of all that runs: its beginning is passed on at once, its end when all is over."""

    def __init__(self) -> None:
        self._begun = 0
        self._tail = bytearray()

    def take(self, data: bytes) -> None:
        """Take what a program printed."""
        head = data[: max(0, LOG_HALF - self._begun)]
        if head:
            write(head)
            self._begun += len(head)
        self._tail += data[len(head) :]
        if len(self._tail) > LOG_HALF:
            del self._tail[:-LOG_HALF]

    def finish(self) -> None:
        """Print the end."""
        cut = b"\n[...]\n" if len(self._tail) == LOG_HALF else b""
        write(cut + bytes(self._tail))
        self._tail.clear()


class Run:
    """One run of a test command whose exit status or reward counts."""

    def __init__(self, task: dict[str, Any], libc: ctypes.CDLL | None) -> None:
        self.task = task
        self.workdir = Path(task["workdir"])
        self.output = Output()
        self.problem = ""
        self.code, self.signal, self.left = 0, 0, 0
        self.reports: list[tuple[str, str]] = []
        self.more: dict[str, Any] = {}
        self._rewards = RewardFolder(task, libc) if task["results"] == REWARD else None

    def lay_out(self, place: Path, start: Path) -> None:
        """Put tests and configuration back, and the hidden ones in their place."""
        if self.task["restored"]:
            for root in [".", *self.task["roots"]]:
                remove_shadows(start / root, self.workdir / root)
        put_back(self.task, start, place / "hidden")
        # Nothing that a graded program could read, or change before a later test runs.
        shutil.rmtree(place, ignore_errors=True)

    def perform(self, deadline: float) -> None:
        """Run the tests."""
        self.execute(self.task["command"], deadline, self.task["env"])

    def execute(self, command: list[str], deadline: float, env: dict[str, str], **more: Any) -> bytes:  # noqa: ANN401
        """Run a program to its end, and end everything that it left; return what it printed.

        Args:
            command: the program and its arguments.
            deadline: of ``time.monotonic``; all of it is killed then.
            env: variables beside those of this process.
            more: further arguments of ``Popen``; ``stdin`` is what it is given to read.
        """
        kept = bytearray()

        def take(data: bytes) -> None:
            self.output.take(data)
            kept.extend(data[: max(0, OUTPUT_LIMIT - len(kept))])

        given: bytes = more.pop("stdin", b"")
        source, target = os.pipe()
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE if given else subprocess.DEVNULL, stdout=target, stderr=target,
                env={**os.environ, **env}, start_new_session=True, **{"cwd": self.workdir, **more},
            )  # fmt: skip
        except OSError as error:
            take(f"{command[0]}: {error.strerror}\n".encode())
            self.code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
            return bytes(kept)
        finally:
            os.close(target)
        reader = threading.Thread(target=drain, args=(source, take), daemon=True)
        reader.start()
        try:
            if process.stdin:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(given)
                    process.stdin.close()
            code = process.wait(max(0.1, deadline - time.monotonic()))
            self.code, self.signal = (code, 0) if code >= 0 else (128 - code, -code)
        except subprocess.TimeoutExpired:
            self.problem = LATE.format(self.task["timeout_s"])
        self.end_others(process)
        reader.join(DRAINED_S)
        return bytes(kept)

    def end_others(self, process: subprocess.Popen[bytes]) -> None:
        """End every other process; a reward is read while all of them stand still."""
        if self.task["alone"]:
            parents = ancestors()
            send(-1, signal.SIGSTOP)
            others = [pid for pid in processes() if pid not in parents]
            self.left = sum(not is_ending(pid) for pid in others)
            if self._rewards:
                self.more.update(self._rewards.read())
            for pid in others:
                send(pid, signal.SIGKILL)
            for pid in parents:
                send(pid, signal.SIGCONT)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def ended(self) -> dict[str, Any]:
        """Return what goes to the host."""
        text = json.dumps(self.reports).encode()
        packed = base64.b64encode(zlib.compress(text)).decode("ascii")
        if len(packed) > PACKED_LIMIT or len(text) > OUTPUT_LIMIT:
            packed, self.problem = "", self.problem or "the tests report more than can be read"
        end = {"code": self.code, "signal": self.signal, "left": self.left}
        return {**end, "problem": self.problem, "reports": packed, **self.more}


class CommandRun(Run):
    """One run of tests that are files of the workspace, beside a test that must fail in each of those files."""

    def __init__(self, task: dict[str, Any], libc: ctypes.CDLL | None) -> None:
        super().__init__(task, libc)
        path = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{PROGRAMS}"
        quiet = {"CI": "1", "NO_COLOR": "1", "FORCE_COLOR": "0", "PATH": path}
        self.env = {**quiet, **SETTINGS.get(task["results"], {}), **task["env"]}
        self.scratch = Path("/tmp", f"dgm-{secrets.token_hex(8)}")
        self.mark = f"dgm_{secrets.token_hex(8)}"
        self.controls: list[tuple[str, str]] = []
        """File and module of each test that must fail; its name ends with its number."""
        self.broken: dict[str, str] = {}
        self.held: dict[str, tuple[bytes, int]] = {}

    def lay_out(self, place: Path, start: Path) -> None:
        """Put tests and configuration back, and add the tests that must fail."""
        self.remove_built(start)
        super().lay_out(place, start)
        self.held = self.read_held()
        self.packages = find_packages(self.workdir)

    def remove_built(self, start: Path) -> None:
        """Remove folders that a patch brings and that tools of the JVM would take for their own."""
        for name in listed(self.workdir):
            folder, _, file = name.rpartition("/")
            for built in JVM_BUILT if file in JVM_BUILDS else ():
                if not (start / folder / built).exists():
                    remove(self.workdir / folder / built)

    def read_held(self) -> dict[str, tuple[bytes, int]]:
        """Return the files that configure the tests, or are tests, and their modes."""
        found = {}
        for name in listed(self.workdir):
            path = self.workdir / name
            if matches(name, self.task["restored"]) and not path.is_symlink() and not matches(name, UNHELD):
                found[name] = (path.read_bytes(), path.stat().st_mode & 0o777)
        return found

    def perform(self, deadline: float) -> None:
        """Build the workspace, add the tests that must fail, run all, and look whether tests were changed."""
        self.scratch.mkdir(mode=0o755)
        for command in self.task["build"]:
            said = self.execute(["sh", "-c", command], deadline, self.env)
            if self.code or self.problem:
                end = said.decode("utf-8", "replace").strip()[-MESSAGE:]
                self.broken[BUILD] = end or f"exit status {self.code}"
                self.problem = self.problem or f"the build fails (exit status {self.code})"
                return
        if self.task["build"]:
            self.restore_held()
        for name, text in self.add_controls():
            path = self.workdir / name
            path.write_bytes(text.encode("utf-8", "surrogateescape"))
            self.held[name] = path.read_bytes(), path.stat().st_mode & 0o777
        self.run_tests(deadline)
        self.problem = self.problem or self.find_changes()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def restore_held(self) -> None:
        """Put tests and configuration back as they were before the build, and remove packages that it made."""
        for name, (data, mode) in self.held.items():
            path = self.workdir / name
            remove(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(mode)
        for added in find_packages(self.workdir) - self.packages:
            remove(self.workdir / added)

    def find_changes(self) -> str:
        """Return what a run changed that decides on tests; empty if it changed nothing of it."""
        if find_packages(self.workdir) - self.packages:
            return f"{TAMPERED}packages appeared in node_modules"
        for name, (data, _) in self.held.items():
            path = self.workdir / name
            if path.is_symlink() or not path.is_file() or path.read_bytes() != data:
                return f"{TAMPERED}one of their files was changed"
        return ""

    def make_control(self, template: str, file: str, module: str = "", **more: str) -> str:
        """Return a new test that must fail, and remember whose it is."""
        self.controls.append((file, module))
        name = f"{self.mark}_{len(self.controls) - 1}"
        return template.format(name=name, secret=secrets.randbelow(10**6), **more)

    def read_text(self, name: str) -> str:
        """Return a file's text; bytes that are none come back as they were."""
        return (self.workdir / name).read_bytes().decode("utf-8", "surrogateescape")

    def add_controls(self) -> Iterable[tuple[str, str]]:
        """Yield files of tests and their texts with a test that must fail; those of JavaScript."""
        framework = self.task["framework"]
        for name in self.task["files"]:
            if (self.workdir / name).is_file():
                text = self.read_text(name)
                is_module = name.endswith((".mjs", ".mts")) or MODULE_SYNTAX.search(text)
                modular = self.task["control"].get(f"{framework} module") if is_module else None
                template = modular or self.task["control"][framework]
                yield name, f"{text}\n;{self.make_control(template, name)}\n"

    def run_tests(self, deadline: float) -> None:
        """Run a tool of JavaScript: node once for each file, another one once."""
        files, single = self.task["files"], self.task["framework"] == "node"
        if single and not files:
            files = find_node_files(self.workdir, self.task["patterns"])
        for number, group in enumerate([[file] for file in files] if single else [files]):
            name, text = REPORTERS.get(self.task["framework"], ("reporter", ""))
            written, reporter = self.scratch / f"{number}.report", self.scratch / name
            reporter.write_text(text.replace("{report}", str(written)), encoding="utf-8")
            paths = {"{report}": str(written), "{reporter}": str(reporter)}
            tool = PROGRAMS + f"/{self.task['framework']}"
            if not os.path.exists(tool):  # noqa: PTH110
                # The image has it.
                paths[tool] = shutil.which(self.task["framework"]) or tool
            command = self.task["command"]
            for name, path in paths.items():
                command = [word.replace(name, path) for word in command]
            limit = time.monotonic() + self.task["limit_s"] * len(group) if group else float("inf")
            self.execute([*command, *group], min(limit, deadline), self.env)
            if written.is_file() and written.stat().st_size <= OUTPUT_LIMIT:
                self.reports.append((group[0] if single else "", written.read_text("utf-8", "replace")))
            if time.monotonic() >= deadline:
                return

    def ended(self) -> dict[str, Any]:
        """Return what goes to the host."""
        marks = {"mark": self.mark, "controls": self.controls, "broken": self.broken}
        return {**super().ended(), **marks}


class GoRun(CommandRun):
    """One run of packages of Go, each by itself; one whose test ends the program is started again for the others."""

    def lay_out(self, place: Path, start: Path) -> None:
        """Put tests back, and find the packages that are wanted."""
        super().lay_out(place, start)
        if Path(GO_WARM_CACHE).is_dir() and not Path(GO_CACHE).exists():
            shutil.copytree(GO_WARM_CACHE, GO_CACHE, copy_function=os.symlink)

    def add_controls(self) -> Iterable[tuple[str, str]]:
        """Yield a test file for each package."""
        wanted = {str(Path(file).parent) for file in self.task["files"]}
        self.tests: dict[str, dict[str, str]] = {}
        for name in listed(self.workdir):
            folder, path = str(Path(name).parent), self.workdir / name
            chosen = folder in wanted if wanted else is_chosen(folder, self.task["patterns"])
            if chosen and name.endswith("_test.go") and not path.is_symlink():
                functions = self.tests.setdefault(folder, {})
                functions.update(dict.fromkeys(GO_FUNCTION.findall(self.read_text(name)), name))
        for folder, functions in self.tests.items():
            functions.pop("TestMain", None)
            first = GO_PACKAGE.search(self.read_text(next(iter(functions.values())))) if functions else None
            if first:
                control = self.make_control(self.task["control"]["testing"], folder, package=first[1])
                yield f"{folder}/zz_dgm_control_test.go", control

    def run_tests(self, deadline: float) -> None:
        """Run the packages."""
        self.more["functions"] = self.tests
        for folder, functions in self.tests.items():
            names, waiting = self.task["tests"], {*functions}
            if names is not None:
                waiting &= {name.partition("::")[2].partition("/")[0] for name in names}
            numbers = [number for number, (unit, _) in enumerate(self.controls) if unit == folder]
            control = f"Test_{self.mark}_{numbers[0]}" if numbers else ""
            for _ in range(GO_ROUNDS + len(waiting) // GO_AT_ONCE):
                if not waiting or not control or time.monotonic() >= deadline:
                    break
                limit = self.task["limit_s"] * len({*functions.values()})
                wanted = "|".join([control, *sorted(waiting)[:GO_AT_ONCE]])
                options = [f"-timeout={limit:.0f}s", f"-run=^({wanted})$", f"./{folder}"]
                command = [*self.task["command"], *options]
                text = self.execute(command, deadline, self.env).decode("utf-8", "replace")
                self.reports.append((folder, text))
                begun, passed, failed = read_go_tests(text)
                if not begun & waiting:
                    # It was not built, or does not have them.
                    break
                # Where a test ends the program before the control runs, those that passed run once more.
                waiting -= begun if control in failed else begun - passed


class CargoRun(CommandRun):
    """One run of a command that calls ``cargo test``."""

    def lay_out(self, place: Path, start: Path) -> None:
        """Put tests back, in files of the code their modules of tests."""
        parts = {}
        for name in [name for name in listed(start) if name.endswith(".rs")]:
            if not matches(name, self.task["restored"]) and not (start / name).is_symlink():
                text = (start / name).read_bytes().decode("utf-8", "surrogateescape")
                parts[name] = "\n".join(part[0] for part in RUST_TESTS.finditer(text))
        for name in self.task["parts"]:
            parts[name] = (place / "hidden" / name).read_bytes().decode("utf-8", "surrogateescape")
            (place / "hidden" / name).unlink()
        super().lay_out(place, start)
        paths = {name: self.workdir / name for name, tests in parts.items() if tests}
        self.parts = sorted(name for name, path in paths.items() if path.is_file() and not path.is_symlink())
        for name in self.parts:
            # At the end no macro of the patch is around them.
            text = f"{RUST_TESTS.sub('', self.read_text(name)).rstrip()}\n\n{parts[name]}\n"
            paths[name].write_bytes(text.encode("utf-8", "surrogateescape"))

    def add_controls(self) -> Iterable[tuple[str, str]]:
        """Yield files of tests and their texts with tests that must fail: one at the end, or one in each module."""
        template = self.task["control"]["test"]
        for name in [name for name in self.held if name.endswith(".rs")]:
            text = self.read_text(name)
            if RUST_TEST.search(text):
                yield name, f"{text}\n{self.make_control(template, name)}\n"
        for name in self.parts:
            text = self.read_text(name)
            for part in reversed([*RUST_TESTS.finditer(text)]):
                if RUST_TEST.search(part["body"] or ""):
                    control = self.make_control(template, name, part["name"])
                    text = f"{text[: part.end('body')]}{control}\n{text[part.end('body') :]}"
            yield name, text

    def run_tests(self, deadline: float) -> None:
        """Run the command."""
        output = self.execute(self.task["command"], deadline, self.env)
        self.reports.append(("", output.decode("utf-8", "replace")))


class ReportRun(CommandRun):
    """One run of a command that writes reports: tests of C++ and of the JVM."""

    def add_controls(self) -> Iterable[tuple[str, str]]:
        """Yield files of tests and their texts with a test that must fail."""
        remove(Path(BUILD_FOLDER))
        Path(BUILD_FOLDER).mkdir()
        texts = {name: self.read_text(name) for name in self.held}
        by_ctest = any(CTEST.search(word) for word in self.task["command"])
        builds = [text for name, text in texts.items() if name.endswith(("CMakeLists.txt", ".cmake"))]
        if not by_ctest or any(CTEST_DISCOVERS.search(text) for text in builds):
            yield from self.add_to_cpp(texts)
        yield from self.add_to_jvm(texts)
        self.before = {path: digest(path) for path in self.find_reports()}

    def add_to_cpp(self, texts: dict[str, str]) -> Iterable[tuple[str, str]]:
        """Yield the files of C++; a framework counts if any file of the tests includes it."""
        sources = {name: text for name, text in texts.items() if CPP_FILE.search(name)}
        included = [line for text in sources.values() for line in text.split("\n") if "include" in line]
        for name, text in sources.items():
            for framework, case, header in CPP_FRAMEWORKS:
                first = case.search(text)
                if first and header.search("\n".join(included)):
                    control = self.make_control(self.task["control"][framework], name, prefix=first[1] or "")
                    yield name, f"{text}\n{control}\n"
                    break

    def add_to_jvm(self, texts: dict[str, str]) -> Iterable[tuple[str, str]]:
        """Yield the files of the JVM; the first framework whose words a file has counts."""
        known = {
            words: control
            for words, control in self.task["control"].items()
            if words not in ("gtest", "catch")
        }
        for name, text in texts.items():
            control = next((known[words] for words in known if words in text), "")
            stem = re.escape(Path(name).stem)
            head = re.search(rf"^[^*/\n]*\bclass\s+{stem}\b[^;{{]*\{{", text, re.M)
            if control and head and name.endswith((".java", ".kt", ".groovy")):
                method = "fun" if name.endswith(".kt") else "public void"
                added = self.make_control(control, name, method=method)
                yield name, f"{text[: head.end()]} {added} {text[head.end() :]}"

    def run_tests(self, deadline: float) -> None:
        """Run the command, and collect the reports that it wrote."""
        self.execute(self.task["command"], deadline, self.env)
        paths = [path for path in self.find_reports() if self.before.get(path) != digest(path)]
        if len(paths) > REPORT_LIMIT or sum(path.stat().st_size for path in paths) > OUTPUT_LIMIT:
            self.problem = self.problem or "the tests report more than can be read"
            return
        self.reports = [("", path.read_text("utf-8", "replace")) for path in paths]
        if self.code > 128:
            self.problem = self.problem or f"the command was ended (exit status {self.code})"

    def find_reports(self) -> list[Path]:
        """Return the files that the patterns name, each once."""
        found: dict[Path, None] = {}
        for pattern in self.task["reports"]:
            root = Path(BUILD_FOLDER) if pattern.startswith(BUILD_PREFIX) else self.workdir
            for path in sorted(root.glob(pattern[len(BUILD_PREFIX) :] if root != self.workdir else pattern)):
                # A link, or a folder that is one, could name any file of the sandbox.
                inside = os.path.realpath(path.parent) == os.path.abspath(path.parent)  # noqa: PTH100
                if inside and stat.S_ISREG(path.lstat().st_mode):
                    found[path] = None
        return list(found)


class PytestRun(Run):
    """One process of pytest that imports the repository, with a plug-in that reports under a number of its own."""

    def lay_out(self, place: Path, start: Path) -> None:
        """Put tests back, and read them before anything of the repository runs."""
        programs = place / "runner"
        self.program = (programs / "named_child.py").read_text("utf-8")
        hidden = {*listed(place / "hidden")}
        super().lay_out(place, start)
        sources = {}
        for name in [name for name in listed(self.workdir) if name.endswith(".py")]:
            path = self.workdir / name
            if not path.is_symlink() and path.stat().st_size <= SOURCE_LIMIT:
                sources[name] = path.read_bytes().decode("latin-1")
        tests = {
            name: text
            for name, text in sources.items()
            if name in hidden or matches(name, self.task["restored"])
        }
        self.own = OwnSource({name: text for name, text in sources.items() if name not in tests})
        paths = [str(self.workdir), *(str(self.workdir / root) for root in self.task["roots"])]
        self.given = {**self.task["child"], "workdir": str(self.workdir), "paths": paths, "sources": tests}
        self.given["survey"] = self.task["tests"] is None

    def perform(self, deadline: float) -> None:
        """Run pytest, and keep what its plug-in reports."""
        nonce, controls = secrets.token_hex(16), [secrets.token_hex(16), secrets.token_hex(16)]
        given = {**self.given, "nonce": nonce, "tests": self.task["tests"] or [], "controls": controls}
        source, target = os.pipe()
        results = bytearray()
        reader = threading.Thread(target=drain, args=(source, results.extend), daemon=True)
        reader.start()
        command = [sys.executable, "-s", "-B", "-u", "-c", self.program, str(target), *self.task["pytest"]]
        more = {"stdin": json.dumps(given).encode(), "pass_fds": [target], "cwd": "/"}
        self.execute(command, deadline, self.task["env"], **more)
        os.close(target)
        reader.join(DRAINED_S)
        told, tops = read_lines(bytes(results[:OUTPUT_LIMIT]), nonce), self.given["tops"]
        lines = [line for line in told if is_outcome(line, tops)]
        for line in lines:
            if isinstance(line.get("error"), dict):
                line["error"] = self.own.describe(line["error"])
        self.reports.append(("", json.dumps(lines)))
        self.more["controls"] = controls


RUNS: dict[str, type[Run]] = {
    PYTEST: PytestRun, JEST: CommandRun, JUNIT: ReportRun, GO_JSON: GoRun, CARGO: CargoRun,
}  # fmt: skip


class OwnSource:
    """The graded source as it was before it ran: what may be shown of a failure is looked up here."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files
        self._classes = {name for text in files.values() for name in CLASS.findall(text)}

    def describe(self, error: dict[str, Any]) -> dict[str, Any]:
        """Return the kind of an exception, if it is Python's or a class of the source, and lines of the source."""
        import builtins

        kind = getattr(builtins, str(error.get("kind")), None)
        known = isinstance(kind, type) and issubclass(kind, BaseException)
        lines = [self._line(place) for place in (error.get("lines") or [])[-LINES:]]
        own = str(error.get("kind")) in self._classes
        return {"kind": str(error["kind"]) if known or own else "", "lines": [line for line in lines if line]}

    def _line(self, place: list[Any]) -> str:
        name, number = place
        lines = self._files.get(name, "").split("\n") if isinstance(name, str) else []
        if not (isinstance(number, int) and 0 < number <= len(lines)):
            return ""
        text = lines[number - 1].encode("latin-1").decode("utf-8", "replace").strip()[:LINE_LIMIT]
        return f"{name}:{number}: {text}"


class RewardFolder:
    """The folder of the reward: which one it was at the start, and how often a reward was written to it."""

    def __init__(self, task: dict[str, Any], libc: ctypes.CDLL | None) -> None:
        self.path, self.names, self.limit = (task["rewards"][key] for key in ("folder", "names", "limit"))
        self.identity = os.lstat(self.path)
        self.events = -1
        if libc is not None:
            self.events = libc.inotify_init1(NONBLOCKING_CLOSED_ON_EXEC)
            # The kernel merges equal events that follow each other: opening stands between two writes.
            own = OPENED | CLOSED_WRITTEN | MOVED_TO | DELETED_SELF | MOVED_SELF
            libc.inotify_add_watch(self.events, self.path.encode(), own)
            libc.inotify_add_watch(self.events, os.fsencode(Path(self.path).parent), MOVED_SELF)

    def read(self) -> dict[str, Any]:
        """Return each reward's file, base64, and how often one was written; or why they cannot be taken."""
        try:
            return {"writes": self.count_writes(), "rewards": self.read_files()}
        except (ValueError, OSError) as error:
            return {"refused": str(error)}

    def count_writes(self) -> int:
        """Return how often a reward was written, or -1 if that is not known."""
        if self.events < 0:
            return -1
        writes = 0
        while True:
            try:
                data = os.read(self.events, CHUNK)
            except BlockingIOError:
                return writes
            while data:
                _, mask, _, length = struct.unpack_from("iIII", data)
                name = data[16 : 16 + length].rstrip(b"\0").decode("utf-8", "replace")
                data = data[16 + length :]
                if mask & (OVERFLOW | DELETED_SELF | MOVED_SELF):
                    return -1
                writes += name in self.names and bool(mask & (CLOSED_WRITTEN | MOVED_TO))

    def read_files(self) -> dict[str, str]:
        """Return each reward's file, base64; a ``ValueError`` says why a file cannot be taken."""
        if not os.path.samestat(os.lstat(self.path), self.identity):
            raise ValueError("the folder of the reward was replaced")
        if not os.lstat(self.path).st_mode & stat.S_IWUSR:
            raise ValueError("the folder of the reward was made read-only")
        found = {}
        for name in [name for name in self.names if os.path.lexists(f"{self.path}/{name}")]:
            path = f"{self.path}/{name}"
            about = os.lstat(path)
            if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
                raise ValueError(f"{name} is no file of its own, but a link, a pipe or a folder")
            if not about.st_mode & stat.S_IWUSR:
                raise ValueError(f"{name} was made read-only")
            if about.st_size > self.limit:
                raise ValueError(f"{name} holds more than {self.limit} bytes")
            with open(path, "rb", opener=lambda file, flags: os.open(file, flags | os.O_NOFOLLOW)) as file:
                found[name] = base64.b64encode(file.read(self.limit)).decode()
        return found


def put_back(task: dict[str, Any], start: Path, hidden: Path) -> None:
    """Put test and configuration files back as they were, lay the hidden ones over them, remove what is deleted."""
    workdir = Path(task["workdir"])
    for name in listed(workdir) if task["restored"] else ():
        if matches(name, task["restored"]):
            remove(workdir / name)
            with contextlib.suppress(OSError):
                # Up to the first folder that holds anything else.
                for folder in [parent for parent in (workdir / name).parents if workdir in parent.parents]:
                    folder.rmdir()
    for name in listed(start) if task["restored"] else ():
        if matches(name, task["restored"]):
            copy(start / name, workdir / name)
    for name in listed(hidden):
        copy(hidden / name, workdir / name)
    for name in task["deleted"]:
        remove(workdir / name)


def remove_shadows(start: Path, folder: Path) -> None:
    """Remove what the patch added under the name of a module that the sandbox's Python has."""
    for path in folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ():
        module, dot, _ = path.name.partition(".")
        importable = path.name.endswith((".py", ".pyc", ".so")) if dot else is_package(path)
        if not importable or os.path.lexists(start / path.name):
            continue
        if module in TEST_MODULES or importlib.machinery.PathFinder.find_spec(module, sys.path):
            remove(path)


def is_package(path: Path) -> bool:
    """Return whether Python can import a folder; a link that leads to no folder is none."""
    with contextlib.suppress(OSError):
        return any(name.startswith("__init__.") for name in os.listdir(path))  # noqa: PTH208
    return False


def listed(folder: Path) -> list[str]:
    """Return the names of all files and links below a folder."""
    found = []
    for here, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]  # noqa: PTH114, PTH118
        found += [Path(here, name).relative_to(folder).as_posix() for name in [*names, *links]]
    return sorted(found)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern names the file, its path, or a folder around it."""
    parts = name.split("/")
    paths = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    return any(
        fnmatch.fnmatchcase(path if "/" in pattern else part, pattern)
        for pattern in patterns
        for path, part in zip(paths, parts)  # noqa: B905  (Python 3.9)
    )


def copy(source: Path, target: Path) -> None:
    """Copy a file or a link in the place of whatever stands there, or stands in the way."""
    for parent in reversed(target.parents):
        if parent.is_symlink() or parent.is_file():
            remove(parent)
    remove(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def read_lines(data: bytes, nonce: str) -> list[dict[str, Any]]:
    """Return the objects of the lines that begin with a number; whoever knows it may write anything behind it."""
    found: list[dict[str, Any]] = []
    for line in data.decode("utf-8", "replace").split("\n"):
        start, _, text = line.partition(" ")
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(text) if start == nonce else None
            found += [value] if isinstance(value, dict) else []
    return found


def is_outcome(line: dict[str, Any], tops: list[str]) -> bool:
    """Return whether a line tells the end of a test or of the process, a file that breaks, or a module of the project.

    Of the last it may say nothing else: code under test can write such lines.
    """
    if "foreign" in line:
        return line["foreign"] in tops
    is_test = isinstance(line.get("test"), str) and isinstance(line.get("outcome"), str)
    return is_test if "test" in line else "end" in line or "broken" in line


def find_node_files(workdir: Path, patterns: list[str]) -> list[str]:
    """Return the files that node runs as tests, by its own rule or by patterns of files and folders."""
    names = [
        name for name in listed(workdir) if SCRIPT.fullmatch(name) and "node_modules" not in name.split("/")
    ]
    tests = [n for n in names if NODE_FILES.fullmatch(n.rpartition("/")[2]) or "test" in n.split("/")[:-1]]
    found = []
    for pattern in [pattern.removeprefix("./").rstrip("/") for pattern in patterns]:
        below = tests if pattern == "." else [name for name in tests if name.startswith(f"{pattern}/")]
        hits = {} if below else {path.relative_to(workdir).as_posix() for path in workdir.glob(pattern)}
        found += below or [name for name in names if name in hits]
    return list(dict.fromkeys(found)) if patterns else tests


def find_packages(workdir: Path) -> set[str]:
    """Return the packages in the workspace; caches, whose names begin with a dot, are none."""
    found = set()
    for here, folders, names in os.walk(workdir):
        if here.rpartition("/")[2] == "node_modules":
            found |= {
                os.path.relpath(f"{here}/{name}", workdir) for name in [*folders, *names] if name[0] != "."
            }
            folders[:] = []
    return found


def read_go_tests(text: str) -> tuple[set[str], set[str], set[str]]:
    """Return the functions of tests that began, passed or were skipped, and failed, by ``go test -json``."""
    found: dict[str, set[str]] = {}
    for line in text.split("\n"):
        with contextlib.suppress(ValueError, AttributeError, TypeError):
            event = json.loads(line)
            if "/" not in event.get("Test", "/"):
                found.setdefault(event.get("Action"), set()).add(event["Test"])
    begun, passed, skipped, failed = (found.get(action, set()) for action in ("run", "pass", "skip", "fail"))
    return begun, (passed | skipped) - failed, failed


def is_chosen(folder: str, patterns: list[str]) -> bool:
    """Return whether patterns of packages name a folder, none: all; never code of others, or what go passes over."""
    if any(
        part[0] == "_" or part in GO_LEFT_OUT or (part[0] == "." and part != ".")
        for part in folder.split("/")
    ):
        return False
    plain = [pattern.removeprefix("./").replace("...", "*") for pattern in patterns]
    return not plain or any(
        fnmatch.fnmatchcase(name, each) for each in plain for name in (folder, f"{folder}/")
    )


def digest(path: Path) -> bytes:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).digest()


def protect() -> ctypes.CDLL | None:
    """Keep other processes of this user out of this one's memory, and return the C library.

    Without ``ctypes``, which a reduced Python may lack, both are left out, and None is returned.
    """
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return None
    return libc


def ancestors() -> set[int]:
    """Return the processes above this one, which the engine has started."""
    found: set[int] = set()
    pid = os.getppid()
    while pid > 0 and pid not in found:
        found.add(pid)
        pid = int(status(pid).get("PPid", "0"))
    return found


def processes() -> list[int]:
    """Return the other processes of this user; a process that hides its memory also hides its owner from ``stat``."""
    user = str(os.getuid())
    numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in numbers if pid != os.getpid() and user in status(pid).get("Uid", "").split()]


def is_ending(pid: int) -> bool:
    """Return whether a process has ended, or will before it does anything else."""
    about = status(pid)
    if about.get("State", "Z")[0] in "ZX":
        return True
    pending, shared, blocked, ignored, caught = (
        int(about.get(name, "0"), 16) for name in ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt")
    )
    fatal = sum(1 << (number - 1) for number in FATAL)
    return bool((pending | shared) & fatal & ~(blocked | ignored | caught))


def status(pid: int) -> dict[str, str]:
    """Return what the kernel tells of a process; nothing if there is none."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def send(pid: int, number: int) -> None:
    """Send a signal, if the process is there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def drain(source: int, take: Callable[[bytes], None]) -> None:
    """Read a pipe to its end."""
    while data := os.read(source, CHUNK):
        take(data)


def write(data: bytes) -> None:
    """Print all of it."""
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
