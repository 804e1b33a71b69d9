"""What an exercise's hidden tests say of a patch: one fresh sandbox of the language's image, one command.

The sandbox's side is ``polyglot_runner.py``; what the tests' tools report is judged here.
"""

import base64
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.benchmarks.failure_kinds import known_kind
from dgm.benchmarks.plain_logs import plain_log
from dgm.benchmarks.polyglot_exercises import Exercise
from dgm.benchmarks.polyglot_plan import GRADERS, TESTS_S, Language, Plan, Room
from dgm.benchmarks.polyglot_reports import CONTROL, Report, unmarked
from dgm.benchmarks.prediction_patches import APPLIER, normalised_patch, with_notes
from dgm.benchmarks.sandbox_report import (
    check_prepared,
    describe_ending,
    put_graded_files,
    read_messages,
    unresolved,
)
from dgm.benchmarks.test_outcomes import TestOutcome
from dgm.domain import Entry, Snapshot, Verdict
from dgm.errors import Infrastructure
from dgm.protocols import Completed, Grade, SandboxEngine, SandboxSpec

PLACE = "/job"
LOG_LIMIT = 60_000
OUTPUT_LIMIT = 16_000_000
"""Results come as base64 on the runner's output."""
SETUP_S = 60.0
"""What the runner may take around the steps themselves."""
NOT_FOUND = 127
SHOWN_LINE, SHOWN_LIMIT = 200, 4000
NAMED = 3
"""Failed tests that a reason names."""
CPUS, MEMORY_MB, PIDS, DISK_MB = 2.0, 3072, 512, 1536
_ERROR = re.compile(r"\berror\b|\bcannot find\b|undefined:|\.go:\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ending:
    """How one step ended."""

    exit_code: int | None
    """None: it had to be ended when its time was over."""
    output: str
    marked: str


async def examine(
    exercise: Exercise,
    patch: bytes,
    engine: SandboxEngine,
    labels: Mapping[str, str],
    beside: Sequence[str] = (),
) -> Grade:
    """Grades a patch on the exercise's stub; nothing is applied when it is empty.

    Args:
        exercise: what was to be solved.
        patch: against the stub; only what it makes of the solution files counts.
        engine: opens the sandbox.
        labels: of the sandbox.
        beside: further files to be taken from the patched folder; a reference solution may need some.

    Raises:
        Infrastructure: the sandbox or the tool chain in it failed; says nothing of the patch.
    """
    mark, given = "q" + secrets.token_hex(8), normalised_patch(patch)
    workdir = f"/work/{exercise.name}"
    room = Room(exercise.name, workdir, f"/work/{secrets.token_hex(8)}", PLACE, mark)
    plan = exercise.language.plan(room, exercise.tests)
    nonce = secrets.token_hex(16)
    limit_s = sum(step.timeout_s for step in plan.steps) + SETUP_S
    assignment = {
        "nonce": nonce,
        "place": PLACE,
        "workdir": workdir,
        "scratch": room.scratch,
        "solution": [*exercise.solution, *beside],
        "mark": mark,
        "results": plan.results,
        "steps": [
            {
                "name": step.name,
                "argv": step.argv,
                "timeout_s": step.timeout_s,
                "env": step.env,
                "stdin": step.stdin,
            }
            for step in plan.steps
        ],
    }
    spec = SandboxSpec(
        image=exercise.language.image,
        labels=labels,
        cpus=CPUS,
        memory_mb=MEMORY_MB,
        pids=PIDS,
        disk_mb=DISK_MB,
        lifetime_s=limit_s + SETUP_S,
    )
    async with engine.open(spec) as sandbox:
        await put_graded_files(sandbox, _luggage(exercise, plan, given.data), PLACE)
        completed = await sandbox.exec(
            ["python3", "-s", "-B", f"{PLACE}/polyglot_runner.py"],
            timeout_s=limit_s,
            cwd=PLACE,
            env={"HOME": "/tmp", "LC_ALL": "C.UTF-8"},
            stdin=json.dumps(assignment).encode(),
            output_limit=OUTPUT_LIMIT,
        )
    said = read_messages(completed.output, nonce)
    fitted = [note for one in said for note in str(one.get("notes", "")).split("; ") if note]
    return with_notes(_judged(exercise, room, completed, said), (*given.notes, *fitted))


def _luggage(exercise: Exercise, plan: Plan, patch: bytes) -> Snapshot:
    files = {
        "exam/patch": Entry(patch),
        "polyglot_runner.py": Entry((GRADERS / "polyglot_runner.py").read_bytes()),
        APPLIER.name: Entry(APPLIER.read_bytes()),
    }
    files |= {f"exam/start/{path}": entry for path, entry in exercise.stub.items()}
    files |= {f"exam/tests/{path}": entry for path, entry in {**exercise.hidden, **plan.tests}.items()}
    return {**files, **plan.luggage}


def _judged(exercise: Exercise, room: Room, completed: Completed, said: Sequence[Mapping[str, Any]]) -> Grade:
    stages = {str(one["stage"]): one for one in said}
    if "refused" in stages:
        return unresolved(str(stages["refused"]["reason"]))
    endings = [(str(one["stage"]), _ending(one, room)) for one in said if one["stage"] in ("build", "tests")]
    check_prepared(stages, completed)
    builds = [ending for stage, ending in endings if stage == "build"]
    if builds and builds[-1].exit_code != 0:
        return _unbuilt(exercise.language, builds[-1], room.mark)
    runs = [ending for stage, ending in endings if stage == "tests"]
    if not runs or "done" not in stages:
        return unresolved(describe_ending(completed, f"within {TESTS_S:.0f} s"))
    results = _decoded(stages["done"]["results"])
    report = exercise.language.read(results, runs[0].marked, room.mark)
    return _verdict(exercise, report, runs[0], room.mark)


def _ending(said: Mapping[str, Any], room: Room) -> Ending:
    # The name of the folder is made up each time: a second try would be told another story at every repetition.
    output = _decoded(said["output"]).replace(room.scratch, "/build")
    return Ending(said["exit_code"], output, _decoded(said["marked"]))


def _decoded(text: str) -> str:
    return plain_log(base64.b64decode(text)).decode("utf-8", "replace")


def _unbuilt(language: Language, ending: Ending, mark: str) -> Grade:
    output = unmarked(ending.output, mark)
    if ending.exit_code == NOT_FOUND:
        raise Infrastructure(f"the image {language.image} lacks its tool chain: {output.strip()[-200:]}")
    if ending.exit_code is None:
        return Grade(Verdict.UNRESOLVED, "it did not compile in time", 0.0, log=output.encode()[:LOG_LIMIT])
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((line for line in lines if _ERROR.search(line)), lines[0] if lines else "")
    reason = f"does not compile: {first[:SHOWN_LINE]}".rstrip(": ")
    return Grade(
        Verdict.UNRESOLVED, reason, 0.0, log=output.encode()[:LOG_LIMIT], shown=reason.encode() + b"\n"
    )


def _verdict(exercise: Exercise, report: Report, run: Ending, mark: str) -> Grade:
    results = report.results
    absent = [name for name in exercise.expected if not any(_is(each, name) for each in results)]
    failed = [name for name, result in results.items() if result.outcome is not TestOutcome.PASSED] + absent
    passed = [name for name, result in results.items() if result.outcome is TestOutcome.PASSED]
    total = len(results) + len(absent)
    log = _log(report, failed, run, mark)
    if passed and not failed and report.control is TestOutcome.FAILED:
        return Grade(Verdict.RESOLVED, f"all {total} tests pass", 1.0, tuple(passed), (), log)
    # Graded code may report a test of any name.
    named = [name for name in failed if any(_is(name, each) for each in exercise.expected)]
    reason = _reason(report, run, len(failed), named, absent, total)
    trusted = report.control is TestOutcome.FAILED
    share = len(passed) / total if total and trusted and failed else 0.0
    shown = _shown(report, named)
    return Grade(
        Verdict.UNRESOLVED, reason, share, tuple(passed) if trusted else (), tuple(named), log, shown
    )


def _is(found: str, expected: str) -> bool:
    """Tools put the names of groups, modules or classes before a test's own."""
    return found == expected or (found.endswith(expected) and not found[-len(expected) - 1].isalnum())


def _reason(
    report: Report, run: Ending, failed: int, named: Sequence[str], absent: Sequence[str], total: int
) -> str:
    if run.exit_code is None:
        return f"the tests did not end within {TESTS_S:.0f} s"
    if report.broken:
        return f"the tests could not be loaded: {_broken_kind(report.broken)}".rstrip(": ")
    if report.control is not None and report.control is not TestOutcome.FAILED:
        return "the tests were tampered with: one that must fail did not"
    if not total:
        return f"no test ran (exit status {run.exit_code})"
    if report.control is None or absent:
        status = run.exit_code if run.exit_code in (0, 1, 101, 134, 137, 139) else "of its own"
        ended = f"the tests ended early (exit status {status})"
        return f"{ended}: {total - len(absent)} of {total} ran" if absent else ended
    names = ", ".join(named[:NAMED]) + (" …" if len(named) > NAMED else "")
    return f"{failed} of {total} tests fail: {names}".rstrip(": ")


def _broken_kind(text: str) -> str:
    """Return the kind of the last exception in a report on a file that cannot be loaded."""
    return next(filter(None, map(known_kind, reversed(text.splitlines()))), "")


def _log(report: Report, failed: Sequence[str], run: Ending, mark: str) -> bytes:
    """What people read, and a second try: each failed test with what was said of it, then what was printed."""
    messages = (
        f"FAILED {name}\n{report.results[name].message if name in report.results else 'it did not run'}\n"
        for name in failed
    )
    lines = [line for line in run.output.splitlines() if mark + CONTROL not in line]
    text = "\n".join([*messages, report.broken, "output:", unmarked("\n".join(lines), mark)])
    return text.encode("utf-8", "replace")[:LOG_LIMIT]


def _shown(report: Report, failed: Sequence[str]) -> bytes:
    """Each failed test's name and the kind of exception that it ended with: graded code may put anything into more."""
    rows = [f"could not be loaded: {_broken_kind(report.broken)}".rstrip(": ")] if report.broken else []
    for name in failed:
        kind = _kind(report.results[name].message) if name in report.results else ""
        rows.append(f"FAILED {name}  {kind}".rstrip())
    return "".join(f"{row}\n" for row in rows).encode()[:SHOWN_LIMIT]


def _kind(message: str) -> str:
    """The kind of exception in a tool's message: pytest marks its line, the others begin with it."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith("E ")]
    return known_kind(next(iter(marked or lines), ""))
