"""The next step of an ``improve`` conversation: improving an agent's source.

The model reads the source as far as the scaffold shows it. It makes one change of the catalogue, hunk by hunk, with
the scaffold's own tools. Then it checks that the agent still starts, and reverts the change if it does not.

The change is drawn from a hash of the problem and the source: the same conversation always gets the same answer.
"""

import functools
import hashlib
import math
import re
from collections.abc import Mapping, Sequence

from dgm.offline import merging, wishes
from dgm.offline.catalogue import CATALOGUE
from dgm.offline.edits.kind import Kind, Signal
from dgm.offline.edits.reading import LIST, OVERVIEW, Gap, find_gaps, read, show_command
from dgm.offline.knowledge import Conversation, ConversationStep
from dgm.offline.moves import Decision, Edit, RunCommand

MOST_RAISED = 2.5
MAX_ROUNDS = 60
MAX_CHANGES = 2

_CHECK = "python3 -m agent --check"


def decide_edit(conversation: Conversation) -> Decision:
    """Return the next step of an improvement; without moves if it is finished or cannot go on."""
    asked = wishes.parse_edit_request(conversation.problem)
    files = read(conversation, asked.open)
    if not files:
        return _look(conversation)
    done = [step.move for step in conversation.steps if isinstance(step.move, Edit) and step.done]
    wanted = find_gaps(files)
    if wanted and not done:
        return _read_on(conversation, wanted)
    if wanted:
        return _finish_blindly(conversation)
    source = {path: shown.text for path, shown in files.items()}
    if asked.open or asked.broken:
        return _merge(conversation, source)
    return _change(conversation, source)


def _look(conversation: Conversation) -> Decision:
    for command in (OVERVIEW, LIST):
        if not any(step.move == RunCommand(command) for step in conversation.steps):
            return Decision("I look at the agent's source.", (RunCommand(command),))
    return Decision("DONE. Rationale: no Python source was found, so nothing was changed.")


def _read_on(conversation: Conversation, wanted: Mapping[str, Gap]) -> Decision:
    if len(conversation.steps) >= MAX_ROUNDS:
        return Decision("DONE. Rationale: the source could not be read, so nothing was changed.")
    move = show_command(wanted)
    stuck = [step for step in conversation.steps if step.move == move]
    if len(stuck) >= 2 and len(wanted) > 1:
        # A long output may always be cut before this part: ask for one file alone.
        path = sorted(wanted)[len(conversation.steps) % len(wanted)]
        move = show_command({path: wanted[path]})
    return Decision("I read the rest of the source.", (move,))


def _finish_blindly(conversation: Conversation) -> Decision:
    """Check that the agent starts, after an edit whose original source is no longer visible."""
    check = RunCommand(_check_command(conversation))
    if any(step.move == check for step in conversation.steps):
        return Decision("DONE. Rationale: a change of which the beginning was lost from sight.")
    return Decision("I check that the agent still starts.", (check,))


def _change(conversation: Conversation, source: Mapping[str, str]) -> Decision:
    steps = [step for step in conversation.steps if _is_work(step, conversation)]
    check = RunCommand(_check_command(conversation))
    for kind in rank_kinds(conversation.problem, source)[:MAX_CHANGES]:
        hunks = kind.apply(source) or ()
        for hunk in hunks:
            if not steps:
                return Decision(f"{kind.rationale} I make this change: {kind.name}.", (hunk,))
            if not steps.pop(0).done:
                return Decision("DONE. Rationale: the change could not be made with these tools.")
        if not steps:
            return Decision("I check that the agent still starts.", (check,))
        if _shows_no_error(steps.pop(0)):
            return Decision(f"DONE.\nRationale: {kind.rationale} ({kind.name}){_general_line(conversation)}")
        for hunk in reversed(hunks):
            if not steps:
                back = Edit(hunk.path, hunk.new, hunk.old)
                return Decision("The agent does not start: I put the change back.", (back,))
            steps.pop(0)
    return Decision("DONE. Rationale: nothing was changed, since what was tried did not start.")


def _general_line(conversation: Conversation) -> str:
    """Return the ``General:`` line that a problem asks for if only some definitions may change; else ""."""
    if wishes.parse_edit_request(conversation.problem).allowed is None:
        return ""
    return "\nGeneral: it changes how the agent works on every problem, and speaks of none."


def _merge(conversation: Conversation, source: Mapping[str, str]) -> Decision:
    """Merge the two sides in every file; keep the first side's lines if the agent would not start."""
    steps = [step for step in conversation.steps if _is_work(step, conversation)]
    found = merging.settlements(source)
    for told, edits in (
        ("I make one of what stands between the markers.", [Edit(s.path, s.old, s.new) for s in found]),
        (
            "The agent does not start: I keep the first one's lines.",
            [Edit(s.path, s.new, s.ours) for s in found if s.new != s.ours],
        ),
    ):
        for edit in edits:
            if not steps:
                return Decision(told, (edit,))
            if not steps.pop(0).done:
                return Decision("DONE. Rationale: the two could not be made one with these tools.")
        if not steps:
            return Decision(
                "I check that the agent still starts.", (RunCommand(_check_command(conversation)),)
            )
        if _shows_no_error(steps.pop(0)):
            return Decision(f"DONE.\nRationale: {_describe_merge(found)}")
        if not edits:
            break
    return Decision("DONE. Rationale: the two halves do not go together.")


def _describe_merge(found: Sequence[merging.Settlement]) -> str:
    where = ", ".join(one.path for one in found) or "no file"
    return f"Both agents' changes in one program; what was in conflict in {where} is settled."


def _is_work(step: ConversationStep, conversation: Conversation) -> bool:
    return isinstance(step.move, Edit) or step.move == RunCommand(_check_command(conversation))


def _shows_no_error(step: ConversationStep) -> bool:
    text = step.result or ""
    return not re.search(r"Traceback|Error\b|exit status [1-9]|error:", text)


def _check_command(conversation: Conversation) -> str:
    found = re.search(r"`([^`\n]{3,120} --check)`", conversation.problem)
    return found[1] if found else _CHECK


def rank_kinds(problem: str, source: Mapping[str, str]) -> list[Kind]:
    """Return the applicable kinds of change in the order of a weighted draw without replacement.

    Kinds that the problem rules out are left out; those that it proposes come first.

    Args:
        problem: the text of the task; counts such as ``step limit reached: 7 of 12`` raise weights, absolute
            paths and decimal fractions do not count.
        source: the agent's files.
    """
    settled = re.sub(r"/[\w./-]+|\d+\.\d+", "", problem)
    parts = [" ".join(settled.split()), *(text for item in sorted(source.items()) for text in item)]
    key = "\0".join(parts)
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    raised = read_signals(problem)
    found = [(_turn(digest, kind, raised), kind.name, kind) for kind in _applicable(tuple(source.items()))]
    drawn = [kind for _, _, kind in sorted(found, key=lambda row: row[:2])]
    return wishes.select_kinds(drawn, wishes.parse_edit_request(problem), source)


@functools.lru_cache(maxsize=8)
def _applicable(source: tuple[tuple[str, str], ...]) -> tuple[Kind, ...]:
    """Return the kinds that find something to change.

    The result is cached: each step of a conversation asks about the same source again.
    """
    files = dict(source)
    return tuple(kind for kind in CATALOGUE if kind.transform(files))


def _turn(digest: str, kind: Kind, raised: Mapping[Signal, float]) -> float:
    """Return an exponential waiting time with the kind's weight as its rate.

    The least of several falls to each kind in proportion to its weight.
    """
    drawn = int.from_bytes(hashlib.sha256(f"{digest} {kind.name}".encode()).digest()[:6], "big")
    weight = kind.weight * max((raised.get(signal, 1.0) for signal in kind.raised_by), default=1.0)
    return -math.log((drawn + 1) / (2**48 + 1)) / weight


def read_signals(text: str) -> dict[Signal, float]:
    """Return the factor by which each signal raises a weight: up to 2.5 if all failures show it."""
    found: dict[Signal, float] = {}
    for signal in Signal:
        match = re.search(rf"{re.escape(signal.value)}: (\d{{1,6}}) of (\d{{1,6}})", text, re.IGNORECASE)
        if match and int(match[2]):
            found[signal] = 1 + (MOST_RAISED - 1) * min(1.0, int(match[1]) / int(match[2]))
    return found
