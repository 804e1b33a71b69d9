"""One evaluation as evidence: the signs in its output, its conversation as text, and counts over many."""

from collections.abc import Collection, Sequence

from dgm.domain import Tally, Verdict
from dgm.messages import CONTEXT_LENGTH, Message, Role
from dgm.protocols import Case, ProgramEnd

CUT = b"\n[... %d bytes left out ...]\n"


def program_end_of(
    exit_code: int,
    timed_out: bool,
    log: bytes,
    conversation: Sequence[Message],
    refused: Collection[str] = (),
) -> ProgramEnd:
    """Return the signs that any scaffold gives, whatever its design; ``refused`` is as in ``Work``."""
    return ProgramEnd(
        exit_code=exit_code,
        timed_out=timed_out,
        truncated=any(m.role is Role.TOOL and "truncated" in m.text for m in conversation),
        crashed=exit_code != 0 and b"Traceback (most recent call last)" in log,
        context=CONTEXT_LENGTH in refused,
    )


def count_problems(tally: Tally, cases: Sequence[Case]) -> dict[str, int]:
    """Return counts of the problems in unresolved cases; ``tally`` is over all the agent's evaluations so far."""
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
        "context": sum(case.run.context for case in failed),
    }


def conversation_text(messages: Sequence[Message]) -> str:
    """Return a conversation as readable text: a heading for each turn, and tool calls as the model wrote them."""
    turns = []
    for message in messages:
        calls = "".join(f"\n\n`{call.name}` {call.arguments}" for call in message.calls)
        turns.append(f"## {message.role}\n\n{message.text}{calls}\n")
    return "\n".join(turns)


def cut_middle(data: bytes, limit: int) -> bytes:
    """Return about ``limit`` bytes at most: the first and last half, with a line that gives the missing bytes."""
    if len(data) <= limit:
        return data
    half = limit // 2
    return data[:half] + CUT % (len(data) - 2 * half) + data[-half:]
