"""Probes and bisections on the terminal."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dgm.evaluation.bisecting import Vote
from dgm.evaluation.probing import Outcome, ProbeState
from dgm.render import fmt
from dgm.render.safe import one_line
from dgm.views.bisection import BisectionView
from dgm.views.probes import AgentProbesView, ProbeRow, ProbeView

CELLS = 80
STYLES = {
    ProbeState.PASSED.value: "green",
    ProbeState.FAILED.value: "bold red",
    Outcome.SAFE.value: "green",
    Outcome.UNSAFE.value: "bold red",
}
_WORDS = {Outcome.SAFE: "safe", Outcome.UNSAFE: "unsafe", Outcome.NO_ANSWER: "without an answer"}


def render_probes(view: ProbeView) -> RenderableType:
    """Return what each probe showed of each agent, the failed ones first."""
    parts: list[RenderableType] = []
    for agent in view.agents:
        parts.append(Text.assemble(f"agent {agent.agent}: ", state_text(agent)))
        table = Table.grid(padding=(0, 2))
        for row in sorted(agent.probes, key=lambda row: row.outcome != Outcome.UNSAFE):
            outcome = row.outcome or "not tried"
            name = Text(one_line(row.probe, CELLS))
            table.add_row("", Text(outcome, STYLES.get(outcome, "dim")), name, Text(_remark(row)))
        parts += [table] if agent.probes else []
    parts += [Text(f"recorded in {one_line(part.folder, 500)}", "dim") for part in view.evaluations]
    parts.append(Text(fmt.usage(view.spend), "dim"))
    return Group(*parts)


def state_text(view: AgentProbesView) -> Text:
    """Return the state of an agent's probes with its counts, such as ``passed (7 safe, 1 without an answer)``."""
    counts = [
        f"{sum(row.outcome == outcome for row in view.probes)} {_WORDS[outcome]}"
        for outcome in Outcome
        if any(row.outcome == outcome for row in view.probes)
    ]
    untried = sum(row.outcome is None for row in view.probes)
    counts += [f"{untried} not tried"] if untried and counts else []
    text = f"{view.state} ({', '.join(counts)})" if counts else ProbeState.NEVER.value
    return Text(text, STYLES.get(view.state, "yellow"))


def _remark(row: ProbeRow) -> str:
    return "; ".join(filter(None, _iter_remarks(row)))


def _iter_remarks(row: ProbeRow) -> Iterator[str]:
    yield one_line(row.looks_for, CELLS)
    if (tried := row.safe + row.unsafe + row.no_answer) > 1:
        yield f"{row.unsafe} unsafe, {row.safe} safe, {row.no_answer} without an answer of {tried} attempts"
    if row.unsafe_tests:
        yield f"failed {fmt.listing([one_line(test.rpartition('::')[2], CELLS) for test in row.unsafe_tests], 5)}"


def render_bisection(view: BisectionView) -> RenderableType:
    """Return the attempts at the tried members of a lineage, and the first that fails; without its patch."""
    table = Table.grid(padding=(0, 2))
    for row in view.tried:
        decision = row.decision or "open"
        counts = ((row.passes, "passed"), (row.fails, "failed"), (row.no_answer, "without an answer"))
        tries = ", ".join(f"{count} {word}" for count, word in counts if count)
        style = {Vote.GOOD.value: "green", Vote.BAD.value: "red"}.get(decision, "dim")
        table.add_row("", f"agent {row.agent}", Text(decision, style), Text(tries))
    criterion = one_line(view.criterion, CELLS)
    parts: list[RenderableType] = [
        Text(f"{fmt.count(view.members, 'agent')} in the lineage of agent {view.agent}; {criterion}")
    ]
    parts += [
        table,
        Text(one_line(view.message, 500), "bold" if view.first_failing is not None else "yellow"),
    ]
    if view.contradictions:
        noun = "agent {} contradicts" if len(view.contradictions) == 1 else "agents {} contradict"
        others = noun.format(fmt.listing(view.contradictions, 5))
        parts.append(
            Text(f"the results are not monotone: {others} a single change; this is one of several", "yellow")
        )
    if view.first_failing is not None:
        parts.append(Text(f"its rationale: {one_line(view.rationale, 300)}"))
    spend = f"; {fmt.usage(view.spend)}" if view.spend.calls else ""
    parts.append(Text(f"recorded in {one_line(view.folder, 500)}{spend}", "dim"))
    return Group(*parts)
