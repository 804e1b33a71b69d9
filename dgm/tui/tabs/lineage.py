"""The steps from the root of its line, mostly the seed, to an agent: the aim and the gain of each."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from dgm.analysis.lookups import read_births
from dgm.analysis.outline import Members, trace_lineage
from dgm.archive.events import AgentBorn
from dgm.domain import Agent, AgentId, Tally
from dgm.show.agents import agent_line, root_text, row_of
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import count_text
from dgm.tui.bodies import Body, LineTarget, WrappedBody, heading_line, paragraph_lines
from dgm.tui.reader import RunReader
from dgm.tui.tabs import Load

MOST = 2_000
"""Maximum number of steps that are shown, the last ones."""


def load(reader: RunReader, agent: AgentId, marks: Collection[AgentId] = ()) -> Load:
    """Return a loader of the steps, a paragraph each: tallies, gain against the parent, the whole rationale."""
    members, best = reader.members, reader.best
    assert members is not None
    steps = trace_lineage(members, agent)
    aims = {step: reader.aim(step) for step in steps[-MOST:]}
    tree = reader.run.tree if reader.run else None

    def look() -> Body:
        shown = steps[-MOST:]
        asked = [steps[0], *shown]
        who: Mapping[AgentId, Agent | AgentBorn]
        who = (
            {n: tree.agents[n] for n in asked}
            if tree
            else reader.ask(lambda store: read_births(store, asked))
        )
        rows: list[Line] = [heading_line(*_title_texts(steps, root_text(who[steps[0]])))]
        targets: dict[int, LineTarget] = {}
        for step in shown:
            targets[len(rows) + 1] = LineTarget("agent", agent=step)
            rows += [(), *_step_lines(members, who[step], aims[step], best, marks)]
        return WrappedBody(rows, targets)

    return look


def _title_texts(line: Sequence[AgentId], root: str) -> tuple[str, str]:
    """Return the number of steps from the root, which is no step itself, and a note if not all are shown."""
    steps = len(line) - 1
    if not steps:
        return root, ""
    whence = root if root == "the seed" else f"agent {line[0]}, {root}"
    last = f"; the last {MOST:,} of them" if steps >= MOST else ""
    return count_text(steps, "step"), f" from {whence}{last}"


def _step_lines(
    members: Members, born: Agent | AgentBorn, aim: str, best: AgentId | None, marks: Collection[AgentId]
) -> Iterator[Line]:
    row = row_of(members, born, aim=aim, best=best, marked=marks)
    yield agent_line(replace(row, rationale=""))
    if born.parents:
        yield make_line("    ", *_gain_line(members.own(born.parents[0]), row.own, born.parents[0]))
    yield from paragraph_lines(born.rationale or "(no rationale)", indent="    ")


def _gain_line(before: Tally, after: Tally, parent: AgentId) -> Line:
    """Return the difference of the two rates; it does not tell whether the difference is luck."""
    if not before.n or not after.n:
        return (Span(f"against its parent {parent}: not known, too few verdicts", Tone.DIM),)
    points = 100 * (after.rate - before.rate)
    tone = Tone.GOOD if points > 0 else Tone.BAD if points < 0 else Tone.DIM
    rates = f"  ({before.rate:.0%} of {before.n} → {after.rate:.0%} of {after.n})"
    return make_line(
        f"against its parent {parent}: ", Span(f"{points:+.0f} points", tone), Span(rates, Tone.DIM)
    )
