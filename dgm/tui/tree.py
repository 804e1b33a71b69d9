"""The tree of agents, a row each, with the figures of all rows below each other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import ClassVar, NamedTuple

from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static, Tree
from textual.widgets.tree import TreeNode

from dgm.analysis.agents import find_matching, next_match
from dgm.domain import AgentId
from dgm.render import fmt, safe
from dgm.tui.agent import operator_text, row_facts
from dgm.tui.pane import Pane, prose
from dgm.tui.reader import News
from dgm.views.agents import AgentRow

STEPS = 6
"""Generations that are indented. Deeper agents stand below each other, with the number of their generation."""
UNFOLDED = 2_000
"""Agents above which a tree begins with its deeper generations folded."""
GUIDE = 2
_SIGN = 2
_MARKS = 5
"""Cells for the marks behind a number."""
_OPERATOR = 14
"""Cells that columns leave to the operator."""
ORDERS: dict[str, Callable[[AgentRow], float]] = {
    "birth": lambda row: -row.agent,
    "own": attrgetter("own.rate"),
    "clade": attrgetter("clade.rate"),
    "bound": attrgetter("lower_bound"),
    "gain": lambda row: row.clade_gain or 0.0,
}
"""Orders of siblings: the highest value comes first."""


class AgentTree(Tree[int]):
    """The agents of a run below their first parents; ``rows`` holds their facts.

    An agent below the last indented generation has its node beside its parent's, behind it. Children of folded agents
    have no nodes.
    """

    BINDING_GROUP_TITLE = "Tree"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "fold_or_parent", "Fold, or to the parent", show=False),
        Binding("right", "unfold_or_child", "Unfold, or to the first child", show=False),
        Binding("p", "cursor_parent", "To the parent", show=False),
        Binding("r", "root", "To the root", show=False),
        Binding("z", "fold_all", "Fold all, or unfold all", show=False),
        Binding("s", "sort", "Sort by birth, own rate, clade, lower bound, gain", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(Text("run"), id="agents")
        self.show_root, self.auto_expand, self.guide_depth = False, False, GUIDE
        self.rows: dict[int, AgentRow] = {}
        self.best: int | None = None
        self.marked: frozenset[int] = frozenset()
        self.matches: frozenset[int] = frozenset()
        self.order = next(iter(ORDERS))
        self._deepest = 0
        self._node_of: dict[int, TreeNode[int]] = {}
        self._children_of: dict[int | None, list[int]] = {None: []}
        """Children by first parent; roots below None."""
        self._folded: set[int] = set()

    @property
    def agent(self) -> int | None:
        """The agent under the cursor."""
        return self.cursor_node.data if self.cursor_node else None

    def update(self, rows: Sequence[AgentRow]) -> None:
        """Take in new and changed agents; the cursor stays on its agent."""
        newborn = [row for row in rows if row.agent not in self.rows]
        for row in rows:
            self.rows[row.agent] = row
            if row.agent in self._node_of:
                self._node_of[row.agent].refresh()
        for row in newborn:
            self._children_of.setdefault(next(iter(row.parents), None), []).append(row.agent)
            self._deepest = max(self._deepest, row.depth)
        if newborn and not self._node_of:
            depths = sorted(row.depth for row in newborn)
            if len(newborn) > UNFOLDED:
                self._fold_below(max(1, depths[UNFOLDED] - 1))
            self._refill(self.root)
        for row in newborn:
            if row.agent not in self._node_of:
                self._show_newborn(row)

    def _show_newborn(self, row: AgentRow) -> None:
        parent = self._node_of.get(row.parents[0]) if row.parents else self.root
        if parent is None:
            return  # an ancestor is folded
        parent.allow_expand = True
        if parent.data in self._folded:
            return
        parent.expand()
        if row.depth <= STEPS:
            self._fill(parent, [row.agent])
        else:
            self._refill(self._holder(parent))

    def redraw(self) -> None:
        """Draw all rows again."""
        for node in self._node_of.values():
            node.refresh()

    def goto(self, agent: int) -> bool:
        """Put the cursor on an agent and unfold its ancestors; return False where there is no such agent."""
        if agent not in self.rows:
            return False
        ancestors = list(self.iter_ancestors(agent))
        if folded := [other for other in ancestors if other in self._folded]:
            self._folded.difference_update(folded)
            for other in ancestors:
                if other in self._node_of:
                    self._node_of[other].expand()
            self._refill(self._holder(self._node_of[folded[-1]]))
        self._place_cursor(agent)
        return True

    def iter_ancestors(self, agent: int) -> Iterator[int]:
        """Yield the first parent, its first parent, and so on."""
        while parents := self.rows[agent].parents:
            agent = parents[0]
            yield agent

    def _holder(self, node: TreeNode[int]) -> TreeNode[int]:
        """Return the node that an agent's children are added to."""
        assert node.data is not None
        assert node.parent is not None
        return node if self.rows[node.data].depth < STEPS else node.parent

    def _refill(self, holder: TreeNode[int]) -> None:
        """Make the nodes below a node anew; the cursor stays on its agent, or goes to the nearest visible ancestor."""
        here = self.agent
        waiting = [*holder.children]
        while waiting:
            node = waiting.pop()
            self._node_of.pop(-1 if node.data is None else node.data, None)
            waiting.extend(node.children)
        holder.remove_children()
        self._fill(holder, self._children_of.get(holder.data, ()))
        while here is not None and here not in self._node_of:
            here = next(self.iter_ancestors(here), None)
        if here is not None:
            self._place_cursor(here)

    def _fill(self, holder: TreeNode[int], agents: Iterable[int]) -> None:
        """Add agents and what is unfolded below them."""
        waiting = [(agent, holder) for agent in self._last_first(agents)]
        while waiting:
            agent, parent = waiting.pop()
            children = self._children_of.get(agent, ())
            unfolded = bool(children) and agent not in self._folded
            node = parent.add(Text(), agent, expand=unfolded, allow_expand=bool(children))
            self._node_of[agent] = node
            if unfolded:
                below = self._holder(node)
                waiting.extend((child, below) for child in self._last_first(children))

    def _last_first(self, agents: Iterable[int]) -> list[int]:
        value = ORDERS[self.order]
        return sorted(agents, key=lambda agent: (value(self.rows[agent]), -agent))

    def _place_cursor(self, agent: int) -> None:
        if self.last_line >= 0:  # numbers the lines
            self.move_cursor(self._node_of[agent])

    def _fold_below(self, depth: int) -> None:
        self._folded = {
            agent for agent in self._children_of if agent is not None and self.rows[agent].depth >= depth
        }

    def on_tree_node_collapsed(self, event: Tree.NodeCollapsed[int]) -> None:
        agent = event.node.data
        if agent is not None and agent not in self._folded:
            self._folded.add(agent)
            if self.rows[agent].depth >= STEPS:
                self._refill(self._holder(event.node))

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[int]) -> None:
        agent = event.node.data
        if agent is not None and agent in self._folded:
            self._folded.discard(agent)
            self._refill(self._holder(event.node))

    def action_fold_or_parent(self) -> None:
        node = self.cursor_node
        if node is not None and node.allow_expand and node.is_expanded:
            node.collapse()
        else:
            self.action_cursor_parent()

    def action_unfold_or_child(self) -> None:
        node = self.cursor_node
        if node is not None and node.allow_expand and node.is_expanded:
            self.action_cursor_down()
        elif node is not None and node.allow_expand:
            node.expand()

    def action_cursor_parent(self) -> None:
        if self.agent is not None:
            self.goto(next(self.iter_ancestors(self.agent), self.agent))

    def action_root(self) -> None:
        if self.agent is not None:
            self.goto([self.agent, *self.iter_ancestors(self.agent)][-1])

    def action_fold_all(self) -> None:
        if self._folded:
            self._folded.clear()
        else:
            self._fold_below(0)
        self._refill(self.root)

    def action_sort(self) -> None:
        orders = list(ORDERS)
        self.order = orders[(orders.index(self.order) + 1) % len(orders)]
        self._refill(self.root)
        self.app.notify(f"sorted by {self.order}", timeout=2)

    # Drawing

    def get_label_width(self, node: TreeNode[int]) -> int:  # noqa: ARG002
        """Return 0: a row is as wide as the window."""
        return 0

    def render_label(self, node: TreeNode[int], base_style: Style, style: Style) -> Text:
        """Return an agent's row."""
        if node.data is None:
            return Text()
        row = self.rows[node.data]
        lead = min(STEPS, row.depth) * GUIDE + _SIGN
        sign = "  " if not node.allow_expand else "▼ " if node.is_expanded else "▶ "
        label = Text(style=style)
        if row.agent in self.matches:
            label.append("» ", "bold yellow")
        label.append(str(row.agent), "bold").append_text(self.marks_of(row))
        if row.depth > STEPS:
            label.append(f" gen {row.depth}", "dim")
        label.pad_right(max(1, self._stem - lead - label.cell_len))
        for column in self._columns():
            label.append(f"{column.text(row):<{column.width}}", column.style)
        label.append(operator_text(row), "cyan").append(f"  {safe.one_line(row.rationale, self.size.width)}")
        label.truncate(max(0, self.size.width - lead), overflow="ellipsis")
        return Text(sign, base_style, no_wrap=True).append_text(label)

    def heading(self) -> Text:
        """Return the titles of the columns."""
        titles = "".join(f"{column.title:<{column.width}}" for column in self._columns())
        heading = f"{'agent':<{self._stem}}{titles}operator"
        return Text(heading, no_wrap=True, overflow="ellipsis")

    def marks_of(self, row: AgentRow) -> Text:
        """Return the marks behind an agent's number."""
        stars = f"{' ★' * (row.agent == self.best)}{' ◆' * (row.agent in self.marked)}"
        flag = f" {fmt.FLAG}{row.findings}" if row.findings else ""
        stars += f" {fmt.FRONT}" * row.front
        state = f" {fmt.STATE_MARKS[row.state]}".rstrip()
        return Text.assemble((stars, "bold yellow"), (state, "yellow"), (flag, "red"))

    def name_of(self, agent: int) -> Text:
        """Return an agent's number with its marks."""
        return Text.assemble((str(agent), "bold"), self.marks_of(self.rows[agent]))

    def heading_of(self, agent: int) -> Text:
        """Return an agent's number, marks and tally."""
        row = self.rows[agent]
        bound = f", lower bound {row.lower_bound:.2f}" if row.own.n else ""
        return Text.assemble("agent ", self.name_of(agent), f"  {fmt.tally_interval(row.own)}{bound}")

    @property
    def _stem(self) -> int:
        """Cells for guides, fold sign, number, marks and generation."""
        generation = len(f" gen {self._deepest}") if self._deepest > STEPS else 0
        return min(STEPS, self._deepest) * GUIDE + _SIGN + len(str(len(self.rows))) + _MARKS + generation

    def _columns(self) -> Iterator["_Column"]:
        """Yield the columns that fit, the most useful first."""
        room = self.size.width - self._stem - _OPERATOR
        for column in _COLUMNS:
            room -= column.width
            if room < 0:
                return
            yield column


class _Column(NamedTuple):
    title: str
    width: int
    text: Callable[[AgentRow], str]
    style: str = ""


_COLUMNS = (
    _Column("own", 13, lambda row: fmt.tally(row.own)),
    _Column("95 %", 9, lambda row: fmt.interval(row.own.interval) if row.own.n else "", "dim"),
    _Column("clade", 15, lambda row: fmt.tally(row.clade) if row.children else ""),
    _Column("children", 9, lambda row: str(len(row.children) or ""), "dim"),
    _Column("bound", 7, lambda row: f"{row.lower_bound:.2f}" if row.own.n else "", "dim"),
    _Column("kept", 7, lambda row: f"{row.kept}/{row.tested}" if row.tested else "", "dim"),
    _Column("gain", 19, fmt.clade_gain, "dim"),
)


class TreePane(Pane):
    """The tree of agents, and beside it the facts of the one under the cursor."""

    def __init__(self) -> None:
        super().__init__("1 Tree", id="tree")
        self.agents = AgentTree()
        self._heading, self._panel = Static(id="agents-heading"), Static(id="panel")
        self._words = ""
        self._matches: Sequence[AgentId] = ()

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical():
                yield self._heading
                yield self.agents
            yield self._panel

    def enter(self) -> None:
        self.agents.focus()
        if self.browser.agent is not None and self.browser.agent != self.agents.agent:
            self.agents.goto(self.browser.agent)
        self.refresh_marks()

    def take(self, news: News) -> None:
        self.agents.update(news.rows)
        self._heading.update(self.agents.heading(), layout=False)
        if self.browser.following and news.newest is not None:
            self.agents.goto(news.newest)
        elif self.agents.agent is None and self.agents.rows:
            self.agents.goto(self.browser.agent or 0)
        if self.agents.agent in {row.agent for row in news.rows}:
            self._show_panel()

    async def find(self, words: str, step: int) -> bool:
        """Find agents by number, commit, operator or rationale; without one, those that tried a task of that name."""
        if words != self._words:
            self._words = words
            self._matches = await self.browser.reader.ask(lambda run: find_matching(run.tree, words))
            self.agents.matches = frozenset(self._matches)
            self.agents.redraw()
        here = -1 if self.agents.agent is None else self.agents.agent
        match = next_match(self._matches, AgentId(here), backwards=step < 0)
        return match is not None and self.agents.goto(match)

    def refresh_marks(self) -> None:
        """Draw all marks again."""
        self.agents.best, self.agents.marked = self.browser.best, frozenset(self.browser.marks)
        self.agents.redraw()
        self._show_panel()

    def on_resize(self) -> None:
        self._heading.update(self.agents.heading(), layout=False)

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[int]) -> None:
        if self.is_active:
            self.browser.agent = event.node.data
        self._show_panel()

    def on_tree_node_selected(self, event: Tree.NodeSelected[int]) -> None:
        self.browser.go("agent", agent=event.node.data)

    def _show_panel(self) -> None:
        if self.agents.agent is not None:
            row = self.agents.rows[self.agents.agent]
            name = Text.assemble("agent ", self.agents.name_of(row.agent))
            parts: list[RenderableType] = [name, Text(), row_facts(row), Text()]
            self._panel.update(Group(*parts, *prose(row.rationale)), layout=False)
