"""What each operator's expansions came to and took: births, stillbirths by stage, gains, spend, time of vetting."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from dgm.archive.events import ActionStarted, AgentBorn, AgentStillborn, ChildProposed
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Cost, Expand, Usage
from dgm.stats import paired_bootstrap
from dgm.stats.better import JUDGED

VETTING = "vetting"
"""The trace of an expansion that says what each stage took."""

_ENDS = """
SELECT seq, at, kind, action, body FROM events
WHERE seq <= ? AND kind IN ('agent_born', 'agent_stillborn', 'child_proposed') ORDER BY seq
"""
_STARTS = """
SELECT seq, at, kind, action, body FROM events
WHERE seq <= ? AND kind = 'action_started' AND json_extract(body, '$.parents[0]') IS NOT NULL ORDER BY seq
"""


@dataclass(frozen=True, slots=True)
class Gain:
    """The mean over children of their own rate minus the best of their parents', with its 95 % bootstrap interval."""

    mean: float
    low: float | None
    """None with fewer than two children."""
    high: float | None


@dataclass(slots=True)
class StageTime:
    """What one stage of vetting took."""

    runs: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class OperatorLine:
    """One operator."""

    operator: str
    tried: int = 0
    """Expansions that were started, each once."""
    born: int = 0
    waiting: int = 0
    """Children that wait for a person."""
    stillborn: dict[str, int] = field(default_factory=dict)
    """By the stage that they failed at."""
    aims: dict[str, int] = field(default_factory=dict)
    """Expansions by what they aimed at, where the operator has aims."""
    gains: list[float] = field(default_factory=list)
    """Of each judged child: one with ``JUDGED`` verdicts (or as many as there are tasks) whose parents have any."""
    spend: Usage = field(default_factory=Usage)
    """Model calls of all its expansions, over all their tries."""
    seconds: float = 0.0
    """Wall time of those that ended."""
    vetting: dict[str, StageTime] = field(default_factory=dict)
    """By stage, in the order of the stages."""

    @property
    def unfinished(self) -> int:
        """Expansions under way, and given up."""
        return self.tried - self.born - self.waiting - sum(self.stillborn.values())

    @property
    def judged(self) -> int:
        """Children that are compared with their parents."""
        return len(self.gains)

    @property
    def better(self) -> int:
        """Of those: with a higher own rate than the best of their parents."""
        return sum(gain > 0 for gain in self.gains)

    @property
    def gain(self) -> Gain | None:
        """None without a judged child."""
        if not self.gains:
            return None
        mean = sum(self.gains) / len(self.gains)
        if len(self.gains) < 2:
            return Gain(mean, None, None)
        return Gain(mean, *_interval(tuple(self.gains)))


@lru_cache(maxsize=64)
def _interval(gains: tuple[float, ...]) -> tuple[float, float]:
    """Kept, as one report asks for it in several places."""
    return paired_bootstrap(gains)


def operators_of(run: Run, *, timed: bool = True) -> Sequence[OperatorLine]:
    """A line for each operator of the run, in the order of their first expansions; as the run's tree stands.

    Args:
        run: the run.
        timed: whether the traces are read that say what each stage of vetting took.

    Raises:
        ArchiveCorrupt: an event is damaged, or with ``timed`` a trace is damaged or missing.
    """
    tree = run.tree
    lines: dict[str, OperatorLine] = {}
    of: dict[ActionId, OperatorLine] = {}
    for row in run.store.query(_STARTS, (tree.seq,)):
        event = run.store.decoded(row).event
        if not isinstance(event, ActionStarted) or not isinstance(event.action, Expand) or event.id in of:
            continue
        what = event.action
        line = of[event.id] = lines.setdefault(what.operator, OperatorLine(what.operator))
        line.tried += 1
        line.spend += tree.spend_of(event.id)
        if what.aim:
            line.aims[what.aim] = line.aims.get(what.aim, 0) + 1
    for row in run.store.query(_ENDS, (tree.seq,)):
        match run.store.decoded(row).event:
            case AgentBorn(action, child, cost=cost) if action in of:
                of[action].born += 1
                _judge(of[action], tree, child)
                _took(of[action], run, cost, timed)
            case AgentStillborn(action, outcome) if action in of:
                dead = of[action].stillborn
                dead[outcome.stage] = dead.get(outcome.stage, 0) + 1
                _took(of[action], run, outcome.cost, timed)
            case ChildProposed(action, outcome) if action in of and action in tree.waiting:
                of[action].waiting += 1
                _took(of[action], run, outcome.cost, timed)
    for line in lines.values():
        line.vetting = _run(line.vetting)
    return list(lines.values())


def stage_times(run: Run, cost: Cost) -> Mapping[str, StageTime]:
    """What each stage of vetting took in one expansion; nothing where that was not noted.

    Raises:
        ArchiveCorrupt: the trace is missing or damaged.
    """
    return _run(_stages(run, cost))


def _stages(run: Run, cost: Cost) -> dict[str, StageTime]:
    """Skipped ones too, without a run: all children pass the same stages, so that the first names them in order."""
    found: dict[str, StageTime] = {}
    if VETTING in cost.traces:
        for ran in json.loads(run.traces.get(cost.traces[VETTING]))["stages"]:
            stage = found.setdefault(ran["stage"], StageTime())
            if ran["result"] != "skipped":
                stage.runs += 1
                stage.seconds += ran["seconds"]
    return found


def _run(stages: Mapping[str, StageTime]) -> dict[str, StageTime]:
    return {name: took for name, took in stages.items() if took.runs}


def _took(line: OperatorLine, run: Run, cost: Cost, timed: bool) -> None:
    line.seconds += cost.seconds
    for name, took in _stages(run, cost).items() if timed else ():
        stage = line.vetting.setdefault(name, StageTime())
        stage.runs += took.runs
        stage.seconds += took.seconds


def _judge(line: OperatorLine, tree: Tree, child: AgentId) -> None:
    own = tree.own(child)
    parents = [tree.own(parent) for parent in tree.agents[child].parents]
    rates = [tally.rate for tally in parents if tally.n]
    if own.n >= max(1, min(JUDGED, len(tree.tasks))) and rates:
        line.gains.append(own.rate - max(rates))
