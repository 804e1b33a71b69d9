"""The facts of an agent, in a narrow column beside a list."""

from collections.abc import Iterator, Sequence

from dgm.domain import AgentId, Tally
from dgm.show.agents import STATE_MARKS, AgentActivity, root_text
from dgm.show.safe import neutralise, one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import BEST, interval_text, list_text, operator_text, tally_text
from dgm.stats import lower_bound
from dgm.tui.reader import RunReader
from dgm.tui.wrapping import wrap_line

_NAMES = 10
_RATIONALE = 4_000
"""Maximum characters of a rationale that are read; more would not fit on a screen."""
_SEVERAL = 12
"""Maximum number of children that are named."""
_DOING = {
    AgentActivity.WAITS: "a child waits for a person",
    AgentActivity.EXPANDING: "a child is being made",
    AgentActivity.EVALUATING: "at work on a task",
    AgentActivity.BARREN: "barren: its children were stillborn",
}


def panel_lines(reader: RunReader, agent: AgentId, width: int) -> Sequence[Line]:
    """Return the facts of an agent in lines of at most ``width`` cells, the rationale whole at the end."""
    return list(_iter_lines(reader, agent, width))


def _iter_lines(reader: RunReader, agent: AgentId, width: int) -> Iterator[Line]:
    members, born = reader.members, reader.born([agent]).get(agent)
    if members is None or born is None:
        return
    best = f"  {BEST} best: recommended" if agent == reader.best else ""
    yield make_line(Span(f"agent {agent}", Tone.STRONG), Span(best, Tone.MARK))
    state = reader.activity_of(agent)
    if state in _DOING:
        yield make_line(Span(f"{STATE_MARKS[state]} {_DOING[state]}", Tone.WARN))
    yield ()
    facts = {
        "commit": born.commit[:12],
        "operator": operator_text(born.operator, reader.aim(agent)),
        "parents": ", ".join(map(str, born.parents)) or f"– ({root_text(born)})",
        "children": list_text(members.children(agent), _SEVERAL),
    }
    for name, text in facts.items():
        yield from _fact_lines(name, text, width)
    yield ()
    yield from _tally_lines("own", members.own(agent), width)
    clade = members.clade(agent)
    if clade is None:
        yield from _fact_lines("clade", "counting …", width)
    else:
        yield from _tally_lines("clade", clade, width)
    bound = f"{lower_bound(members.own(agent)):.3f}, 99 % sure of more" if reader.bounds else "…"
    yield from _fact_lines("bound", bound, width)
    yield ()
    for paragraph in neutralise(born.rationale[:_RATIONALE]).expandtabs(4).split("\n"):
        yield from wrap_line(make_line(paragraph), width)


def _tally_lines(name: str, tally: Tally, width: int) -> Iterator[Line]:
    return _fact_lines(name, f"{tally_text(tally)}  {interval_text(tally)}".rstrip(), width)


def _fact_lines(name: str, text: str, width: int) -> Iterator[Line]:
    for number, part in enumerate(wrap_line(make_line(one_line(text, 400)), max(4, width - _NAMES))):
        yield (Span(f"{'' if number else name:<{_NAMES}}", Tone.KEY), *part)
