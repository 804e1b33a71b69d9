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
from dgm.show.spans import Line, Span, Tone, line
from dgm.show.words import (
    SIGNIFICANT,
    VERDICT_MARKS,
    VERDICT_TONES,
    bar,
    interval_text,
    mcnemar_text,
    tally_text,
)
from dgm.tui.bodies import Body, Lines, Prose, Stack, Target, heading
from dgm.tui.changes import Changed
from dgm.tui.keys import Where, bindings_of
from dgm.tui.tabs import Load, answered
from dgm.tui.tabs.diff import of_patch
from dgm.tui.text import TextView
from dgm.tui.text_page import TextPage

_HOW = "mark two agents with m, on the tree or on the screen of an agent; c compares them"


class CompareScreen(TextPage):
    """The screen ``compare``."""

    NAME = "compare"
    WHERE = (Where.COMPARE, Where.LIST)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Where.COMPARE)]

    def __init__(self) -> None:
        super().__init__()
        self.beside = False
        self._stale = False
        """Whether the text must be read again once it is there: the run grew, or ``v`` was pressed meanwhile."""

    def body(self) -> ComposeResult:
        """Yield one text."""
        yield TextView()

    def entered(self) -> None:
        """Show the agents that are marked now."""
        marks = self._marks
        if len(marks) < 2:
            marked = f"agent {marks[0]} is marked; " if marks else ""
            self.put(marks, Lines([(), line(Span(f"  {marked}{_HOW}", Tone.WARN))]))
        elif self.loading and self._wanted == marks:
            self._stale = True
        else:
            self._stale = False
            what = f"the comparison of {marks[0]} and {marks[1]}"
            self.load(marks, what, self._question(marks[0], marks[1]))

    def changed(self, changed: Changed) -> None:
        """Read the text again where one of the two has a new verdict, or another one is marked."""
        if changed.whole or changed.verdicts & set(self._marks) or self._wanted != self._marks:
            self.entered()

    def on_text_page_loaded(self, event: TextPage.Loaded) -> None:
        """Read the text again if something changed meanwhile; a reading is never broken off for that."""
        if self._stale and event.key == self._wanted:
            self.call_later(self.entered)

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
            return of_patch(data, title, beside=beside)

        def look() -> Body:
            if reader.run is None:
                verdicts: Body = Lines([line(Span("  verdicts: the run is still being read", Tone.WARN)), ()])
            else:
                rows, targets = reader.ask_tree(lambda run: _verdicts(run.tree, first, second))
                verdicts = Stack([Prose(rows[0]), Lines(rows[1], targets)])
            return _Comparison([verdicts, answered(title, code)])

        return look


class _Comparison(Stack):
    """Verdicts, then code; a name of a file leads to its part below."""

    def target(self, number: int) -> Target | None:
        found = super().target(number)
        if found is not None and not found.screen:
            return found._replace(line=found.line + len(self.parts[0]))
        return found


def _verdicts(
    tree: Tree, first: AgentId, second: AgentId
) -> tuple[tuple[Sequence[Line], Sequence[Line]], dict[int, Target]]:
    one, two = tree.verdicts(first), tree.verdicts(second)
    names = [task for task in dict.fromkeys((*tree.tasks, *one)) if task in one and task in two]
    found = compare_verdicts([(task, one[task], two[task]) for task in names])
    both = [task for task in names if _graded(one[task]) and _graded(two[task])]
    rows: list[Line] = []
    targets: dict[int, Target] = {}
    gained, lost = set(found.gained), set(found.lost)
    for title, tasks in (
        (f"gained: only agent {second} resolved them", [task for task in both if task in gained]),
        (f"lost: only agent {first} resolved them", [task for task in both if task in lost]),
        ("the same", [task for task in both if task not in gained | lost]),
    ):
        rows.append(heading(title, f"  {len(tasks)}"))
        for task in tasks:
            targets[len(rows)] = Target("task", task=task)
            rows.append(_task(task, one[task], two[task]))
        rows.append(())
    return (list(_summary(found, first, second)), rows), targets


def _graded(verdict: Verdict | None) -> bool:
    return verdict in (Verdict.RESOLVED, Verdict.UNRESOLVED)


def _task(task: TaskId, one: Verdict | None, two: Verdict | None) -> Line:
    marks = [Span(f" {VERDICT_MARKS[each]}", VERDICT_TONES[each]) for each in (one, two) if each is not None]
    return line("  ", *marks, "  ", one_line(task, 200))


def _summary(found: Comparison, first: AgentId, second: AgentId) -> Iterator[Line]:
    count = found.first.n
    tasks = "1 task" if count == 1 else f"{count} tasks"
    yield heading(
        f"agent {first} and agent {second}", f" on the {tasks} that both have tried (first attempts)"
    )
    if not count:
        yield line(Span("  no task has a verdict of both: nothing can be said", Tone.WARN))
        yield ()
        return
    for agent, tally in ((first, found.first), (second, found.second)):
        drawn = bar(tally.rate)
        full = drawn.rstrip("░")
        yield line(
            Span(f"  agent {agent:<6} ", Tone.KEY),
            Span(full, Tone.GOOD),
            Span(drawn[len(full) :], Tone.DIM),
            f"  {tally_text(tally)}  ",
            Span(interval_text(tally), Tone.DIM),
        )
    yield line(
        Span(f"  {len(found.gained)} gained", Tone.GOOD),
        ", ",
        Span(f"{len(found.lost)} lost", Tone.BAD),
        f", {count - len(found.gained) - len(found.lost)} the same: {mcnemar_text(found.p, found.mid_p)}",
    )
    yield line("  ", _said(found, first, second))
    yield ()


def _said(found: Comparison, first: AgentId, second: AgentId) -> Span:
    """Return the verdict of the exact test.

    Agents that were chosen for their tallies look more different than they are.
    """
    if found.p >= SIGNIFICANT:
        return Span("not shown to be different", Tone.STRONG)
    better = second if len(found.gained) > len(found.lost) else first
    said = f"agent {better} resolves more of these tasks; agents that were picked for their tallies look so too easily"
    return Span(said, Tone.STRONG)
