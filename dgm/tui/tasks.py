"""The tasks of a run, who solved each, and the attempts at it."""

from collections.abc import Iterator
from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import ContentSwitcher, DataTable, Static

from dgm.analysis.accounts import read_usage
from dgm.archive.run import Run, evaluations_of
from dgm.domain import ActionId, AgentId, TaskId
from dgm.errors import DgmError
from dgm.render import fmt, safe
from dgm.render.text import attempt_line, render_transcript
from dgm.tui.pane import Listing, Pane, TextView, attempt_cells, patch_parts, prose
from dgm.tui.reader import News
from dgm.views.agents import decode
from dgm.views.tasks import AttemptDetail, TaskRow, TaskView, TranscriptView, list_tasks

_FIRST = ("patch", "tests", "failures")
_IN_TRANSCRIPT = ("conversation", "trajectory", "prompts")
"""Documents whose text the transcript shows."""


class TasksPane(Pane):
    """All tasks; below Enter the attempts at one; below Enter one attempt in full."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("backspace", "up", "Up", show=False)]

    def __init__(self) -> None:
        super().__init__("3 Tasks", id="tasks")

    def compose(self) -> ComposeResult:
        yield Static(classes="heading", id="task-heading", markup=False)
        with ContentSwitcher(initial="all-tasks"):
            yield Listing("task", "resolved", "rate", "95 %", id="all-tasks")
            with Vertical(id="one-task"):
                yield Listing("verdict", "agent", "attempt", "time", "cost", "reason", id="attempts")
                yield TextView(id="statement")
            yield TextView(id="attempt")

    def enter(self) -> None:
        browser = self.browser
        task, attempt, agent = browser.task_id, browser.attempt, browser.agent
        if attempt is not None and agent is not None:
            self._switch("attempt")
            self.load(
                "the attempt",
                lambda run: _read_attempt(run, AgentId(agent), ActionId(attempt)),
                self._show_attempt,
            )
        elif task is not None:
            self._switch("one-task")
            self.load("the task", lambda run: _read_task(run, TaskId(task)), self._show_task)
        else:
            self._switch("all-tasks")
            self.load("the tasks", lambda run: list(list_tasks(run)), self._show_tasks)

    def take(self, news: News) -> None:
        if news.rows and self.browser.attempt is None:
            self.enter()

    def action_up(self) -> None:
        if self.browser.attempt is None:
            self.browser.task_id = None
        self.browser.go("tasks")

    def focus_content(self) -> None:
        current = self.query_one(ContentSwitcher).current
        self.query_one("#attempts" if current == "one-task" else f"#{current}").focus()

    def text_view(self) -> TextView | None:
        text = {"attempt": "#attempt", "one-task": "#statement"}.get(
            self.query_one(ContentSwitcher).current or ""
        )
        return self.query_one(text, TextView) if text else None

    def _switch(self, name: str) -> None:
        self.query_one(ContentSwitcher).current = name
        self.call_after_refresh(self.focus_content)

    def _head(self, text: Text | str) -> None:
        self.query_one("#task-heading", Static).update(text)

    async def _show_tasks(self, rows: list[TaskRow]) -> None:
        solved = sum(row.tally.resolved > 0 for row in rows)
        self._head(f"{fmt.count(len(rows), 'task')}, {solved:,} solved by at least one agent")
        self.query_one("#all-tasks", Listing).fill(
            {
                row.task: (
                    safe.one_line(row.task, 80),
                    f"{row.tally.resolved} of {row.tally.n}" if row.tally.n else fmt.DASH,
                    Text(fmt.bar(row.tally.rate) if row.tally.n else "", "green"),
                    " ".join(
                        (
                            fmt.interval(row.tally.interval) if row.tally.n else "",
                            "" if row.state == "active" else row.state,
                        )
                    ).strip(),
                )
                for row in rows
            }
        )

    async def _show_task(self, found: tuple[TaskView, str]) -> None:
        view, statement = found
        self._head(
            Text.assemble((safe.one_line(view.task, 200), "bold"), f"  {fmt.tally_interval(view.tally)}")
        )
        self.query_one("#attempts", Listing).fill(
            {
                f"{attempt.agent} {attempt.action}": attempt_cells(
                    attempt, self.browser.agents.name_of(attempt.agent)
                )
                for attempt in view.attempts
            }
        )
        await self.query_one("#statement", TextView).show(prose(statement), view.task)

    async def _show_attempt(self, attempt: AttemptDetail) -> None:
        self._head(f"agent {attempt.agent} on {safe.one_line(attempt.task, 200)}")
        lines = [attempt_line(attempt), *_document_parts(attempt), *render_transcript(attempt.transcript)]
        await self.query_one("#attempt", TextView).show(lines, attempt.action)

    @on(DataTable.RowSelected, "#all-tasks")
    def _open_task(self, event: DataTable.RowSelected) -> None:
        self.browser.go("tasks", task=str(event.row_key.value))

    @on(DataTable.RowSelected, "#attempts")
    def _open_attempt(self, event: DataTable.RowSelected) -> None:
        agent, action = map(int, str(event.row_key.value).split())
        self.browser.go("tasks", agent=agent, attempt=action)


def _read_attempt(run: Run, agent: AgentId, action: ActionId) -> AttemptDetail:
    """Return an attempt; a document that cannot be read is replaced by the reason."""
    evaluation = evaluations_of(run, agent)[action]
    documents = {}
    for name, digest in evaluation.cost.traces.items():
        try:
            documents[name] = decode(run.traces.get(digest))
        except DgmError as error:
            documents[name] = f"cannot be read: {error}"
    return AttemptDetail.of(
        action,
        evaluation,
        read_usage(run, [action]).get(action, {}),
        documents=documents,
        transcript=TranscriptView.load(run, action),
    )


def _read_task(run: Run, task: TaskId) -> tuple[TaskView, str]:
    """Return the attempts at a task, and its statement: from the benchmark, else as an agent was told it."""
    from dgm.assemble import read_statement

    view = TaskView.load(run, task)
    try:
        statement = read_statement(run, task)
    except (DgmError, ValueError, LookupError, TypeError):
        statement = None
    if statement is not None:
        return view, statement
    for attempt in view.attempts[:1]:
        for thread in TranscriptView.load(run, ActionId(attempt.action)).threads[:1]:
            texts = [
                turn.text for segment in thread.segments for turn in segment.turns if turn.role == "user"
            ]
            if texts:
                return view, f"(as an agent was told it; the benchmark is not here)\n\n{texts[0]}"
    return view, "the benchmark is not on this machine, or has changed"


def _document_parts(attempt: AttemptDetail) -> Iterator[RenderableType]:
    """Yield the stored documents, the most useful first; those of the conversation are in the transcript."""
    for name in sorted(attempt.documents, key=lambda name: (name not in _FIRST, name)):
        if name.startswith(_IN_TRANSCRIPT) and attempt.transcript.threads:
            continue
        yield Text()
        yield Text(safe.one_line(name, 60), "bold")
        yield from patch_parts(attempt.documents[name]) if name == "patch" else prose(attempt.documents[name])
    yield Text()
