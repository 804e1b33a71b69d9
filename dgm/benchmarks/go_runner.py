"""Lays out a workspace and runs its named tests in Go inside the sandbox; standard library only (Python >= 3.9).

dgm does not import it but puts it into the sandbox as a file, beside ``tool_runner.py``, whose parts it uses. All
packages are built before the first test runs, each with one test more, which must fail. A program whose test ends it is
started again for the tests that are left.
"""

from __future__ import annotations

import base64
import contextlib
import fnmatch
import functools
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dgm.benchmarks import exam_runner, named_runner, tool_runner
else:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import exam_runner
    import named_runner
    import tool_runner

MODULES = "/opt/dgm-environment/mod"
WARM_CACHE = "/opt/dgm/go-cache"
CACHE = "/tmp/dgm-go-cache"
SETTINGS = {
    "GOMODCACHE": MODULES, "GOCACHE": CACHE, "GOPATH": "/tmp/dgm-go", "GOENV": "off", "GO111MODULE": "on",
    "GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOTELEMETRY": "off", "GOFLAGS": "-buildvcs=false",
    "CGO_ENABLED": "0",
}  # fmt: skip
OUTPUT_LIMIT = 64_000_000
MESSAGE_LIMIT = 6000
"""Maximum characters that are told of one test."""
MOST_ROUNDS = 12
"""Maximum number of starts of one program whose tests end it."""
MOST_AT_ONCE = 800
"""Maximum number of tests that one start names."""
GRACE_S = 5.0
FIRST_WITH_MARKS = (1, 20)
"""The first Go whose tests mark lines for programs."""
PLACE = re.compile(r"^\t(\S+\.go):(\d+)", re.MULTILINE)
LEFT_OUT = ("vendor", "testdata", "node_modules")
FUNCTION = re.compile(r"^func (Test(?:[^\Wa-z]\w*)?)\(\s*(?:\w+\s+)?\*\s*(?:\w+\.)?T\s*\)", re.MULTILINE)
PACKAGE = re.compile(r"^package (\w+)", re.MULTILINE)
CONTROL_FILE = "dgm_control_test.go"
CONTROL = 'package {package}\n\nimport "testing"\n\nfunc {name}(t *testing.T) {{ t.Errorf("got %d, want %d", 1, 2) }}\n'
"""The test that must fail; if it passes, the framework or its report was tampered with."""
EVENT = re.compile(r"(=== (?:RUN|PAUSE|CONT|NAME) +|--- (?:PASS|FAIL|SKIP): )(Test\w*)(/\S+)?(?=\s|$)")
ENDS = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}


def main() -> None:
    """Read the assignment, prepare the workspace, build and run the tests, report once."""
    exam_runner.hide_from_siblings()
    task = json.load(sys.stdin)
    if shutil.which("go") is None:
        sys.exit("the sandbox has no go")
    workdir, place = Path(task["workdir"]), Path(task["place"])
    shutil.copytree(place / "start", workdir, symlinks=True, dirs_exist_ok=True)
    refusal, notes = exam_runner.apply(place / "runner" / "apply_patch.py", place / "patch", workdir)
    if refusal:
        exam_runner.report(task["nonce"], stage="refused", reason=refusal)
        return
    exam_runner.report(task["nonce"], stage="prepared", notes=notes)
    named_runner.put_back(place, workdir, task)
    run = GoRun(task, workdir, {})
    began = time.monotonic()
    run.perform(began + task["timeout_s"])
    said = {
        "outcomes": run.outcomes,
        "failures": run.failures,
        "problem": run.problem,
        "messages": run.messages,
        "broken": run.broken,
        "foreign": [],
    }
    text = base64.b64encode(run.log[: exam_runner.LOG_LIMIT]).decode("ascii")
    exam_runner.report(task["nonce"], stage="done", **said, log=text, seconds=time.monotonic() - began)


class GoRun(tool_runner.ToolRun):
    """All programs of one grading."""

    def perform(self, deadline: float) -> None:
        """Build the workspace and its tests, then run them, all within a time."""
        os.environ.update(SETTINGS)
        if Path(WARM_CACHE).is_dir() and not Path(CACHE).exists():
            shutil.copytree(WARM_CACHE, CACHE, copy_function=os.symlink)
        for command in self._tool["build"]:
            if self._build(command, deadline):
                return
        self._hold()
        scratch = Path("/tmp", f"dgm-{secrets.token_hex(8)}")
        scratch.mkdir(mode=0o755)
        packages = [
            GoPackage(folder, texts, scratch / f"{number}.test")
            for number, (folder, texts) in enumerate(sorted(self._find_packages().items()))
        ]
        built = [package for package in packages if self._build_tests(package, deadline)]
        for package in built:
            self._run_package(package, deadline)
        shutil.rmtree(scratch, ignore_errors=True)
        self.problem = self.problem or self._find_changes()

    def _find_packages(self) -> dict[str, dict[str, str]]:
        """Return the folders with tests that are wanted, and their test files."""
        wanted = {str(Path(file).parent) for file in self._tool["files"]}
        found: dict[str, dict[str, str]] = {}
        for name in named_runner.listed(self._workdir):
            folder = str(Path(name).parent)
            path = self._workdir / name
            plain = name.endswith("_test.go") and not path.is_symlink() and not is_left_out(name)
            if plain and (folder in wanted if wanted else is_chosen(folder, self._tool["patterns"])):
                found.setdefault(folder, {})[name] = path.read_bytes().decode("latin-1")
        return found

    def _build_tests(self, package: GoPackage, deadline: float) -> bool:
        """Build the test program of a package; return whether there is one."""
        overlay, file = package.program.with_suffix(".json"), package.program.with_suffix(".go")
        file.write_text(CONTROL.format(package=package.name, name=package.control), encoding="utf-8")
        added = {str(self._workdir / package.folder / CONTROL_FILE): str(file)}
        overlay.write_text(json.dumps({"Replace": added}), encoding="utf-8")
        command = [
            "go",
            "test",
            "-c",
            "-vet=off",
            "-o",
            str(package.program),
            "-overlay",
            str(overlay),
            "-ldflags=-s -w",
        ]
        code, said = execute(
            [*command, *self._tool["flags"], "."],
            self._workdir / package.folder,
            dict(self._tool["env"]),
            max(0.1, deadline - time.monotonic()),
        )
        overlay.unlink()
        file.unlink()
        if code == 0 and package.program.is_file():
            package.digest = hashlib.sha256(package.program.read_bytes()).hexdigest()
            return True
        if code:
            text = said.decode("utf-8", "replace").strip()
            self.log += text.encode()[: exam_runner.LOG_HALF] + b"\n"
            said_end = text[-MESSAGE_LIMIT:] or f"go test -c ends with {code}"
            self.broken |= dict.fromkeys(package.files, said_end)
        return False

    def _run_package(self, package: GoPackage, deadline: float) -> None:
        """Run the wanted tests of a package, and take what became of them."""
        waiting = self._choose(package)
        output = TestOutput(package.tests, package.control)
        for _ in range(MOST_ROUNDS + len(waiting) // MOST_AT_ONCE):
            left = deadline - time.monotonic()
            if not (waiting or output.lacks_control) or left <= 0:
                break
            if hashlib.sha256(package.program.read_bytes()).hexdigest() != package.digest:
                self.problem = self.problem or "the tests were tampered with: their program was changed"
                return
            now = waiting[:MOST_AT_ONCE]
            limit = min(left, self._tool["limit_s"] * len(package.files))
            # Lines without this mark are read, too: it only keeps them apart from what a test prints.
            marks = "=test2json" if go_version() >= FIRST_WITH_MARKS else ""
            command = [str(package.program), f"-test.v{marks}", "-test.paniconexit0"]
            command += [
                f"-test.timeout={limit:.0f}s",
                f"-test.run=^({'|'.join([package.control, *now])})$",
                *self._tool["options"],
            ]
            code, said = execute(
                command, self._workdir / package.folder, dict(self._tool["env"]), limit + GRACE_S
            )
            active = output.read(said.decode("utf-8", "replace"))
            ended = {name for name in now if name in output.ends}
            if code == 0:
                self.problem = "the tests ended early (exit status 0)"
                output.distrust()
                break
            if code != 1 and active and active not in output.ends:
                output.ends[active] = "failed"
                ended.add(active)
            if code == 1 or not ended:
                # A test that was named and did not run is not in the program.
                ended |= {*now}
            waiting = [name for name in waiting if name not in ended]
            output.forget({*waiting})
        self.take_output(output)

    def _choose(self, package: GoPackage) -> list[str]:
        """Return the functions that run."""
        files = self._tool["files"]
        tests = self._task["tests"]
        wanted = None if tests is None else {top_name(test) for test in tests}
        return [
            name
            for name, test in package.tests.items()
            if (not files or test.partition("::")[0] in files) and (wanted is None or test in wanted)
        ]

    def take_output(self, output: TestOutput) -> None:
        """Take what became of a package's tests; where tests are named, of those alone."""
        tests = self._task["tests"]
        for name, outcome in output.judge().items():
            if tests is not None and name not in tests:
                # Subtests that nobody asked for are as many as the code likes, and the host reads only so much.
                continue
            self.outcomes[name] = outcome
            if outcome == "failed":
                said = output.messages.get(name, "")
                self.failures[name] = self._own.describe({"kind": "", "lines": self._own_places(said)})
                if self._task["tests"] is None and said.strip():
                    self.messages[name] = said[:MESSAGE_LIMIT]
        if output.tampered:
            self.problem = self.problem or "the tests were tampered with: one that must fail did not"
        self.log += output.log()

    def _own_places(self, said: str) -> list[tuple[str, int]]:
        top = f"{self._workdir}/"
        places = [(name[len(top) :], int(line)) for name, line in PLACE.findall(said) if name.startswith(top)]
        return [place for place in places if not place[0].endswith("_test.go")][::-1]

    def _read_sources(self) -> dict[str, str]:
        found = {}
        for name in named_runner.listed(self._workdir):
            path = self._workdir / name
            if name.endswith(".go") and name not in self._held and not path.is_symlink():
                found[name] = path.read_bytes()[: exam_runner.SOURCE_LIMIT].decode("latin-1")
        return found


class GoPackage:
    """A folder with tests, and the program that runs them."""

    def __init__(self, folder: str, files: dict[str, str], program: Path) -> None:
        self.folder = folder
        self.files = files
        self.program = program
        self.digest = ""
        self.control = f"TestControl{secrets.token_hex(8)}"
        self.tests = {
            name: f"{file}::{name}"
            for file, text in files.items()
            for name in FUNCTION.findall(text)
            if name != "TestMain"
        }
        first = PACKAGE.search(next(iter(files.values())))
        self.name = first[1] if first else ""


class TestOutput:
    """The output of a package's tests, and their outcomes."""

    def __init__(self, tests: dict[str, str], control: str) -> None:
        self._tests = tests
        self._control = control
        self._control_ends: set[str] = set()
        self.ends: dict[str, str] = {}
        """Function, with its subtest → outcome."""
        self.messages: dict[str, str] = {}
        self._log: list[str] = []

    def read(self, text: str) -> str:
        """Take the output of one start; return the function that spoke last."""
        current = last = ""
        for line in text[: -1 if text.endswith("\n") else None].split("\n"):
            event = EVENT.search(line)
            if event is None or (event[2] not in self._tests and event[2] != self._control):
                self._keep(current, line)
                continue
            name = event[2] + (event[3] or "")
            if event.start() and (before := line[: event.start()].strip(" \x16")):
                self._keep(current, before)
            current, last = name, event[2]
            if event[1].startswith("---"):
                self._end(name, ENDS[event[1][4:8]])
        return last

    def _end(self, name: str, outcome: str) -> None:
        if name == self._control:
            self._control_ends.add(outcome)
            return
        self.ends[name] = "reported twice" if name in self.ends else outcome
        self._log.append(f"{outcome}: {name}")

    def _keep(self, current: str, line: str) -> None:
        if current == self._control or line in ("PASS", "FAIL", "\x16"):
            return
        self._log.append(line)
        if test := self.own_name(current):
            self.messages[test] = f"{self.messages.get(test, '')}{line}\n"[-100_000:]

    def own_name(self, name: str) -> str:
        """Return the test's own name; empty for what is none."""
        function, slash, rest = name.partition("/")
        test = self._tests.get(function, "")
        return f"{test}{slash}{rest}" if test else ""

    def forget(self, functions: set[str]) -> None:
        """Drop what subtests of functions reported that run once more."""
        self.ends = {name: end for name, end in self.ends.items() if name.partition("/")[0] not in functions}

    def distrust(self) -> None:
        """Count what passed as failed."""
        self.ends = {name: "failed" if end == "passed" else end for name, end in self.ends.items()}

    @property
    def lacks_control(self) -> bool:
        """Whether tests passed, and the program ended before the one that must fail."""
        return not self._control_ends and "passed" in self.ends.values()

    @property
    def tampered(self) -> bool:
        """Whether the test that must fail did anything else."""
        return bool(self._control_ends - {"failed"})

    def judge(self) -> dict[str, str]:
        """Return what became of each test; none passes but beside the test that must fail."""
        sound = self._control_ends == {"failed"}
        found = {}
        for name, end in self.ends.items():
            if test := self.own_name(name):
                found[test] = end if sound and end in exam_runner.OUTCOMES else "failed"
        return found

    def log(self) -> bytes:
        """Return what the tests printed."""
        return "\n".join(self._log).encode()[-exam_runner.LOG_HALF :] + b"\n"


def top_name(test: str) -> str:
    """Return a test without its subtests."""
    file, _, rest = test.partition("::")
    return f"{file}::{rest.partition('/')[0]}"


def is_left_out(name: str) -> bool:
    """Return whether go passes a folder over, or it holds code of others."""
    return any(part[0] in "._" or part in LEFT_OUT for part in name.split("/")[:-1])


def is_chosen(folder: str, patterns: list[str]) -> bool:
    """Return whether patterns of packages name a folder; none: all folders."""
    plain = [pattern.removeprefix("./").replace("...", "*") for pattern in patterns]
    return not plain or any(
        fnmatch.fnmatchcase(folder, each) or fnmatch.fnmatchcase(f"{folder}/", each) for each in plain
    )


@functools.lru_cache
def go_version() -> tuple[int, int]:
    """Return the version of the sandbox's Go."""
    done = subprocess.run(["go", "env", "GOVERSION"], stdout=subprocess.PIPE, check=False)
    found = re.match(rb"go(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else (1, 0)


def execute(command: list[str], cwd: Path, env: dict[str, str], timeout_s: float) -> tuple[int, bytes]:
    """Run a program to its end, and end all that it started; return its status and what it printed."""
    kept = bytearray()

    def keep(data: bytes) -> None:
        kept.extend(data[: max(0, OUTPUT_LIMIT - len(kept))])

    with subprocess.Popen(
        command, cwd=cwd, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout
        reader = threading.Thread(target=exam_runner.drain, args=(process.stdout.fileno(), keep), daemon=True)
        reader.start()
        code = -signal.SIGKILL
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(timeout_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        tool_runner.end_others()
        reader.join(0.5)
    return code, bytes(kept)


if __name__ == "__main__":
    main()
