"""Tasks: the list of all; one with its statement and its solvers, along the tree; attempts at it, two at once too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.worker import get_current_worker

from dgm.analysis.lookups import TaskVerdict
from dgm.archive.events import Recorded, TaskGraded, VerdictWithdrawn
from dgm.domain import ActionId, AgentId, Tally, TaskId, Verdict
from dgm.errors import DgmError
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone
from dgm.show.words import UNTRIED, VERDICT_MARKS, VERDICT_TONES
from dgm.tui.agent_list import AgentList
from dgm.tui.bodies import Body, notice_body
from dgm.tui.changes import RunChanges
from dgm.tui.keys import KeyScope, bindings_of
from dgm.tui.lines import LineList
from dgm.tui.task_texts import (
    load_attempts,
    load_beside,
    load_tallies,
    load_tries,
    statement_body,
    task_list_body,
)
from dgm.tui.text import TextView
from dgm.tui.text_page import TextPage

_ONE, _TWO = "attempts", "beside"
_MOST = 4
"""Maximum number of attempt marks that stand before an agent."""


class TaskScreen(TextPage):
    """The screen ``task``; its subject is in ``browser.task_id`` and ``browser.tab``."""

    NAME = "task"
    WHERE = (KeyScope.TASK, KeyScope.TREE, KeyScope.LIST)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.TASK)]
    CSS = """
    #statement { height: 40%; border-bottom: solid $panel-lighten-2; }
    #solvers { height: 1fr; }
    #statement.away, .low #statement, .flat #statement { display: none; }
    """

    @dataclass
    class Known(Message):
        """A message: the tallies of all tasks, or the tries and the statement of one task."""

        task: TaskId | None
        tallies: Mapping[TaskId, Tally] | None
        """None where they could not be counted."""
        tries: Sequence[TaskVerdict]
        body: Body
        until: int = 0
        """Number of the last event that ``tallies`` include."""

    def __init__(self) -> None:
        super().__init__()
        self._tallies: Mapping[TaskId, Tally] | None = None
        """None until they have been counted."""
        self._graded: list[Recorded] = []
        """Verdicts that came while an answer is awaited."""
        self._here = False
        self._tries: dict[AgentId, list[TaskVerdict]] = {}
        self._of: TaskId | None = None
        """The task that ``_tries`` belong to."""

    def body(self) -> ComposeResult:
        """Yield one text, and the statement above the tree."""
        yield TextView(id="text")
        yield TextView(id="statement")
        agents = AgentList(self.reader, id="solvers")
        agents.row, agents.beside = self._row, 2
        yield agents

    @property
    def view(self) -> TextView:
        """The text that is visible."""
        return self.query_one("#statement" if self._whole else "#text", TextView)

    @property
    def agents(self) -> AgentList:
        """The tree with a verdict for each agent."""
        return self.query_one(AgentList)

    @property
    def _whole(self) -> bool:
        """Whether a task is shown, and not an attempt at it."""
        return self.browser.task_id is not None and self.browser.tab is None

    def show_subject(self) -> None:
        """Show the list, a task, or attempts at it."""
        task, whole = self.browser.task_id, self._whole
        self.query_one("#text").display = not whole
        self.query_one("#statement").set_class(not whole, "away")
        self.agents.display = whole
        if task is not None and task != self._of:
            self._of, self._tries = task, {}
        if whole:
            self.agents.marked = self.browser.marks
            self.agents.changed(RunChanges(whole=True))
            if self.browser.agent is not None:
                self.agents.goto(self.browser.agent)
            self.agents.focus()
            self._ask(task)
        elif task is None:
            self.view.focus()
            self._ask(None)
        else:
            self.view.focus()
            self._show_attempts(task)
        self._here = True

    def on_screen_suspend(self, _: events.ScreenSuspend) -> None:
        """Stop reporting the cursor's agent when another screen is shown."""
        self._here = False

    def on_descendant_focus(self, _: events.DescendantFocus) -> None:
        """Draw the bars again, because the tree has other keys than a text."""
        self.draw_bars()

    @property
    def where(self) -> tuple[KeyScope, ...]:
        """The parts whose keys work; those of the tree work while it has the cursor."""
        return (
            (KeyScope.TASK, KeyScope.TREE, KeyScope.LIST) if self._on_tree else (KeyScope.TASK, KeyScope.LIST)
        )

    @property
    def _on_tree(self) -> bool:
        return self._whole and self.focused is self.agents

    def note(self) -> None:
        """Tell the app the agent under the cursor, where the tree is shown."""
        if self._here and self._whole and self.agents.agent is not None:
            self.browser.agent = self.agents.agent

    def changed(self, changed: RunChanges) -> None:
        """Count new verdicts."""
        graded = [item for item in changed.events if isinstance(item.event, TaskGraded)]
        self._graded += graded
        if self._tallies is not None:
            self._tallies = _add_graded(self._tallies, graded)
        for item in graded:
            assert isinstance(item.event, TaskGraded)
            done = item.event.outcome
            if done.task == self._of and done.verdict is not Verdict.INVALID:
                one = TaskVerdict(done.agent, done.attempt, done.verdict, item.event.action, item.seq)
                self._take([one])
        withdrawn = any(isinstance(item.event, VerdictWithdrawn) for item in changed.events)
        if changed.whole or withdrawn:
            self.show_subject()
        elif self._whole:
            self.agents.marked = self.browser.marks
            self.agents.changed(changed)
        elif self.browser.task_id is None and graded and self._tallies is not None:
            self.put("tasks", task_list_body(self.reader, self._tallies))

    def identity(self) -> str:
        """Return the agent or task under the cursor; else the name of the task that is shown."""
        if self._on_tree:
            return super().identity()
        task = self.browser.task_id
        if task is None and self.view.target is not None:
            task = self.view.target.task
        return one_line(task, 300) if task is not None else ""

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Tell the app that another agent is under the cursor."""
        if event.lines is self.agents and self._whole and self.agents.agent is not None:
            self.browser.agent = self.agents.agent

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Open the task, or the agent's attempts at it."""
        if event.lines is not self.agents:
            super().on_line_list_chosen(event)
            return
        agent = self.agents.agent
        if agent is None:
            return
        if agent not in self._tries:
            self.browser.say(f"agent {agent} has no verdict on this task")
            return
        self.browser.go("task", agent=agent, tab=f"{_ONE}/{agent}")

    def on_task_screen_known(self, event: Known) -> None:
        """Show the answer, unless the person has gone on to another task."""
        if event.task is None:
            later = [item for item in self._graded if item.seq > event.until]
            self._tallies = None if event.tallies is None else _add_graded(event.tallies, later)
            self._graded = []
            if self.browser.task_id is None:
                body = (
                    task_list_body(self.reader, self._tallies)
                    if later and self._tallies is not None
                    else event.body
                )
                self.put("tasks", body)
        elif event.task == self._of:
            self._take(event.tries)
            if self._whole:
                self.put(("task", event.task), event.body)
                self.agents.redraw(self.agents.agent)
            elif self.browser.task_id is not None and self._tries:
                self._show_attempts(event.task)
            elif self.browser.task_id is not None:
                self.put((event.task, self.browser.tab), notice_body("nobody has a verdict on this task"))

    def find_again(self, *, backwards: bool) -> None:
        """Go to the next place in the text; on the tree, to the next agent that has tried the task."""
        if not self._whole or self.agents is not self.focused:
            super().find_again(backwards=backwards)
            return
        order = sorted(self._tries)
        here = self.agents.agent
        if not order:
            self.browser.say("nobody has a verdict on this task")
            return
        later = [agent for agent in order if here is None or (agent < here if backwards else agent > here)]
        self.agents.goto((later or order)[-1 if backwards else 0])

    def action_all_tasks(self) -> None:
        """Go to the list of all tasks."""
        self.browser.task_id = self.browser.tab = None
        self.show_subject()
        self.draw_bars()

    def action_other_part(self) -> None:
        """Go from the tree to the statement, or back."""
        statement = self.query_one("#statement")
        if self._whole and statement.display:
            (statement if self._on_tree else self.agents).focus()
        else:
            self.browser.say("no statement is shown above a tree here")

    def action_diff(self) -> None:
        """Show the changes of the agent under the cursor."""
        if self.agents.agent is not None and self._whole:
            self.browser.go("agent", agent=self.agents.agent, tab="diff")

    def action_beside(self) -> None:
        """Show the attempts of the two marked agents beside each other."""
        marks = sorted(self.browser.marks)
        if self.browser.task_id is None or len(marks) < 2:
            self.browser.say(
                "mark two agents with m on the tree of a task, then v shows their attempts side by side"
            )
            return
        self.browser.go("task", tab=f"{_TWO}/{marks[0]}/{marks[1]}")

    def _ask(self, task: TaskId | None) -> None:
        """Look up the needed facts on another thread."""
        measure = self.query_one("#text" if task is None else "#statement", TextView).measure
        if task is None:
            self._graded = []

        def work() -> None:
            try:
                found = self._all() if task is None else self._one(task)
            except DgmError as error:
                found = self.Known(task, None, (), notice_body(one_line(str(error), 300)))
            found.body.reflow(measure)
            if not get_current_worker().is_cancelled:
                self.post_message(found)

        self.in_thread(work, "task")

    def _all(self) -> "TaskScreen.Known":
        until, tallies = load_tallies(self.reader)
        return self.Known(None, tallies, (), task_list_body(self.reader, tallies), until)

    def _one(self, task: TaskId) -> "TaskScreen.Known":
        tries = load_tries(self.reader, task)
        return self.Known(task, {}, tries, statement_body(self.reader, task, tries))

    def _take(self, tries: Sequence[TaskVerdict]) -> None:
        for one in tries:
            known = self._tries.setdefault(one.agent, [])
            if all(other.action != one.action for other in known):
                known.append(one)
                known.sort(key=lambda each: each.attempt)
        most = max(map(len, self._tries.values()), default=0)
        self.agents.beside = max(1, min(most, _MOST)) + 1

    def _actions(self, agent: str) -> Sequence[ActionId]:
        return [one.action for one in self._tries.get(AgentId(int(agent)), ())]

    def _show_attempts(self, task: TaskId) -> None:
        if not self._tries:
            self._ask(task)
            return
        kind, *agents = (self.browser.tab or "").split("/")
        if not all(agent.isdigit() for agent in agents):
            return
        loads = [self._actions(agent) for agent in agents]
        key = (task, self.browser.tab)
        if kind == _TWO and len(loads) == 2:
            self.load(key, "the two attempts", load_beside(self.reader, agents, loads))
        elif kind == _ONE and len(loads) == 1:
            self.load(key, "the attempt", load_attempts(self.reader, agents[0], loads[0]))

    def _row(self, agent: AgentId, lead: Line, width: int) -> Line:
        """Return the agent behind the marks of its attempts."""
        tries = self._tries.get(agent, ())
        marks = [Span(VERDICT_MARKS[one.verdict], VERDICT_TONES[one.verdict]) for one in tries[:_MOST]]
        shown = marks or [Span(UNTRIED, Tone.DIM)]
        return self.agents.agent_row(agent, (*lead, *shown, Span(" ")), width)


def _add_graded(tallies: Mapping[TaskId, Tally], graded: Sequence[Recorded]) -> Mapping[TaskId, Tally]:
    """Return the tallies with further verdicts added."""
    found = dict(tallies)
    for item in graded:
        if isinstance(item.event, TaskGraded):
            done = item.event.outcome
            found[done.task] = found.get(done.task, Tally()) + done.tally
    return found
