"""The folder of evidence that an agent sees of its own work when it improves itself.

Only tasks of the search split come here, and of those only what the agent itself could see plus the names and the
output of failed tests: never a hidden test's source, never a reference fix.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.domain import Entry, Evaluation, Snapshot, Tally, Verdict
from dgm.messages import Message, Role

CUT = b"\n[... %d bytes left out ...]\n"


@dataclass(frozen=True, slots=True)
class Case:
    """One evaluation with what it left."""

    evaluation: Evaluation
    problem: str
    conversation: Sequence[Message]
    patch: bytes
    tests: bytes
    """Output of the grading run, names of failed tests included."""
    log: bytes
    """Output of the agent's own program."""
    exit_code: int


def facts(tally: Tally, cases: Sequence[Case]) -> dict[str, int]:
    """What went wrong in the unresolved cases, counted; ``tally`` is over all the agent's evaluations so far."""
    failed = [case for case in cases if case.evaluation.verdict is Verdict.UNRESOLVED]
    return {
        "resolved": tally.resolved,
        "evaluations": tally.n,
        "failures": len(failed),
        "step_limit": sum(case.exit_code != 0 and not _crashed(case) for case in failed),
        "truncated": sum(_truncated(case) for case in failed),
        "wrong": sum(case.exit_code == 0 and bool(case.patch) for case in failed),
        "crashed": sum(_crashed(case) for case in failed),
        "empty": sum(not case.patch for case in failed),
    }


def _crashed(case: Case) -> bool:
    return case.exit_code != 0 and b"Traceback (most recent call last)" in case.log


def _truncated(case: Case) -> bool:
    return any(message.role is Role.TOOL and "truncated" in message.text[-200:] for message in case.conversation)


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
    return {
        "problem.md": case.problem.encode(),
        "conversation.md": cut(conversation_text(case.conversation).encode(), transcript_bytes),
        "patch.diff": cut(case.patch, transcript_bytes),
        "tests.txt": cut(case.tests, transcript_bytes),
        "agent-output.txt": cut(case.log, transcript_bytes),
    }


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
