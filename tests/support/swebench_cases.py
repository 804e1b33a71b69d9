"""Test logs of every kind with the verdict that each gets: the rows of ``docs/swebench-grading.md``."""

from dataclasses import dataclass

NONCE = "0123456789abcdef"
FIXED, KEPT = "tests/test_cart.py::test_total", "tests/test_cart.py::test_empty"
PYTEST = "psf/requests"
DJANGO = "django/django"


@dataclass(frozen=True)
class Case:
    """One run of an evaluation script, canned."""

    title: str
    log: str
    """Between the markers."""
    verdict: str
    exit_code: int = 0
    prepared: tuple[str, ...] = ("ready", "applied", "testing")
    """What the script says of itself first."""
    words: tuple[str, ...] = ()
    """What it says after that."""
    repo: str = PYTEST
    fail_to_pass: tuple[str, ...] = (FIXED,)
    pass_to_pass: tuple[str, ...] = (KEPT,)
    fail_only: bool = False
    control: str = ""
    """The log of the run without the patch, asked for where no test ran."""
    patch: bytes = b"--- a/cart.py\n+++ b/cart.py\n@@ -1 +1 @@\n-a\n+b\n"
    started: bool = True
    ended: bool = True

    def output(self, log: str | None = None) -> bytes:
        """What the script prints."""
        words = [f">>>>> {NONCE} {word}" for word in (*self.prepared, *self.words)]
        if self.started:
            words += [f">>>>> {NONCE} start", self.log if log is None else log]
        if self.ended:
            words += [f">>>>> {NONCE} end {self.exit_code if log is None else 0}"]
        return ("\n".join(words) + "\n").encode("utf-8", "surrogateescape")


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
DJANGO_CASE = {"repo": DJANGO, "fail_to_pass": (DJANGO_FIXED,), "pass_to_pass": (DJANGO_KEPT,)}
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
    ),
    Case(
        "graded code prints PASSED lines instead of the runner's log",
        f"PASSED {FIXED}\nPASSED {KEPT}",
        "unresolved",
        3,
    ),
    Case(
        "Django's runner: a spoofed ok after a failure",
        f"{DJANGO_FIXED} ... FAIL\n{DJANGO_KEPT} ... ok\n{DJANGO_FIXED} ... ok\nRan 2 tests in 0.1s",
        "unresolved",
        1,
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
        "graded code prints an end marker without the nonce",
        f">>>>> End Test Output\n>>>>> end 0\nPASSED {FIXED}\n"
        + summary(f"FAILED {FIXED}", f"PASSED {KEPT}"),
        "unresolved",
        1,
    ),
    Case(
        "PASSED lines before the start marker",
        summary(f"FAILED {FIXED}", f"PASSED {KEPT}"),
        "unresolved",
        1,
        words=(f"said\nPASSED {FIXED}",),
    ),
    Case(
        "all graded tests pass, an ungraded one fails",
        summary(f"PASSED {KEPT}", f"PASSED {FIXED}", f"FAILED {OTHER}"),
        "resolved",
        1,
    ),
    Case("nothing failed in the log, but the test command did", ALL_PASS, "unresolved", 1),
    Case(
        "exit code 0 although a graded test fails", summary(f"PASSED {KEPT}", f"FAILED {FIXED}"), "unresolved"
    ),
    Case("time-out, with passing tests in the log", ALL_PASS, "unresolved", 124, words=("late 60",)),
    Case(
        "patch does not apply",
        "",
        "unresolved",
        prepared=("refused error: patch failed: cart.py:1",),
        started=False,
        ended=False,
    ),
    Case(
        "patch does not apply, and the log says that all pass",
        ALL_PASS,
        "unresolved",
        words=("refused error: corrupt patch",),
    ),
    Case(
        "test patch does not apply",
        "",
        "invalid",
        prepared=("unfit error: tests/test_cart.py: No such file",),
        started=False,
        ended=False,
    ),
    Case(
        "no repository in the image",
        "",
        "invalid",
        prepared=("broken there is no folder /testbed in the image",),
        started=False,
        ended=False,
    ),
    Case(
        "log without test markers",
        "",
        "invalid",
        prepared=("ready", "applied"),
        started=False,
        ended=False,
    ),
    Case("log without a start marker", "", "invalid", 2, started=False),
    Case(
        "the evaluation script is killed before the first test", "", "unresolved", started=False, ended=False
    ),
    Case("log breaks off between the markers", ALL_PASS, "unresolved", ended=False),
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
        repo="chartjs/Chart.js",
        fail_only=True,
    ),
    Case(
        "log lists failures only, and no test ran",
        "Executed 0 of 0",
        "invalid",
        1,
        repo="chartjs/Chart.js",
        fail_only=True,
        control="Executed 0 of 0",
    ),
    Case("empty patch", "", "unresolved", patch=b"\n"),
    Case("patch of nothing but the instance's tests", "", "unresolved", patch=source("tests/test_cart.py")),
    Case("patch of other tests, and all pass", ALL_PASS, "unresolved", patch=source("tests/test_more.py")),
    Case(
        "patch of nothing but conftest.py, and all pass", ALL_PASS, "unresolved", patch=source("conftest.py")
    ),
    Case(
        "patch of the fix and of conftest.py",
        ALL_PASS,
        "resolved",
        patch=source("cart.py") + source("tests/conftest.py"),
    ),
    Case(
        "patch of the fix and of tox.ini", ALL_PASS, "resolved", patch=source("cart.py") + source("tox.ini")
    ),
    Case("patch that leaves the repository", "", "unresolved", patch=source("../../etc/passwd")),
    Case("patch of .git", "", "unresolved", patch=source(".git/hooks/post-checkout")),
    Case("patch that is no diff", "", "unresolved", patch=b"I have fixed the fault.\n"),
)
