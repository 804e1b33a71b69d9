"""The meaning of the outcomes of tests, and what of a failure may be shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dgm.benchmarks.failure_kinds import OWN_KIND
from dgm.domain import Snapshot, Verdict
from dgm.protocols import Grade

LOG_LIMIT = 60_000
MASKED_FROM = 12
"""Minimum length of a masked line of a hidden test; shorter ones (``else:``) occur in any program."""
SHOWN_LIMIT = 4000
"""Maximum bytes of the reports on all failed tests."""
TAMPERED = "the tests were tampered with"
"""Beginning of what the sandbox's side says of a patch that cheats."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The part of a failure that graded code cannot fill with text."""

    kind: str
    """Name of one of Python's exceptions or of a class in the workspace; empty for any other."""
    lines: tuple[str, ...] = ()
    """Lines of the patched workspace, as it was before its code ran."""


def judge_outcomes(
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    outcomes: Mapping[str, str],
    problem: str = "",
) -> Grade:
    """Return the meaning of the outcomes of tests.

    Args:
        fail_to_pass: tests that a fix must pass.
        pass_to_pass: tests that must go on passing.
        outcomes: of the tests that were reported; only ``passed`` is a pass.
        problem: why the outcomes do not count as they are; empty if they do.
    """
    names = (*fail_to_pass, *pass_to_pass)
    failed = tuple(name for name in names if outcomes.get(name) != "passed")
    passed = tuple(name for name in names if name not in {*failed})
    if not failed and not problem:
        return Grade(Verdict.RESOLVED, f"all {len(passed)} tests pass", 1.0, passed)
    missing = sum(name in fail_to_pass for name in failed)
    broken = len(failed) - missing
    reasons = (
        f"{missing} of {len(fail_to_pass)} tests still fail" if missing else "",
        f"{broken} of {len(pass_to_pass)} tests that passed are broken" if broken else "",
        problem,
    )
    counts = failed and not broken and not problem.startswith(TAMPERED)
    score = 1 - missing / len(fail_to_pass) if counts else 0.0
    return Grade(Verdict.UNRESOLVED, "; ".join(filter(None, reasons)), score, passed, failed)


def show_failures(failed: Sequence[str], failures: Mapping[str, Failure]) -> bytes:
    """Return the part of failures that an agent may see: names, kinds of exceptions, lines of the agent's own code.

    Graded code can read the hidden tests and raise anything, so no message and no value is passed on.
    """
    rows: list[str] = []
    for test in failed:
        failure = failures.get(test)
        kind = (failure.kind or OWN_KIND) if failure else ""
        rows += [
            f"FAILED {test}  {kind}".rstrip(),
            *(f"    {line}" for line in (failure.lines if failure else ())),
        ]
    return b"".join(row.encode("utf-8", "replace") + b"\n" for row in rows)[:SHOWN_LIMIT]


def mask_hidden_lines(log: bytes, *hidden: Snapshot) -> bytes:
    """Return the log without lines of hidden tests, which tracebacks quote; it is for people only."""
    secret = {
        line.strip() for files in hidden for entry in files.values() for line in entry.data.split(b"\n")
    }
    secret = {line for line in secret if len(line) >= MASKED_FROM}
    lines = (b"[line of a hidden test]" if line.strip() in secret else line for line in log.split(b"\n"))
    return b"\n".join(lines)[:LOG_LIMIT]
