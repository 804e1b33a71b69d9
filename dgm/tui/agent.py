"""One agent: its facts, changes, evaluations, lineage and files, and how it was made."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, cast

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static, TabbedContent
from textual.widgets import TabPane as Part

from dgm.api.control import note_agent
from dgm.archive.live import NOTE_CHARS
from dgm.archive.repository import patch
from dgm.archive.run import Run
from dgm.archive.snapshots import LINK
from dgm.domain import ActionId, AgentId, Entry, Snapshot
from dgm.errors import DgmError
from dgm.render import fmt, safe
from dgm.render.text import Facts, conduct_text, promises_text, render_agent, render_transcript
from dgm.tui.pane import Listing, Pane, TextScreen, TextView, attempt_cells, patch_parts, prose
from dgm.tui.reader import News
from dgm.views.agents import AgentRow, AgentView, DiffView, decode
from dgm.views.tasks import TranscriptView

if TYPE_CHECKING:
    from dgm.tui.app import Browser

PARTS = ("facts", "diff", "evaluations", "lineage", "files", "making")
_TEXT_SEEN = 8_000
"""Bytes in which a NUL shows that a file is no text, as git decides it."""


class AgentPane(Pane):
    """The browser's agent, in parts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "turn(-1)", "Previous part", show=False),
        Binding("right_square_bracket", "turn(1)", "Next part"),
        Binding("v", "beside", "Side by side", show=False),
    ]

    def __init__(self) -> None:
        super().__init__("2 Agent", id="agent")
        self.part = PARTS[0]
        self._beside = False
        self._base: int | None = None
        """The agent that the diff starts from; None: the first parent."""
        self._shown: int | None = None

    def compose(self) -> ComposeResult:
        yield Static(classes="heading", id="agent-heading", markup=False)
        with TabbedContent(id="parts"):
            with Part("Facts", id="facts"):
                yield TextView(id="facts-text")
            with Part("Diff", id="diff"):
                yield TextView(id="diff-text")
            with Part("Evaluations", id="evaluations"):
                yield Listing("verdict", "task", "attempt", "time", "cost", "reason", id="evaluations-list")
            with Part("Lineage", id="lineage"):
                yield Listing("agent", "own", "vs parent", "operator", "rationale", id="lineage-list")
            with Part("Files", id="files"):
                yield Listing("bytes", "lines", "file", id="files-list")
            with Part("Making", id="making"):
                yield TextView(id="making-text")

    def enter(self) -> None:
        agent = self.browser.subject
        if agent is None or self.browser.news is None:
            return
        if agent != self._shown:
            self._shown, self._base = agent, None
        row = self.browser.agents.rows[agent]
        self.query_one("#agent-heading", Static).update(self.browser.agents.heading_of(agent))
        parts = self.query_one("#parts", TabbedContent)
        if parts.active != self.part:
            parts.active = self.part
        self._read(AgentId(agent), row)
        self.call_after_refresh(self.focus_content)

    def take(self, news: News) -> None:
        if self._shown is None or any(row.agent == self._shown for row in news.rows):
            self.enter()

    def focus_content(self) -> None:
        # Focusing a widget of another part would open that part.
        self.query_one(f"#{self.part}").query("Listing, TextView").first().focus()

    def text_view(self) -> TextView | None:
        return next(self.query(f"#{self.part}-text").results(TextView), None)

    @on(TabbedContent.TabActivated, "#parts")
    def _open_part(self, event: TabbedContent.TabActivated) -> None:
        event.stop()
        # An event of an earlier moment must not take the place of a part that was asked for since.
        if self.part != event.pane.id == event.tabbed_content.active:
            self.part = str(event.pane.id)
            if self.is_active:
                self.enter()

    def action_turn(self, step: int) -> None:
        self.part = PARTS[(PARTS.index(self.part) + step) % len(PARTS)]
        self.enter()

    def action_beside(self) -> None:
        self._beside, self.part = not self._beside, "diff"
        self.enter()

    def next_base(self) -> None:
        """Open the diff; where it is open, compare with the next of parents, root and marked agents."""
        if self._shown is not None and self.part == "diff":
            root = list(self.browser.agents.iter_ancestors(self._shown))[-1:]
            others = dict.fromkeys(
                (*self.browser.agents.rows[self._shown].parents, *root, *self.browser.marks)
            )
            bases = [other for other in others if other != self._shown]
            here = bases.index(self._base) if self._base in bases else 0
            self._base = bases[(here + 1) % len(bases)] if bases else None
        self.part = "diff"
        self.browser.go("agent")

    def _read(self, agent: AgentId, row: AgentRow) -> None:
        best = None if self.browser.best is None else AgentId(self.browser.best)
        base = self._base if self._base is not None else next(iter(row.parents), None)

        def view(run: Run) -> AgentView:
            return AgentView.load(run, run.tree.agents[agent], best)

        match self.part:
            case "facts":
                self.load("the agent", view, self._show_facts)
            case "diff":
                self.load("the diff", lambda run: _read_patch(run, agent, base), self._show_patch)
            case "evaluations":
                self.load("the evaluations", view, self._show_evaluations)
            case "lineage":
                self._show_lineage(agent)
            case "files":
                self.load("the files", lambda run: run.source(agent), self._show_files)
            case "making":
                self.load("its making", lambda run: _read_making(run, view(run)), self._show_making)

    async def _show_facts(self, view: AgentView) -> None:
        await self.query_one("#facts-text", TextView).show(_agent_parts(view), view.agent)

    async def _show_patch(self, answer: tuple[str, str]) -> None:
        title, patch_text = answer
        parts = [Text(title, "bold"), *patch_parts(patch_text, beside=self._beside)]
        await self.query_one("#diff-text", TextView).show(parts, (title, self._beside))

    async def _show_evaluations(self, view: AgentView) -> None:
        attempts = sorted(view.evaluations, key=lambda attempt: (attempt.task, attempt.attempt))
        rows = {str(each.action): attempt_cells(each, safe.one_line(each.task, 60)) for each in attempts}
        self.query_one("#evaluations-list", Listing).fill(rows)

    def _show_lineage(self, agent: int) -> None:
        line = [
            self.browser.agents.rows[step] for step in (agent, *self.browser.agents.iter_ancestors(agent))
        ]
        rows = {
            str(row.agent): (
                self.browser.agents.name_of(row.agent),
                fmt.tally_interval(row.own),
                Text(fmt.delta(row.delta), "dim" if row.delta is None or row.delta.few else ""),
                operator_text(row),
                safe.one_line(row.rationale, 300),
            )
            for row in reversed(line)
        }
        self.query_one("#lineage-list", Listing).fill(rows)

    async def _show_files(self, files: Snapshot) -> None:
        rows = {
            name: (f"{len(entry.data):>9,}", f"{_kind_of(entry):>7}", safe.one_line(name, 300))
            for name, entry in sorted(files.items())
        }
        self.query_one("#files-list", Listing).fill(rows)

    async def _show_making(self, answer: tuple[AgentView, TranscriptView]) -> None:
        await self.query_one("#making-text", TextView).show(_making_parts(*answer), answer[0].agent)

    @on(DataTable.RowSelected)
    def _open_row(self, event: DataTable.RowSelected) -> None:
        key, agent = str(event.row_key.value), AgentId(self._shown or 0)
        match event.data_table.id:
            case "lineage-list":
                self.browser.go("agent", agent=int(key))
            case "evaluations-list":
                self.browser.go("tasks", agent=agent, attempt=int(key))
            case _:
                self.load(key, lambda run: run.source(agent)[key], lambda entry: self._open_file(key, entry))

    async def _open_file(self, name: str, entry: Entry) -> None:
        await self.browser.push_screen(TextScreen(f"agent {self._shown}: {name}", _file_parts(entry)))


class NoteScreen(Screen[None]):
    """One line of input: what a person says of an agent."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.back", "Close")]

    def __init__(self, agent: AgentId) -> None:
        super().__init__()
        self._agent = agent

    def compose(self) -> ComposeResult:
        yield Static(f"what the editors of agent {self._agent} should know", classes="heading", markup=False)
        yield Input(max_length=NOTE_CHARS, id="note")
        yield Footer(show_command_palette=False)

    @on(Input.Submitted)
    async def _note(self, event: Input.Submitted) -> None:
        browser = cast("Browser", self.app)
        try:
            await browser.reader.ask(lambda run: note_agent(run, self._agent, event.value))
        except DgmError as error:
            browser.say(str(error))
            return
        browser.say(f"noted about agent {self._agent}")
        self.dismiss()


def operator_text(row: AgentRow) -> str:
    """Return an agent's operator with its aim."""
    name = safe.one_line(row.operator, 60)
    return f"{name}:{safe.one_line(row.aim, 40)}" if row.aim else name


def row_facts(row: AgentRow) -> Table:
    """Return the facts of an agent that its row holds."""
    facts = Facts()
    facts.add("operator", operator_text(row))
    facts.add("parents", " and ".join(map(str, row.parents)) or "none (a seed)")
    facts.add("children", fmt.listing(row.children, 12))
    facts.add("generation", str(row.depth))
    facts.add("commit", safe.one_line(row.commit[:12], 12))
    facts.add("own", fmt.tally_interval(row.own))
    facts.add("lower bound", f"{row.lower_bound:.2f}, 99 % sure of more" if row.own.n else "")
    facts.add("clade", fmt.tally_interval(row.clade))
    facts.add("clade's gain", fmt.clade_gain(row, in_full=True))
    facts.add("misconduct", conduct_text(row), "red")
    facts.add("predictions", promises_text(row))
    few = row.delta is None or row.delta.few
    facts.add("vs parent", fmt.delta(row.delta) if row.parents else "", "dim" if few else "")
    facts.add("abandoned", fmt.count(row.abandoned, "task") if row.abandoned else "", "yellow")
    facts.add(
        "state", f"{fmt.STATE_MARKS[row.state]} {row.state}" if fmt.STATE_MARKS[row.state] else "", "yellow"
    )
    return facts.table


def _agent_parts(view: AgentView) -> Iterator[RenderableType]:
    yield render_agent(view)
    for title, text in (("Rationale", view.rationale), ("Statement", view.making.statement)):
        if text:
            yield Text()
            yield Text(title, "bold")
            yield from prose(text)


def _making_parts(view: AgentView, transcript: TranscriptView) -> Iterator[RenderableType]:
    if not view.parents:
        yield Text("a seed: no operator made it")
        return
    took = f"{fmt.duration(view.making.seconds)}, {fmt.usage(view.spend.making)}"
    yield Text(f"{operator_text(view)} took {took}")
    yield from render_transcript(transcript)


def _read_patch(run: Run, agent: AgentId, base: int | None) -> tuple[str, str]:
    """Return title and patch against another agent; without one, against nothing."""
    child = run.tree.agents[agent]
    if base is None:
        return f"agent {agent}: all of its source", decode(patch({}, run.source(agent)))
    whose = "its parent " if base in child.parents else ""
    return f"agent {agent} against {whose}{base}", DiffView.load(run, child, run.tree.agents[base]).patch


def _read_making(run: Run, view: AgentView) -> tuple[AgentView, TranscriptView]:
    return view, TranscriptView.load(run, ActionId(view.making.action))


def _kind_of(entry: Entry) -> str:
    """Return the number of lines, or why there are none."""
    if entry.mode == LINK:
        return "link"
    return "binary" if _is_binary(entry) else f"{entry.data.count(10):,}"


def _is_binary(entry: Entry) -> bool:
    return b"\0" in entry.data[:_TEXT_SEEN]


def _file_parts(entry: Entry) -> Iterator[RenderableType]:
    if _is_binary(entry) and entry.mode != LINK:
        return iter([Text(f"binary, {fmt.size(len(entry.data))}")])
    return prose(("link to " if entry.mode == LINK else "") + decode(entry.data))
