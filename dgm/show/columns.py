"""Columns of a tree of agents: figures of all rows stand below each other, however deep a row is."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import add

from dgm.analysis.outline import Members
from dgm.show.words import BAR

STEP = 3
"""Cells of indentation for each branching."""
UNBOUNDED = 12
"""Steps of indentation that are drawn where nothing bounds a line, as in a pipe."""
_SHARE = 4
"""Divisor of a line's width: indentation takes at most this part of it."""
_INTERVAL = len("34–100%")
_COUNTING = len("counting …")
_OPERATOR = 10
"""Minimum number of cells for the operator."""
LEAST_USE = ("clade interval", "children", "operator", "clade", "interval", "bar")
"""Parts in the order in which they are left out where a line is too narrow for all."""
CLADE = ("clade", "clade interval", "children")
"""Parts that only an agent with children has."""
_CLOSE = ("interval", "clade interval")
"""Parts that stand one blank behind the part before them, and not two."""


@dataclass(frozen=True, slots=True)
class RowExtent:
    """The largest extent of each part over the rows of a tree."""

    indentation: int
    """Steps of indentation of the deepest agent, before they are bounded."""
    agents: int
    own: int
    """Largest number of verdicts on one agent."""
    clade: int
    """Largest number of verdicts on one clade."""


@dataclass(frozen=True, slots=True)
class RowColumns:
    """The cells of each part of a row."""

    stem: int
    """Cells for guides, number and marks."""
    widths: Mapping[str, int]
    """Cells by name, in order; a missing part has no room on these rows."""
    line: int | None
    """Cells of the whole line; None where nothing bounds it."""

    def room(self, names: Collection[str]) -> int:
        """Return the cells left for a text behind the stem and these parts, of a line that is bounded."""
        taken = _sum_widths({name: cells for name, cells in self.widths.items() if name in names})
        return max(0, (self.line or 0) - self.stem - taken - 2)


def most_steps(width: int | None) -> int:
    """Return the number of indentation steps drawn on a line of ``width`` cells; None: nothing bounds it."""
    return UNBOUNDED if width is None else max(2, width // (_SHARE * STEP))


def gap_before(name: str) -> int:
    """Return the blanks in front of a part of a row."""
    return 1 if name in _CLOSE else 2


def indents(*, root: bool, children: int) -> bool:
    """Return whether an agent's children are drawn further in than itself.

    An only child stands straight below its parent, so that a chain of single children keeps one depth. Children of a
    root always stand further in.
    """
    return root or children > 1


def indentations(parents: Sequence[int]) -> list[int]:
    """Return each agent's steps of indentation, before they are bounded.

    Args:
        parents: each agent's first parent, which is older; -1 for a root.
    """
    children = [0] * len(parents)
    for parent in parents:
        if parent >= 0:
            children[parent] += 1
    steps: list[int] = []
    for parent in parents:
        if parent < 0:
            steps.append(0)
        else:
            steps.append(steps[parent] + indents(root=parents[parent] < 0, children=children[parent]))
    return steps


def extent_of(members: Members, steps: Sequence[int]) -> RowExtent:
    """Return the largest extent of these agents' rows; ``steps`` is the result of ``indentations`` for them."""
    own = map(add, members.own_resolved, members.own_unresolved)
    clade = map(add, members.clade_resolved, members.clade_unresolved)
    return RowExtent(max(steps, default=0), len(steps), max(own, default=0), max(clade, default=0))


def columns_of(extent: RowExtent, width: int | None, marks: int) -> RowColumns:
    """Return the columns for rows of such an extent.

    Args:
        extent: the largest extent of the rows.
        width: cells of a line; None where nothing bounds it. Parts of least use are left out until the others fit.
        marks: cells for marks in front of and behind an agent's number.
    """
    stem = STEP * min(extent.indentation, most_steps(width)) + len(str(max(0, extent.agents - 1))) + marks
    widths = {
        "bar": BAR,
        "own": len("own ") + _tally_width(extent.own),
        "interval": _INTERVAL,
        "clade": len("clade ") + max(_COUNTING, _tally_width(extent.clade)),
        "clade interval": _INTERVAL,
    }
    if width is not None:
        widths |= {"children": len("children ") + len(str(extent.agents)), "operator": _OPERATOR}
        for name in LEAST_USE:
            if stem + _sum_widths(widths) <= width:
                break
            widths.pop(name)
        widths.pop("operator", None)
    return RowColumns(stem, widths, width)


def _tally_width(verdicts: int) -> int:
    """Return the cells of ``12/12 100%``."""
    return len(f"{verdicts}/{verdicts} 100%")


def _sum_widths(widths: Mapping[str, int]) -> int:
    return sum(gap_before(name) + cells for name, cells in widths.items())
