"""Replays of a run for programs that wait for their result (``dgm replay``).

``dgm.replay`` has the same for programs with a loop of their own.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

from dgm import replay
from dgm.api.arguments import assignments_of, check_amount, model_of, path_of
from dgm.archive.finding import check_unpacked
from dgm.archive.run import Run
from dgm.blocking import ProgramWatcher, block, in_python
from dgm.domain import AgentId, TaskId
from dgm.models.scripted import Script
from dgm.sandboxes.engine_address import use_engine
from dgm.sessions.live_settings import choose_live_settings

T = TypeVar("T")


class LiveArguments(TypedDict, total=False):
    """Arguments of the live replays; each may be left out."""

    into: str | Path | None
    """Folder to record it in; one in the run's unless it is given."""
    max_usd: float | None
    """Limit on the cost of all its sessions in USD."""
    settings: Mapping[str, Any] | None
    """Such as ``models.*``."""
    sandbox: str | None
    """The sandbox of the run is used unless another is given."""
    engine: str | Sequence[str] | None
    """Address of the Docker engine, such as ``ssh://user@host``, or several; else as the environment says."""
    allow_paid: bool
    """If true, the model ``auto`` may become one that costs money."""


@dataclass(frozen=True, slots=True)
class RunReplay:
    """Repeats parts of a run; blocks. Nothing is written into the run unless a live replay is recorded in it."""

    run: Run = field(repr=False)

    def decisions(self) -> replay.Decisions:
        """Ask the policy again every question that the run asked; needs no sandbox. As ``dgm.replay.decisions``."""
        with in_python():
            return replay.decisions(self.run)

    def lineage(
        self, agent: int, *, sandbox: str | None = None, engine: str | Sequence[str] | None = None
    ) -> Sequence[replay.StepAgain]:
        """Perform every expansion from the seed to an agent again, on recorded replies. As ``dgm.replay.lineage``.

        Args:
            agent: its number.
            sandbox: as there.
            engine: address of the Docker engine, or several; None: the environment's.
        """
        return _block_with(engine, lambda _: replay.lineage(self.run, AgentId(agent), sandbox))

    def evaluations(
        self,
        agents: Sequence[int] | None = None,
        task: str | None = None,
        how: replay.How | None = None,
        *,
        sandbox: str | None = None,
        engine: str | Sequence[str] | None = None,
    ) -> Sequence[replay.EvaluationAgain]:
        """Grade recorded patches again, or let agents work again. As ``dgm.replay.evaluations``.

        Args:
            agents: whose evaluations, by number; None: all.
            task: only of this task.
            how: as there.
            sandbox: as there.
            engine: address of the Docker engine, or several; None: the environment's.
        """
        chosen, named = _numbers(agents), None if task is None else TaskId(task)
        return _block_with(engine, lambda _: replay.evaluations(self.run, chosen, named, how, sandbox))

    def live_lineage(
        self, agent: int, model: str | Script, **given: Unpack[LiveArguments]
    ) -> replay.LiveLineage:
        """Perform every expansion from the seed to an agent again by a model, for real, and compare.

        Args:
            agent: its number.
            model: its name, or as with ``evolve``.
            given: see ``LiveArguments``.

        Raises:
            UserError: what is wrong, before anything is spent.
            Infrastructure: a sandbox or the model failed.
        """
        return _block_with(
            given.get("engine"), lambda session: self._live_lineage(session, agent, model, given)
        )

    def live_evaluations(
        self,
        model: str | Script,
        agents: Sequence[int] | None = None,
        task: str | None = None,
        *,
        benchmark: str | Path | None = None,
        **given: Unpack[LiveArguments],
    ) -> replay.LiveEvaluations:
        """Let agents work on their tasks again by a model, for real, and compare.

        Args:
            model: its name, or as with ``evolve``.
            agents: their numbers; None: all that were evaluated.
            task: only on this task.
            benchmark: another suite: its search split, the seed and the agents.
            given: see ``LiveArguments``.

        Raises:
            UserError: what is wrong, before anything is spent.
            Infrastructure: a sandbox or the model failed.
        """
        chosen, named = _numbers(agents), None if task is None else TaskId(task)
        where = None if benchmark is None else str(benchmark)

        async def perform(session: ProgramWatcher) -> replay.LiveEvaluations:
            live = self._live(session, model, given, where)
            return await replay.live_evaluations(self.run, live, chosen, named)

        return _block_with(given.get("engine"), perform)

    async def _live_lineage(
        self, session: ProgramWatcher, agent: int, model: str | Script, given: LiveArguments
    ) -> replay.LiveLineage:
        return await replay.live_lineage(self.run, AgentId(agent), self._live(session, model, given))

    def _live(
        self, session: ProgramWatcher, model: str | Script, given: LiveArguments, benchmark: str | None = None
    ) -> replay.Live:
        session.allow_paid = given.get("allow_paid", False)
        check_amount("max_usd", given.get("max_usd"))
        into = path_of(given.get("into"))
        if into is None:
            check_unpacked(self.run.folder)
        own = {"sandbox": given.get("sandbox")}
        chosen = assignments_of(given.get("settings"))
        settings = choose_live_settings(self.run, str(model_of(model)), benchmark, chosen, own, session)
        return replay.Live(settings, into, given.get("max_usd"))


def _block_with(engine: str | Sequence[str] | None, work: Callable[[ProgramWatcher], Awaitable[T]]) -> T:
    async def perform(session: ProgramWatcher) -> T:
        with use_engine(engine):
            return await work(session)

    return block(perform, None)


def _numbers(agents: Sequence[int] | None) -> Sequence[AgentId] | None:
    return None if agents is None else [AgentId(agent) for agent in agents]
