"""The making of an agent, as ``dgm show`` tells it: the time that vetting took, and the evidence that was read."""

from collections.abc import Mapping, Sequence
from typing import Any

from dgm.analysis.operator_accounts import stage_times
from dgm.archive.events import ActionStarted, AgentBorn
from dgm.archive.run import Run
from dgm.domain import Agent, Cost, Expand
from dgm.show.operators import vetting_text
from dgm.show.safe import one_line
from dgm.show.spans import Line, fact_line

FILES = 5
"""Names of files that people are shown."""


def making_lines(run: Run, agent: Agent) -> Sequence[Line]:
    """Return the lines for people; facts that were not noted are left out.

    Raises:
        ArchiveCorrupt: a trace is missing or damaged.
    """
    cost = _find_birth_cost(run, agent)
    lines = []
    if stages := vetting_text(stage_times(run, cost)):
        lines.append(fact_line("vetting", stages))
    if offered := _read_json_trace(run, cost, "evidence"):
        read = _read_json_trace(run, cost, "reading")
        most = sorted(read, key=lambda path: (-read[path][0], path))
        names = ", ".join(one_line(path, 60) for path in most[:FILES])
        more = f" and {len(most) - FILES} more" if len(most) > FILES else ""
        told = f"{len(read)} of {len(offered)} files of evidence{': ' * bool(read)}{names}{more}"
        lines.append(fact_line("read", told))
    if stated := cost.traces.get("statement"):
        text = run.traces.get(stated).decode("utf-8", "replace")
        lines.append(fact_line("general", one_line(text, 200)))
    return lines


def making_record(run: Run, agent: Agent) -> dict[str, Any]:
    """Return for programs the chosen evidence, the seconds of each stage of vetting, and lines read of each file."""
    cost, what = _find_birth_cost(run, agent), _find_expand_action(run, agent)
    return {
        "action": agent.action,
        "shown": list(what.shown) if what else [],
        "evidence": list(what.evidence) if what else [],
        "case": what.case or None if what else None,
        "seconds": round(cost.seconds, 3),
        "vetting": {stage: round(took.seconds, 6) for stage, took in stage_times(run, cost).items()},
        "read": {path: counts[0] for path, counts in _read_json_trace(run, cost, "reading").items()},
        "traces": dict(cost.traces),
    }


def _find_birth_cost(run: Run, agent: Agent) -> Cost:
    events = [item.event for item in run.store.events_of_action(agent.action)] if agent.parents else []
    return next((event.cost for event in events if isinstance(event, AgentBorn)), Cost())


def _find_expand_action(run: Run, agent: Agent) -> Expand | None:
    events = [item.event for item in run.store.events_of_action(agent.action)] if agent.parents else []
    found = (event.action for event in events if isinstance(event, ActionStarted))
    return next((what for what in found if isinstance(what, Expand)), None)


def _read_json_trace(run: Run, cost: Cost, name: str) -> Mapping[str, Any]:
    if name not in cost.traces:
        return {}
    with run.traces.reading(cost.traces[name]) as record:
        return dict(record)
