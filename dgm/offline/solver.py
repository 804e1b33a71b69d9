"""The next action on a task: look, edit, test, try the next candidate, finish.

The habits are those of an ordinary programmer in a hurry; each guideline in the system text changes one of them.
"""

from dgm.offline import localise, rank, reading, reproduction, tracing, trying
from dgm.offline.capabilities import ToolRole
from dgm.offline.guidelines import Concept
from dgm.offline.knowledge import Conversation
from dgm.offline.moves import Decision, Move, RunCommand, RunTests, View
from dgm.offline.situation import Situation

_EDITING = (ToolRole.REPLACE, ToolRole.LINES, ToolRole.WRITE, ToolRole.SHELL)
_LONG_PROBLEM = 500
_PER_FILE = 5
"""Number of candidates of one file that fail before another file is opened."""


def decide(conversation: Conversation) -> Decision:
    """Return the next decision on a task."""
    if not any(role in conversation.toolbox for role in _EDITING):
        return Decision("There is no tool I could change a file with. DONE")
    now = Situation(conversation)
    if now.trial.edits:
        return _after_edit(now)
    return _look(now) or _read(now) or _try_next(now)


def _look(now: Situation) -> Decision | None:
    """Take the steps before any reading: listing, plan, tests, reproduction, trace, search."""
    talk = now.conversation
    search = RunCommand(reading.search_command(now.problem))
    if not talk.listing and now.has_shell() and talk.ran(reading.LIST) is None:
        batch: tuple[Move, ...] = (RunCommand(reading.LIST),)
        if now.has(Concept.SEVERAL_CALLS):
            batch += (search, *((RunTests(),) if now.has(Concept.TESTS_FIRST) else ()))
        return _unless_repeated(now, Decision("Listing the files first.", batch))
    if now.has(Concept.PLAN_FIRST) and len(now.problem.text) > _LONG_PROBLEM and not _has_plan(now):
        return Decision("Plan: find the code that the problem speaks of, read it, change it, run the tests.")
    example = now.problem.example
    proof = now.has(Concept.REPRODUCE) or now.has(Concept.TRACE)
    wants_tests = now.has(Concept.TESTS_FIRST) or (proof and example is None)
    if wants_tests and not now.has(Concept.NO_TESTS) and not now.tested():
        decision = _unless_repeated(now, Decision("Running the tests before any change.", (RunTests(),)))
        if decision:
            return decision
    if now.has(Concept.REPRODUCE) and example is not None and now.has_shell() and not now.has_reproduction():
        move = RunCommand(reproduction.command(example))
        decision = _unless_repeated(now, Decision("Reproducing the problem with a script.", (move,)))
        if decision:
            return decision
    decision = _trace(now)
    if decision:
        return decision
    if now.has_shell() and talk.ran(search.command) is None:
        return _unless_repeated(now, Decision("Searching for what the problem names.", (search,)))
    return None


def _trace(now: Situation) -> Decision | None:
    """Trace the lines that the known failure runs through, if the guidelines ask for it."""
    failing, example = now.evidence.failing, now.problem.example
    if not now.has(Concept.TRACE) or now.evidence.trace or not now.has_shell() or not (failing or example):
        return None
    beside = reading.test_modules(now.conversation, now.problem, now.evidence, now.order[:1])
    move = RunCommand(tracing.command(failing, example, tuple(sorted(beside[:4]))))
    return _unless_repeated(now, Decision("Tracing which lines the failure runs through.", (move,)))


def _has_plan(now: Situation) -> bool:
    return any(text.startswith("Plan:") for text in now.conversation.said)


def _unless_repeated(now: Situation, decision: Decision) -> Decision | None:
    """Return a decision, or ``None`` if its first move was made twice already.

    A repeated move means that the scaffold does not show results.
    """
    times = sum(step.move == decision.moves[0] for step in now.conversation.steps)
    return decision if times < 2 else None


def _read(now: Situation) -> Decision | None:
    """Read before the first edit: the best file, windows of it, and more if the guidelines ask for it."""
    talk = now.conversation
    move = _test_to_read(now)
    if move:
        return Decision("Reading the test.", (move,))
    trace = now.evidence.trace
    wanted = now.order[: 2 if now.has(Concept.RELATED) or _has_plan(now) else 1]
    if trace is not None:
        wanted += [path for path in now.order[:3] if path not in wanted and trace.highest(path) > 0.9][:1]
    missing = [View(path) for path in wanted if path not in talk.files and _views(now, path) < 2]
    if missing:
        several = now.has(Concept.SEVERAL_CALLS)
        return Decision(f"Reading {missing[0].path}.", tuple(missing if several else missing[:1]))
    for path in wanted:
        window = reading.next_piece(talk, path) if now.has(Concept.WHOLE_FILE) else None
        window = window or reading.next_window(talk, path, now.problem, now.evidence)
        if window and _views(now, path) < 8 and window not in now.moves:
            return Decision(f"Reading more of {path}.", (window,))
    return None


def _views(now: Situation, path: str) -> int:
    return sum(isinstance(move, View) and move.path == path for move in now.moves)


def _test_to_read(now: Situation) -> View | None:
    """Return a view of the failing test, or of the best test file if the guideline asks; ``None`` if it was read."""
    asked = now.has(Concept.READ_TESTS)
    for path, line in now.evidence.test_places[:2]:
        around = View(path, max(1, line - 25), line + 4)
        if (asked or not now.evidence.tested) and around not in now.moves:
            return around
    if asked and not now.evidence.test_places:
        names = reading.test_modules(now.conversation, now.problem, now.evidence, now.order[:1])
        path = names[0].replace(".", "/") + ".py" if names else ""
        if path and path not in now.conversation.files and _views(now, path) < 1:
            return View(path)
    return None


def _after_edit(now: Situation) -> Decision:
    """Judge the present candidate, then finish or go on."""
    trial = now.trial
    if now.has(Concept.FINISH_EARLY):
        return _finish(now)
    bad = trial.tests is False or trial.example is False
    if bad:
        return trying.go_back(now) or _gather_more(now) or _try_next(now)
    if now.has(Concept.NO_TESTS):
        return _finish(now)
    better = trying.go_back(now)
    if better:
        return better
    if now.has_reproduction() and trial.example is None and now.has_shell():
        check = (
            RunCommand(f"{reproduction.RUN}; python3 -m unittest")
            if trial.tests is None
            else RunCommand(reproduction.RUN)
        )
        if now.conversation.steps[-1].move != check:
            return Decision("Checking the change with the script.", (check,))
    if trial.tests is None and not trial.shown:
        return Decision("Running the tests.", (RunTests(now.targets()),))
    if trial.tests is None and trial.targeted < 2:
        narrow = now.evidence.failing[:3] if trial.targeted else now.relevant_tests()
        if narrow and RunTests(narrow) != now.conversation.steps[-1].move:
            return Decision("The outcome was cut off. Running fewer tests.", (RunTests(narrow),))
    return _finish(now)


def _finish(now: Situation) -> Decision:
    diff = RunCommand("git diff")
    if now.has(Concept.REVIEW) and now.has_shell() and diff not in now.moves:
        return Decision("Reviewing the change.", (diff,))
    return Decision("The problem is fixed. DONE")


def _gather_more(now: Situation) -> Decision | None:
    """After a failed candidate, look at places that the evidence names and nothing showed yet."""
    talk = now.conversation
    traced = _trace(now)
    if traced:
        return traced
    move = _test_to_read(now)
    if move:
        return Decision("Reading the failing test.", (move,))
    known = {hit.name for hit in reading.find_hits(talk)} | {unit.name for unit in rank.find_seen_units(talk)}
    unknown = frozenset(n for n in now.evidence.tested if n not in known and len(n) > 2 and n.isidentifier())
    if unknown and now.has_shell():
        search = RunCommand(reading.search_command(now.problem, unknown))
        searches = sum(isinstance(m, RunCommand) and m.command.startswith("grep -rn") for m in now.moves)
        if search not in now.moves and searches < 3:
            return Decision("Searching for what the failing test calls.", (search,))
    failed = sum(step.done for step in talk.steps)
    places = list(dict.fromkeys(frame.path for frame in reversed(now.evidence.frames)))
    for path in places[:2]:
        if path not in talk.files and _views(now, path) < 2:
            return Decision(f"Reading {path}, where the error comes from.", (View(path),))
        window = reading.next_window(talk, path, now.problem, now.evidence)
        if window and _views(now, path) < 8:
            return Decision(f"Reading more of {path}.", (window,))
    best = now.order[0] if now.order else ""
    if best and best not in talk.files and _views(now, best) < 2:
        return Decision(f"Reading {best}.", (View(best),))
    opened = [path for path in talk.files if path.endswith(".py") and not localise.is_test(path)]
    if failed >= _PER_FILE * max(1, len(opened)):
        return _widen(now)
    return None


def _widen(now: Situation) -> Decision | None:
    """Read another file, or unseen parts of the open ones."""
    talk = now.conversation
    for path in now.order[:6]:
        if path in talk.files:
            piece = reading.next_piece(talk, path) if _views(now, path) < 6 else None
            if piece and piece not in now.moves:
                return Decision(f"Reading on in {path}.", (piece,))
        elif _views(now, path) < 2:
            return Decision(f"Nothing helped so far. Reading {path}.", (View(path),))
    return None


def _try_next(now: Situation) -> Decision:
    return trying.try_candidates(now) or _widen(now) or Decision("I found no further change to try. DONE")
