"""One evaluation as evidence: the signs in its output, its conversation as text, counts over many, cuts to fit."""

from collections.abc import Collection, Sequence

from dgm.domain import Tally, Verdict
from dgm.messages import CONTEXT_LENGTH, Message, Role
from dgm.protocols import Case, ProgramEnd

CUT = b"\n[... %d bytes left out ...]\n"
MARK = "=== {title} ==="
"""Heading of each part."""
END = "=== end ==="
"""End mark below the last part."""
LEAST = 200
"""Minimum characters of each part, however many there are."""


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


def fit_to_budget(parts: Sequence[tuple[str, bytes]], chars: int) -> str:
    """Return the parts under their titles, with about ``chars`` characters of content in total.

    A part shorter than its share is shown whole and leaves the rest to the others. A longer one keeps its first and
    last half, with a line that gives the number of missing characters.

    Args:
        parts: title and content of each.
        chars: bound on all contents together; each gets ``LEAST`` at least.
    """
    shares: dict[int, int] = {}
    room = chars
    for done, place in enumerate(sorted(range(len(parts)), key=lambda n: len(parts[n][1]))):
        shares[place] = max(LEAST, room // (len(parts) - done))
        room -= min(len(parts[place][1]), shares[place])
    shown = [
        f"{MARK.format(title=title)}\n{cut_middle(data, shares[n]).decode('utf-8', 'replace').rstrip()}\n"
        for n, (title, data) in enumerate(parts)
    ]
    return "\n".join([*shown, END])
