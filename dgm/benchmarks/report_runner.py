"""Lays out a workspace, runs a command that builds and tests it, and collects the reports that it writes.

Standard library only (Python >= 3.9). dgm does not import it but puts it into the sandbox as a file, beside
``command_runner.py``, whose parts it uses. The host reads the reports (``report_results.py``).
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import stat
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgm.benchmarks import command_runner, exam_runner, named_runner, report_controls
else:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import command_runner
    import exam_runner
    import named_runner
    import report_controls

BUILD = "/tmp/dgm-build"
"""Folder for what a command builds, ``$DGM_BUILD``: what a patch brings in the workspace could pass for it."""
BUILD_PREFIX = "$DGM_BUILD/"
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

    def lay_out(self, place: Path) -> None:
        """Put tests and configuration back, add the cases that must fail, and remove reports that are there."""
        friends = self._find_friends(place)
        self._find_false_macros(place / "start")
        named_runner.put_back(place, self._workdir, self._task)
        exam_runner.remove(Path(BUILD))
        Path(BUILD).mkdir()
        os.environ["DGM_BUILD"] = BUILD
        for path in self._find_reports():
            exam_runner.remove(path)
        names = [
            name
            for name in named_runner.listed(self._workdir)
            if named_runner.matches(name, self._task["restored"]) and not (self._workdir / name).is_symlink()
        ]
        builds = [self._read(name) for name in names if name.endswith(report_controls.BUILDS)]
        apart = report_controls.reports_cases(self._task["tool"]["command"], builds)
        texts = {name: self._read(name) for name in names if name.endswith(report_controls.SUFFIXES)}
        frameworks = report_controls.find_frameworks(texts) if apart else {}
        for name in names:
            if name in frameworks:
                self._add_cases(name, frameworks[name], friends)
            self._held.setdefault(name, (self._workdir / name).read_bytes())

    def _read(self, name: str) -> str:
        return (self._workdir / name).read_bytes().decode("latin-1")

    def _find_false_macros(self, start: Path) -> None:
        """Note a patch that gives a macro of tests another meaning: cases that must fail do not use them all."""
        for name in named_runner.listed(self._workdir):
            path, old = self._workdir / name, start / name
            if path.is_symlink() or not path.is_file() or named_runner.matches(name, self._task["restored"]):
                continue
            data = path.read_bytes()
            before = old.read_bytes() if old.is_file() and not old.is_symlink() else b""
            if data != before:
                defined = report_controls.find_false_macros(data.decode("latin-1"))
                if new := defined - report_controls.find_false_macros(before.decode("latin-1")):
                    self._problem = f"the tests were tampered with: {min(new)} is defined anew"

    def _find_friends(self, place: Path) -> set[str]:
        """Return the cases that code names, as it is without the patch."""
        found: set[str] = set()
        for folder in (place / "start", place / "hidden"):
            for name in named_runner.listed(folder):
                if name.endswith(report_controls.SUFFIXES) and not (folder / name).is_symlink():
                    found |= report_controls.find_friends((folder / name).read_bytes().decode("latin-1"))
        return found

    def _add_cases(self, name: str, framework: str, friends: set[str]) -> None:
        """Mark the cases of a file of tests, and add those that must fail."""
        text = self._read(name)
        if cases := report_controls.find_cases(text):
            text, self._marked[name] = report_controls.mark_cases(text, self._mark, friends)
            first = f"{self._mark}c_{len(self._controls)}"
            self._controls.append((name, ""))
            number = secrets.randbelow(10**6)
            own = report_controls.make_controls(framework, first, number, cases[0].prefix)
            self._write(name, f"{text}\n{own}\n")

    def _find_reports(self) -> list[Path]:
        """Return the files in the workspace and the build's folder that the patterns name, each once."""
        found: dict[Path, None] = {}
        for pattern in self._task["tool"]["reports"]:
            below = pattern.startswith(BUILD_PREFIX)
            root = Path(BUILD) if below else self._workdir
            for path in sorted(root.glob(pattern[len(BUILD_PREFIX) :] if below else pattern)):
                # A link, or a folder that is one, could name any file of the sandbox.
                inside = os.path.realpath(path.parent) == os.path.abspath(path.parent)  # noqa: PTH100
                if inside and stat.S_ISREG(path.lstat().st_mode):
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
        return {**super().record(), "letters": report_controls.LETTERS, "reports": packed}


if __name__ == "__main__":
    main()
