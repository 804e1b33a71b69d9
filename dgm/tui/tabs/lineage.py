"""The steps from the seed to an agent: what each was meant to do, and what it brought."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from dgm.archive.events import AgentBorn
from dgm.archive.lookups import births
from dgm.archive.outline import Members
from dgm.domain import Agent, AgentId, Tally
from dgm.show.agents import agent_line, row_of
from dgm.show.spans import Line, Span, Tone, line
from dgm.tui.bodies import Body, Prose, Target, heading, paragraphs
from dgm.tui.reader import Reader
from dgm.tui.tabs import Load

MOST = 2_000
"""Steps that are shown, the last ones."""


def load(reader: Reader, agent: AgentId, marks: Collection[AgentId] = ()) -> Load:
    """A step a paragraph: tallies, gain against the parent, the whole rationale."""
    members, best = reader.members, reader.best
    assert members is not None
    steps = line_of(members, agent)
    aims = {step: reader.aim(step) for step in steps[-MOST:]}
    tree = reader.run.tree if reader.run else None

    def look() -> Body:
        shown = steps[-MOST:]
        who: Mapping[AgentId, Agent | AgentBorn]
        who = {n: tree.agents[n] for n in shown} if tree else reader.ask(lambda store: births(store, shown))
        rows: list[Line] = [
            heading(f"{len(steps)} steps" if len(steps) > 1 else "the seed", _left_out(len(steps)))
        ]
        targets: dict[int, Target] = {}
        for step in shown:
            targets[len(rows) + 1] = Target("agent", agent=step)
            rows += [(), *_step(members, who[step], aims[step], best, marks)]
        return Prose(rows, targets)

    return look


def line_of(members: Members, agent: AgentId) -> list[AgentId]:
    """From the seed to the agent, along first parents."""
    found = [agent]
    while (parent := members.first_parent(found[-1])) is not None:
        found.append(parent)
    return found[::-1]


def _left_out(steps: int) -> str:
    return f", the last {MOST:,} of them" if steps > MOST else " from the seed" if steps > 1 else ""


def _step(
    members: Members, born: Agent | AgentBorn, aim: str, best: AgentId | None, marks: Collection[AgentId]
) -> Iterator[Line]:
    row = row_of(members, born, aim=aim, best=best, marked=marks)
    yield agent_line(replace(row, rationale=""))
    if born.parents:
        yield line("    ", *_gain(members.own(born.parents[0]), row.own, born.parents[0]))
    yield from paragraphs(born.rationale or "(no rationale)", indent="    ")


def _gain(before: Tally, after: Tally, parent: AgentId) -> Line:
    """The difference of the two rates; it says nothing of whether that is luck."""
    if not before.n or not after.n:
        return (Span(f"against its parent {parent}: not known, too few verdicts", Tone.DIM),)
    points = 100 * (after.rate - before.rate)
    tone = Tone.GOOD if points > 0 else Tone.BAD if points < 0 else Tone.DIM
    rates = f"  ({before.rate:.0%} of {before.n} → {after.rate:.0%} of {after.n})"
    return line(f"against its parent {parent}: ", Span(f"{points:+.0f} points", tone), Span(rates, Tone.DIM))
