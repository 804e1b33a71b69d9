"""Reads what Go's tests print under the names of one run, and believes only what stands beside a failing twin.

dgm puts it into the sandbox as a file, beside ``go_runner.py``; standard library only (Python >= 3.9).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dgm.benchmarks import exam_runner, go_marks
else:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import exam_runner
    import go_marks

EVENT = re.compile(
    r"(=== (?:RUN|PAUSE|CONT|NAME) +|--- (?:PASS|FAIL|SKIP): )(Test\w*_x[0-9a-f]{16})(/\S+)?(?=\s|$)"
)
ENDS = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}


class TestOutput:
    """The output of a package's tests, and their outcomes."""

    def __init__(self, marked: go_marks.MarkedPackage) -> None:
        self._marked = marked
        self._twins = {twin: test for test, twin in marked.twins.items()}
        self._known = {*marked.tests, *self._twins}
        self.ends: dict[str, str] = {}
        """Name of this run, with its subtest → outcome."""
        self.messages: dict[str, str] = {}
        self.tampered = False
        self._log: list[str] = []

    def read(self, text: str) -> str:
        """Take the output of one start; return the function that spoke last."""
        current = last = ""
        for line in text[: -1 if text.endswith("\n") else None].split("\n"):
            event = EVENT.search(line)
            if event is None or event[2] not in self._known:
                self._keep(current, line)
                continue
            name = event[2] + (event[3] or "")
            if event.start() and (before := line[: event.start()].strip(" \x16")):
                self._keep(current, before)
            current, last = name, event[2]
            if event[1].startswith("---"):
                outcome = ENDS[event[1][4:8]]
                self.ends[name] = "reported twice" if name in self.ends else outcome
                if event[2] in self._marked.tests:
                    self._log.append(line.strip("\x16"))
        return last

    def _keep(self, current: str, line: str) -> None:
        if current.partition("/")[0] in self._twins or line in ("PASS", "FAIL", "\x16"):
            return
        self._log.append(line)
        test = self.own_name(current)
        if test:
            self.messages[test] = f"{self.messages.get(test, '')}{go_marks.without_marks(line)}\n"[-100_000:]

    def own_name(self, name: str) -> str:
        """Return the test's own name; empty for what is none."""
        function, slash, rest = name.partition("/")
        test = self._marked.tests.get(function, "")
        return f"{test}{slash}{go_marks.without_marks(rest)}" if test else ""

    def forget(self, functions: set[str]) -> None:
        """Drop what subtests of functions reported that run once more."""
        self.ends = {name: end for name, end in self.ends.items() if name.partition("/")[0] not in functions}

    def distrust(self) -> None:
        """Count what passed as failed."""
        self.ends = {name: "failed" if end == "passed" else end for name, end in self.ends.items()}

    def judge(self) -> dict[str, str]:
        """Return what became of each test; a test passes only beside a twin that failed, as did the twin's part."""
        failed = {name for name, end in self.ends.items() if end == "failed"}
        parts = {name.partition("/")[0] for name in failed if "/" in name}
        sound = {test for test, twin in self._marked.twins.items() if twin in failed and twin in parts}
        self.tampered = any(
            end != "failed" for name, end in self.ends.items() if name.partition("/")[0] in self._twins
        )
        found = {}
        for name, end in self.ends.items():
            if test := self.own_name(name):
                right = name.partition("/")[0] in sound and end in exam_runner.OUTCOMES
                found[test] = end if right else "failed"
        return found

    def log(self) -> bytes:
        """Return what the tests printed, without marks."""
        return go_marks.without_marks("\n".join(self._log)).encode()[-exam_runner.LOG_HALF :] + b"\n"
