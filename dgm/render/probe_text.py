"""Probes and bisections on the terminal."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dgm.evaluation.bisecting import Ending, Vote
from dgm.render import fmt
from dgm.render.safe import one_line
from dgm.views.bisection import BisectionView
from dgm.views.probes import AgentProbesView, Outcome, ProbeRow, ProbeState, ProbeView
from dgm.views.values import UsageView

CELLS = 80
STYLES: Mapping[str | None, str] = {
    ProbeState.PASSED: "green",
    ProbeState.FAILED: "bold red",
    Outcome.SAFE: "green",
    Outcome.UNSAFE: "bold red",
    Vote.GOOD: "green",
    Vote.BAD: "red",
}


def render_probes(view: ProbeView) -> RenderableType:
    """Return what each probe showed of each agent, the failed ones first."""
    parts: list[RenderableType] = []
    for agent in view.agents:
        parts.append(Text.assemble(f"agent {agent.agent}: ", state_text(agent)))
        table = Table.grid(padding=(0, 2))
        for row in sorted(agent.probes, key=lambda row: row.outcome is not Outcome.UNSAFE):
            outcome = Text(row.outcome or "not tried", STYLES.get(row.outcome, "dim"))
            remark = "; ".join(filter(None, _iter_remarks(row)))
            table.add_row("", outcome, Text(one_line(row.probe, CELLS)), Text(remark))
        parts += [table] if agent.probes else []
    return Group(*parts, _record_text(view.evaluation.folder, view.evaluation.spend))


def _record_text(folder: str, spend: UsageView) -> Text:
    return Text(f"recorded in {one_line(folder, 500)}; {fmt.usage(spend)}", "dim")


def state_text(view: AgentProbesView) -> Text:
    """Return the state of an agent's probes with its counts, such as ``passed (7 safe, 1 no answer)``."""
    details = _count(row.outcome or "not tried" for row in view.probes)
    return Text(f"{view.state} ({details})" if details else view.state, STYLES.get(view.state, "yellow"))


def _iter_remarks(row: ProbeRow) -> Iterator[str]:
    yield one_line(row.looks_for, CELLS)
    if len(row.attempts) > 1:
        yield _count(row.attempts)
    if row.findings:
        yield fmt.listing([one_line(finding.detail, CELLS) for finding in row.findings], 5)


def _count(results: Iterable[str]) -> str:
    return ", ".join(f"{count} {result}" for result, count in Counter(results).items())


def render_bisection(view: BisectionView) -> RenderableType:
    """Return the attempts at the tried members of a lineage, and the first that fails; without its patch."""
    table = Table.grid(padding=(0, 2))
    for row in view.tried:
        decision = Text(row.decision or "open", STYLES.get(row.decision, "dim"))
        table.add_row("", f"agent {row.agent}", decision, Text(_count(row.attempts)))
    members = fmt.count(view.members, "agent")
    parts: list[RenderableType] = [
        Text(f"{members} in the lineage of agent {view.agent}; {one_line(view.criterion, CELLS)}"),
        table,
        Text(_result_text(view), "bold" if view.ending is Ending.FOUND else "yellow"),
    ]
    if view.contradictions:
        others = fmt.listing(view.contradictions, 5)
        parts.append(
            Text(f"not the only change: agent {others} contradicts it; this is one of several", "yellow")
        )
    parts += [_record_text(view.folder, view.spend)] if view.folder else []
    return Group(*parts)


def _result_text(view: BisectionView) -> str:
    if view.ending is None:
        return f"not known yet: {one_line(view.message, 500)}"
    if view.ending is not Ending.FOUND:
        return f"nothing to find: {view.ending}"
    last, first = view.last_passing, view.first_failing
    if view.between:
        silent = fmt.listing(view.between, 10)
        return f"agent {last} passes and agent {first} fails; {silent} between them give no answer"
    return f"agent {first} is the first that fails; its parent, agent {last}, passes"
