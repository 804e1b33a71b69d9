"""Grades a patch for an instance of SWE-bench: our script in a fresh sandbox, the package's parser, strict rules.

The table of cases with verdict and reason is ``docs/swebench-grading.md``. Whatever the patch brought about is
``unresolved``; whatever the image, the sandbox or the parser's process did raises ``Infrastructure``.
"""

import asyncio
import logging
import re
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dgm.benchmarks import swebench_logs as logs
from dgm.benchmarks import swebench_patches as patches
from dgm.benchmarks import swebench_script as script
from dgm.benchmarks.failure_kinds import known_kind
from dgm.benchmarks.prediction_patches import normalised_patch, with_notes
from dgm.benchmarks.sandbox_report import put_graded_files
from dgm.benchmarks.swebench_parsers import Parsers
from dgm.benchmarks.swebench_verdicts import Expected, Results, judge, one_line, ran
from dgm.domain import Snapshot, Verdict
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.protocols import Completed, Grade, SandboxEngine, SandboxSpec

log = logging.getLogger(__name__)

PLACE = "/job/grading"
OUTPUT_LIMIT = 10_000_000
"""Bytes of the script's output, packed: more than 100 MB of ordinary test output."""
LOG_LIMIT, SHOWN_LIMIT = 60_000, 4000
AROUND_TESTS_S = 120.0
"""What the script may take before and after the tests."""
MASKED_FROM = 12
"""Shorter lines of a hidden test (``else:``) say nothing and occur in any program."""
_RAISED = re.compile(r"\b([A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|Iteration))\b")


@dataclass(frozen=True, slots=True)
class Exam:
    """An instance as grading needs it."""

    instance: str
    repo: str
    version: str
    base_commit: str
    test_patch: str
    reference: str
    """The instance's own fix: files that it edits are not taken for tests or steering."""
    fail_to_pass: Sequence[str]
    pass_to_pass: Sequence[str]
    spec: SandboxSpec
    """The sandbox of the tests; its labels and lifetime are set by ``grade``."""
    workdir: str = "/testbed"
    timeout_s: float = 1800.0
    log_parser: str = ""
    """The parser's name in the swebench package; empty: by the repository."""
    fail_only: bool = False
    """``eval_type`` is ``fail_only``: the log lists failures only."""
    test_cmd: str = ""
    """Wins over ``eval_script``."""
    eval_script: str = ""
    """As swebench 5 has it in its rows."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One run of the evaluation script, read."""

    completed: Completed
    log: logs.Log
    results: Results | None
    """``None`` where the test command never came to its end."""
    unreadable: str = ""
    excerpt: bytes = field(default=b"", repr=False)


async def grade(
    exam: Exam, patch: bytes, engine: SandboxEngine, parsers: Parsers, labels: Mapping[str, str]
) -> Grade:
    """Grades a patch; an empty one, and one that edits nothing but the instance's tests, need no sandbox.

    Raises:
        UserError: the swebench package is missing, or knows no parser or test command for the instance.
        Infrastructure: the image, the sandbox or the parser's process failed; says nothing of the patch.
    """
    hidden = patches.files(exam.test_patch.encode("utf-8", "surrogateescape"))
    given = normalised_patch(patch)
    patch = given.data
    reason = patches.refused(patch, hidden)
    if reason:
        return Grade(Verdict.UNRESOLVED, one_line(reason), 0.0)
    plan = plan_of(exam)
    taken = await _take(exam, plan, patch, engine, parsers, labels)
    graded = ended_early(exam, plan, taken)
    if graded is None:
        assert taken.results is not None
        if not taken.unreadable and not ran(taken.results):
            await _control(exam, plan, engine, parsers, labels)
        graded = settled(exam, patch, taken)
    fitted = filter(None, taken.log.words.get("applied", "").split("; "))
    graded = with_notes(graded, (*given.notes, *fitted))
    return replace(graded, log=_masked(taken.excerpt, exam.test_patch), shown=_shown(graded, taken.excerpt))


def check(exam: Exam, parsers: Parsers) -> None:
    """Says before an agent is paid for what grading would say afterwards. Blocks: for a second or so the first time.

    Raises:
        UserError: the swebench package is missing, or knows no parser or test command for the instance.
        Infrastructure: the package's process failed.
    """
    parsers.check(_row(exam))
    plan_of(exam)


def plan_of(exam: Exam) -> script.Plan:
    """Return what is run to test the instance, as it says itself.

    Raises:
        UserError: it says nothing.
    """
    if exam.test_cmd:
        return script.from_command(exam.test_cmd)
    if not exam.eval_script:
        raise UserError(f"{exam.instance}: no test command: give the instance an eval_script or a test_cmd")
    return script.from_script(exam.eval_script, exam.instance)


def ended_early(exam: Exam, plan: script.Plan, taken: Taken) -> Grade | None:
    """The grade of a run whose test command did not come to its end, or nothing.

    A time-out and a patch that does not apply win over anything in the log.

    Raises:
        Infrastructure: it was not for the patch.
    """
    words, completed = taken.log.words, taken.completed
    if "refused" in words:
        return _unresolved(f"the patch does not apply: {words['refused'] or 'git gives no reason'}")
    if "late" in words or completed.timed_out:
        if "testing" in words:
            return _unresolved(f"the tests did not end within {exam.timeout_s:.0f} s")
        raise Infrastructure(f"{exam.instance}: the sandbox was not ready for the tests in time")
    for word, what in (
        ("broken", "cannot be graded in its image"),
        ("unfit", "the test patch does not apply"),
    ):
        if word in words:
            raise Infrastructure(f"{exam.instance}: {what}: {words[word]}")
    if completed.out_of_memory:
        return _unresolved(f"the tests ran out of memory ({exam.spec.memory_mb} MB)")
    if "end" in words and "start" in words:
        return None
    if completed.truncated:
        return _unresolved("the tests printed more than can be kept")
    if "testing" in words and "end" not in words:
        return _unresolved(f"the graded code ended the evaluation script (exit status {completed.exit_code})")
    if "testing" in words and plan.builds:
        return _unresolved("the build ended the evaluation script before a test ran")
    said = one_line(taken.log.around.strip().rpartition("\n")[2], 200)
    raise Infrastructure(
        f"{exam.instance}: the evaluation script ended with {completed.exit_code} before it ran a test:"
        f" {said or 'no output'}"
    )


def settled(exam: Exam, patch: bytes, taken: Taken) -> Grade:
    """The grade of a run whose test command came to its end."""
    assert taken.results is not None
    if taken.unreadable:
        return _unresolved(f"the log parser cannot read what the tests printed: {taken.unreadable}")
    expected = Expected(exam.fail_to_pass, exam.pass_to_pass, exam.fail_only)
    if expected.fail_only and not ran(taken.results):
        return replace(judge(replace(expected, fail_only=False), taken.results), score=0.0)
    return _with_notes(exam, patch, judge(expected, taken.results))


def _with_notes(exam: Exam, patch: bytes, graded: Grade) -> Grade:
    """A patch of tests alone resolves nothing; what else it did to the runner is said."""
    named = patches.files(patch)
    exempt = patches.files(exam.reference.encode("utf-8", "surrogateescape"))
    if patches.only_tests(named) and not patches.only_tests(exempt):
        reason = f"the patch edits only tests ({patches.listed(named)}); {graded.reason}"
        return replace(graded, verdict=Verdict.UNRESOLVED, reason=one_line(reason), score=0.0)
    notes = []
    if undone := patches.steering(named, exempt):
        notes.append(f"edits to {patches.listed(undone)} were undone")
    if kept := patches.shared(named, exempt):
        notes.append(f"the patch edits {patches.listed(kept)}")
    return replace(graded, reason=one_line("; ".join([graded.reason, *notes])))


async def _take(
    exam: Exam,
    plan: script.Plan,
    patch: bytes,
    engine: SandboxEngine,
    parsers: Parsers,
    labels: Mapping[str, str],
) -> Taken:
    hidden = patches.files(exam.test_patch.encode("utf-8", "surrogateescape"))
    exempt = patches.files(exam.reference.encode("utf-8", "surrogateescape"))
    undone = patches.steering(patches.files(patch), exempt)
    work = script.Assignment(
        workdir=exam.workdir,
        patch=patch,
        test_patch=exam.test_patch.encode("utf-8", "surrogateescape"),
        restored=list(dict.fromkeys([*hidden, *undone])),
        timeout_s=exam.timeout_s,
    )
    nonce = secrets.token_hex(16)
    completed = await _run(exam, script.luggage(plan, work), nonce, engine, labels)
    return await asyncio.to_thread(read, exam, completed, nonce, parsers)


async def _run(
    exam: Exam, luggage: Snapshot, nonce: str, engine: SandboxEngine, labels: Mapping[str, str]
) -> Completed:
    patience_s = exam.timeout_s + AROUND_TESTS_S
    spec = replace(exam.spec, labels=labels, lifetime_s=patience_s + AROUND_TESTS_S)
    async with engine.open(spec) as sandbox:
        await put_graded_files(sandbox, luggage, PLACE)
        try:
            return await sandbox.exec(
                ["bash", f"{PLACE}/run.sh"],
                timeout_s=patience_s,
                stdin=f"{nonce}\n".encode(),
                output_limit=OUTPUT_LIMIT,
            )
        except AgentFault as fault:
            raise Infrastructure(f"the evaluation script could not be started: {fault}") from fault


def read(exam: Exam, completed: Completed, nonce: str, parsers: Parsers) -> Taken:
    """Reads a script's output, and the log in it with the package's parser.

    Raises:
        UserError: the package is missing, or knows no parser for the instance.
        Infrastructure: the parser's process failed.
    """
    with tempfile.TemporaryDirectory(prefix="dgm-grading-") as folder:
        found = logs.read(completed.output, nonce, Path(folder, "tests.log"))
        excerpt = found.excerpt(LOG_LIMIT)
        if not {"start", "end"} <= found.words.keys():
            return Taken(completed, found, None, excerpt=excerpt)
        parsed = parsers.statuses(_row(exam), found.tests)
        # The text is asked for signs of a run only where no test is named.
        text = "" if parsed.statuses else found.text()
        results = Results(parsed.statuses, int(found.words["end"] or 1), text, found.cut)
    return Taken(completed, found, results, parsed.unreadable, excerpt)


async def _control(
    exam: Exam, plan: script.Plan, engine: SandboxEngine, parsers: Parsers, labels: Mapping[str, str]
) -> None:
    """Where no test ran, asks whether any does without the patch: if so, it was for the patch.

    Raises:
        Infrastructure: none does.
    """
    taken = await _take(exam, plan, b"", engine, parsers, labels)
    if taken.results is None or not ran(taken.results):
        end = one_line(taken.excerpt.decode("utf-8", "replace").strip().rpartition("\n")[2], 200)
        raise Infrastructure(
            f"{exam.instance}: no test runs in its image, even without a patch: {end or 'no output'}"
        )


def _row(exam: Exam) -> Mapping[str, str]:
    return {
        "instance_id": exam.instance,
        "repo": exam.repo,
        "version": exam.version,
        "base_commit": exam.base_commit,
        "test_patch": exam.test_patch,
        "log_parser": exam.log_parser,
    }


def _masked(text: bytes, test_patch: str) -> bytes:
    """The log without lines of hidden tests, as tracebacks quote them: agents' evidence is made of it."""
    added = (line[1:].strip() for line in test_patch.split("\n") if line.startswith("+"))
    secret = {line.encode("utf-8", "surrogateescape") for line in added if len(line) >= MASKED_FROM}
    # pytest marks the line that failed with "E" or ">".
    lines = (
        b"[line of a hidden test]" if line.lstrip(b"E>").strip() in secret else line
        for line in text.split(b"\n")
    )
    return b"\n".join(lines)


def _shown(graded: Grade, text: bytes) -> bytes:
    """Names of failed tests with the kind of error, which is all of the log that an agent may learn of."""
    lines = text.decode("utf-8", "replace").split("\n")
    failures = [line for line in lines if "FAIL" in line or "ERROR" in line]
    rows: list[bytes] = []
    for test in graded.failed:
        said = next((line for line in failures if test in line), "")
        raised = _RAISED.search(said.rpartition(test)[2])
        kind = known_kind(raised[1]) if raised else ""
        rows.append(f"FAILED {one_line(test, 200)}  {kind}".rstrip().encode() + b"\n")
        if sum(map(len, rows)) > SHOWN_LIMIT:
            break
    return b"".join(rows)[:SHOWN_LIMIT]


def _unresolved(reason: str) -> Grade:
    return Grade(Verdict.UNRESOLVED, one_line(reason), 0.0)
