"""One agent on one line, wherever agents are listed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

from dgm.analysis.given_up import count_given_up
from dgm.analysis.outline import Members
from dgm.archive.events import AgentBorn
from dgm.archive.tree import Tree
from dgm.domain import SEED, Action, Agent, AgentId, Evaluate, Tally
from dgm.policies.limits import BARREN as FRUITLESS
from dgm.show.columns import CLADE, LEAST_USE, RowColumns, gap_before
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, join_lines, line_width, make_line, pad_line
from dgm.show.words import (
    BARREN,
    BEST,
    EVALUATING,
    EXPANDING,
    MARKED,
    WAITING,
    bar_line,
    given_up_text,
    interval_text,
    operator_text,
    tally_text,
)

RATIONALE_WIDTH = 60
"""Cells of a rationale where nothing bounds the line."""
_SEED = "seed"
"""The operator of the agents that a search starts from."""
_LEAST = 12
"""Cells below which a rationale is left out."""


class AgentActivity(StrEnum):
    """An agent's present activity, the most remarkable first."""

    WAITS = auto()
    """A child of the agent waits for a person."""
    EXPANDING = auto()
    EVALUATING = auto()
    BARREN = auto()
    """The agent gets no more children: too many of them in a row were stillborn."""
    QUIET = auto()


STATE_MARKS: Mapping[AgentActivity, str] = {
    AgentActivity.WAITS: WAITING,
    AgentActivity.EXPANDING: EXPANDING,
    AgentActivity.EVALUATING: EVALUATING,
    AgentActivity.BARREN: BARREN,
    AgentActivity.QUIET: "",
}
_STATE_TONES = {AgentActivity.WAITS: Tone.WARN, AgentActivity.BARREN: Tone.DIM}


@dataclass(frozen=True, slots=True)
class AgentRow:
    """The facts of an agent in a list; texts are as they were written, not neutralised."""

    id: AgentId
    operator: str
    aim: str
    own: Tally
    clade: Tally | None
    """None if not counted."""
    children: int
    state: AgentActivity
    best: bool
    marked: bool
    parents: tuple[AgentId, ...]
    rationale: str
    given_up: int = 0
    """Number of its tasks that were given up, where that is known: an outline does not count them."""


def root_text(born: Agent | AgentBorn) -> str:
    """Return the words for an agent without parents.

    A run may have several such agents; an examination has no others.
    """
    if born.operator != _SEED:
        return "entered without a parent"
    return "the seed" if born.id == SEED else "a further seed"


def row_of(
    members: Members,
    born: Agent | AgentBorn,
    *,
    aim: str = "",
    state: AgentActivity = AgentActivity.QUIET,
    best: AgentId | None = None,
    marked: Collection[AgentId] = (),
) -> AgentRow:
    """Return the row of an agent.

    Args:
        members: the tree, or an outline of it.
        born: the agent's record.
        aim: its aim, see ``Tree.aim``.
        state: see ``find_states``.
        best: the agent that gets a star; None while that is not known.
        marked: agents that a person has marked.
    """
    return AgentRow(
        born.id,
        born.operator,
        aim,
        members.own(born.id),
        members.clade(born.id),
        len(members.children(born.id)),
        state,
        born.id == best,
        born.id in marked,
        born.parents,
        born.rationale,
        count_given_up(members, born.id) if isinstance(members, Tree) else 0,
    )


def find_states(
    under_way: Iterable[Action], waiting_parents: Iterable[AgentId] = ()
) -> dict[AgentId, AgentActivity]:
    """Return the activity of each agent; idle agents are left out.

    Args:
        under_way: the actions of ``Tree.pending`` or ``Outline.in_flight``.
        waiting_parents: first parents of the children of ``Tree.waiting``.
    """
    found: dict[AgentId, AgentActivity] = {}
    order = list(AgentActivity)
    for action in under_way:
        who = action.agent if isinstance(action, Evaluate) else action.parents[0]
        state = AgentActivity.EVALUATING if isinstance(action, Evaluate) else AgentActivity.EXPANDING
        found[who] = min(found.get(who, state), state, key=order.index)
    return {**found, **dict.fromkeys(waiting_parents, AgentActivity.WAITS)}


def find_tree_states(tree: Tree, *, living: bool) -> dict[AgentId, AgentActivity]:
    """Return the activity of each agent of a whole tree, barren agents included.

    Args:
        tree: the tree.
        living: whether a process performs the actions under way in it.
    """
    barren = {
        AgentId(agent): AgentActivity.BARREN for agent, count in enumerate(tree.barren) if count >= FRUITLESS
    }
    waiting = (one.child.parents[0] for one in tree.waiting.values())
    return {**barren, **find_states(tree.pending.values() if living else (), waiting)}


def agent_line(row: AgentRow, width: int | None = None) -> Line:
    """Return the row as a line by itself.

    Args:
        row: the agent.
        width: cells of the line. The parts of least use and the end of the rationale are left out until the line
            fits.
            None where nothing bounds it, as in a pipe: then it has no marks of a moment's state.
    """
    parts = _row_parts(row, moment=width is not None)
    parts["operator"] = _operator_line(row)
    if width is None:
        return _join_parts({**parts, "rationale": make_line(one_line(row.rationale, RATIONALE_WIDTH))})
    left = width - line_width(_join_parts(parts)) - 2
    if left >= _LEAST:
        return _join_parts({**parts, "rationale": make_line(one_line(row.rationale, left))})
    for name in LEAST_USE:
        if line_width(_join_parts(parts)) <= width:
            break
        parts.pop(name, None)
    return _join_parts(parts)


def aligned_line(row: AgentRow, lead: Line, columns: RowColumns) -> Line:
    """Return the row as a line of a tree, in columns that are the same for all its rows.

    Args:
        row: the agent.
        lead: guides, and whatever stands before the number.
        columns: as ``columns_of`` says; without a bound the line has no marks of a moment's state.
    """
    bounded = columns.line is not None
    parts = _row_parts(row, moment=bounded)
    shown = pad_line((*lead, *parts["id"]), columns.stem)
    # An agent without children has more room for the texts at the end, where room is short.
    names = [name for name in columns.widths if row.children or not bounded or name not in CLADE]
    for name in names:
        shown = (*shown, Span(" " * gap_before(name)), *pad_line(parts.get(name, ()), columns.widths[name]))
    operator = _operator_line(row)
    if not bounded:
        return join_lines([shown, operator, make_line(one_line(row.rationale, RATIONALE_WIDTH))], "  ")
    room = columns.room(names)
    if line_width(operator) > room:
        return shown
    left = room - line_width(operator) - 2
    return join_lines(
        [shown, operator, make_line(one_line(row.rationale, left)) if left >= _LEAST else ()], "  "
    )


def _row_parts(row: AgentRow, *, moment: bool) -> dict[str, Line]:
    """Return the parts of a row by name, without the texts at its end."""
    parts: dict[str, Line] = {
        "id": _identity_line(row, moment=moment),
        "bar": bar_line(row.own.rate),
        "own": make_line(Span("own ", Tone.DIM), tally_text(row.own)),
        "interval": _interval_line(row.own),
    }
    if row.children:
        parts["clade"] = make_line(
            Span("clade ", Tone.DIM), tally_text(row.clade) if row.clade else "counting …"
        )
        parts["clade interval"] = _interval_line(row.clade or Tally())
        if moment:
            parts["children"] = make_line(
                Span("child " if row.children == 1 else "children ", Tone.DIM), str(row.children)
            )
    return parts


def _operator_line(row: AgentRow) -> Line:
    further = f" of {' and '.join(map(str, row.parents))}" if len(row.parents) > 1 else ""
    given_up = given_up_text(row.given_up)
    before = (Span(f"{given_up}  ", Tone.WARN),) if given_up else ()
    return make_line(*before, Span(operator_text(row.operator, row.aim), Tone.KEY), further)


def _join_parts(parts: Mapping[str, Line]) -> Line:
    """Join the parts two blanks apart; an interval stands closer to its tally."""
    own, clade = join_lines([parts.get("own", ()), parts.get("interval", ())], " "), parts.get("clade", ())
    groups = {**parts, "own": own}
    if clade:
        groups["clade"] = join_lines([clade, parts.get("clade interval", ())], " ")
    names = ("id", "bar", "own", "clade", "children", "operator", "rationale")
    return join_lines([groups[name] for name in names if name in groups], "  ")


def _identity_line(row: AgentRow, *, moment: bool) -> Line:
    mark = STATE_MARKS[row.state] if moment else ""
    return make_line(
        Span(str(row.id), Tone.STRONG),
        *((Span(f" {BEST}", Tone.MARK),) if row.best else ()),
        *((Span(f" {MARKED}", Tone.MARK),) if row.marked and moment else ()),
        *((Span(f" {mark}", _STATE_TONES.get(row.state, Tone.GOOD)),) if mark else ()),
    )


def _interval_line(tally: Tally) -> Line:
    return make_line(Span(interval_text(tally), Tone.DIM))
