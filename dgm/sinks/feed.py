"""A run's log as points for trackers: curves over its evaluations, its parameters, and its end.

A point is a function of the log up to its event alone, and so is its number. So a sink that was killed continues after
the last point that the other side has, and no point is there twice.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from dgm.analysis.accounts import gain_of
from dgm.analysis.agents import best_in
from dgm.archive.events import Recorded, TaskGraded, VerdictWithdrawn
from dgm.archive.run import Run, format_assignments, state
from dgm.archive.tree import Tree
from dgm.domain import SEED, AgentId, Tally, Verdict
from dgm.errors import ArchiveCorrupt, UserError
from dgm.exports.git import write_patch
from dgm.stats import lower_bound

_NAME = re.compile(r"[^A-Za-z0-9_. -]|^\.")
NAME_CHARS = 200
"""Maximum length of a name; MLflow refuses those above 250, with what stands before them."""
_TOKEN = re.compile(r"(?<=://)[^/\s\"]*@")
"""Name and password in an address, such as that of a git repository."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
FEW_AGENTS = 32
PARAMETER_CHARS = 500
"""Maximum length of a parameter's value; MLflow refuses longer ones."""


@dataclass(frozen=True, slots=True)
class Point:
    """The state of a run after a graded evaluation."""

    seq: int
    """Number of the event."""
    at: float
    """Unix time."""
    step: int
    """Graded evaluations until then, withdrawn ones included, from 1."""
    values: Mapping[str, float]
    """Name, such as ``best/lower_bound`` → value."""


@dataclass(frozen=True, slots=True)
class RunParameters:
    """The identity and the settings of a run, for a tracker; settings hold no secrets."""

    id: str
    """Unique among all runs."""
    run: str
    values: Mapping[str, str]
    """Dotted name of a setting → its value; empty settings are left out."""


def read_parameters(run: Run) -> RunParameters:
    """Return the parameters of a run that is open.

    Raises:
        ArchiveCorrupt: its id is none that dgm gives; it names files and queries, and a stranger may have written it.
    """
    if not _ID.fullmatch(str(run.config["id"])):
        raise ArchiveCorrupt(f"{run.folder}: its id is not one that dgm gives; restore run.json from a copy")
    table = {**run.settings(), "sandbox": run.sandbox(), "versions": run.config.get("versions", {})}
    pairs = (text.partition(" = ")[::2] for text in format_assignments(table))
    values = {
        clean_name(name): _TOKEN.sub("…@", value)[:PARAMETER_CHARS]
        for name, value in pairs
        # The path of a provider's address may be a token, too.
        if value not in ("null", "{}", "[]") and not name.endswith(".base_url")
    }
    return RunParameters(str(run.config["id"]), run.name, values)


def summarise(run: Run, feed: "Feed") -> Mapping[str, str | float]:
    """Return the state of a run after the last event of its feed, as rows for a tracker."""
    tree, tally = feed.tree, feed.tree.own(feed.best)
    return {
        "state": tree.stop_reason or state(run),
        "best agent": feed.best,
        "best rate": tally.rate,
        "best lower bound": lower_bound(tally),
        "best evaluations": tally.n,
        "agents": len(tree.agents),
        "evaluations": tree.evaluations,
        "usd": tree.spend.usd,
        "tokens": tree.spend.tokens,
        "seconds": tree.wall_seconds,
    }


@contextmanager
def best_patch(run: Run, feed: "Feed") -> Iterator[Path | None]:
    """Lend a file with the changes of the best agent's lineage; None if there are none, or no git."""
    agent = run.tree.agents[feed.best]
    with TemporaryDirectory(prefix="dgm-") as folder:
        path = Path(folder) / f"agent-{agent.id}.patch"
        if agent.parents:
            with suppress(UserError):
                write_patch(run, agent, path)
        yield path if path.exists() else None


class Feed:
    """A fold of a run's log, event by event."""

    def __init__(self, run: Run) -> None:
        """Begin before the first event of a run that is open for reading."""
        self.run = run
        self.tree = Tree()
        self.last: Recorded | None = None
        """The event that was folded last."""
        self._step = 0
        self._best, self._best_of = SEED, (0, 0, 0)
        self._gains: dict[str, dict[AgentId, float]] = {}
        self._is_graded = False

    def advance(self) -> Iterator[Recorded]:
        """Fold the events that are new, and yield each when it is folded."""
        for recorded in self.run.store.read(self.tree.seq):
            self.fold(recorded)
            yield recorded

    def fold(self, recorded: Recorded) -> None:
        """Fold the next event."""
        self.tree.apply(recorded)
        self.last = recorded
        self._is_graded = False
        match recorded.event:
            case TaskGraded(outcome=outcome):
                self._is_graded = outcome.verdict is not Verdict.INVALID
                self._step += self._is_graded
                self._compare_family(outcome.agent)
            case VerdictWithdrawn(what=what):
                self._compare_family(what.agent)
            case _:
                pass

    @property
    def step(self) -> int:
        """Number of graded evaluations so far, withdrawn ones included."""
        return self._step

    @property
    def is_best_due(self) -> bool:
        """True if the last event is a graded evaluation after which the best agent is computed.

        That takes a second with 1,000 agents. It happens after every evaluation with up to ``FEW_AGENTS`` agents, and
        less often with more.
        """
        every = 1 << (len(self.tree.agents) // FEW_AGENTS).bit_length()
        return self._is_graded and self._step % every == 0

    @property
    def best(self) -> AgentId:
        """The agent that the policy recommends after the last event; the seed if there is no evaluation."""
        moment = self._step, self.tree.withdrawn, len(self.tree.agents)
        if self._best_of != moment and self._step:
            self._best, self._best_of = best_in(self.run, self.tree), moment
        return self._best

    def point(self) -> Point | None:
        """Return the point of the last event; None if it is no graded evaluation."""
        if not self._is_graded or self.last is None:
            return None
        tree, spend = self.tree, self.tree.spend
        resolved = int(tree.own_resolved.sum())
        best: dict[str, float] = {}
        if self.is_best_due:
            tally = tree.own(self.best)
            best = {"best/agent": self.best, "best/rate": tally.rate, "best/lower_bound": lower_bound(tally)}
        stillborn: Counter[str] = Counter()
        for stage, times in tree.stillborn.items():
            stillborn[f"stillborn/{clean_name(stage)}"] += times
        values = {
            **best,
            "agents": len(tree.agents),
            "evaluations/resolved": resolved,
            "evaluations/unresolved": tree.evaluations - resolved,
            "evaluations/invalid": tree.invalid,
            "spend/usd": spend.usd,
            "spend/tokens": spend.tokens,
            "seconds": tree.wall_seconds,
            **stillborn,
            **{
                f"gain/{name}": sum(gains.values()) / len(gains)
                for name, gains in self._gains.items()
                if gains
            },
        }
        numbers = {name: float(value) for name, value in values.items()}
        return Point(self.last.seq, self.last.at, self._step, numbers)

    def _compare_family(self, agent: AgentId) -> None:
        """Compare an agent whose verdicts changed with its parents, and its children with it."""
        for child in (agent, *self.tree.children(agent)):
            gains = self._gains.setdefault(clean_name(self.tree.agents[child].operator), {})
            gain = gain_of(self.tree, child, self._tally)
            if gain is None:
                gains.pop(child, None)
            else:
                gains[child] = gain

    def _tally(self, agent: AgentId) -> Tally:
        n = self.tree.own(agent).n
        resolved = round(float(self.tree.comparable[0][agent]))
        return Tally(resolved, n - resolved)


def clean_name(name: str) -> str:
    """Return a name that every tracker accepts."""
    return _NAME.sub("_", name)[:NAME_CHARS] or "_"
