"""The facts of a run for a list of runs, read from its log by SQL without folding or decoding events.

They agree with ``Tree``. The best agent depends on the policy and is left to ``dgm.search``.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dgm.archive.codec import decode
from dgm.archive.event_fields import parse_body
from dgm.archive.events import RunStarted
from dgm.archive.history import writer
from dgm.archive.lock import Holder
from dgm.archive.run import read_config
from dgm.archive.store import EventStore
from dgm.bounded_reading import refuse_odd_values
from dgm.domain import NO_ACTION, Budget

_COUNTS = "SELECT kind, count(*), max(seq), max(at) FROM events GROUP BY kind"
_BODY = "SELECT body FROM events WHERE seq = ?"
_SPEND = (
    "SELECT total(json_extract(body, '$.usage[1]')) + total(json_extract(body, '$.usage[2]')), "
    "total(json_extract(body, '$.usage[3]')) FROM events "
    "WHERE kind IN ('model_called', 'call_booked', 'model_learned')"
)
_GRADED = (
    "SELECT count(*) FROM events WHERE kind = 'task_graded' AND json_extract(body, '$.verdict') <> 'invalid'"
)
_WAITING = (
    "SELECT count(*) FROM events AS asked WHERE kind = 'child_proposed' AND NOT EXISTS (SELECT 1 FROM events AS later "
    "WHERE later.action = asked.action AND later.seq > asked.seq "
    "AND later.kind IN ('agent_born', 'agent_stillborn', 'action_started', 'action_lost'))"
)
_EXPANSIONS = (
    "SELECT count(*) FROM (SELECT max(seq) AS last FROM events WHERE action IN ("
    "SELECT action FROM events WHERE kind = 'action_started' AND json_extract(body, '$.task') IS NULL) "
    "AND kind IN ('action_started', 'agent_born', 'agent_stillborn', 'child_proposed', 'action_lost') GROUP BY action)"
    " JOIN events ON seq = last WHERE kind IN ('agent_born', 'agent_stillborn', 'child_proposed') "
    "OR (kind = 'action_lost' AND json_extract(body, '$.final'))"
)
_SESSIONS = "SELECT seq, at FROM events WHERE kind = 'run_started' ORDER BY seq"
_LATEST = "SELECT max(at) FROM events WHERE seq >= ? AND seq < ?"
_FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class Overview:
    """The facts of a run at one moment."""

    id: str
    """The run's own id, equal in all of its copies; empty if it has none."""
    config: dict[str, Any] = field(repr=False)
    """The content of ``run.json``, which does not change after the run's start."""
    created: float
    """Unix time; 0 if the run does not record it."""
    events: int
    last_at: float
    """Unix time of the last event; 0 if there is none."""
    stop_reason: str
    """Why the last session ended in good order; empty while a session runs, or if it was killed."""
    paused: bool
    writer: Holder | None
    """Pid and host of the process that writes the run; one on another host is taken for alive."""
    budget: Budget
    agents: int
    evaluations: int
    """Evaluations graded resolved or unresolved, without the withdrawn ones."""
    expansions: float
    """Ended expansions; 0 if expansions take nothing from the budget of evaluations."""
    waiting: int
    """Children that wait for a person."""
    usd: float
    tokens: int
    seconds: float
    """Wall time in seconds over all sessions."""

    @property
    def state(self) -> str:
        """The run's state, in the words of ``dgm.archive.history.state``."""
        if self.stop_reason:
            return self.stop_reason
        if self.writer is None:
            return "interrupted"
        return "paused" if self.paused else "running"


def read_overview(folder: Path) -> Overview:
    """Read the facts of the run in a folder; a process may write it meanwhile.

    Raises:
        UserError: there is no run, or a newer dgm made it.
        ArchiveCorrupt: the data read is damaged; names the file and the first thing wrong.
    """
    with refuse_odd_values(folder / "events.db"):
        return _read_overview(folder)


def _read_overview(folder: Path) -> Overview:
    config = read_config(folder / "run.json")
    # Ask first: if the process ends meanwhile, its last event is then in what is read.
    written_by = writer(folder)
    with EventStore.open(folder / "events.db", write=False) as store, store.at_one_moment():
        kinds = {kind: (count, seq, at) for kind, count, seq, at in store.query(_COUNTS)}
        budget = _read_budget(store, kinds)
        tokens, usd = store.query(_SPEND)[0]
        return Overview(
            id=str(config.get("id", "")),
            config=dict(config),
            created=_float_or_zero(config.get("created")),
            events=max((seq for _, seq, _ in kinds.values()), default=0),
            last_at=max((at for _, _, at in kinds.values()), default=0.0),
            stop_reason=_read_stop_reason(store, kinds),
            paused=_last_seq(kinds, "run_paused")
            > max(_last_seq(kinds, kind) for kind in ("action_started", "run_started", "run_stopped")),
            writer=written_by,
            budget=budget,
            agents=kinds.get("agent_born", (0,))[0],
            evaluations=store.query(_GRADED)[0][0] - len(store.withdrawn()),
            expansions=store.query(_EXPANSIONS)[0][0] if budget.expansion_cost else 0,
            waiting=store.query(_WAITING)[0][0] if "child_proposed" in kinds else 0,
            usd=usd,
            tokens=int(tokens),
            seconds=_sum_sessions_s(store),
        )


def _last_seq(kinds: dict[str, tuple[int, int, float]], kind: str) -> int:
    return kinds[kind][1] if kind in kinds else 0


def _read_stop_reason(store: EventStore, kinds: dict[str, tuple[int, int, float]]) -> str:
    stopped = _last_seq(kinds, "run_stopped")
    if stopped <= _last_seq(kinds, "run_started"):
        return ""
    return str(_read_body(store, stopped).get("reason", ""))


def _read_budget(store: EventStore, kinds: dict[str, tuple[int, int, float]]) -> Budget:
    started = _last_seq(kinds, "run_started")
    if not started:
        return Budget()
    event = decode("run_started", NO_ACTION, json.dumps(_read_body(store, started)))
    return event.budget if isinstance(event, RunStarted) else Budget()


def _read_body(store: EventStore, seq: int) -> dict[str, Any]:
    return parse_body(store.query(_BODY, (seq,))[0][0])


def _sum_sessions_s(store: EventStore) -> float:
    """Return the summed time from first to last event of each session, like ``Watch``."""
    sessions: Sequence[tuple[int, float]] = [(seq, at) for seq, at in store.query(_SESSIONS)]
    ends = [*(seq for seq, _ in sessions[1:]), _FOREVER]
    total = 0.0
    for (seq, at), end in zip(sessions, ends, strict=False):  # a run may have no session yet
        total += float(store.query(_LATEST, (seq, end))[0][0]) - at
    return total


def _float_or_zero(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
