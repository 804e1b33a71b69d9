"""The folder of evidence that an agent sees of its own work when it improves itself.

Only tasks of the search split come here, and of those only what the agent itself could see plus the names and the
output of failed tests: never a hidden test's source, never a reference fix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dgm.domain import Entry, Evaluation, Snapshot, Tally, Verdict
from dgm.messages import Message, Role

FILES = {
    "conversation": "conversation.md",
    "patch": "patch.diff",
    "failures": "failed-tests.txt",
    "log": "agent-output.txt",
}
CUT = b"\n[... %d bytes left out ...]\n"


@dataclass(frozen=True, slots=True)
class Case:
    """One evaluation with what it left."""

    evaluation: Evaluation
    problem: str
    traces: Mapping[str, bytes]
    """``patch``, ``failures`` (names and last lines of failed tests), ``log`` (of the agent's program) and
    ``conversation``."""
    run: "Circumstances"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """How the agent's program came to its end, beside what it left."""

    exit_code: int = 0
    timed_out: bool = False
    truncated: bool = False
    """Something that a tool printed was cut before the model saw it."""
    crashed: bool = False


def circumstances(
    exit_code: int, timed_out: bool, log: bytes, conversation: Sequence[Message]
) -> Circumstances:
    """Reads the signs that any scaffold gives, whatever its design."""
    return Circumstances(
        exit_code=exit_code,
        timed_out=timed_out,
        truncated=any(m.role is Role.TOOL and "truncated" in m.text for m in conversation),
        crashed=exit_code != 0 and b"Traceback (most recent call last)" in log,
    )


def facts(tally: Tally, cases: Sequence[Case]) -> dict[str, int]:
    """What went wrong in the unresolved cases, counted; ``tally`` is over all the agent's evaluations so far."""
    failed = [case for case in cases if case.evaluation.verdict is Verdict.UNRESOLVED]
    return {
        "resolved": tally.resolved,
        "evaluations": tally.n,
        "failures": len(failed),
        "step_limit": sum(case.run.exit_code != 0 and not case.run.crashed for case in failed),
        "truncated": sum(case.run.truncated for case in failed),
        "wrong": sum(case.run.exit_code == 0 and bool(case.traces["patch"]) for case in failed),
        "crashed": sum(case.run.crashed for case in failed),
        "empty": sum(not case.traces["patch"] for case in failed),
    }


def folder(cases: Sequence[Case], transcript_bytes: int) -> Snapshot:
    """The evidence as files: an index, and one folder a case named by its task."""
    files: dict[str, Entry] = {}
    index = ["# Evidence", "", "One folder a problem, as far as this agent has worked on it.", ""]
    for case in cases:
        name = f"{case.evaluation.task}-{case.evaluation.attempt}"
        index.append(f"- `{name}/`: {case.evaluation.verdict}: {case.evaluation.reason}")
        files |= {f"{name}/{file}": Entry(data) for file, data in _case(case, transcript_bytes).items()}
    files["README.md"] = Entry(("\n".join(index) + "\n").encode())
    return files


def _case(case: Case, transcript_bytes: int) -> dict[str, bytes]:
    shown = {FILES[name]: cut(data, transcript_bytes) for name, data in case.traces.items() if name in FILES}
    return {"problem.md": case.problem.encode(), **shown}


def conversation_text(messages: Sequence[Message]) -> str:
    """A conversation as people read it: a heading a turn, tool calls as they were written."""
    turns = []
    for message in messages:
        calls = "".join(f"\n\n`{call.name}` {call.arguments}" for call in message.calls)
        turns.append(f"## {message.role}\n\n{message.text}{calls}\n")
    return "\n".join(turns)


def cut(data: bytes, limit: int) -> bytes:
    """At most about ``limit`` bytes: the first and the last half, with a line that says how much is missing."""
    if len(data) <= limit:
        return data
    half = limit // 2
    return data[:half] + CUT % (len(data) - 2 * half) + data[-half:]
