"""One evaluation as evidence: the signs in its output, its conversation as text, counts over many, cuts to fit."""

from collections.abc import Collection, Sequence

from dgm.archive.conversations import Prompts, Thread, Turn
from dgm.domain import Tally, Verdict
from dgm.messages import CONTEXT_LENGTH, Role
from dgm.protocols import Case, ProgramEnd

CUT = b"\n[... %d bytes left out ...]\n"
MARK = "=== {title} ==="
"""Heading of each part."""
END = "=== end ==="
"""End mark below the last part."""
FOLDED = "[system prompt and tool definitions: "
"""Beginning of the line that stands for them in a conversation."""
PROMPTS_FILE = "prompts.md"
"""Evidence file with an agent's system prompts and tool definitions, one for all its cases."""
_LONG_SYSTEM_MESSAGE = 500
"""Characters above which a system message between the turns is shown by its size."""
LEAST = 200
"""Minimum characters of each part, however many there are."""


def program_end_of(
    exit_code: int,
    timed_out: bool,
    log: bytes,
    threads: Sequence[Thread],
    refused: Collection[str] = (),
) -> ProgramEnd:
    """Return the signs that any scaffold gives, whatever its design; ``refused`` is as in ``Work``."""
    return ProgramEnd(
        exit_code=exit_code,
        timed_out=timed_out,
        truncated=any(
            turn.message.role is Role.TOOL and "truncated" in turn.message.text
            for thread in threads
            for turn in thread.turns
        ),
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


def conversation_text(threads: Sequence[Thread]) -> str:
    """Return conversations as readable text: a heading for each turn, and tool calls as the model wrote them.

    System prompts and tool definitions are one line with their size; ``prompts_text`` has them.
    """
    parts = []
    for number, thread in enumerate(threads, 1):
        if len(threads) > 1:
            parts.append(_thread_title(number, threads))
        parts += [_folded_line(prompts) for prompts in thread.prompts if prompts.text()]
        for place, segment in enumerate(thread.segments):
            if place:
                parts.append(f"[new context: {segment.left_out} earlier messages left out]\n")
            parts += [_turn_text(turn) for turn in segment.turns]
    return "\n".join(parts)


def prompts_text(threads: Sequence[Thread]) -> str:
    """Return all system prompts and tool definitions, each once, and long system messages between the turns."""
    parts = []
    for number, thread in enumerate(threads, 1):
        title = _thread_title(number, threads) if len(threads) > 1 else ""
        texts = [prompts.text() for prompts in thread.prompts]
        texts += [turn.message.text for turn in thread.turns if _is_folded(turn)]
        parts += [f"{title}\n{text}\n" for text in dict.fromkeys(texts) if text]
    return "\n".join(parts)


def begin_with_actions(text: bytes) -> bytes:
    """Return a conversation of ``conversation_text`` from its first answer on, after a line for what stands before.

    Evidence has the task and the system prompt in files of their own.
    """
    first = text.find(b"## assistant\n")
    if first <= 0:
        return text
    opening = text[:first].decode("utf-8", "replace")
    folds = [line.strip("[]") for line in opening.splitlines() if line.startswith(FOLDED)]
    also = f" ({'; '.join(folds)}: see `{PROMPTS_FILE}`)" if folds else ""
    return f"[opening with the task: {first:,} bytes, see `problem.md`{also}]\n\n".encode() + text[first:]


def _folded_line(prompts: Prompts) -> str:
    return f"{FOLDED}{len(prompts.text()):,} characters, {len(prompts.tools)} tools]\n"


def _thread_title(number: int, threads: Sequence[Thread]) -> str:
    thread = threads[number - 1]
    begun = next((turn.call for turn in thread.turns), 0)
    calls = f"{thread.calls} model call{'s' if thread.calls != 1 else ''}"
    return f"# Conversation {number} of {len(threads)}: {calls}, from call {begun}\n"


def _is_folded(turn: Turn) -> bool:
    return turn.message.role is Role.SYSTEM and len(turn.message.text) > _LONG_SYSTEM_MESSAGE


def _turn_text(turn: Turn) -> str:
    message = turn.message
    if _is_folded(turn):
        return f"## {message.role}\n\n[{len(message.text):,} characters]\n"
    calls = "".join(f"\n\n`{call.name}` {call.arguments}" for call in message.calls)
    return f"## {message.role}\n\n{message.text}{calls}\n"


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
