"""Lays out a workspace, runs a command that builds and tests it, and collects the reports that it writes.

Standard library only (Python >= 3.9). dgm does not import it but puts it into the sandbox as a file, beside
``command_runner.py``, whose parts it uses. The host reads the reports (``report_results.py``).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import stat
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgm.benchmarks import command_runner, cpp_controls, exam_runner, jvm_controls, named_runner
else:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import command_runner
    import cpp_controls
    import exam_runner
    import jvm_controls
    import named_runner

BUILD = "/tmp/dgm-build"
"""Folder for what a command builds, ``$DGM_BUILD``: what a patch brings in the workspace could pass for it."""
BUILD_PREFIX = "$DGM_BUILD/"
SETTINGS = {
    "DGM_BUILD": BUILD,
    # A module whose tests fail, as those do that must, does not keep the next one from being built.
    # The other options halve Maven's processor time on small projects.
    "MAVEN_OPTS": "-Dmaven.test.failure.ignore=true -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
MOST_REPORTS = 2000
REPORT_BYTES = 64_000_000
"""Maximum size of all reports together."""
SAID_BYTES = 200_000
"""Size of the output's end that goes to the host beside the reports."""


def main() -> None:
    """Prepare the workspace, run the command, report once."""
    command_runner.run_assignment(ReportRun)


class ReportRun(command_runner.CommandRun):
    """One run of the command, and the reports that it wrote."""

    def __init__(self, task: dict[str, Any], workdir: Path) -> None:
        super().__init__(task, workdir)
        self._material: dict[Path, bytes] = {}
        """SHA-256 of files that the patterns name and that are there before the command runs: they are no reports."""

    def lay_out(self, place: Path) -> None:
        """Put tests and configuration back, add the cases that must fail, and note what could pass for reports."""
        built = [path for path in self._find_built() if not (place / "start" / path).exists()]
        self._put_binaries_back(place / "start")
        named_runner.put_back(place, self._workdir, self._task)
        for name in built:
            exam_runner.remove(self._workdir / name)
        exam_runner.remove(Path(BUILD))
        Path(BUILD).mkdir()
        os.environ.update(SETTINGS)
        self._add_controls_to_files()
        self._material = {path: _digest(path) for path in self._find_reports()}

    def _add_controls_to_files(self) -> None:
        """Add a case that must fail to each file of tests of a framework."""
        texts = self._read_tests()
        secret = secrets.randbelow(10**6)
        for name, text in cpp_controls.add_controls(
            texts, self._task["tool"]["command"], (self._mark, 0, secret)
        ):
            self._controls.append((name, ""))
            self._write(name, text)
        for name, text in jvm_controls.add_controls(texts, (self._mark, len(self._controls), secret)):
            self._controls.append((name, ""))
            self._write(name, text)
        for name in texts:
            self._held.setdefault(name, (self._workdir / name).read_bytes())

    def _read_tests(self) -> dict[str, str]:
        """Return the texts of all files of tests and configuration."""
        return {
            name: self._read(self._workdir / name)
            for name in named_runner.listed(self._workdir)
            if named_runner.matches(name, self._task["restored"]) and not (self._workdir / name).is_symlink()
        }

    def _put_binaries_back(self, start: Path) -> None:
        """Put compiled classes and archives of them back as they are without the patch, and remove its own."""
        for name in named_runner.listed(self._workdir):
            if name.lower().endswith(jvm_controls.BINARIES):
                path, old = self._workdir / name, start / name
                if old.is_file() and not old.is_symlink():
                    named_runner.copy(old, path)
                else:
                    exam_runner.remove(path)

    def _find_built(self) -> list[str]:
        """Return folders that build tools of the JVM fill."""
        return [
            f"{name.rpartition('/')[0]}/{built}".lstrip("/")
            for name in named_runner.listed(self._workdir)
            if name.rpartition("/")[2] in jvm_controls.BUILD_FILES
            for built in jvm_controls.BUILT
        ]

    def _read(self, path: Path) -> str:
        # Names of cases may have any letters; bytes that are none come back as they were.
        return path.read_bytes().decode("utf-8", "surrogateescape")

    def _write(self, name: str, text: str) -> None:
        path = self._workdir / name
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        self._held[name] = path.read_bytes()

    def _find_reports(self) -> list[Path]:
        """Return the files that the patterns name, each once, but for those that stay as they were before."""
        found: dict[Path, None] = {}
        for pattern in self._task["tool"]["reports"]:
            below = pattern.startswith(BUILD_PREFIX)
            root = Path(BUILD) if below else self._workdir
            for path in sorted(root.glob(pattern[len(BUILD_PREFIX) :] if below else pattern)):
                # A link, or a folder that is one, could name any file of the sandbox.
                inside = os.path.realpath(path.parent) == os.path.abspath(path.parent)  # noqa: PTH100
                if not inside or not stat.S_ISREG(path.lstat().st_mode):
                    continue
                if path not in self._material or _digest(path) != self._material[path]:
                    found[path] = None
        return list(found)

    def record(self) -> dict[str, Any]:
        """Return what the host reads the outcomes from."""
        reports = []
        found = self._find_reports()
        size = sum(path.lstat().st_size for path in found)
        if len(found) > MOST_REPORTS or size > REPORT_BYTES:
            self._problem = self._problem or "the command writes more reports than can be read"
        else:
            reports = [path.read_bytes().decode("utf-8", "replace") for path in found]
        packed = base64.b64encode(zlib.compress(json.dumps(reports).encode())).decode("ascii")
        if len(packed) > command_runner.PACKED_LIMIT:
            packed = ""
            self._problem = self._problem or "the command writes more reports than can be read"
        if self._code > 128 or self._code < 0:
            self._problem = self._problem or f"the command was ended (exit status {self._code})"
        self.log = self.log[-SAID_BYTES:]
        return {**super().record(), "reports": packed}


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


if __name__ == "__main__":
    main()
