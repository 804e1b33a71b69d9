"""An agent in six lines: its identity, quality, spend and aim."""

from collections.abc import Collection, Sequence

from dgm.domain import AgentId
from dgm.show.agents import STATE_MARKS, AgentActivity, root_text, row_of
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, join_lines, make_line
from dgm.show.words import (
    BEST,
    MARKED,
    bar_line,
    given_up_text,
    interval_text,
    list_text,
    operator_text,
    tally_text,
)
from dgm.stats import lower_bound
from dgm.tui.reader import RunReader
from dgm.tui.wrapping import wrap_line

RATIONALE = 2_000
"""Maximum characters of a rationale that are wrapped here; tab and pager have all of it."""


def head_lines(
    reader: RunReader, agent: AgentId, marks: Collection[AgentId], spent: Line | None, width: int
) -> Sequence[Line]:
    """Return the lines; the rationale is last and takes as many as it needs.

    Args:
        reader: the reader of the run.
        agent: the agent.
        marks: the agents that a person has marked.
        spent: the agent's spend; None while nobody has counted.
        width: cells at which the rationale is wrapped.
    """
    members = reader.members
    born = reader.born([agent]).get(agent)
    if members is None or born is None:
        return [make_line(Span(f"agent {agent}", Tone.STRONG), ": not there yet")]
    state = reader.activity_of(agent)
    row = row_of(members, born, aim=reader.aim(agent), state=state, best=reader.best, marked=marks)
    signs = [BEST * row.best, MARKED * row.marked, STATE_MARKS[state]]
    who = join_lines(
        [
            make_line(
                Span(f"agent {agent}", Tone.STRONG),
                Span("".join(f" {sign}" for sign in signs if sign), Tone.MARK),
                Span(f" {state}" if state is not AgentActivity.QUIET else "", Tone.DIM),
            ),
            make_line(Span("of ", Tone.DIM), " and ".join(map(str, row.parents)))
            if row.parents
            else make_line(root_text(born)),
            make_line(Span(operator_text(row.operator, row.aim), Tone.KEY)),
            make_line(Span("commit ", Tone.DIM), one_line(born.commit[:12], 12)),
            make_line(Span("children ", Tone.DIM), list_text(members.children(agent), 6)),
        ],
        "  ",
    )
    own = make_line(
        Span("own ", Tone.DIM),
        *bar_line(row.own.rate),
        f" {tally_text(row.own)} ",
        Span(interval_text(row.own), Tone.DIM),
        Span("  lower bound ", Tone.DIM),
        "–" if not row.own.n else f"{lower_bound(row.own):.2f}" if reader.bounds else "…",
        Span(f"  {given_up_text(row.given_up)}" if row.given_up else "", Tone.WARN),
        Span("  clade ", Tone.DIM),
        tally_text(row.clade) if row.clade else "counting …",
        Span(f" {interval_text(row.clade)}" if row.clade else "", Tone.DIM),
    )
    text = " ".join(row.rationale[:RATIONALE].split())
    rationale = (
        wrap_line(make_line(one_line(text, RATIONALE)), width)
        if text
        else [make_line(Span("no rationale", Tone.DIM))]
    )
    return [who, own, make_line(Span("…", Tone.DIM)) if spent is None else spent, *rationale]
