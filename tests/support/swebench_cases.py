"""Logs of evaluation scripts with the verdict of each: the rows of tests/unit/benchmarks/swebench_grading.md."""

import json
from dataclasses import dataclass
from pathlib import Path

from dgm.protocols import Completed

FIXED, KEPT = "tests/test_cart.py::test_total", "tests/test_cart.py::test_empty"


@dataclass(frozen=True)
class Case:
    """One grading, canned."""

    title: str
    log: str
    """Between the markers."""
    verdict: str
    exit_code: int = 0
    applied: str = "applied "
    """What applying the patch came to."""
    before: str = ""
    """Output before the start marker."""
    log_parser: str = "parse_log_pytest"
    fail_to_pass: tuple[str, ...] = (FIXED,)
    pass_to_pass: tuple[str, ...] = (KEPT,)
    fail_only: bool = False
    control: str = ""
    """The log of the run without the patch, asked for if the package finds no result."""
    patch: bytes = b"--- a/cart.py\n+++ b/cart.py\n@@ -1 +1 @@\n-a\n+b\n"
    started: bool = True
    ended: bool = True
    timed_out: bool = False

    def completed(self) -> Completed:
        """What the sandbox says of the evaluation script."""
        log = script_output(self.log, self.exit_code, started=self.started, ended=self.ended)
        output = (self.before + log).encode("utf-8", "surrogateescape")
        return Completed(0, output, timed_out=self.timed_out)

    def control_completed(self) -> Completed:
        """The same without the patch."""
        return Completed(0, script_output(self.control, 0).encode())


def script_output(log: str, exit_code: int, *, started: bool = True, ended: bool = True) -> str:
    """Return what an evaluation script prints."""
    lines = ["+ git apply -v -", "Applied patch tests/test_cart.py cleanly."]
    lines += ["+ : '>>>>> Start Test Output'"] if started else []
    lines += [log]
    if ended:
        exit_lines = [f"+ echo '>>>>> Test Exit Code: {exit_code}'", f">>>>> Test Exit Code: {exit_code}"]
        lines += ["+ : '>>>>> End Test Output'", *exit_lines]
    return "\n".join([*lines, ""])


def summary(*lines: str) -> str:
    """The end of a log of pytest."""
    return "\n".join(
        ["=== test session starts ===", "collected 2 items", "=== short test summary info ===", *lines]
    )


def source(path: str, new: str = "b") -> bytes:
    """A patch of one line."""
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+{new}\n".encode()


ALL_PASS = summary(f"PASSED {KEPT}", f"PASSED {FIXED}")
TABLE = Path(__file__).parents[1] / "unit" / "benchmarks" / "swebench_cases.jsonl"


def _read(line: str) -> Case:
    fields = {
        name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(line).items()
    }
    if "patch" in fields:
        fields["patch"] = fields["patch"].encode()
    return Case(**fields)


CASES = tuple(map(_read, TABLE.read_text(encoding="utf-8").splitlines()))
