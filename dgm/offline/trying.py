"""Edits that apply the next candidates, one or several a reply, and that return to one that passed."""

from collections.abc import Iterator, Mapping

from dgm.offline import reproduction, results
from dgm.offline.candidates import Candidate
from dgm.offline.files import FileView
from dgm.offline.guidelines import Concept
from dgm.offline.knowledge import NO_MARK, Conversation
from dgm.offline.moves import Decision, Edit, Move, RunCommand, RunTests
from dgm.offline.rank import RankedCandidate
from dgm.offline.situation import Situation
from dgm.offline.trial import Trial, switch_candidate

_MOST = 4
"""Maximum number of candidates in one reply, if several calls are welcome."""
_BACK = "Going back to the edit that passed."
_LOYALTY = 0.6
"""Factor for the score of candidates in files that are unchanged now: switching files costs one more edit."""


def try_candidates(now: Situation) -> Decision | None:
    """Replace the present candidate with the best untried ones; ``None`` if there are none."""
    views = {path: view.copy() for path, view in now.conversation.files.items()}
    many = now.has(Concept.SEVERAL_CALLS) and not now.has(Concept.NO_TESTS) and now.has_shell()
    whole = many and _executes_all(now.conversation)
    said: list[str] = []
    moves: list[Move] = []
    for item in _favour_changed_file(now)[:400]:
        edits = _lead_edits(views, item.candidate)
        if not edits:
            continue
        if len(edits) > 1 and not whole:
            return Decision("Taking the last edit back.", edits[:1]) if not moves else None
        for edit in edits:
            views[edit.path].replace(edit.old, edit.new)
        what = f"{item.candidate.change.operator}, line {item.candidate.line}"
        said += [f"({what}). " + f"#c{NO_MARK} " * (len(edits) - 1) + f"#c{item.candidate.mark}"]
        moves += [*edits, *(_checks(now) if many else ())]
        if len(said) == (_MOST if whole else 1):
            break
    return Decision("Trying an edit " + " Then ".join(said), tuple(moves)) if said else None


def go_back(now: Situation) -> Decision | None:
    """Return to the first candidate that passed everything, if another one is in the files now."""
    failed = {trial.mark for trial in now.trials if trial.tests is False or trial.example is False}
    passed = [trial for trial in now.trials if _is_proven(trial, now) and trial.mark not in failed]
    if not passed or passed[0].mark == now.trial.mark:
        return None
    told = [text for text in now.conversation.said if text.startswith(_BACK) and str(passed[0].mark) in text]
    if len(told) > 1:
        return None
    item = next((one for one in now.everything if one.candidate.mark == passed[0].mark), None)
    edits = _lead_edits(now.conversation.files, item.candidate) if item else ()
    if not edits:
        return None
    if len(edits) > 1 and not _executes_all(now.conversation):
        return Decision("Taking the last edit back.", edits[:1])
    marks = f"#c{NO_MARK} " * (len(edits) - 1) + f"#c{passed[0].mark}"
    return Decision(f"{_BACK} {marks}", edits)


def _is_proven(trial: Trial, now: Situation) -> bool:
    proven = trial.example is True or not now.has_reproduction()
    return trial.mark not in (None, NO_MARK) and trial.tests is True and proven


def _executes_all(talk: Conversation) -> bool:
    """Return whether the scaffold is not known to have executed only the first of several edits in a reply."""
    made: dict[str, int] = {}
    for step in talk.steps:
        if isinstance(step.move, Edit) and step.result is not None:
            made[step.said] = made.get(step.said, 0) + 1
    return all(times > 1 or text.count("#c") < 2 for text, times in made.items())


def _favour_changed_file(now: Situation) -> list[RankedCandidate]:
    """Return the remaining candidates; those in files that are changed now gain on equals in other files."""
    changed = {path for path, view in now.conversation.files.items() if view.span()}
    if not changed:
        return now.left
    return sorted(
        now.left, key=lambda item: -item.score / (1 if item.candidate.unit.path in changed else 1 / _LOYALTY)
    )


def _checks(now: Situation) -> Iterator[Move]:
    """Yield the moves that check a candidate, unless the edit's own result shows the tests."""
    steps = now.conversation.steps
    shown = any(step.done and results.test_run(step.result or "") for step in steps)
    if now.has_reproduction():
        yield RunCommand(reproduction.RUN if shown else f"{reproduction.RUN}; python3 -m unittest")
    elif not shown:
        yield RunTests(now.targets())


def _lead_edits(views: Mapping[str, FileView], candidate: Candidate) -> tuple[Edit, ...]:
    """Return the edits that apply a candidate, after those that restore other changed files.

    The result is empty if one of the edits cannot be made.
    """
    path = candidate.unit.path
    others = [view for name, view in sorted(views.items()) if name != path and view.span()]
    found = [switch_candidate(view, None) for view in others]
    found.append(switch_candidate(views.get(path) or FileView(path), candidate))
    edits = tuple(edit for edit in found if edit is not None)
    return edits if len(edits) == len(found) else edits[:0]
