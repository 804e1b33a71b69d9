"""Evaluations of agents, and of prediction files, from a program (``dgm evaluate``)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, Unpack

from dgm.analysis.budgets import Ending
from dgm.api.agents import RunAgent
from dgm.api.arguments import assignments_of, check_amount, model_of, name_of, path_of
from dgm.archive.finding import check_unpacked
from dgm.archive.run import Run
from dgm.blocking import OnEvent, ProgramWatcher, block, in_python
from dgm.domain import Split, Tally
from dgm.errors import UserError
from dgm.models.scripted import Script
from dgm.protocols import Benchmark
from dgm.sandboxes.engine_address import use_engine
from dgm.sessions import evaluation
from dgm.sessions.predictions import GradingRequest, prepare_grading
from dgm.show.evaluate_rows import EvaluationReport, report_record
from dgm.simulate import check_performed

MOST_ATTEMPTS = 100

Contestants = RunAgent | str | Path | Sequence[RunAgent | str | Path]
"""Agents of one run, and folders or git repositories of others."""


class EvaluateArguments(TypedDict, total=False):
    """Arguments of ``evaluate`` and ``evaluate_async``; each may be left out."""

    benchmark: str | Path | Benchmark | None
    """A name, a folder or an object; the run's unless it is given, the starter suite without a run."""
    split: str
    """``holdout`` unless it is given, ``search`` or another."""
    tasks: Sequence[str]
    """Only these tasks of the split."""
    attempts: int
    """Times that each task is tried, from 1 to 100; 1 unless it is given."""
    model: str | Script | None
    """Another one than the run's."""
    max_usd: float | None
    """Limit in USD, earlier sessions included; None: the last one given, or none."""
    workers: int | None
    """Tasks at once, from 1 to 4,096."""
    sandbox: str | None
    """``auto``, ``docker`` or ``bubblewrap``; as in the run unless it is given."""
    engine: str | Sequence[str] | None
    """Address of the Docker engine, such as ``ssh://user@host``, or several; else as the environment says."""
    into: str | Path | None
    """Folder to record it in; one in the run's unless it is given."""
    settings: Mapping[str, Any] | None
    """``models.*``, ``providers.*``, ``limits.*``, ``benchmarks.*`` or ``grading.*``."""
    allow_paid: bool
    """If true, ``model="auto"`` may choose a model that costs money."""


class GradeArguments(TypedDict, total=False):
    """Arguments of ``grade_predictions``; each may be left out."""

    split: str | None
    """Only predictions on its tasks."""
    tasks: Sequence[str]
    """Only predictions on these tasks."""
    workers: int | None
    sandbox: str | None
    engine: str | Sequence[str] | None
    """Address of the Docker engine, such as ``ssh://user@host``, or several; else as the environment says."""
    into: str | Path | None
    """Folder to record it in; one of its own for these predictions unless it is given."""
    settings: Mapping[str, Any] | None
    """``benchmarks.*``, ``grading.*`` or ``limits.*``."""


@dataclass(frozen=True, slots=True)
class EvaluationView:
    """The results of an evaluation, earlier sessions included; ``dgm.open(folder)`` reads each of them."""

    found: EvaluationReport = field(repr=False)
    record: Mapping[str, Any] = field(repr=False)
    """The document that ``dgm evaluate --json`` prints."""

    @property
    def folder(self) -> Path:
        """Where it is recorded."""
        return self.found.folder

    @property
    def ending(self) -> Ending:
        """The reason for which this session ended, and a line for people."""
        return self.found.ended

    @property
    def missing(self) -> int:
        """Number of evaluations that are left; the same call goes on with them."""
        return sum(result.missing for result in self.found.results)

    @property
    def tallies(self) -> Mapping[str, Tally]:
        """Name of an agent → its first attempts, resolved and unresolved."""
        return {name: result.tally for name, result in zip(self.found.names, self.found.results, strict=True)}


def evaluate(
    agents: Contestants, *, on_event: OnEvent | None = None, **given: Unpack[EvaluateArguments]
) -> EvaluationView:
    """Let agents work on every task of a split, and return how well they do; blocks, and ends on Ctrl-C, as ``evolve``.

    It is recorded in a folder of its own; the same call goes on where it ended and pays for nothing twice.

    Args:
        agents: one or several: agents of one run (``run.best``), and folders or git URLs of others.
        on_event: is called with each event of the evaluation, model calls left out, once it is on disk.
        given: see ``EvaluateArguments``.

    Raises:
        UserError: what is wrong, before anything is spent.
        ArchiveBusy: another process is writing this evaluation.
        Infrastructure: a sandbox or a model failed before the first task.
    """
    return block(lambda session: _evaluate(session, agents, **given), on_event)


async def evaluate_async(
    agents: Contestants, *, on_event: OnEvent | None = None, **given: Unpack[EvaluateArguments]
) -> EvaluationView:
    """Let agents work on every task of a split. As ``evaluate``, without Ctrl-C."""
    with in_python():
        return await _evaluate(ProgramWatcher(on_event), agents, **given)


def grade_predictions(
    file: str | Path,
    benchmark: str | Path | Benchmark,
    *,
    on_event: OnEvent | None = None,
    **given: Unpack[GradeArguments],
) -> EvaluationView:
    """Grade the patches of a file in SWE-bench's format; no agent works and no model is called. Blocks.

    What was graded before is not graded again. The document ``record["report"]`` has the form of SWE-bench's harness.

    Args:
        file: ``.jsonl`` or ``.json``, with one model's patches.
        benchmark: whose tasks they are on.
        on_event: is called with each event of the grading, once it is on disk.
        given: see ``GradeArguments``.

    Raises:
        UserError: a prediction or another argument is wrong.
        ArchiveBusy: another process is writing this evaluation.
        Infrastructure: the sandboxes' engine failed.
    """
    return block(lambda session: _grade(session, Path(file), benchmark, **given), on_event)


async def _evaluate(
    session: ProgramWatcher, agents: Contestants, **given: Unpack[EvaluateArguments]
) -> EvaluationView:
    with choose_conditions(session, **given) as chosen:
        named = [agents] if isinstance(agents, RunAgent | str | Path) else list(agents)
        run = _run_of(named)
        if run is not None:
            check_performed(run)
            if chosen.into is None:
                check_unpacked(run.folder)
        contestants = [_contestant_of(each) for each in named]
        request = evaluation.make_request(run, contestants, chosen, session)
        prepared = await evaluation.prepare(request, session)
        with prepared.made:
            found = prepared.report(await prepared.perform(session))
    return EvaluationView(found, report_record(found))


@contextmanager
def choose_conditions(  # noqa: PLR0913  (all have their usual value)
    session: ProgramWatcher,
    *,
    benchmark: str | Path | Benchmark | None = None,
    split: str = Split.HOLDOUT.value,
    tasks: Sequence[str] = (),
    attempts: int = 1,
    model: str | Script | None = None,
    max_usd: float | None = None,
    workers: int | None = None,
    sandbox: str | None = None,
    engine: str | Sequence[str] | None = None,
    into: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    allow_paid: bool = False,
) -> Iterator[evaluation.EvaluationChoice]:
    """Check the arguments of an evaluation, and use its engine until the context ends.

    Raises:
        UserError: an argument is wrong.
    """
    session.allow_paid = allow_paid
    check_amount("max_usd", max_usd)
    if not 1 <= attempts <= MOST_ATTEMPTS:
        raise UserError(f"attempts {attempts}: must be from 1 to {MOST_ATTEMPTS}")
    with use_engine(engine):
        yield evaluation.EvaluationChoice(
            benchmark=name_of("benchmarks", benchmark),
            split=_split_of(split),
            tasks=tasks,
            attempts=attempts,
            model=model_of(model),
            max_usd=max_usd,
            workers=workers,
            sandbox=sandbox,
            into=path_of(into),
            assignments=assignments_of(settings),
        )


async def _grade(  # noqa: PLR0913  (all have their usual value)
    session: ProgramWatcher,
    file: Path,
    benchmark: str | Path | Benchmark,
    *,
    split: str | None = None,
    tasks: Sequence[str] = (),
    workers: int | None = None,
    sandbox: str | None = None,
    engine: str | Sequence[str] | None = None,
    into: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> EvaluationView:
    request = GradingRequest(
        file,
        name_of("benchmarks", benchmark) or "",
        split=None if split is None else _split_of(split).value,
        only=tasks,
        into=path_of(into),
        workers=workers,
        sandbox=sandbox,
        assignments=assignments_of(settings),
    )
    with use_engine(engine):
        prepared = await prepare_grading(request)
        with prepared.session.made:
            found = prepared.session.report(await prepared.session.perform(session))
    return EvaluationView(found, {**report_record(found), "report": prepared.write_report(found)})


def _run_of(agents: Sequence[RunAgent | str | Path]) -> Run | None:
    """Return the run of those agents that belong to one.

    Raises:
        UserError: there are no agents, or they belong to several runs.
    """
    if not agents:
        raise UserError("say who is evaluated: agents of a run, or folders of agents")
    runs = {each.run.folder.resolve(): each.run for each in agents if isinstance(each, RunAgent)}
    if len(runs) > 1:
        names = " and ".join(run.name for run in runs.values())
        raise UserError(f"these agents belong to {names}; evaluate those of one run at a time")
    return next(iter(runs.values()), None)


def _contestant_of(agent: RunAgent | str | Path) -> evaluation.Contestant:
    if isinstance(agent, RunAgent):
        return evaluation.contestant_of(agent.run, agent.agent)
    return evaluation.read_contestant(str(agent))


def _split_of(name: str) -> Split:
    try:
        return Split(name)
    except ValueError as error:
        raise UserError(f"split {name!r}: there are {', '.join(each.value for each in Split)}") from error
