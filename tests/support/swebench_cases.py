"""Logs of evaluation scripts with the verdict of each: the rows of tests/unit/benchmarks/swebench_grading.md."""

from dataclasses import dataclass

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
OTHER = "tests/test_other.py::test_old"
DJANGO_FIXED, DJANGO_KEPT = "test_total (cart.tests.Cart)", "test_empty (cart.tests.Cart)"
DJANGO_CASE = {
    "log_parser": "parse_log_django",
    "fail_to_pass": (DJANGO_FIXED,),
    "pass_to_pass": (DJANGO_KEPT,),
}
NOTHING = "Traceback (most recent call last):\nImportError: cannot import name 'Cart'"

CASES = (
    Case("all tests pass", ALL_PASS, "resolved"),
    Case(
        "FAIL_TO_PASS still fails",
        summary(f"PASSED {KEPT}", f"FAILED {FIXED} - assert 1 == 2"),
        "unresolved",
        1,
    ),
    Case(
        "PASS_TO_PASS breaks", summary(f"PASSED {FIXED}", f"FAILED {KEPT} - assert 1 == 2"), "unresolved", 1
    ),
    Case("FAIL_TO_PASS is not in the log", summary(f"PASSED {KEPT}"), "unresolved"),
    Case("PASS_TO_PASS is not in the log", summary(f"PASSED {FIXED}"), "unresolved"),
    Case("FAIL_TO_PASS is skipped", summary(f"PASSED {KEPT}", f"SKIPPED {FIXED}"), "unresolved"),
    Case("PASS_TO_PASS is skipped", summary(f"SKIPPED {KEPT}", f"PASSED {FIXED}"), "resolved"),
    Case("FAIL_TO_PASS fails as expected (XFAIL)", summary(f"PASSED {KEPT}", f"XFAIL {FIXED}"), "resolved"),
    Case("error in a fixture", summary(f"PASSED {KEPT}", f"ERROR {FIXED} - KeyError: 'x'"), "unresolved", 1),
    Case(
        "error in collection: no test is named",
        summary("ERROR tests/test_cart.py - ImportError: cannot import name 'Cart'"),
        "unresolved",
        2,
    ),
    Case("no test runs, but some do without the patch", NOTHING, "unresolved", 1, control=ALL_PASS),
    Case(
        "nothing is printed, exit code 0, but tests run without the patch", "", "unresolved", control=ALL_PASS
    ),
    Case(
        "no test runs, nor without the patch",
        "bash: pytest: command not found",
        "invalid",
        127,
        control="no pytest",
    ),
    Case(
        "pytest collects nothing",
        "collected 0 items\n\n=== no tests ran in 0.01s ===",
        "unresolved",
        5,
        control=ALL_PASS,
    ),
    Case(
        "a test is named twice, the last time as passed",
        summary(f"FAILED {FIXED}", f"PASSED {FIXED}", f"PASSED {KEPT}"),
        "unresolved",
        1,
        control=ALL_PASS,
    ),
    Case(
        "a test is named twice, both times as passed",
        summary(f"PASSED {FIXED}", f"PASSED {FIXED}", f"PASSED {KEPT}"),
        "resolved",
    ),
    Case(
        "graded code prints PASSED lines, and the runner a failure",
        f"PASSED {FIXED}\n" + summary(f"FAILED {FIXED}", f"PASSED {KEPT}"),
        "unresolved",
        1,
    ),
    Case(
        "graded code prints PASSED lines at its exit, after the runner",
        summary(f"FAILED {FIXED} - x", f"PASSED {KEPT}") + f"\nPASSED {FIXED}",
        "unresolved",
        1,
        control=ALL_PASS,
    ),
    Case(
        "graded code prints PASSED lines at its exit, after the runner, and ends with 0",
        summary(f"FAILED {FIXED} - x", f"PASSED {KEPT}") + f"\nPASSED {FIXED}",
        "resolved",
    ),
    Case(
        "graded code prints PASSED lines instead of the runner's log",
        f"PASSED {FIXED}\nPASSED {KEPT}",
        "unresolved",
        3,
        control=ALL_PASS,
    ),
    Case(
        "Django's runner: a spoofed ok after a failure",
        f"{DJANGO_FIXED} ... FAIL\n{DJANGO_KEPT} ... ok\n{DJANGO_FIXED} ... ok\nRan 2 tests in 0.1s",
        "unresolved",
        1,
        control=f"{DJANGO_KEPT} ... ok\nRan 1 test in 0.1s",
        **DJANGO_CASE,
    ),
    Case(
        "Django's runner: all pass",
        f"{DJANGO_FIXED} ... ok\n{DJANGO_KEPT} ... ok\nRan 2 tests in 0.1s\nOK",
        "resolved",
        **DJANGO_CASE,
    ),
    Case(
        "Django's runner: output between a test and its ok",
        f"{DJANGO_FIXED} ... noise\nok\n{DJANGO_KEPT} ... ok",
        "resolved",
        **DJANGO_CASE,
    ),
    Case(
        "graded code prints an end marker",
        f"PASSED {FIXED}\nPASSED {KEPT}\n>>>>> End Test Output\n"
        + summary(f"FAILED {FIXED}", f"PASSED {KEPT}"),
        "unresolved",
        1,
        control=ALL_PASS,
    ),
    Case(
        "PASSED lines before the start marker",
        summary(f"FAILED {FIXED}", f"PASSED {KEPT}"),
        "unresolved",
        1,
        before=f"PASSED {FIXED}\n",
    ),
    Case(
        "all graded tests pass, an ungraded one fails",
        summary(f"PASSED {KEPT}", f"PASSED {FIXED}", f"FAILED {OTHER}"),
        "resolved",
        1,
    ),
    Case("nothing failed in the log, but the test command did", ALL_PASS, "unresolved", 1, control=ALL_PASS),
    Case(
        "exit code 0 although a graded test fails", summary(f"PASSED {KEPT}", f"FAILED {FIXED}"), "unresolved"
    ),
    Case("time-out, with passing tests in the log", ALL_PASS, "unresolved", timed_out=True),
    Case("patch does not apply", "", "unresolved", applied="refused error: patch failed: cart.py:1"),
    Case("no git in the image", "", "invalid", applied="broken there is no git in the image"),
    Case("log without test markers", "", "invalid", started=False, ended=False),
    Case(
        "log without test markers, and one with them without the patch",
        "",
        "unresolved",
        started=False,
        ended=False,
        control=ALL_PASS,
    ),
    Case("log breaks off between the markers", ALL_PASS, "unresolved", ended=False, control=ALL_PASS),
    Case(
        "name cut within its parameters",
        summary("PASSED tests/t.py::test_p[log(photon", f"PASSED {KEPT}"),
        "resolved",
        fail_to_pass=("tests/t.py::test_p[log(ph",),
    ),
    Case(
        "name cut within its parameters, of which one fails",
        summary("PASSED tests/t.py::test_p[a1]", "FAILED tests/t.py::test_p[a2]", f"PASSED {KEPT}"),
        "unresolved",
        1,
        fail_to_pass=("tests/t.py::test_p[a",),
    ),
    Case(
        "a whole name is no prefix",
        summary("PASSED tests/t.py::test_path", f"PASSED {KEPT}"),
        "unresolved",
        fail_to_pass=("tests/t.py::test_p",),
    ),
    Case(
        "artefact of a parser as a test (`[100%]`)",
        summary("PASSED [100%]", f"PASSED {FIXED}"),
        "resolved",
        pass_to_pass=("[100%]",),
    ),
    Case(
        "control characters in a name",
        summary("FAILED tests/t.py::test_p[\x1b[31m\x07]", f"PASSED {KEPT}"),
        "unresolved",
        1,
        fail_to_pass=("tests/t.py::test_p[\x1b[31m\x07]",),
    ),
    Case(
        "bytes that are no UTF-8", summary(f"PASSED {KEPT}", f"PASSED {FIXED}") + "\n\udcff\udcfe", "resolved"
    ),
    Case(
        "lines end in CR LF", summary(f"PASSED {KEPT}", f"PASSED {FIXED}").replace("\n", "\r\n"), "resolved"
    ),
    Case(
        "log lists failures only, and tests ran",
        "TOTAL: 12 SUCCESS",
        "resolved",
        log_parser="parse_log_chart_js",
        fail_only=True,
    ),
    Case(
        "log lists failures only, and no test ran",
        "Executed 0 of 0",
        "invalid",
        1,
        log_parser="parse_log_chart_js",
        fail_only=True,
        control="Executed 0 of 0",
    ),
    Case(
        "patch of nothing but tests, and all pass", ALL_PASS, "resolved", patch=source("tests/test_more.py")
    ),
    Case("patch that is no diff", "", "unresolved", applied="refused error: No valid patches in input"),
)
