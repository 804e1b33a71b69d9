"""Grading of a patch by the hidden tests: one fresh sandbox, one folder put in, one command.

The sandbox's side is ``exam_runner.py``. Only the runner's own process knows the nonce between the two sides, so
that no output of the graded code can pass for a result.
"""

import base64
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dgm.benchmarks.plain_logs import plain_log
from dgm.benchmarks.prediction_patches import APPLIER, normalised_patch, with_notes
from dgm.benchmarks.suite_files import Limits
from dgm.domain import Entry, Snapshot, Verdict
from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Completed, Grade, SandboxEngine, SandboxSpec

RUNNER = Path(__file__).with_name("exam_runner.py")
PLACE = "/job/exam"
LOG_LIMIT = 60_000
OUTPUT_LIMIT = 1_000_000
SETUP_S = 30.0
"""Seconds that the runner may take in addition to the tests."""
MASKED_FROM = 12
"""Minimum length of a masked line of a hidden test; shorter ones (``else:``) occur in any program."""
RAISED = re.compile(rb"[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|Iteration)(?::|$)")
QUOTED = re.compile(rb"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'")
"""String literals in a test's source."""
PIECE = 24
"""Length in bytes, without white space, of the pieces of a hidden test that are masked anywhere in a line."""
MASK = b"[text of a hidden test]"
SHOWN_LINE, SHOWN_LIMIT = 200, 4000
"""Maximum bytes of one failed test's report, and of all of them."""


@dataclass(frozen=True, slots=True)
class Exam:
    """The inputs for grading a patch by unit tests."""

    workspace: Snapshot
    hidden: Snapshot
    fail_to_pass: Sequence[str]
    pass_to_pass: Sequence[str]
    limits: Limits


async def grade(exam: Exam, patch: bytes, engine: SandboxEngine, labels: Mapping[str, str]) -> Grade:
    """Grade a patch.

    An empty patch needs no sandbox: the fail-to-pass tests are known to fail on it.

    Raises:
        Infrastructure: the sandbox failed, or the runner in it before any graded code had run.
    """
    if not normalised_patch(patch).data:
        return _unresolved_grade("empty patch")
    return await examine(exam, patch, engine, labels)


async def examine(exam: Exam, patch: bytes, engine: SandboxEngine, labels: Mapping[str, str]) -> Grade:
    """Grade a patch by running the tests, even for an empty patch, for which nothing is applied.

    Raises:
        Infrastructure: the sandbox failed, or the runner in it before any graded code had run.
    """
    nonce, given = secrets.token_hex(16), normalised_patch(patch)
    timeout_s = exam.limits.test_timeout_s + SETUP_S
    spec = SandboxSpec(image=exam.limits.image, labels=labels, lifetime_s=timeout_s + SETUP_S)
    async with engine.open(spec) as sandbox:
        try:
            await sandbox.put(_exam_files(exam, given.data), PLACE)
        except AgentFault as fault:
            raise Infrastructure(f"the graded files do not go into a sandbox: {fault}") from fault
        completed = await sandbox.exec(
            ["python3", "-s", "-B", f"{PLACE}/runner/exam_runner.py"],
            timeout_s=timeout_s,
            cwd="/job",
            env={"PYTHONHASHSEED": "0", "HOME": "/tmp", "LC_ALL": "C.UTF-8"},
            stdin=json.dumps({"nonce": nonce, **_assignment(exam)}).encode(),
            output_limit=OUTPUT_LIMIT,
        )
    said = _read_messages(completed.output, nonce)
    fitted = filter(None, str(said.get("prepared", {}).get("notes", "")).split("; "))
    return with_notes(_judge(exam, completed, said), (*given.notes, *fitted))


def _exam_files(exam: Exam, patch: bytes) -> Snapshot:
    files = {
        "patch": Entry(patch),
        "runner/exam_runner.py": Entry(RUNNER.read_bytes()),
        f"runner/{APPLIER.name}": Entry(APPLIER.read_bytes()),
    }
    files |= {f"start/{name}": entry for name, entry in exam.workspace.items()}
    return files | {f"hidden/{name}": entry for name, entry in exam.hidden.items()}


def _assignment(exam: Exam) -> Mapping[str, Any]:
    return {
        "place": PLACE,
        "workdir": exam.limits.workdir,
        "tests": [*exam.fail_to_pass, *exam.pass_to_pass],
        "timeout_s": exam.limits.test_timeout_s,
    }


def _read_messages(output: bytes, nonce: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the runner's messages by stage; only the first message of a stage counts."""
    found: dict[str, Mapping[str, Any]] = {}
    for line in output.split(b"\n"):
        if line.startswith(nonce.encode() + b" "):
            said = json.loads(line.split(b" ", 1)[1])
            found.setdefault(said["stage"], said)
    return found


def _judge(exam: Exam, completed: Completed, said: Mapping[str, Mapping[str, Any]]) -> Grade:
    if "refused" in said:
        return _unresolved_grade("the patch does not apply: " + said["refused"]["reason"])
    if "prepared" not in said and not completed.timed_out:
        end = completed.output[-300:]
        raise Infrastructure(
            f"the test runner ended with {completed.exit_code} before it ran a test: {end!r}"
        )
    if "done" not in said:
        return _unresolved_grade(_describe_ending(completed))
    raw = plain_log(base64.b64decode(said["done"]["log"]))
    grade = _verdict(exam, said["done"]["outcomes"], said["done"]["problems"])
    return replace(
        grade, log=mask_hidden_lines(raw, exam.hidden), shown=redact_failures(raw, grade.failed, exam.hidden)
    )


def _verdict(exam: Exam, outcomes: Mapping[str, str], problems: Sequence[str]) -> Grade:
    missing = [test for test in exam.fail_to_pass if outcomes.get(test) != "passed"]
    # A skipped test is no fix, but no regression either.
    broken = [test for test in exam.pass_to_pass if outcomes.get(test) not in ("passed", "skipped")]
    failed = (*missing, *broken)
    passed = tuple(test for test in (*exam.fail_to_pass, *exam.pass_to_pass) if test not in failed)
    if not failed:
        return Grade(Verdict.RESOLVED, f"all {len(passed)} tests pass", 1.0, passed, ())
    score = 0.0 if broken else 1 - len(missing) / len(exam.fail_to_pass)
    reasons = [
        f"{len(missing)} of {len(exam.fail_to_pass)} tests still fail" if missing else "",
        f"{len(broken)} of {len(exam.pass_to_pass)} tests that passed are broken" if broken else "",
        *problems[:1],
    ]
    reason = "; ".join(filter(None, reasons))
    return Grade(Verdict.UNRESOLVED, reason, score, passed, failed)


def _describe_ending(completed: Completed) -> str:
    if completed.timed_out:
        return "the tests did not end in time"
    if completed.out_of_memory:
        return "the tests ran out of memory"
    return f"the graded code ended the test runner (exit status {completed.exit_code})"


def mask_hidden_lines(log: bytes, hidden: Snapshot) -> bytes:
    """Return the log without lines of hidden tests, which tracebacks quote: the log becomes evidence for agents."""
    secret = {line.strip() for entry in hidden.values() for line in entry.data.split(b"\n")}
    secret = {line for line in secret if len(line) >= MASKED_FROM}
    lines = (b"[line of a hidden test]" if line.strip() in secret else line for line in log.split(b"\n"))
    return b"\n".join(lines)[:LOG_LIMIT]


def redact_failures(log: bytes, failed: Sequence[str], hidden: Snapshot) -> bytes:
    """Return the part of a failure that an agent may see: each failed test's name and its traceback's last line.

    Graded code can read the hidden tests and print anything, so nothing else of the log is passed on. A line that holds
    any line of a hidden test is left out, whatever its length and white space. In the other lines, string literals of
    a hidden test and every ``PIECE`` of it are masked. The last of several reports on a test counts. Text that graded
    code disguises, for example by base64, is not found.
    """
    secret = HiddenTestMask(hidden)
    said: dict[bytes, bytes] = {}
    for part in log.split(b"FAIL: ")[1:]:
        name, _, traceback = part.partition(b"\n")
        lines = [line for line in traceback.split(b"\n") if RAISED.match(line)]
        said[name] = secret.mask_line(lines[0])[:SHOWN_LINE] if lines else b""
    rows = (test.encode() + b"  " + said.get(test.encode(), b"") for test in failed)
    return b"".join(b"FAILED " + row.rstrip() + b"\n" for row in rows)[:SHOWN_LIMIT]


class HiddenTestMask:
    """The text of hidden tests, to be kept from agents."""

    def __init__(self, hidden: Snapshot) -> None:
        sources = [entry.data for entry in hidden.values()]
        quoted = {text for source in sources for pair in QUOTED.findall(source) for text in pair}
        self._quoted = sorted((text for text in quoted if len(text) >= MASKED_FROM), key=len, reverse=True)
        lines = {line.strip() for source in sources for line in source.split(b"\n")}
        # A line that is little more than a quoted text is covered by the mask of that text.
        own = {line for line in lines if len(self._mask_quotes(line).replace(MASK, b"")) >= MASKED_FROM}
        self._lines = own | {bare for line in own if len(bare := _bare(line)) >= MASKED_FROM}
        self._pieces = {
            bare[at : at + PIECE] for bare in map(_bare, lines) for at in range(len(bare) - PIECE + 1)
        }

    def mask_line(self, line: bytes) -> bytes:
        """Return the line with the secrets masked; nothing if it holds a whole line of a hidden test."""
        bare = _bare(line)
        if any(each in line or each in bare for each in self._lines):
            return b""
        return self._mask_pieces(self._mask_quotes(line))

    def _mask_quotes(self, line: bytes) -> bytes:
        for text in self._quoted:
            line = line.replace(text, MASK)
        return line

    def _mask_pieces(self, line: bytes) -> bytes:
        places = [at for at in range(len(line)) if not line[at : at + 1].isspace()]
        bare = _bare(line)
        kept, done = [], 0
        for at in range(len(places) - PIECE + 1):
            if bare[at : at + PIECE] in self._pieces:
                begin, end = places[at], places[at + PIECE - 1] + 1
                if begin >= done:
                    kept += [line[done:begin], MASK]
                done = end
        return b"".join([*kept, line[done:]])


def _bare(line: bytes) -> bytes:
    return b"".join(line.split())


def _unresolved_grade(reason: str) -> Grade:
    return Grade(Verdict.UNRESOLVED, reason, 0.0)
