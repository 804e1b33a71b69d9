"""``evaluate``: agents on every task of a benchmark's split, or the patches of a file, outside of a search."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from dgm import assemble
from dgm.analysis.agents import find_agent
from dgm.api.agents import RunAgent
from dgm.api.arguments import (
    SettingValues,
    apply_assignments,
    assignments_of,
    check_amount,
    check_workers,
    model_of,
    name_of,
    path_of,
    split_engine,
)
from dgm.api.evaluation_session import (
    EvaluationSession,
    OpenSearch,
    make_slug,
    open_evaluation,
    select_tasks,
)
from dgm.api.running import run_session
from dgm.api.watcher import OnEvent, Watcher
from dgm.archive.durable import write_durably
from dgm.archive.events import Recorded
from dgm.archive.finding import archive_folders, check_unpacked, find_run, locate_run
from dgm.archive.lock import machine_name
from dgm.archive.run import Run
from dgm.archive.snapshots import tree_id
from dgm.benchmarks.opening import make_paths_absolute
from dgm.config import ConductSettings, Settings
from dgm.domain import Agent, Evaluate, Snapshot, Split, Task, TaskId
from dgm.errors import AgentFault, Hint, UserError
from dgm.evaluation.predictions import (
    SUFFIXES,
    Grader,
    Predictions,
    check_known,
    read_predictions,
    swebench_report,
)
from dgm.evaluation.schedule import EvaluationPlan, EvaluationProgress, Schedule, enter, find_entered
from dgm.launch import check_models_again, name_models
from dgm.meta.contract import read_contract
from dgm.meta.seeds import read_seed
from dgm.models.choose import names_by_role
from dgm.models.scripted import Script
from dgm.paths import seed_names
from dgm.protocols import Benchmark
from dgm.replay.again import choose_sandbox
from dgm.sandboxes.engine_address import use_engine
from dgm.search import start
from dgm.search.loop import LoopHooks, Search
from dgm.search.prepare import RunController
from dgm.search.start import note_checks, require_consent, require_models, settings_of
from dgm.simulation import check_performed
from dgm.views.evaluation import EvaluationView
from dgm.worker.agent_check import rehearse

MAX_ATTEMPTS = 100
SETTABLE = (*start.SETTABLE, "benchmarks", "grading", "conduct")
NO_MODEL = "none"
GRADED = "predictions"
"""Operator of the entry that stands for predictions."""
REPORT = "report.json"
"""SWE-bench's report in the evaluation's folder."""
SplitName = Literal["search", "holdout", "all"]


@dataclass(frozen=True, slots=True)
class Contestant:
    """An agent under evaluation."""

    name: str
    """Name for people."""
    key: str
    """Key of the agent's entry in the evaluation."""
    source: Callable[[], Snapshot]
    vetted: bool = False
    """True if the agent passed vetting at birth or was the seed of a search."""


@dataclass(frozen=True, slots=True)
class EvaluationChoice:
    """The tasks and conditions of an evaluation; None: as in the run, or the default."""

    benchmark: str | None = None
    split: Split | None = Split.HOLDOUT
    """None: all splits."""
    tasks: Sequence[str] = ()
    attempts: int = 1
    model: str | None = None
    max_usd: float | None = None
    workers: int | None = None
    into: Path | None = None
    assignments: Sequence[str] = ()
    """Settings, as ``key=value``."""


ChooseEvaluations = Callable[[Run, EvaluationPlan, EvaluationProgress], Iterable[Evaluate]]


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """The agents and conditions of an evaluation, with its settings resolved."""

    contestants: Sequence[Contestant]
    base: Path
    """Parent of the evaluation's folder, unless the user names another folder."""
    prefix: str
    """Prefix of the folder's name."""
    of: str
    """Id of the run that the agents belong to; empty if they belong to none."""
    settings: Settings
    chosen: EvaluationChoice
    named_model: bool = False
    """True if the folder's name contains the model."""
    pairs: Sequence[tuple[str, TaskId]] | None = None
    """Only these pairs of an agent's key and a task; None: every agent on every task."""
    unchanged: Run | None = None
    """The run whose benchmark this is, unchanged since the run began; None: another, or one that the user named."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further facts that must be the same in all sessions."""
    choose: ChooseEvaluations | None = None
    """Chooses from the plan by the results so far; None: all of it is performed."""

    @property
    def split(self) -> str:
        """Name of the split."""
        return self.chosen.split.value if self.chosen.split else "all"

    def folder(self, benchmark: str) -> Path:
        """Return the evaluation's folder, whether it exists or not; ``benchmark`` is the benchmark's own name."""
        model = [names_by_role(self.settings)["solve"]] if self.named_model else []
        words = [self.prefix, benchmark, self.split, *model]
        return self.chosen.into or self.base / "-".join(map(make_slug, words))


def evaluate(
    *targets: RunAgent | str | Path,
    benchmark: str | Path | Benchmark | None = None,
    split: SplitName | None = None,
    tasks: Sequence[str] = (),
    attempts: int = 1,
    model: str | Script | None = None,
    max_usd: float | None = None,
    workers: int | None = None,
    into: str | Path | None = None,
    settings: SettingValues | None = None,
    allow_paid: bool = False,
    watcher: Watcher | None = None,
    on_event: OnEvent | None = None,
) -> EvaluationView:
    """Evaluate agents on every task of a split, or grade a file of patches.

    The results are recorded in a folder of their own. The same call again continues there and pays for nothing twice.

    Args:
        targets: RUN:AGENT (small:best), an agent's folder or git URL, or one .jsonl/.json file of predictions.
        benchmark: Name or folder of a suite [default: the run's, or starter].
        split: Tasks to use [default: holdout; all for predictions].
        tasks: Only this task; repeatable.
        attempts: Attempts per task; 3 show which tasks are flaky.
        model: Model that the agents use [default: the run's, or auto].
        max_usd: Spending limit, earlier sessions included.
        workers: Parallel evaluations.
        into: Folder to record in [default: in the run or the archive].
        settings: A setting such as limits.time_factor=3 or sandbox=docker.
        allow_paid: Whether the model ``auto`` may stand for one that costs money.
        watcher: Is informed and asked on the way.
        on_event: Is called with each event of the evaluation, model calls left out, once it is on disk.

    Raises:
        UserError: what is wrong, before anything is spent.
        ArchiveBusy: another process is writing this evaluation.
        Infrastructure: a sandbox or a model failed before the first task.
    """
    check_amount("max_usd", max_usd)
    if not 1 <= attempts <= MAX_ATTEMPTS:
        raise UserError(f"{attempts} is not from 1 to {MAX_ATTEMPTS}", argument="attempts")
    check_workers(workers)
    settings, engines = split_engine(settings)
    file = _predictions_file(targets)
    chosen = EvaluationChoice(
        benchmark=name_of("benchmarks", benchmark),
        split=_parse_split(split or ("all" if file else "holdout")),
        tasks=tasks,
        attempts=attempts,
        model=model_of(model),
        max_usd=max_usd,
        workers=workers,
        into=path_of(into),
        assignments=assignments_of(settings),
    )

    watcher = watcher or Watcher(on_event, allow_paid=allow_paid)
    with use_engine(engines):
        if file:
            return run_session(lambda: _grade(file, chosen, watcher), watcher)
        return run_session(lambda: _evaluate(targets, chosen, watcher), watcher)


async def _evaluate(
    targets: Sequence[RunAgent | str | Path], chosen: EvaluationChoice, watcher: Watcher
) -> EvaluationView:
    with ExitStack() as opened:
        runs: dict[Path, Run] = {}
        contestants = [_read_target(target, runs, opened) for target in targets]
        if not contestants:
            raise UserError("name the agents to evaluate: RUN:AGENT, or the folder of an agent")
        if len(runs) > 1:
            names = " and ".join(run.name for run in runs.values())
            raise UserError(f"these agents belong to {names}; evaluate those of one run at a time")
        run = next(iter(runs.values()), None)
        if run is not None:
            check_performed(run)
            if chosen.into is None:
                check_unpacked(run.folder)
        session = await prepare(make_request(run, contestants, chosen, watcher), watcher)
        with session.run:
            return session.view(await session.perform(watcher))


def _read_target(target: RunAgent | str | Path, runs: dict[Path, Run], opened: ExitStack) -> Contestant:
    """Return the agent of a target; add its run to ``runs``."""
    if isinstance(target, RunAgent):
        runs.setdefault(target.run.folder.resolve(), target.run)
        return contestant_of(target.run, target.agent)
    name, _, agent = str(target).rpartition(":")
    if not name or isinstance(target, Path) or _is_agent_source(str(target)):
        _check_not_run(str(target))
        return read_contestant(str(target))
    folder = find_run(name).resolve()
    if folder not in runs:
        runs[folder] = opened.enter_context(Run.open(folder))
    return contestant_of(runs[folder], find_agent(runs[folder], agent))


def _is_agent_source(text: str) -> bool:
    """Return whether a text with a colon is a folder or a git address, and no RUN:AGENT."""
    return Path(text).exists() or "://" in text or "::" in text or "@" in text.partition(":")[0]


def _check_not_run(name: str) -> None:
    if name in seed_names() or (Path(name).is_dir() and not (Path(name) / "run.json").exists()):
        return
    try:
        locate_run(name)
    except UserError:
        return
    raise UserError(
        f"{name} is a run; name an agent of it",
        hint=Hint("for the best one", "evaluate", (f"{name}:best",)),
    )


def contestant_of(run: Run, agent: Agent) -> Contestant:
    """Return an agent of a run as a contestant."""
    return Contestant(
        f"agent {agent.id}", agent.commit, lambda: run.repository.source(agent.commit), vetted=True
    )


def read_contestant(where: str) -> Contestant:
    """Return the agent in a folder or git repository as a contestant; raise as ``read_seed``."""
    source = read_seed(where)
    return Contestant(where, tree_id(source), lambda: source)


def make_request(
    run: Run | None, contestants: Sequence[Contestant], chosen: EvaluationChoice, watcher: Watcher
) -> EvaluationRequest:
    """Return an evaluation with its settings resolved.

    Args:
        run: gives settings and folder; None: the defaults.
        contestants: equal ones count once.
        chosen: the tasks, and changes of the settings.
        watcher: is asked about a model that costs money.

    Raises:
        ConsentNeeded: the run may be a stranger's, and names addresses of its own.
        UserError: a setting is unknown, does not fit or may not be set here.
    """
    unique = list({contestant.key: contestant for contestant in contestants}.values())
    return EvaluationRequest(
        contestants=unique,
        base=run.folder if run else next(archive_folders()).absolute(),
        prefix="evaluate" if run else "evaluate-" + "-".join(contestant.key[:8] for contestant in unique),
        of=run.config["id"] if run else "",
        settings=build_settings(run, chosen, watcher),
        chosen=chosen,
        named_model=bool(chosen.model),
        unchanged=run if chosen.benchmark is None else None,
    )


def build_settings(
    run: Run | None,
    chosen: EvaluationChoice,
    watcher: Watcher,
    allowed: Sequence[str] = SETTABLE,
    who: str = "an evaluation",
) -> Settings:
    """Return the settings of an evaluation: the run's with another model for all roles.

    Args:
        run: None: the defaults.
        chosen: changes of the settings.
        watcher: is asked about a model that costs money.
        allowed: top-level names of settings that may be set.
        who: the subject of the message about another one.

    Raises:
        ConsentNeeded: the run may be a stranger's, and names addresses of its own.
        UserError: a setting is unknown, does not fit or may not be set here.
    """
    before = settings_of(run) if run else Settings()
    base = before.model_dump(mode="json")
    # An evaluation neither improves nor diagnoses: no other model needs to be there, or be paid.
    base["model"] = chosen.model or names_by_role(before)["solve"]
    base["models"] |= {"solve": None, "improve": None, "diagnose": None}
    if run:
        base["sandbox"] = choose_sandbox(run)
    settings = _assign(base, chosen, allowed, who)
    if run:
        require_consent(run, settings)
    return name_models(settings, watcher)


def _assign(
    base: dict[str, Any], chosen: EvaluationChoice, allowed: Sequence[str], who: str = "an evaluation"
) -> Settings:
    changes = {"benchmark": chosen.benchmark, "workers": chosen.workers}
    base |= {key: value for key, value in changes.items() if value is not None}
    return make_paths_absolute(apply_assignments(base, chosen.assignments, allowed, who))


async def prepare(request: EvaluationRequest, watcher: Watcher) -> EvaluationSession:
    """Find every error, open the evaluation to write, and enter its agents; pay only for the models' checks.

    Returns:
        The session; the caller closes its run.

    Raises:
        UserError: the first thing wrong.
        ArchiveBusy: another process is writing the evaluation.
        Infrastructure: a sandbox or a model failed.
    """
    settings = request.settings
    packages = _common_packages(request.contestants)
    with watcher.step("opening the benchmark and its sandboxes"):
        parts = assemble.parts_of(settings)
    if request.unchanged:
        assemble.check_benchmark(request.unchanged, parts)
    tasks = select_tasks(parts.benchmark, request.chosen.split, request.chosen.tasks)
    folder = request.folder(parts.benchmark.name)
    plan = {
        "of": request.of,
        "benchmark": parts.benchmark.name,
        "version": parts.benchmark.version,
        "split": request.split,
        "requires": packages,
        "model": names_by_role(settings)["solve"],
        "limits": settings.limits.model_dump(mode="json"),
        "benchmarks": settings.benchmarks.model_dump(mode="json"),
        "grading": settings.grading.model_dump(mode="json"),
        # Earlier evaluations have no such key.
        **(
            {}
            if settings.conduct == ConductSettings()
            else {"conduct": settings.conduct.model_dump(mode="json")}
        ),
        **request.facts,
    }
    if not (folder / "run.json").exists():
        await require_models(settings)
        await _rehearse(request.contestants, settings, parts, watcher)
    run = await open_evaluation(folder, plan, settings, parts, watcher)
    return await begin_session(run, request, parts, tasks, watcher)


async def begin_session(
    run: Run, request: EvaluationRequest, parts: assemble.RunParts, tasks: Sequence[Task], watcher: Watcher
) -> EvaluationSession:
    """Enter the agents in an evaluation and begin a session, unless all of it was done before.

    The caller closes the session's run; an error closes it at once.
    """
    try:
        return await _begin_session(run, request, parts, tasks, watcher)
    except BaseException:
        run.close()
        raise


async def _begin_session(
    run: Run, request: EvaluationRequest, parts: assemble.RunParts, tasks: Sequence[Task], watcher: Watcher
) -> EvaluationSession:
    max_usd = request.chosen.max_usd
    if run.tree.agents:
        plan = make_plan(run, request, tasks)
        if len(plan.agents) == len(request.contestants) and not EvaluationProgress.read(run).missing(
            plan.wanted
        ):
            return _session_of(run, request, parts, tasks, missing=False)
        # Find this out before any model is called.
        _find_usd_limit(run, max_usd)
        new = [item for item in request.contestants if find_entered(run, item.key) is None]
        await _rehearse(new, request.settings, parts, watcher)
        checks = await check_models_again(run, request.settings, watcher)
        note_checks(run, request.settings, checks)
    for contestant in request.contestants:
        enter(run, contestant.key, contestant.source)
    session = _session_of(run, request, parts, tasks, missing=True)
    session.begin(_find_usd_limit(run, max_usd))
    return session


def _session_of(
    run: Run, request: EvaluationRequest, parts: assemble.RunParts, tasks: Sequence[Task], *, missing: bool
) -> EvaluationSession:
    plan = make_plan(run, request, tasks)

    def open_search(on_event: Callable[[Recorded], None]) -> AbstractAsyncContextManager[Search]:
        choose = request.choose
        schedule = Schedule(lambda _: choose(run, plan, schedule.progress) if choose else plan.wanted)
        return assemble.search(run, request.settings, parts, on_event, schedule)

    return EvaluationSession(
        run=run,
        benchmark=parts.benchmark,
        split=request.split,
        model=names_by_role(request.settings)["solve"],
        names=[contestant.name for contestant in request.contestants],
        plan=plan,
        tasks=tasks,
        open_search=open_search,
        missing=missing,
        settings=request.settings,
    )


def make_plan(run: Run, request: EvaluationRequest, tasks: Sequence[Task]) -> EvaluationPlan:
    """Return the plan of those agents that are entered in the evaluation."""
    entered = {contestant.key: find_entered(run, contestant.key) for contestant in request.contestants}
    ids = {key: agent for key, agent in entered.items() if agent is not None}
    if request.pairs is not None:
        return EvaluationPlan([Evaluate(ids[key], task) for key, task in request.pairs if key in ids])
    return EvaluationPlan.all_pairs(list(ids.values()), [task.id for task in tasks], request.chosen.attempts)


def _common_packages(contestants: Sequence[Contestant]) -> list[str]:
    """Return the agents' packages and image, which are the same for all agents of one evaluation."""
    try:
        needs = {contestant.name: _describe_needs(contestant.source()) for contestant in contestants}
    except AgentFault as fault:
        raise UserError(f"nothing that can work on a task: {fault}") from fault
    first = next(iter(needs))
    for name, packages in needs.items():
        if packages != needs[first]:
            raise UserError(
                f"{name} requires other packages or another image than {first}; evaluate each in a folder of its own"
            )
    return needs[first]


def _describe_needs(source: Snapshot) -> list[str]:
    contract = read_contract(source)
    needs = sorted(contract.requires)
    if contract.image:
        file = source.get(contract.image)
        needs.append(f"image {contract.image} {sha256(file.data).hexdigest()[:16] if file else ''}".strip())
    return needs


async def _rehearse(
    contestants: Sequence[Contestant], settings: Settings, parts: assemble.RunParts, watcher: Watcher
) -> None:
    """Find out whether unvetted agents can start; raise as ``rehearse``."""
    for contestant in contestants:
        if not contestant.vetted:
            with watcher.step(f"starting {contestant.name} in a sandbox"):
                await rehearse(contestant.name, contestant.source(), parts.engine, settings)


def _find_usd_limit(run: Run, max_usd: float | None) -> float | None:
    """Return the limit of all sessions in USD: the new one, else the last one."""
    spent = run.tree.spend.usd
    if max_usd is not None and max_usd <= spent:
        raise UserError(f"the evaluation has cost {spent:.4f} USD already, of {max_usd}", argument="max_usd")
    return run.tree.budget.usd if max_usd is None else max_usd


# Predictions


def _predictions_file(targets: Sequence[RunAgent | str | Path]) -> Path | None:
    """Return the file of predictions, if that is what is to be evaluated."""
    files = [
        Path(target)
        for target in targets
        if isinstance(target, str | Path) and str(target).endswith(SUFFIXES) and not Path(target).is_dir()
    ]
    if files and len(targets) > 1:
        raise UserError(f"{files[0]}: a file of predictions is graded alone")
    return files[0] if files else None


async def _grade(file: Path, chosen: EvaluationChoice, watcher: Watcher) -> EvaluationView:
    """Grade those predictions of a file that have no verdict yet; no agent works and no model is called."""
    for name, value in (("model", chosen.model), ("max_usd", chosen.max_usd)):
        if value:
            raise UserError(
                "does not apply to predictions: no agent works, patches are only graded", argument=name
            )
    if chosen.attempts != 1:
        raise UserError("predictions are graded once", argument="attempts")
    if not chosen.benchmark:
        raise UserError(
            "name the suite that the predictions are for, such as swebench:verified", argument="benchmark"
        )
    predictions = read_predictions(file)
    settings = _assign(
        Settings().model_dump(mode="json") | {"model": NO_MODEL},
        chosen,
        ("benchmarks", "grading", "limits", "workers", "sandbox"),
    )
    with watcher.step("opening the benchmark and its sandboxes"):
        parts = assemble.parts_of(settings)
    check_known(predictions, parts.benchmark)
    everything = [
        task.id for part in Split if chosen.split in (None, part) for task in parts.benchmark.tasks(part)
    ]
    tasks = _select_predicted(parts.benchmark, predictions, chosen, file)
    words = ["predictions", file.stem, parts.benchmark.name, predictions.digest[:8]]
    folder = chosen.into or next(archive_folders()).absolute() / "-".join(map(make_slug, words))
    plan = {
        "benchmark": parts.benchmark.name,
        "version": parts.benchmark.version,
        "predictions": predictions.digest,
        "benchmarks": settings.benchmarks.model_dump(mode="json"),
        "grading": settings.grading.model_dump(mode="json"),
    }
    with await open_evaluation(folder, plan, settings, parts, None) as run:
        agent = enter(run, predictions.model, predictions.source, GRADED)
        wanted = EvaluationPlan.all_pairs((agent,), tuple(task.id for task in tasks))
        session = EvaluationSession(
            run=run,
            benchmark=parts.benchmark,
            split=chosen.split.value if chosen.split else "submitted",
            model="",
            names=[predictions.model],
            plan=wanted,
            tasks=tasks,
            open_search=_open_grading(run, wanted, predictions, settings, parts),
            missing=bool(EvaluationProgress.read(run).missing(wanted.wanted)),
        )
        if session.missing:
            session.begin(None)
        view = session.view(await session.perform(watcher))
        graded = {task.id: predictions.by_task[task.id] for task in tasks}
        report = swebench_report(Predictions(predictions.model, graded), session.results()[0], everything)
        write_durably(folder / REPORT, json.dumps(report, indent=4).encode() + b"\n")
    return view.model_copy(update={"report": report, "left_out": len(predictions.by_task) - len(tasks)})


def _open_grading(
    run: Run, plan: EvaluationPlan, predictions: Predictions, settings: Settings, parts: assemble.RunParts
) -> OpenSearch:
    labels = {"dgm.run": str(run.config["id"]), "dgm.host": machine_name()}

    @asynccontextmanager
    async def open_search(on_event: Callable[[Recorded], None]) -> AsyncIterator[Search]:
        await parts.engine.reap(labels)
        try:
            grader = Grader(run, parts.benchmark, predictions, labels)
            controller = RunController(run, settings)
            yield Search(controller, Schedule(lambda _: plan.wanted), grader, settings, LoopHooks(on_event))
        finally:
            await asyncio.shield(parts.engine.reap(labels))

    return open_search


def _select_predicted(
    benchmark: Benchmark, predictions: Predictions, chosen: EvaluationChoice, file: Path
) -> Sequence[Task]:
    """Return the tasks to grade, in the order of the file."""
    for name in chosen.tasks:
        if name not in predictions.by_task:
            raise UserError(f"{file} has no prediction for {name}", argument="tasks")
    part = chosen.split
    within = {task.id for task in benchmark.tasks(part)} if part else set(predictions.by_task)
    ids = [
        task for task in predictions.by_task if task in within and (not chosen.tasks or task in chosen.tasks)
    ]
    if not ids:
        raise UserError(f"{file}: no prediction is on a {part} task of {benchmark.name!r}")
    return [benchmark.task(task) for task in ids]


def _parse_split(name: str) -> Split | None:
    if name == "all":
        return None
    try:
        return Split(name)
    except ValueError as error:
        names = ", ".join(get_args(SplitName))
        raise UserError(f"{name!r} is none of {names}", argument="split") from error
