"""Evaluations of agents on every task of a split, outside of a search."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from dgm import assemble
from dgm.api.watcher import Watcher
from dgm.archive.events import Recorded
from dgm.archive.finding import archive_folders
from dgm.archive.repository import tree_id
from dgm.archive.run import Run
from dgm.benchmarks.opening import make_paths_absolute
from dgm.config import Settings
from dgm.domain import Agent, Snapshot, Split, Task
from dgm.errors import AgentFault, UserError
from dgm.evaluation.evaluating import EvaluationPlan, EvaluationProgress, Schedule, apply_assignments
from dgm.evaluation.exam import enter_under_key, find_entered
from dgm.launch import name_models
from dgm.meta.contract import read_contract
from dgm.meta.seeds import read_seed
from dgm.models.choose import names_by_role
from dgm.replay.recorded import choose_sandbox
from dgm.search.availability import GatewayAvailability
from dgm.search.loop import LoopHooks, Search
from dgm.search.run_controller import RunController
from dgm.search.run_settings import require_consent
from dgm.sessions.evaluation_folder import (
    EvaluationSession,
    check_again,
    make_slug,
    open_evaluation,
    select_tasks,
)
from dgm.worker.rehearsal import rehearse

SETTABLE = ("models", "providers", "limits", "benchmarks", "grading", "workers", "sandbox", "scale")


@dataclass(frozen=True, slots=True)
class Contestant:
    """An agent under evaluation."""

    name: str
    """Name for people."""
    key: str
    """Key of the agent's entry in the evaluation."""
    source: Callable[[], Snapshot]
    vetted: bool = False
    """Whether the agent passed vetting at birth, or was the seed of a search."""


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """The agents, tasks and conditions of an evaluation."""

    contestants: Sequence[Contestant]
    base: Path
    """Parent of the evaluation's folder, unless the user names another folder."""
    prefix: str
    """Prefix of the folder's name."""
    of: str
    """Id of the run that the agents belong to; empty if they belong to none."""
    settings: Settings
    split: Split | None
    """None: the tasks of all splits."""
    tasks: tuple[str, ...]
    """Ids of the tasks; if empty, all of the split."""
    attempts: int
    max_usd: float | None
    into: Path | None
    named_model: bool = False
    """Whether the folder's name says the model."""


@dataclass(frozen=True, slots=True)
class EvaluationChoice:
    """Choices for an evaluation; None: as in the run, or by default."""

    benchmark: str | None = None
    split: Split | None = Split.HOLDOUT
    """None: the tasks of all splits."""
    tasks: Sequence[str] = ()
    attempts: int = 1
    model: str | None = None
    max_usd: float | None = None
    workers: int | None = None
    sandbox: str | None = None
    into: Path | None = None
    """Its folder."""
    assignments: Sequence[str] = ()
    """Settings in the form of ``--set``."""


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
        run: whose settings and folder it takes, and whose agents are among the contestants; None: the defaults.
        contestants: each counts once.
        chosen: the tasks, and what changes of the settings.
        watcher: is asked about a model that costs money.

    Raises:
        ConsentNeeded: the run may be a stranger's, and names addresses of its own.
        UserError: a setting is unknown, does not fit or may not be set here.
    """
    return EvaluationRequest(
        contestants=list({one.key: one for one in contestants}.values()),
        base=run.folder if run else next(archive_folders()).absolute(),
        prefix="evaluate" if run else "evaluate-" + "-".join(one.key[:8] for one in contestants),
        of=run.config["id"] if run else "",
        settings=_build_settings(run, chosen, watcher),
        split=chosen.split,
        tasks=tuple(chosen.tasks),
        attempts=chosen.attempts,
        max_usd=chosen.max_usd,
        into=chosen.into,
        named_model=bool(chosen.model),
    )


def _build_settings(run: Run | None, chosen: EvaluationChoice, watcher: Watcher) -> Settings:
    before = assemble.settings_of(run) if run else Settings()
    base = before.model_dump(mode="json")
    # An evaluation neither improves nor diagnoses: no other model needs to be there, or be paid.
    base["model"] = chosen.model or names_by_role(before)["solve"]
    base["models"] |= {"solve": None, "improve": None, "diagnose": None}
    if run:
        base["sandbox"] = choose_sandbox(run)
    own = {"benchmark": chosen.benchmark, "workers": chosen.workers, "sandbox": chosen.sandbox}
    base |= {key: value for key, value in own.items() if value is not None}
    settings = apply_assignments(base, chosen.assignments, SETTABLE, "dgm evaluate")
    if run:
        require_consent(run, settings)
    return name_models(make_paths_absolute(settings), watcher)


async def prepare(request: EvaluationRequest, watcher: Watcher) -> EvaluationSession:
    """Find every error, open the evaluation to write, and enter its agents; pay only for the models' checks.

    Returns:
        The session; its run is closed by the caller.

    Raises:
        UserError: the first thing wrong.
        ArchiveBusy: another process is writing the evaluation.
        Infrastructure: a sandbox or a model failed.
    """
    packages = _common_packages(request.contestants)
    parts = assemble.parts_of(request.settings)
    tasks = select_tasks(parts.benchmark, request.split, request.tasks)
    model = names_by_role(request.settings)["solve"]
    folder = evaluation_folder(request, parts.benchmark.name)
    frozen = {
        "of": request.of,
        "benchmark": parts.benchmark.name,
        "version": parts.benchmark.version,
        "split": _name_of(request.split),
        "requires": packages,
        "model": model,
        "limits": request.settings.limits.model_dump(mode="json"),
        "benchmarks": request.settings.benchmarks.model_dump(mode="json"),
        "grading": request.settings.grading.model_dump(mode="json"),
    }
    if not (folder / "run.json").exists():
        await _rehearse(request.contestants, request, parts)
    made = await open_evaluation(folder, frozen, request.settings, parts, watcher)
    try:
        return await _begin(made, request, parts, tasks, watcher)
    except BaseException:
        made.close()
        raise


def evaluation_folder(request: EvaluationRequest, benchmark: str) -> Path:
    """Return the folder of an evaluation, whether it exists or not; ``benchmark`` is the benchmark's own name."""
    model = [names_by_role(request.settings)["solve"]] if request.named_model else []
    words = [request.prefix, benchmark, _name_of(request.split), *model]
    return request.into or request.base / "-".join(map(make_slug, words))


def _name_of(split: Split | None) -> str:
    return split.value if split else "all"


async def _begin(
    made: Run, request: EvaluationRequest, parts: assemble.RunParts, tasks: Sequence[Task], watcher: Watcher
) -> EvaluationSession:
    """Enter the agents and begin a session, unless all of it was done before."""
    if made.tree.agents:
        wanted = make_plan(made, request, tasks)
        if len(wanted.agents) == len(request.contestants) and not EvaluationProgress(made).missing(wanted):
            return _session_of(made, request, parts, tasks, missing=False)
        # Find this out before any model is called.
        _find_usd_limit(made, request.max_usd)
        new = [one for one in request.contestants if find_entered(made, one.key) is None]
        await _rehearse(new, request, parts)
        await check_again(made, request.settings, watcher)
    for one in request.contestants:
        enter_under_key(made, one.key, one.source)
    session = _session_of(made, request, parts, tasks, missing=True)
    session.begin(_find_usd_limit(made, request.max_usd))
    return session


def _session_of(
    made: Run, request: EvaluationRequest, parts: assemble.RunParts, tasks: Sequence[Task], *, missing: bool
) -> EvaluationSession:
    wanted = make_plan(made, request, tasks)

    @asynccontextmanager
    async def searching(on_event: Callable[[Recorded], None]) -> AsyncIterator[Search]:
        async with assemble.open_worker(made, request.settings, parts, on_event) as worker:
            around = LoopHooks(on_event, GatewayAvailability(worker.gateway))
            controller = RunController(made, request.settings)
            yield Search(controller, Schedule(wanted), worker, request.settings, around)

    return EvaluationSession(
        made=made,
        benchmark=parts.benchmark,
        split=_name_of(request.split),
        model=names_by_role(request.settings)["solve"],
        names=[one.name for one in request.contestants],
        wanted=wanted,
        tasks=tasks,
        searching=searching,
        missing=missing,
    )


def _common_packages(contestants: Sequence[Contestant]) -> list[str]:
    """Return the agents' packages and image, which are the same for all agents of one evaluation."""
    try:
        needs = {one.name: _describe_needs(one.source()) for one in contestants}
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
        own = source.get(contract.image)
        needs.append(f"image {contract.image} {sha256(own.data).hexdigest()[:16] if own else ''}".strip())
    return needs


async def _rehearse(
    contestants: Sequence[Contestant], request: EvaluationRequest, parts: assemble.RunParts
) -> None:
    """Find out whether unvetted agents can start; raise as ``rehearse``."""
    for one in contestants:
        if not one.vetted:
            await rehearse(one.name, one.source(), parts.engine, request.settings)


def _find_usd_limit(made: Run, max_usd: float | None) -> float | None:
    """Return the total limit of the evaluation in USD: the one given now, else the last one chosen."""
    usd = max_usd if max_usd is not None else made.tree.budget.usd
    if max_usd is not None and max_usd <= made.tree.spend.usd:
        raise UserError(
            f"--max-usd {max_usd}: the evaluation has cost {made.tree.spend.usd:.4f} USD already; give more"
        )
    return usd


def make_plan(made: Run, request: EvaluationRequest, tasks: Sequence[Task]) -> EvaluationPlan:
    """Return the plan of those agents that are entered in the evaluation."""
    agents = [find_entered(made, one.key) for one in request.contestants]
    return EvaluationPlan(
        tuple(agent for agent in agents if agent is not None),
        tuple(task.id for task in tasks),
        request.attempts,
    )
