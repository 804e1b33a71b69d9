"""Two marked agents: their verdicts on the tasks that both have tried, and the diff of their code."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from dgm.archive.repository import AgentRepository
from dgm.archive.tree import Tree
from dgm.domain import AgentId, CommitId, TaskId, Verdict
from dgm.evaluation.exam import Comparison, compare_verdicts
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import (
    SIGNIFICANT,
    VERDICT_MARKS,
    VERDICT_TONES,
    bar_line,
    interval_text,
    mcnemar_text,
    tally_text,
)
from dgm.tui.bodies import Body, LineBody, LineTarget, StackedBody, WrappedBody, heading_line, notice_body
from dgm.tui.changes import RunChanges
from dgm.tui.keys import KeyScope, bindings_of
from dgm.tui.tabs import Load, load_or_explain
from dgm.tui.tabs.diff import make_patch_body
from dgm.tui.text import TextView
from dgm.tui.text_page import TextPage

_HOW = "mark two agents with m, on the tree or on the screen of an agent; c compares them"


class CompareScreen(TextPage):
    """The screen ``compare``."""

    NAME = "compare"
    WHERE = (KeyScope.COMPARE, KeyScope.LIST)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.COMPARE)]

    def __init__(self) -> None:
        super().__init__()
        self.beside = False
        self._stale = False
        """Whether the text must be read again once it is there: the run grew, or ``v`` was pressed meanwhile."""

    def body(self) -> ComposeResult:
        """Yield one text."""
        yield TextView()

    def show_subject(self) -> None:
        """Show the agents that are marked now."""
        marks = self._marks
        if len(marks) < 2:
            marked = f"agent {marks[0]} is marked; " if marks else ""
            self.put(marks, notice_body(f"{marked}{_HOW}"))
        elif self.loading and self._wanted == marks:
            self._stale = True
        else:
            self._stale = False
            what = f"the comparison of {marks[0]} and {marks[1]}"
            self.load(marks, what, self._question(marks[0], marks[1]))

    def changed(self, changed: RunChanges) -> None:
        """Read the text again where one of the two has a new verdict, or another one is marked."""
        if changed.whole or changed.verdicts & set(self._marks) or self._wanted != self._marks:
            self.show_subject()

    def on_text_page_loaded(self, event: TextPage.Loaded) -> None:
        """Read the text again if something changed meanwhile; a reading is never broken off for that."""
        if self._stale and event.key == self._wanted:
            self.call_later(self.show_subject)

    def identity(self) -> str:
        """Return the ids of both agents."""
        return " ".join(map(str, self._marks))

    def action_beside(self) -> None:
        """Switch between side by side and one below the other."""
        self.beside = not self.beside
        if self.loading:
            self._stale = True
        else:
            super().action_beside()

    @property
    def _marks(self) -> tuple[AgentId, ...]:
        return tuple(sorted(self.browser.marks))

    def _question(self, first: AgentId, second: AgentId) -> Load:
        reader, beside = self.reader, self.beside
        known = reader.born([first, second])
        repository = AgentRepository(reader.folder / "agents.git")
        title = f"code of agent {second} against agent {first}"

        def code() -> Body:
            data = repository.diff(CommitId(known[first].commit), CommitId(known[second].commit))
            return make_patch_body(data, title, beside=beside)

        def look() -> Body:
            if reader.run is None:
                verdicts: Body = LineBody(
                    [make_line(Span("  verdicts: the run is still being read", Tone.WARN)), ()]
                )
            else:
                rows, targets = reader.ask_tree(lambda run: _verdict_lines(run.tree, first, second))
                verdicts = StackedBody([WrappedBody(rows[0]), LineBody(rows[1], targets)])
            return _Comparison([verdicts, load_or_explain(title, code)])

        return look


class _Comparison(StackedBody):
    """Verdicts, then code; a name of a file leads to its part below."""

    def target(self, number: int) -> LineTarget | None:
        found = super().target(number)
        if found is not None and not found.screen:
            return found._replace(line=found.line + len(self.parts[0]))
        return found


def _verdict_lines(
    tree: Tree, first: AgentId, second: AgentId
) -> tuple[tuple[Sequence[Line], Sequence[Line]], dict[int, LineTarget]]:
    one, two = tree.verdicts(first), tree.verdicts(second)
    names = [task for task in dict.fromkeys((*tree.tasks, *one)) if task in one and task in two]
    found = compare_verdicts([(task, one[task], two[task]) for task in names])
    both = [task for task in names if _is_graded(one[task]) and _is_graded(two[task])]
    rows: list[Line] = []
    targets: dict[int, LineTarget] = {}
    gained, lost = set(found.gained), set(found.lost)
    for title, tasks in (
        (f"gained: only agent {second} resolved them", [task for task in both if task in gained]),
        (f"lost: only agent {first} resolved them", [task for task in both if task in lost]),
        ("the same", [task for task in both if task not in gained | lost]),
    ):
        rows.append(heading_line(title, f"  {len(tasks)}"))
        for task in tasks:
            targets[len(rows)] = LineTarget("task", task=task)
            rows.append(_task_line(task, one[task], two[task]))
        rows.append(())
    return (list(_summary_lines(found, first, second)), rows), targets


def _is_graded(verdict: Verdict | None) -> bool:
    return verdict in (Verdict.RESOLVED, Verdict.UNRESOLVED)


def _task_line(task: TaskId, one: Verdict | None, two: Verdict | None) -> Line:
    marks = [Span(f" {VERDICT_MARKS[each]}", VERDICT_TONES[each]) for each in (one, two) if each is not None]
    return make_line("  ", *marks, "  ", one_line(task, 200))


def _summary_lines(found: Comparison, first: AgentId, second: AgentId) -> Iterator[Line]:
    count = found.first.n
    tasks = "1 task" if count == 1 else f"{count} tasks"
    yield heading_line(
        f"agent {first} and agent {second}", f" on the {tasks} that both have tried (first attempts)"
    )
    if not count:
        yield make_line(Span("  no task has a verdict of both: nothing can be said", Tone.WARN))
        yield ()
        return
    for agent, tally in ((first, found.first), (second, found.second)):
        yield make_line(
            Span(f"  agent {agent:<6} ", Tone.KEY),
            *bar_line(tally.rate),
            f"  {tally_text(tally)}  ",
            Span(interval_text(tally), Tone.DIM),
        )
    yield make_line(
        Span(f"  {len(found.gained)} gained", Tone.GOOD),
        ", ",
        Span(f"{len(found.lost)} lost", Tone.BAD),
        f", {count - len(found.gained) - len(found.lost)} the same: {mcnemar_text(found.p, found.mid_p)}",
    )
    yield make_line("  ", _test_span(found, first, second))
    yield ()


def _test_span(found: Comparison, first: AgentId, second: AgentId) -> Span:
    """Return the verdict of the exact test.

    Agents that were chosen for their tallies look more different than they are.
    """
    if found.p >= SIGNIFICANT:
        return Span("not shown to be different", Tone.STRONG)
    better = second if len(found.gained) > len(found.lost) else first
    said = f"agent {better} resolves more of these tasks; agents that were picked for their tallies look so too easily"
    return Span(said, Tone.STRONG)
