"""A real search in which every agent but one is hostile, and what it did to the host.

The agents are members of a real archive, performed by the real loop with real sandboxes, five at once; one of
the five is always an honest agent, which must not notice the others. Temporary files of the whole search lie
in a folder of their own, so that what is left behind can be seen.
"""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from dgm import assemble
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    Event,
    Recorded,
    TaskGraded,
)
from dgm.archive.run import Run
from dgm.archive.snapshots import from_folder, write_folder
from dgm.archive.tree import Tree
from dgm.config import BudgetSettings, LimitSettings, Settings
from dgm.domain import SEED, Action, ActionId, AgentId, Born, Cost, Entry, Evaluate, Expand, Snapshot
from dgm.search.prepare import RunController
from dgm.search.loop import Search
from tests.docker.hostile import suite

HERE = Path(__file__).parent
ACTS = HERE / "acts"
WORKERS = 5
SECRET = "SECRET_OF_THE_HOST"
"""An environment variable of the host: no sandbox may show it."""


def acts() -> Sequence[str]:
    """All hostile acts; those that must wait for a time limit first."""
    slow = ("improve_without_end", "solve_kill_the_forwarder", "grading_hang", "solve_thousand_calls")
    return sorted((file.stem for file in ACTS.glob("*_*.py")), key=lambda name: (name not in slow, name))


def agent(act: str, mark: str, outside: Path) -> Snapshot:
    """The source of the agent that does it."""
    command = ["python3", "agent.py", mark, str(outside)]
    toml = f'[agent]\ncommand = {command}\ncheck = {[*command, "--check"]}\neditable = ["**"]\n'
    files = {**from_folder(HERE / "agent"), "act.py": Entry((ACTS / f"{act}.py").read_bytes())}
    return {**files, "agent.toml": Entry(toml.replace("'", '"').encode())}


class Script:
    """A policy that wants each hostile act once and, as long as one is under way, an honest evaluation beside it."""

    name = "script"
    keeps_state = False

    def __init__(self, steps: Sequence[Action]) -> None:
        self._steps = list(steps)
        self._attempts = 0

    def next(self, tree: Tree, rng: Random) -> Action | None:
        pending = [tree.pending[action] for action in tree.pending]
        honest = [what for what in pending if isinstance(what, Evaluate) and what.agent == SEED]
        if not honest and (self._steps or pending):
            self._attempts += 1
            return Evaluate(SEED, suite.TASK, self._attempts - 1)
        return self._steps.pop(0) if self._steps else None

    def observe(self, event: Recorded) -> None:
        pass

    def best(self, tree: Tree) -> AgentId:
        return SEED


@dataclass(frozen=True)
class Ended:
    """How one action ended."""

    how: str
    """A verdict, ``stillborn`` or ``born``, or ``lost``."""
    reason: str
    cost: Cost
    action: ActionId
    began: float
    ended: float
    born: AgentBorn | None = None


@dataclass
class Played:
    """What came of it all."""

    run: Run
    outside: Path
    scratch: Path
    mark: str
    sources: dict[str, Snapshot] = field(default_factory=dict)
    """Act → the source of its agent, as it was put into the archive."""
    hostile: dict[str, list[Ended]] = field(default_factory=dict)
    honest: list[Ended] = field(default_factory=list)
    sandboxes: set[str] = field(default_factory=set)
    """Names of the sandboxes that were seen while they stood (bubblewrap's; they name control groups too)."""
    grown_mb: float = 0.0
    """By how much the host's process grew at its peak."""

    def trace(self, act: str, name: str) -> bytes:
        """What an act left."""
        traces = self.hostile[act][-1].cost.traces
        return self.run.traces.get(traces[name]) if name in traces else b""


def play(sandbox: str, folder: Path, chosen: Sequence[str] | None = None) -> Played:
    """Lets the acts happen in an engine's sandboxes."""
    outside, scratch = folder / "outside", folder / "scratch"
    for made in (outside, scratch):
        made.mkdir(parents=True)
    (outside / "kept.txt").write_text("untouched\n")
    mark = f"mark-{os.getpid()}-{sandbox}"
    with _temporary_files_in(scratch):
        write_folder(agent("honest", mark, outside), folder / "seed")
        settings = _settings(sandbox, folder)
        parts = assemble.parts_of(settings)
        played = Played(assemble.create(folder / "run", settings, parts), outside, scratch, mark)
        asyncio.run(_play(played, settings, parts, chosen or acts()))
    _read(played)
    return played


def _settings(sandbox: str, folder: Path) -> Settings:
    return Settings(
        benchmark=str(suite.make(folder / "suite")),
        model="offline",
        sandbox=sandbox,
        seed_agent=str(folder / "seed"),
        workers=WORKERS,
        budget=BudgetSettings(evaluations=None),
        limits=LimitSettings(improve_s=6.0, check_s=5.0, tries=2),
    )


async def _play(played: Played, settings: Settings, parts: assemble.RunParts, chosen: Sequence[str]) -> None:
    run = played.run
    script = Script([_step(run, act, played) for act in chosen])
    peak = _peak_mb(reset=True)
    watcher = asyncio.create_task(_watch(played))
    async with assemble.open_worker(run, settings, parts) as worker:
        await Search(RunController(run, settings), script, worker, settings).go()
    watcher.cancel()
    played.grown_mb = _peak_mb() - peak


async def _watch(played: Played) -> None:
    while True:
        played.sandboxes.update(path.name for path in played.scratch.glob("dgm-sandboxes-*/dgm-*"))
        await asyncio.sleep(0.1)


def _step(run: Run, act: str, played: Played) -> Action:
    played.sources[act] = source = agent(act, played.mark, played.outside)
    born = run.birth(Born((), "test", run.repository.commit(source, ()), act), ActionId(0))
    run.append(born)
    return Expand((born.id,), "self-edit") if act.startswith("improve_") else Evaluate(born.id, suite.TASK)


def _read(played: Played) -> None:
    """Sorts the log's events by act."""
    names = {agent.id: agent.rationale for agent in played.run.tree.agents if agent.operator == "test"}
    started: dict[ActionId, tuple[str | None, float]] = {}
    for recorded in played.run.store.read():
        event = recorded.event
        if isinstance(event, ActionStarted):
            what = event.action
            who = what.agent if isinstance(what, Evaluate) else what.parents[0]
            started[event.id] = names.get(who), recorded.at
            continue
        end = _end(event)
        if end:
            action = event.action
            act, since = started[action]
            ended = Ended(*end, action, since, recorded.at, event if isinstance(event, AgentBorn) else None)
            (played.hostile.setdefault(act, []) if act else played.honest).append(ended)


def _end(event: Event) -> tuple[str, str, Cost] | None:
    match event:
        case TaskGraded(outcome=outcome):
            return outcome.verdict.value, outcome.reason, outcome.cost
        case AgentStillborn(outcome=outcome):
            return "stillborn", f"{outcome.stage}: {outcome.reason}", outcome.cost
        case AgentBorn(outcome=Born(operator="self-edit")):
            return "born", "a child with these files as plain data", event.outcome.cost
        case ActionLost():
            return "lost", event.reason, Cost()
    return None


@contextlib.contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    os.environ[SECRET] = SECRET
    try:
        yield
    finally:
        tempfile.tempdir = before
        del os.environ[SECRET]


def _peak_mb(*, reset: bool = False) -> float:
    """The most memory that this process has had since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) / 1024
