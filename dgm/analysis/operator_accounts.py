"""Results and cost of each operator's expansions: births, stillbirths by stage, gains, spend, time of vetting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from dgm.archive.events import ActionStarted, AgentBorn, AgentStillborn, ChildProposed
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Cost, Expand, Usage
from dgm.stats import JUDGED, paired_bootstrap

VETTING = "vetting"
"""Name of the trace of an expansion that records the time of each stage."""


@dataclass(frozen=True, slots=True)
class MeanGain:
    """The mean gain of children with its 95 % bootstrap interval.

    A child's gain is its own rate minus the best rate of its parents.
    """

    mean: float
    low: float | None
    """None if there are fewer than two children."""
    high: float | None


@dataclass(slots=True)
class StageTime:
    """The time of one stage of vetting."""

    runs: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class OperatorLine:
    """The results and cost of one operator."""

    operator: str
    tried: int = 0
    """Started expansions, each counted once."""
    born: int = 0
    waiting: int = 0
    """Children that wait for a person."""
    stillborn: dict[str, int] = field(default_factory=dict)
    """Stillborn children by the stage that failed."""
    aims: dict[str, int] = field(default_factory=dict)
    """Expansions by aim, if the operator has aims."""
    gains: list[float] = field(default_factory=list)
    """Gain of each judged child.

    A child is judged if it has ``JUDGED`` verdicts (or as many as there are tasks) and its parents have any.
    """
    spend: Usage = field(default_factory=Usage)
    """Usage of the model calls of all its expansions, over all their tries."""
    seconds: float = 0.0
    """Wall time of ended expansions, in seconds."""
    vetting: dict[str, StageTime] = field(default_factory=dict)
    """Vetting times by stage, in the order of the stages."""

    @property
    def unfinished(self) -> int:
        """Expansions that are in flight or given up."""
        return self.tried - self.born - self.waiting - sum(self.stillborn.values())

    @property
    def judged(self) -> int:
        """Children that are compared with their parents."""
        return len(self.gains)

    @property
    def better(self) -> int:
        """Judged children with a higher own rate than the best of their parents."""
        return sum(gain > 0 for gain in self.gains)

    @property
    def gain(self) -> MeanGain | None:
        """The mean gain; None without a judged child."""
        if not self.gains:
            return None
        mean = sum(self.gains) / len(self.gains)
        if len(self.gains) < 2:
            return MeanGain(mean, None, None)
        return MeanGain(mean, *_bootstrap_interval(tuple(self.gains)))


@lru_cache(maxsize=64)
def _bootstrap_interval(gains: tuple[float, ...]) -> tuple[float, float]:
    """Return the bootstrap interval; cached because one report asks for it in several places."""
    return paired_bootstrap(gains)


def operators_of(run: Run, *, timed: bool = True) -> Sequence[OperatorLine]:
    """Return a line for each operator of the run, ordered by first expansion, as of the run's tree.

    Args:
        run: the run.
        timed: whether to read the traces that record the time of each stage of vetting.

    Raises:
        ArchiveCorrupt: an event is damaged, or with ``timed`` a trace is damaged or missing.
    """
    tree = run.tree
    lines: dict[str, OperatorLine] = {}
    of: dict[ActionId, OperatorLine] = {}
    for event in run.store.events(ActionStarted, until=tree.seq):
        what = event.action
        if not isinstance(what, Expand) or event.id in of:
            continue
        line = of[event.id] = lines.setdefault(what.operator, OperatorLine(what.operator))
        line.tried += 1
        line.spend += tree.spend_of(event.id)
        if what.aim:
            line.aims[what.aim] = line.aims.get(what.aim, 0) + 1
    for end in run.store.events(AgentBorn, AgentStillborn, ChildProposed, until=tree.seq):
        match end:
            case AgentBorn(action, child, outcome) if action in of:
                of[action].born += 1
                _add_gain(of[action], tree, child)
                _add_time(of[action], run, outcome.cost, timed)
            case AgentStillborn(action, outcome) if action in of:
                dead = of[action].stillborn
                dead[outcome.stage] = dead.get(outcome.stage, 0) + 1
                _add_time(of[action], run, outcome.cost, timed)
            case ChildProposed(action, outcome) if action in of and action in tree.waiting:
                of[action].waiting += 1
                _add_time(of[action], run, outcome.cost, timed)
    for line in lines.values():
        line.vetting = _drop_unused_stages(line.vetting)
    return list(lines.values())


def stage_times(run: Run, cost: Cost) -> Mapping[str, StageTime]:
    """Return the time of each stage of vetting in one expansion; empty if it was not recorded.

    Raises:
        ArchiveCorrupt: the trace is missing or damaged.
    """
    return _drop_unused_stages(_read_stage_times(run, cost))


def _read_stage_times(run: Run, cost: Cost) -> dict[str, StageTime]:
    """Return the times of all stages in order.

    Skipped stages are included with no run: all children pass the same stages, so the first child fixes the order.
    """
    found: dict[str, StageTime] = {}
    if VETTING in cost.traces:
        with run.traces.reading(cost.traces[VETTING]) as record:
            for ran in record["stages"]:
                stage = found.setdefault(str(ran["stage"]), StageTime())
                if ran["result"] != "skipped":
                    stage.runs += 1
                    stage.seconds += float(ran["seconds"])
    return found


def _drop_unused_stages(stages: Mapping[str, StageTime]) -> dict[str, StageTime]:
    return {name: took for name, took in stages.items() if took.runs}


def _add_time(line: OperatorLine, run: Run, cost: Cost, timed: bool) -> None:
    line.seconds += cost.seconds
    for name, took in _read_stage_times(run, cost).items() if timed else ():
        stage = line.vetting.setdefault(name, StageTime())
        stage.runs += took.runs
        stage.seconds += took.seconds


def _add_gain(line: OperatorLine, tree: Tree, child: AgentId) -> None:
    own = tree.own(child)
    parents = [tree.own(parent) for parent in tree.agents[child].parents]
    rates = [tally.rate for tally in parents if tally.n]
    if own.n >= max(1, min(JUDGED, len(tree.tasks))) and rates:
        line.gains.append(own.rate - max(rates))
