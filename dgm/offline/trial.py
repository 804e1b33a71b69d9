"""The outcome of the candidate now in the repository, and the edits that lead to the next."""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.offline import reproduction, results
from dgm.offline.candidates import Candidate
from dgm.offline.files import FileView
from dgm.offline.knowledge import Conversation, ConversationStep
from dgm.offline.moves import Edit, RunTests, View


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome so far of one successful edit.

    Attributes:
        mark: the candidate's mark; ``None`` before any edit or if the reply named none.
        tests: whether the visible tests passed; ``None`` if no verdict was seen.
        shown: whether a run's output was shown at all, with a verdict or not.
        targeted: number of runs of chosen tests that were shown.
        example: whether the reproduction was good; ``None`` if it was not run since the edit.
        edits: number of successful edits so far, this one included.
    """

    mark: str | None = None
    tests: bool | None = None
    shown: bool = False
    targeted: int = 0
    example: bool | None = None
    edits: int = 0


def trials(conversation: Conversation) -> list[Trial]:
    """Return a trial for each successful edit, in order."""
    done = [index for index, step in enumerate(conversation.steps) if step.done]
    ends = [*done[1:], len(conversation.steps)][: len(done)]
    return [
        _trial(conversation.steps[first:last], number)
        for number, (first, last) in enumerate(zip(done, ends, strict=True), 1)
    ]


def _trial(steps: Sequence[ConversationStep], edits: int) -> Trial:
    """Return the outcome that the steps from an edit to the next show."""
    tests: bool | None = None
    example: bool | None = None
    shown, targeted = False, 0
    for step in steps:
        if step.result is None or isinstance(step.move, View):
            continue
        run = results.test_run(step.result)
        if run is not None and run.passed is not None:
            tests = run.passed
        asked = isinstance(step.move, RunTests) or (step.move is not None and "unittest" in str(step.move))
        shown = shown or asked or run is not None
        targeted += isinstance(step.move, RunTests) and bool(step.move.targets)
        seen = reproduction.outcome(step.result)
        example = example if seen is None else seen
    return Trial(steps[0].mark, tests, shown, targeted, example, edits)


def switch_candidate(view: FileView, candidate: Candidate | None) -> Edit | None:
    """Return the one edit that turns a file into its base with this candidate (or with none) applied.

    ``None`` if nothing is to be done, or if the lines in question are not known.
    """
    target = dict(view.base)
    if candidate is not None:
        rows = candidate.rows()
        if rows is None:
            return None
        first, last, new = rows
        shift = len(new) - (last - first + 1)
        target = {n + (shift if n > last else 0): t for n, t in view.base.items() if n < first or n > last}
        target.update({first + index: row for index, row in enumerate(new)})
    else:
        shift = 0
    return _edit(view, target, shift - view.shift)


def _edit(view: FileView, target: dict[int, str], shift: int) -> Edit | None:
    now = view.lines
    low = next((n for n in sorted(now.keys() | target.keys()) if now.get(n) != target.get(n)), None)
    if low is None:
        return None
    # Holes lie at the same places on both sides, so every differing line is known on both.
    high = next((n for n in sorted(now, reverse=True) if now[n] != target.get(n + shift)), low - 1)
    high = max(high, low - 1, low - 1 - shift)
    margin = 0 if view.complete else 1
    while True:
        first, last = low - margin, high + margin
        rows = [n for n in range(first, last + 1) if n in now]
        if not rows or (first not in now and last not in now):
            return None
        before, behind = max(first, rows[0]), min(last, rows[-1])
        if any(n not in now for n in range(before, behind + 1)):
            return None
        old = "".join(now[n] + "\n" for n in range(before, behind + 1))
        new = "".join(target[n] + "\n" for n in range(before, behind + shift + 1) if n in target)
        if old and view.text.count(old) == 1:
            return Edit(view.path, old, new)
        margin += 1
