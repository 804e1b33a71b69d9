"""The tree of agents, a row each, with the figures of all rows below each other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum, auto
from typing import ClassVar, NamedTuple

from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Static, Tree
from textual.widgets.tree import TreeNode

from dgm.analysis.lookups import find_matching, next_match
from dgm.domain import AgentId
from dgm.render import fmt, safe
from dgm.tui.agent import operator_text, row_facts
from dgm.tui.pane import Pane, prose
from dgm.tui.reader import News
from dgm.views.agents import AgentRow

STEPS = 10
"""Generations that are indented. Deeper agents stand below each other, behind the number of their generation."""
UNFOLDED = 2_000
"""Agents above which a tree begins with its deeper generations folded."""
GUIDE = 2
_SIGN = 2
_MARKS = 7
"""Cells for the marks behind a number."""
_OPERATOR = 14
"""Cells that columns leave to the operator."""


class SiblingOrder(StrEnum):
    """What siblings are sorted by."""

    BIRTH = auto()
    OWN = auto()
    CLADE = auto()
    BOUND = auto()


class AgentTree(Tree[AgentId]):
    """The agents of a run below their first parents. ``rows`` holds their facts."""

    BINDING_GROUP_TITLE = "Tree"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "fold_or_parent", "Fold, or to the parent", show=False),
        Binding("right", "unfold_or_child", "Unfold, or to the first child", show=False),
        Binding("p", "cursor_parent", "To the parent", show=False),
        Binding("r", "root", "To the root", show=False),
        Binding("z", "fold_all", "Fold all, or unfold all", show=False),
        Binding("less_than_sign", "deepen(-1)", "One generation less", show=False),
        Binding("greater_than_sign", "deepen(1)", "One generation more", show=False),
        Binding("s", "sort", "Sort"),
        Binding("S", "reverse", "Reverse the order", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(Text("run"), id=id)
        self.show_root, self.auto_expand, self.guide_depth = False, False, GUIDE
        self.rows: dict[AgentId, AgentRow] = {}
        self.best: AgentId | None = None
        self.marked: frozenset[AgentId] = frozenset()
        self.matches: frozenset[AgentId] = frozenset()
        self.order = SiblingOrder.BIRTH
        self.descending = False
        self._node_of: dict[AgentId, TreeNode[AgentId]] = {}
        self._generations: dict[AgentId, int] = {}
        self._children_of: dict[AgentId | None, list[AgentId]] = {None: []}
        self._deepest = 0
        self._folded: set[AgentId] = set()

    @property
    def agent(self) -> AgentId | None:
        """The agent under the cursor."""
        return self.cursor_node.data if self.cursor_node else None

    def update(self, rows: Iterable[AgentRow]) -> None:
        """Take in new and changed agents; the cursor stays on its agent."""
        newborn = []
        for row in rows:
            known = row.agent in self.rows
            self.rows[row.agent] = row
            if not known:
                newborn.append(row.agent)
                self._add_to_family(row)
            elif row.agent in self._node_of:
                self._node_of[row.agent].refresh()
        if not self._node_of and len(newborn) > UNFOLDED:
            self._folded = self._deeper_than(self._count_generations(UNFOLDED))
        if newborn and (not self._node_of or len(newborn) > UNFOLDED):
            self.rebuild()
            return
        for agent in newborn:
            self._show_newborn(agent)

    def _add_to_family(self, row: AgentRow) -> None:
        parent = row.parents[0] if row.parents else None
        self._children_of.setdefault(parent, []).append(row.agent)
        self._generations[row.agent] = row.depth
        self._deepest = max(self._deepest, row.depth)

    def _show_newborn(self, agent: AgentId) -> None:
        row = self.rows[agent]
        parent = self._node_of.get(row.parents[0]) if row.parents else self.root
        if parent is None:
            return  # below a folded agent
        if parent is self.root:
            self._fill(parent, [agent])
        elif parent.data in self._folded:
            parent.allow_expand = True
        elif self._is_indented(agent):
            parent.allow_expand = True
            parent.expand()
            self._fill(parent, [agent])
        else:
            self._refill(self._holder(parent))

    def redraw(self) -> None:
        """Draw all rows again."""
        for node in self._node_of.values():
            node.refresh()

    def rebuild(self) -> None:
        """Make all nodes anew, for another order or folding."""
        self._refill(self.root)

    def goto(self, agent: AgentId) -> bool:
        """Put the cursor on an agent and unfold its ancestors; return False where there is no such agent."""
        if agent not in self.rows:
            return False
        ancestors = list(self.iter_ancestors(agent))
        if agent not in self._node_of or self._folded.intersection(ancestors):
            self._folded.difference_update(ancestors)
            topmost = next((self._node_of[other] for other in reversed(ancestors) if other in self._node_of), self.root)
            for other in ancestors:
                if other in self._node_of and self._node_of[other].allow_expand:
                    self._node_of[other].expand()
            self._refill(self._holder(topmost) if topmost is not self.root else topmost)
        self._place_cursor(agent)
        return True

    def iter_ancestors(self, agent: AgentId) -> Iterator[AgentId]:
        """Yield the first parent, its first parent, and so on."""
        while parents := self.rows[agent].parents:
            agent = parents[0]
            yield agent

    # Nodes. An agent below the last indented generation is a node beside its parent's, behind it.

    def _is_indented(self, agent: AgentId) -> bool:
        return self._generations[agent] <= STEPS

    def _holder(self, node: TreeNode[AgentId]) -> TreeNode[AgentId]:
        """Return the node that the agent's children are added to."""
        assert node.data is not None and node.parent is not None
        return node if self._generations[node.data] < STEPS else node.parent

    def _refill(self, holder: TreeNode[AgentId]) -> None:
        """Make the nodes below a node anew; the cursor stays on its agent, or goes to the nearest visible ancestor."""
        here = self.agent
        for node in _descendants(holder):
            assert node.data is not None
            self._node_of.pop(node.data, None)
        holder.remove_children()
        self._fill(holder, self._children_of.get(holder.data, ()))
        while here is not None and here not in self._node_of:
            here = next(self.iter_ancestors(here), None)
        if here is not None:
            self._place_cursor(here)

    def _fill(self, holder: TreeNode[AgentId], agents: Iterable[AgentId]) -> None:
        """Add agents and what is unfolded below them."""
        waiting = [(agent, holder) for agent in reversed(self._sorted(agents))]
        while waiting:
            agent, parent = waiting.pop()
            children = self._children_of.get(agent, ())
            unfolded = agent not in self._folded
            node = parent.add(Text(), agent, expand=bool(children) and unfolded, allow_expand=bool(children))
            self._node_of[agent] = node
            if unfolded and children:
                below = self._holder(node)
                waiting.extend((child, below) for child in reversed(self._sorted(children)))

    def _sorted(self, agents: Iterable[AgentId]) -> list[AgentId]:
        if self.order is SiblingOrder.BIRTH:
            return sorted(agents, reverse=self.descending)
        return sorted(agents, key=lambda agent: _sort_key(self.rows[agent], self.order), reverse=not self.descending)

    def _place_cursor(self, agent: AgentId) -> None:
        if self.last_line >= 0:  # numbers the lines
            self.move_cursor(self._node_of[agent])

    def _deeper_than(self, generation: int) -> set[AgentId]:
        return {agent for agent in self._children_of if agent is not None and self._generations[agent] >= generation}

    def _count_generations(self, most: int) -> int:
        """Return the number of generations below the roots that hold at most so many agents."""
        sizes: dict[int, int] = {}
        for generation in self._generations.values():
            sizes[generation] = sizes.get(generation, 0) + 1
        total = 0
        for generation in sorted(sizes):
            total += sizes[generation]
            if total > most:
                return max(1, generation - 1)
        return len(sizes)

    # Actions

    def on_tree_node_collapsed(self, event: Tree.NodeCollapsed[AgentId]) -> None:
        """Fold an agent's descendants away."""
        agent = event.node.data
        if agent is not None and agent not in self._folded:
            self._folded.add(agent)
            if self._generations[agent] >= STEPS:
                self._refill(self._holder(event.node))

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[AgentId]) -> None:
        """Show an agent's descendants."""
        agent = event.node.data
        if agent is not None and agent in self._folded:
            self._folded.discard(agent)
            self._refill(self._holder(event.node))

    def action_fold_or_parent(self) -> None:
        """Fold the agent, or go to its parent."""
        node = self.cursor_node
        if node is not None and node.allow_expand and node.is_expanded:
            node.collapse()
        else:
            self.action_cursor_parent()

    def action_unfold_or_child(self) -> None:
        """Unfold the agent, or go to its first child."""
        node = self.cursor_node
        if node is None or not node.allow_expand:
            return
        if node.is_expanded:
            self.action_cursor_down()
        else:
            node.expand()

    def action_cursor_parent(self) -> None:
        """Go to the first parent."""
        parent = next(self.iter_ancestors(self.agent), None) if self.agent is not None else None
        if parent is not None:
            self.goto(parent)

    def action_root(self) -> None:
        """Go to the root of the agent's line."""
        if self.agent is not None:
            self.goto(next(iter([*self.iter_ancestors(self.agent)][::-1]), self.agent))

    def action_fold_all(self) -> None:
        """Fold everything, or unfold everything if something is folded."""
        self._folded = set() if self._folded else self._deeper_than(0)
        self.rebuild()

    def action_deepen(self, generations: int) -> None:
        """Show some generations more, or fewer if the number is negative."""
        deepest = max((self._generations[agent] for agent in self._node_of), default=0)
        self._folded = self._deeper_than(max(0, deepest + generations))
        self.rebuild()

    def action_sort(self) -> None:
        """Sort siblings by the next order."""
        orders = list(SiblingOrder)
        self.order = orders[(orders.index(self.order) + 1) % len(orders)]
        self.rebuild()

    def action_reverse(self) -> None:
        """Reverse the order of siblings."""
        self.descending = not self.descending
        self.rebuild()

    # Drawing

    @property
    def stem(self) -> int:
        """Cells for guides, fold sign, number and marks."""
        steps = min(STEPS, self._deepest)
        generation = len(f" gen {self._deepest}") if self._deepest > STEPS else 0
        return steps * GUIDE + _SIGN + len(str(len(self.rows))) + _MARKS + generation

    def get_label_width(self, node: TreeNode[AgentId]) -> int:
        """Return 0: rows are as wide as the window."""
        return 0

    def render_label(self, node: TreeNode[AgentId], base_style: Style, style: Style) -> Text:
        """Return an agent's row."""
        if node.data is None:
            return Text()
        row, generation = self.rows[node.data], self._generations[node.data]
        lead = min(STEPS, generation) * GUIDE + _SIGN
        sign = "  " if not node.allow_expand else "▼ " if node.is_expanded else "▶ "
        label = Text(sign, base_style, no_wrap=True)
        name = Text(style=style)
        if row.agent in self.matches:
            name.append("» ", "bold yellow")
        name.append(str(row.agent), "bold").append_text(self.marks_of(row))
        if generation > STEPS:
            name.append(f" gen {generation}", "dim")
        name.pad_right(max(1, self.stem - lead - name.cell_len))
        for column in self._columns():
            name.append_text(column.cell(row))
        name.append(operator_text(row), "cyan")
        name.append(f"  {safe.one_line(row.rationale, self.size.width)}")
        name.truncate(max(0, self.size.width - lead), overflow="ellipsis")
        return label.append_text(name)

    def heading(self) -> Text:
        """Return the titles of the columns."""
        titles = "".join(f"{column.title:<{column.width}}" for column in self._columns())
        return Text(f"{'agent':<{self.stem}}{titles}operator and rationale", no_wrap=True, overflow="ellipsis")

    def marks_of(self, row: AgentRow) -> Text:
        """Return the marks behind an agent's number."""
        best = " ★" if row.agent == self.best else ""
        marked = " ◆" if row.agent in self.marked else ""
        state = f" {fmt.STATE_MARKS[row.state]}".rstrip()
        return Text.assemble((best + marked, "bold yellow"), (state, "yellow"))

    def _columns(self) -> Iterator["_Column"]:
        """Yield the columns that fit, the most useful first."""
        room = self.size.width - self.stem - _OPERATOR
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

    def cell(self, row: AgentRow) -> Text:
        return Text(f"{self.text(row):<{self.width}}", self.style)


_COLUMNS = (
    _Column("own", 14, lambda row: fmt.tally(row.own)),
    _Column("95 %", 9, lambda row: fmt.interval(row.own.interval) if row.own.n else "", "dim"),
    _Column("clade", 15, lambda row: fmt.tally(row.clade) if row.children else ""),
    _Column("children", 9, lambda row: str(len(row.children) or ""), "dim"),
    _Column("bound", 7, lambda row: f"{row.lower_bound:.0%}" if row.own.n else "", "dim"),
)


def _descendants(node: TreeNode[AgentId]) -> Iterator[TreeNode[AgentId]]:
    waiting = [*node.children]
    while waiting:
        child = waiting.pop()
        yield child
        waiting.extend(child.children)


def _sort_key(row: AgentRow, order: SiblingOrder) -> tuple[float, int]:
    value = {
        SiblingOrder.OWN: row.own.rate,
        SiblingOrder.CLADE: row.clade.rate,
        SiblingOrder.BOUND: row.lower_bound,
    }[order]
    return value, -row.agent


class TreePane(Pane):
    """The tree of agents, and beside it the facts of the one under the cursor."""

    def __init__(self) -> None:
        super().__init__("1 Tree", id="tree")
        self._words = ""
        self._matches: Sequence[AgentId] = ()

    def compose(self) -> ComposeResult:
        """Yield the titles, the tree and the panel."""
        with Horizontal():
            with Vertical(id="agents-side"):
                yield Static(id="agents-heading")
                yield AgentTree(id="agents")
            with VerticalScroll(id="panel", can_focus=False):
                yield Static(id="panel-text")

    @property
    def agents(self) -> AgentTree:
        """The tree."""
        return self.query_one(AgentTree)

    def enter(self) -> None:
        """Put the cursor on the browser's agent."""
        self.agents.focus()
        if self.browser.agent is not None and self.browser.agent != self.agents.agent:
            self.agents.goto(self.browser.agent)
        self.refresh_marks()

    def take(self, news: News) -> None:
        """Show new and changed agents."""
        tree = self.agents
        tree.update(news.rows)
        self.query_one("#agents-heading", Static).update(tree.heading())
        if self.browser.following and news.newest is not None:
            tree.goto(news.newest)
        elif tree.agent is None and tree.rows:
            wanted = self.browser.agent
            tree.goto(wanted if wanted in tree.rows else AgentId(0))
        if tree.agent in {row.agent for row in news.rows}:
            self._show_panel()

    async def find(self, words: str, step: int) -> bool:
        """Go to the next agent with these words in its number, commit, operator or rationale, or in a task's name."""
        if words != self._words:
            self._words = words
            self._matches = await self.browser.reader.ask(
                lambda run: find_matching(run.store, words, run.tree.seq)
            )
            self.agents.matches = frozenset(self._matches)
            self.agents.redraw()
            if len(self._matches) > 1:
                self.browser.say(f"{fmt.count(len(self._matches), 'agent')} match; n goes to the next")
        here = self.agents.agent
        match = next_match(self._matches, AgentId(-1) if here is None else here, backwards=step < 0)
        return match is not None and self.agents.goto(match)

    def refresh_marks(self) -> None:
        """Draw the marks of the user again."""
        self.agents.best = self.browser.best
        self.agents.marked = frozenset(self.browser.marks)
        self.agents.redraw()
        self._show_panel()

    def on_resize(self) -> None:
        """Fit the titles to the columns."""
        self.query_one("#agents-heading", Static).update(self.agents.heading())

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[AgentId]) -> None:
        """Show the agent in the panel, and go on from it in other tabs."""
        if event.node.data is not None and self.is_active:
            self.browser.agent = event.node.data
        self._show_panel()

    def on_tree_node_selected(self, event: Tree.NodeSelected[AgentId]) -> None:
        """Open the agent."""
        if event.node.data is not None:
            self.browser.go("agent", agent=event.node.data)

    def _show_panel(self) -> None:
        agent = self.agents.agent
        if agent is not None:
            self.query_one("#panel-text", Static).update(Group(*_panel_parts(self.agents.rows[agent], self.browser.heading_of(self.agents.rows[agent]))))


def _panel_parts(row: AgentRow, heading: Text) -> Sequence[RenderableType]:
    return [heading, Text(), row_facts(row), Text(), *prose(row.rationale)]
