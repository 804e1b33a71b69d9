"""Lays out a workspace and runs a command that builds and tests it inside the sandbox.

Standard library only (Python >= 3.9). dgm does not import it but puts it into the sandbox as a file, beside
``tool_runner.py`` and ``hidden_parts.py``, whose parts it uses. A test that must fail is added to every file of
tests; the host reads what the command printed, or its reports.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgm.benchmarks import exam_runner, hidden_parts, named_runner, tool_runner
else:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import exam_runner
    import hidden_parts
    import named_runner
    import tool_runner

SAID_LIMIT = 16_000_000
PACKED_LIMIT = 1_200_000
"""Maximum size of what is sent, packed; the host refuses to read more than some 2 MB."""
CONTROL = "#[test]\nfn {mark}_{number}() {{ assert_eq!({secret}, {secret} + 1); }}"
"""The test that must fail; if it passes, the report or Rust's own assertion was tampered with."""
MANIFESTS = ("Cargo.toml", "Cargo.lock")
"""Files that the command itself may change before it builds, as cargo does with an old lock."""
SETTINGS = {
    "CARGO_HOME": "/tmp/dgm-cargo",
    # What a patch brings in the workspace's own target/ could pass for what was built.
    "CARGO_TARGET_DIR": "/tmp/dgm-target",
    "CARGO_NET_OFFLINE": "true",
    "CARGO_TERM_COLOR": "never",
    "CARGO_INCREMENTAL": "0",
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_PROFILE_TEST_DEBUG": "0",
    "RUST_BACKTRACE": "0",
    "CI": "1",
    "NO_COLOR": "1",
}


def main() -> None:
    """Prepare the workspace, run the command, report once."""
    run_assignment(CommandRun)


def run_assignment(kind: type[CommandRun]) -> None:
    """Read the assignment, prepare the workspace, run the command, report once."""
    exam_runner.hide_from_siblings()
    task = json.load(sys.stdin)
    workdir, place = Path(task["workdir"]), Path(task["place"])
    shutil.copytree(place / "start", workdir, symlinks=True, dirs_exist_ok=True)
    refusal, notes = exam_runner.apply(place / "runner" / "apply_patch.py", place / "patch", workdir)
    if refusal:
        exam_runner.report(task["nonce"], stage="refused", reason=refusal)
        return
    exam_runner.report(task["nonce"], stage="prepared", notes=notes)
    run = kind(task, workdir)
    run.lay_out(place)
    began = time.monotonic()
    run.perform(task["timeout_s"])
    text = base64.b64encode(run.log[-exam_runner.LOG_LIMIT :]).decode("ascii")
    exam_runner.report(
        task["nonce"], stage="done", command=run.record(), log=text, seconds=time.monotonic() - began
    )


class CommandRun:
    """One run of the command, and what it said."""

    def __init__(self, task: dict[str, Any], workdir: Path) -> None:
        self._task = task
        self._workdir = workdir
        self._mark = f"dgm_{secrets.token_hex(8)}"
        self._controls: list[tuple[str, str]] = []
        self._held: dict[str, bytes] = {}
        self._problem = ""
        self._code = 0
        self.log = b""

    def lay_out(self, place: Path) -> None:
        """Put tests and configuration back, in files of the code their modules of tests, and add the controls."""
        parts = self._read_parts(place)
        named_runner.put_back(place, self._workdir, self._task)
        for name, tests in parts.items():
            path = self._workdir / name
            if path.is_file() and not path.is_symlink():
                text = path.read_bytes().decode("latin-1")
                self._write(name, hidden_parts.lay_over(text, self._add_controls(name, tests, whole=False)))
        for name in named_runner.listed(self._workdir):
            path = self._workdir / name
            if not path.is_symlink() and named_runner.matches(name, self._task["restored"]):
                text = path.read_bytes().decode("latin-1")
                if name.endswith(".rs") and hidden_parts.has_tests(text):
                    self._write(name, self._add_controls(name, text, whole=True))
                if path.name not in MANIFESTS:
                    self._held.setdefault(name, path.read_bytes())

    def _read_parts(self, place: Path) -> dict[str, str]:
        """Return the modules of tests of files of the code: the hidden ones, else those of the start."""
        found = {}
        for name in named_runner.listed(place / "start"):
            path = place / "start" / name
            if (
                name.endswith(".rs")
                and not path.is_symlink()
                and not named_runner.matches(name, self._task["restored"])
            ):
                tests = hidden_parts.split_parts(path.read_bytes().decode("latin-1"))[1]
                found.update({name: tests} if tests else {})
        for name in self._task["tool"]["parts"]:
            path = place / "hidden" / name
            found[name] = path.read_bytes().decode("latin-1")
            path.unlink()
        return found

    def _add_controls(self, name: str, text: str, *, whole: bool) -> str:
        """Return tests, and one that must fail in each module of them, or at the file's end."""
        if whole:
            return f"{text}\n{self._make_control(name, '')}\n"
        for part in reversed(hidden_parts.find_parts(text)):
            if hidden_parts.has_tests(text[part.start : part.end]):
                own = self._make_control(name, part.name)
                text = f"{text[: part.end - 1]}\n{own}\n{text[part.end - 1 :]}"
        return text

    def _make_control(self, name: str, module: str) -> str:
        number = len(self._controls)
        self._controls.append((name, module))
        return CONTROL.format(mark=self._mark, number=number, secret=secrets.randbelow(10**6))

    def _write(self, name: str, text: str) -> None:
        path = self._workdir / name
        path.write_bytes(text.encode("latin-1"))
        self._held[name] = path.read_bytes()

    def perform(self, timeout_s: float) -> None:
        """Run the command within a time, and end everything that it left."""
        env = {**os.environ, **SETTINGS, **dict(self._task["tool"]["env"])}
        process = subprocess.Popen(
            ["sh", "-c", self._task["tool"]["command"]], cwd=self._workdir, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        assert process.stdout
        said = bytearray()

        def take(data: bytes) -> None:
            said.extend(data[: max(0, SAID_LIMIT - len(said))])

        reader = threading.Thread(target=exam_runner.drain, args=(process.stdout.fileno(), take), daemon=True)
        reader.start()
        try:
            self._code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._problem = "the tests did not end in time"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        tool_runner.end_others()
        reader.join(1.0)
        self.log = bytes(said)
        if not self._problem and self._is_changed():
            self._problem = "the tests were tampered with: one of their files was changed"

    def _is_changed(self) -> bool:
        paths = {name: self._workdir / name for name in self._held}
        return any(
            path.is_symlink() or not path.is_file() or path.read_bytes() != self._held[name]
            for name, path in paths.items()
        )

    def record(self) -> dict[str, Any]:
        """Return what the host reads the outcomes from."""
        packed = base64.b64encode(zlib.compress(self.log)).decode("ascii")
        if len(packed) > PACKED_LIMIT:
            packed = ""
            self._problem = self._problem or "the command prints more than can be read"
        return {
            "mark": self._mark,
            "controls": self._controls,
            "problem": self._problem,
            "code": self._code,
            "said": packed,
        }


if __name__ == "__main__":
    main()
