"""Grading of a patch for an instance of SWE-bench: the package's script in a fresh sandbox, and the package's verdict.

``docs/evidence/swebench.md`` shows verdicts case by case. A run in which the package finds no result counts against the
patch only if a run without the patch has some; else ``Infrastructure`` is raised.
"""

import asyncio
import importlib.metadata
import json
import os
import re
import site
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dgm.benchmarks.grade import mask_hidden_lines, put_graded_files, unresolved
from dgm.benchmarks.logs import cut_bytes, known_kind, plain_log
from dgm.benchmarks.prediction_patches import APPLIER, normalised_patch, read_applied, with_notes
from dgm.benchmarks.swebench_rows import EXTRA, Instance
from dgm.benchmarks.toml_table import suggestion
from dgm.domain import Entry, Verdict
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.processes import run_apart
from dgm.protocols import Completed, Grade, Sandbox, SandboxEngine, SandboxSpec

WORKDIR = "/testbed"
FILES = "/job/grading"
WORKER = Path(__file__).with_name("swebench_worker.py")
OUTPUT_LIMIT = 64_000_000
"""Bytes of the script's output that are kept."""
APPLY_S, AROUND_TESTS_S = 600.0, 120.0
PACKAGE_S = 120.0
"""Seconds for an answer of the package."""
LOG_LIMIT, SHOWN_LIMIT, REASON_LIMIT, NAME_LIMIT = 60_000, 4000, 300, 80
# Scripts ask for en_US.UTF-8 and make it as root. Without it, old Pythons take text for ASCII.
_RUN = f"""\
locale -a 2>/dev/null | grep -qix 'en_US.utf-*8' || {{
    mkdir /tmp/locale && ln -s /usr/lib/locale/C.[Uu]* /tmp/locale/en_US.UTF-8 &&
    export LOCPATH=/tmp/locale:/usr/lib/locale
}}
exec bash {FILES}/eval.sh 2>&1
"""
_OFFLINE = {"PIP_NO_INDEX": "1"}
"""There is no network: pip gives up at once, and what the image has stays installed."""
_TESTS = re.compile(r"(?s)>>>>> Start Test Output(.*?)(?:>>>>> End Test Output|$)")
_RAISED = re.compile(r"\b([A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|Iteration))\b")


@dataclass(frozen=True, slots=True)
class Exam:
    """An instance with all that grading needs."""

    instance: Instance
    script: str
    """The package's evaluation script, for a repository whose commit is the base commit."""
    spec: SandboxSpec
    """The sandbox of the tests; its labels and lifetime are set by ``grade``."""
    timeout_s: float


def package_version() -> str:
    """Return the version of the swebench package; ``none`` if it is missing."""
    try:
        return importlib.metadata.version("swebench")
    except importlib.metadata.PackageNotFoundError:
        return "none"


def make_script(instance: Instance) -> str:
    """Return the package's evaluation script for an instance; block for a second.

    Raises:
        UserError: the package is missing, or has no such log parser.
        Infrastructure: the package's process failed.
    """
    try:
        reply = _ask_package({"row": instance.row()})
    except subprocess.TimeoutExpired as error:
        raise Infrastructure(f"swebench does not answer within {PACKAGE_S:.0f} s") from error
    if "parsers" in reply:
        near = suggestion(instance.log_parser, reply["parsers"])
        raise UserError(
            f"{instance.id}: swebench {package_version()} has no log parser {instance.log_parser!r}{near}"
        )
    # The repository in the sandbox has one commit, whose hash is another.
    return str(reply["script"]).replace(instance.base_commit, "HEAD")


async def grade(exam: Exam, patch: bytes, engine: SandboxEngine, labels: Mapping[str, str]) -> Grade:
    """Grade a patch that is not empty.

    Raises:
        UserError: the swebench package is missing.
        Infrastructure: the image, the sandbox or the package's process failed; this is no verdict on the patch.
    """
    normal = normalised_patch(patch)
    completed, notes = await _run(exam, normal.data, engine, labels)
    if isinstance(completed, str):
        return unresolved(one_line(f"the patch does not apply: {completed}"))
    graded = await asyncio.to_thread(_judge, exam, completed)
    if graded is None:
        await _check_image(exam, engine, labels)
        graded = unresolved(_describe_failure(completed, exam.instance.test_patch))
    graded = with_notes(graded, (*normal.notes, *notes))
    hidden = _hidden_lines(exam.instance.test_patch)
    log = mask_hidden_lines(plain_log(cut_bytes(completed.output, LOG_LIMIT)), hidden)
    return replace(graded, log=log, shown=_list_failed(graded, completed.output))


async def _run(
    exam: Exam, patch: bytes, engine: SandboxEngine, labels: Mapping[str, str]
) -> tuple[Completed | str, Sequence[str]]:
    """Return the result of the evaluation script, or why the patch does not apply; and notes on applying it."""
    files = {
        APPLIER.name: Entry(APPLIER.read_bytes()),
        "model.patch": Entry(patch),
        "eval.sh": Entry(exam.script.encode("utf-8", "surrogateescape")),
    }
    spec = replace(exam.spec, labels=labels, lifetime_s=APPLY_S + exam.timeout_s + AROUND_TESTS_S)
    async with engine.open(spec) as sandbox:
        await put_graded_files(sandbox, files, FILES)
        apply = ["python3", "-I", "-B", f"{FILES}/{APPLIER.name}", f"{FILES}/model.patch", WORKDIR]
        applied = read_applied((await _exec(sandbox, apply, APPLY_S)).output)
        if applied.refused:
            return applied.refused, ()
        return await _exec(sandbox, ["bash", "-c", _RUN], exam.timeout_s), applied.notes


async def _exec(sandbox: Sandbox, command: Sequence[str], timeout_s: float) -> Completed:
    try:
        return await sandbox.exec(
            command, timeout_s=timeout_s, cwd=WORKDIR, env=_OFFLINE, output_limit=OUTPUT_LIMIT
        )
    except AgentFault as fault:
        raise Infrastructure(f"{command[0]} could not be started to grade a patch: {fault}") from fault


def _judge(exam: Exam, completed: Completed) -> Grade | None:
    """Return the package's verdict on a log; None if it finds no result of a test there."""
    if completed.timed_out:
        return unresolved(f"the tests did not end within {exam.timeout_s:.0f} s")
    with tempfile.TemporaryDirectory(prefix="dgm-grading-") as folder:
        log = Path(folder, "test_output.txt")
        log.write_text(completed.output.decode("utf-8", "replace"), encoding="utf-8")
        try:
            reply = _ask_package({"row": exam.instance.row(), "log": str(log)})
        except subprocess.TimeoutExpired:
            # The log parser's time depends on the log alone, so another try would end likewise.
            reply = {"unreadable": f"no answer within {PACKAGE_S:.0f} s"}
    if "unreadable" in reply:
        return unresolved(
            one_line(f"the log parser cannot read what the tests printed: {reply['unreadable']}")
        )
    report = reply["report"]
    return _read_report(report) if report["patch_successfully_applied"] else None


def _read_report(report: Mapping[str, Any]) -> Grade:
    fixed, kept = report["tests_status"]["FAIL_TO_PASS"], report["tests_status"]["PASS_TO_PASS"]
    passed = tuple(dict.fromkeys((*fixed["success"], *kept["success"])))
    if report["resolved"]:
        return Grade(Verdict.RESOLVED, f"all {len(passed)} tests pass", 1.0, passed)
    count = len(fixed["success"]) + len(fixed["failure"])
    score = 0.0 if kept["failure"] else len(fixed["success"]) / count
    reasons = [
        _describe(fixed["failure"], f"of {count} tests that must pass fail"),
        _describe(
            kept["failure"], f"of {len(kept['success']) + len(kept['failure'])} tests that passed are broken"
        ),
    ]
    failed = tuple(dict.fromkeys((*fixed["failure"], *kept["failure"])))
    return Grade(Verdict.UNRESOLVED, one_line("; ".join(filter(None, reasons))), score, passed, failed)


def _describe(tests: Sequence[str], what: str) -> str:
    more = ", …" if len(tests) > 1 else ""
    return f"{len(tests)} {what} ({one_line(tests[0], NAME_LIMIT)}{more})" if tests else ""


async def _check_image(exam: Exam, engine: SandboxEngine, labels: Mapping[str, str]) -> None:
    """Run the tests without the patch.

    Raises:
        Infrastructure: the package finds no result there, either.
    """
    completed, _ = await _run(exam, b"", engine, labels)
    assert isinstance(completed, Completed)
    if completed.timed_out or await asyncio.to_thread(_judge, exam, completed) is None:
        end = _last_line(completed.output[-LOG_LIMIT:]) or completed.bad_end or "no output"
        raise Infrastructure(f"{exam.instance.id}: no test runs in its image, even without a patch: {end}")


def _describe_failure(completed: Completed, test_patch: str) -> str:
    if completed.truncated:
        return "the tests printed more than can be kept"
    if completed.out_of_memory:
        return "the tests ran out of memory"
    reason = "swebench finds no result in the tests' log, or one that their exit status contradicts"
    end = _last_line(mask_hidden_lines(plain_log(completed.output[-LOG_LIMIT:]), _hidden_lines(test_patch)))
    return one_line(f"{reason}: {end or 'nothing was printed'}")


def _last_line(output: bytes) -> str:
    """Return the last line that the tests printed, or the script if no test began."""
    text = output.decode("utf-8", "replace")
    section = _TESTS.search(text)
    lines = [line for line in (section[1] if section else text).split("\n") if line.strip(" '")]
    return one_line(next((line for line in reversed(lines) if not line.startswith("+ ")), ""), 160)


def _ask_package(question: Mapping[str, object]) -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory(prefix="dgm-swebench-") as folder:
        # None of the host's keys; packages of ``pip install --user`` are found although the home folder is another.
        names = ("PATH", "LD_LIBRARY_PATH")
        environment = {name: os.environ[name] for name in names if name in os.environ}
        environment |= {"HOME": folder, "PYTHONUSERBASE": site.getuserbase(), "LC_ALL": "C.UTF-8"}
        try:
            done = run_apart(
                [sys.executable, "-P", str(WORKER)],
                cwd=Path(folder),
                env=environment,
                timeout_s=PACKAGE_S,
                given=json.dumps(question).encode(),
            )
            reply: Mapping[str, Any] = json.loads(done.stdout)
        except OSError as error:
            raise Infrastructure(
                f"{sys.executable} cannot be started for swebench: {error.strerror}"
            ) from error
        except ValueError as error:
            words = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise Infrastructure(f"the process of swebench ended: {words or done.returncode}") from error
    if "missing" in reply:
        raise UserError(f"SWE-bench is graded by the swebench package, which is not installed: {EXTRA}")
    if "broken" in reply:
        raise UserError(f"the swebench package cannot be used ({reply['broken']}): {EXTRA}")
    return reply


def _hidden_lines(test_patch: str) -> Sequence[bytes]:
    """Return the lines that the hidden tests add: agents' evidence is made of what is shown."""
    added = (line[1:] for line in test_patch.split("\n") if line.startswith("+"))
    return [line.encode("utf-8", "surrogateescape") for line in added]


def _list_failed(graded: Grade, log: bytes) -> bytes:
    """Return the names of failed tests with the kind of error, which is all of the log that an agent may learn."""
    lines = log.decode("utf-8", "replace").split("\n")
    failures = [line for line in lines if "FAIL" in line or "ERROR" in line]
    rows: list[bytes] = []
    for test in graded.failed:
        line = next((line for line in failures if test in line), "")
        raised = _RAISED.search(line.rpartition(test)[2])
        kind = known_kind(raised[1]) if raised else ""
        rows.append(f"FAILED {one_line(test, 200)}  {kind}".rstrip().encode() + b"\n")
        if sum(map(len, rows)) > SHOWN_LIMIT:
            break
    return b"".join(rows)[:SHOWN_LIMIT]


def one_line(text: str, limit: int = REASON_LIMIT) -> str:
    """Return printable text on one line: names of tests and output may hold anything."""
    shown = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
