"""Searches from a program (``dgm run``, ``dgm resume``).

``evolve`` begins a search and ``open`` reads one and goes on with it, on the same path as the commands
(``dgm.launch``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from dgm import assemble, examinations, launch
from dgm.analysis.budgets import Ending
from dgm.api.arguments import assignments_of, model_of, name_of
from dgm.api.results import ReportView, Results
from dgm.archive.finding import check_unpacked
from dgm.archive.run import Run
from dgm.benchmarks.opening import make_paths_absolute
from dgm.blocking import OnEvent, ProgramWatcher, block, in_python
from dgm.config.resolving import key_path, resolve, resolve_layers
from dgm.evaluation.control import MOST
from dgm.evaluation.evaluating import apply_assignments
from dgm.models.reach import file_models, require_own_file
from dgm.models.scripted import Script
from dgm.policies.composed import Composition
from dgm.protocols import Benchmark, Operator, Policy
from dgm.sandboxes.engine_address import use_engine
from dgm.search.mending import SETTABLE
from dgm.search.model_checks import check_models
from dgm.simulation import check_performed


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a search; a search without any ends after 160 evaluations."""

    usd: float | None = None
    """Money for all model calls, failed work included."""
    evaluations: int | None = None
    """Graded evaluations."""
    agents: int | None = None
    """Members of the archive, the seed included."""
    tokens: int | None = None
    """Tokens of all model calls, failed work included."""
    hours: float | None = None
    """Wall time over all sessions."""
    until_score: float | None = None
    """End when the lower bound of the best agent's rate on the search tasks reaches this share."""
    patience: int | None = None
    """End when no better agent was recommended in this many evaluations."""


class EvolveArguments(TypedDict, total=False):
    """Arguments of ``evolve`` and ``evolve_async``; each may be left out."""

    config: str | Path | None
    """A TOML file of settings; the other arguments win over it."""
    seed_agent: str | Path | None
    """``plain``, ``solid``, a folder or a git URL; None: ``plain`` for the offline model, else ``solid``."""
    benchmark: str | Path | Benchmark | None
    """A name, a folder or an object; the starter suite unless it is given."""
    model: str | Script | None
    """A name; or replies, or a function that returns them, to test an agent (``docs/models.md``, scripted replies)."""
    policy: str | Policy | type | Composition | None
    """A name, an object, or its class, which another process makes anew without arguments."""
    operators: Sequence[str | Operator | type] | str | None
    budget: Budget | None
    workers: int | None
    seed: int | None
    """The number that all decisions follow from."""
    sandbox: str | None
    engine: str | Sequence[str] | None
    """Address of the Docker engine, such as ``ssh://user@host``, or several; else as the environment says."""
    name: str | None
    """Name of the run: of its folder under ``./archive`` or ``$DGM_ARCHIVE``."""
    settings: Mapping[str, Any] | None
    """Any further setting by its dotted name (``dgm settings`` lists them)."""
    allow_paid: bool
    """If true, ``model="auto"`` may choose a model that costs money."""


class ResumeArguments(TypedDict, total=False):
    """Arguments of ``resume`` and ``resume_async``; each may be left out."""

    budget: Budget | None
    """Limits that replace the old ones; the others stay."""
    workers: int | None
    """Actions at once, for this session."""
    benchmark: str | Path | None
    """Where the same benchmark lies now."""
    settings: Mapping[str, Any] | None
    """``models.*``, ``providers.*``, ``limits.*``, ``scale.*``, ``workers`` or ``sandbox`` from here on."""
    engine: str | Sequence[str] | None
    """Address of the Docker engine, or several, for this session; the run's unless it is given."""
    regrade: bool
    """If true, evaluations of agents whose model was refused are performed again."""
    objects: Sequence[Policy | Operator]
    """The policy and operators that were passed to ``evolve``, where the run could not record their values."""


class Evolution(Results):
    """A search that can be read, reported on, and gone on with."""

    def resume(self, *, on_event: OnEvent | None = None, **changes: Unpack[ResumeArguments]) -> "Evolution":
        """Go on with the search, and return it as it is then; blocks, and ends on Ctrl-C, as ``evolve`` does.

        Args:
            on_event: is called with each event of the search, model calls left out, once it is on disk.
            changes: see ``ResumeArguments``.

        Raises:
            UserError: what is wrong, before anything is spent.
            ArchiveBusy: another process works on the run.
        """
        return block(lambda session: self._resume(session, **changes), on_event)

    async def resume_async(
        self, *, on_event: OnEvent | None = None, **changes: Unpack[ResumeArguments]
    ) -> "Evolution":
        """Go on with the search; nothing that was paid for is lost. As ``resume``."""
        with in_python():
            return await self._resume(ProgramWatcher(on_event), **changes)

    async def _resume(  # noqa: PLR0913  (all have their usual value)
        self,
        session: ProgramWatcher,
        *,
        budget: Budget | None = None,
        workers: int | None = None,
        benchmark: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
        engine: str | Sequence[str] | None = None,
        regrade: bool = False,
        objects: Sequence[Policy | Operator] = (),
    ) -> "Evolution":
        for thing in objects:
            name_of("policies" if hasattr(thing, "next") else "operators", thing)
        check_unpacked(self.folder)
        with use_engine(engine), Run.open(self.folder, write=True) as run:
            launch.check_is_search(run)
            before = assemble.settings_of(run)
            after = apply_assignments(
                before.model_dump(mode="json"), assignments_of(settings), SETTABLE, "resume()"
            )
            if benchmark is not None:
                after = make_paths_absolute(after.model_copy(update={"benchmark": str(benchmark)}))
            limits = launch.change_budget(assemble.budget_of(run, after), asdict(budget or Budget()))
            ready = await launch.prepare_again(run, after, limits, session, regrade=regrade)
            if workers is not None:
                ready = replace(ready, settings=ready.settings.model_copy(update={"workers": workers}))
            ending = await launch.perform(run, ready, session)
        return type(self).open(self.folder, ending)

    def report(  # noqa: PLR0913  (all have their usual value)
        self,
        *,
        holdout: bool = False,
        max_usd: float | None = None,
        control: bool = False,
        control_attempts: int = MOST,
        workers: int | None = None,
        engine: str | Sequence[str] | None = None,
        on_event: OnEvent | None = None,
    ) -> ReportView:
        """Return the report; blocks while the seed and the best agent work on the holdout tasks.

        Args:
            holdout: perform the missing evaluations first; ``ending`` says how that ended. Existing ones cost nothing.
            max_usd: USD for all holdout evaluations; None: the rest of the run's own limit.
            control: also give the seed as many attempts as the search's spend would have bought; implies ``holdout``.
                It can take longer than the search.
            control_attempts: maximum number of the control's attempts at each task.
            workers: tasks at once; None: as in the run.
            engine: address of the Docker engine for them, or several; None: the environment's.
            on_event: is called with each event of the holdout evaluations.

        Raises:
            UserError: the benchmark has no holdout tasks, a model cannot be asked, or the control would show nothing
                because the model gives equal answers to equal requests.
        """
        if holdout or control:
            attempts = control_attempts if control else None

            async def examine(session: ProgramWatcher) -> Ending | None:
                with use_engine(engine):
                    return await self._examine(session, max_usd, attempts, workers)

            over = block(examine, on_event)
            self.ending = over or self.ending
        return super().report()

    async def _examine(
        self, session: ProgramWatcher, max_usd: float | None, attempts: int | None, workers: int | None
    ) -> Ending | None:
        run = self.run
        check_performed(run)
        settings = assemble.settings_of(run)
        if workers is not None:
            settings = settings.model_copy(update={"workers": workers})
        plan = examinations.plan_control(run, settings, attempts) if attempts else None
        needed = examinations.find_needed_exam(run, settings, max_usd, plan)
        if needed is None or isinstance(needed, Ending):
            return needed
        checks = await check_models(settings, run.tree.model_facts.abilities)
        with assemble.open_exam(run, settings, needed.parts) as exam:
            examinations.begin_needed_exam(exam, run, needed, settings, checks)
            return await assemble.examine(exam, settings, needed.parts, session.event)


def evolve(*, on_event: OnEvent | None = None, **given: Unpack[EvolveArguments]) -> Evolution:
    """Search for better agents, and return the run when it has ended; blocks, also where a loop runs (a notebook).

    Ctrl-C once ends in good order: what is under way ends and is recorded. Twice stops at once, with
    ``KeyboardInterrupt``; either way nothing recorded is lost, and ``resume`` goes on.

    Args:
        on_event: is called with each event of the search, model calls left out, once it is on disk.
        given: see ``EvolveArguments``.

    Raises:
        UserError: what is wrong, before anything is spent.
        Infrastructure: a sandbox or a model failed before the search began.
    """
    return block(lambda session: _evolve(session, **given), on_event)


async def evolve_async(*, on_event: OnEvent | None = None, **given: Unpack[EvolveArguments]) -> Evolution:
    """Search for better agents, and return the run when it has ended. As ``evolve``, without Ctrl-C."""
    with in_python():
        return await _evolve(ProgramWatcher(on_event), **given)


def open(name: str | Path) -> Evolution:  # noqa: A001  (as gzip.open, tarfile.open)
    """Open a run to read it and to go on with it.

    Args:
        name: its folder, its name under ``./archive`` or ``$DGM_ARCHIVE``, or a packed run.

    Raises:
        UserError: there is none.
        ArchiveCorrupt: it is damaged.
    """
    return Evolution.open(name)


async def _evolve(  # noqa: PLR0913  (all have their usual value)
    session: ProgramWatcher,
    *,
    config: str | Path | None = None,
    seed_agent: str | Path | None = None,
    benchmark: str | Path | Benchmark | None = None,
    model: str | Script | None = None,
    policy: str | Policy | type | Composition | None = None,
    operators: Sequence[str | Operator | type] | str | None = None,
    budget: Budget | None = None,
    workers: int | None = None,
    seed: int | None = None,
    sandbox: str | None = None,
    engine: str | Sequence[str] | None = None,
    name: str | None = None,
    settings: Mapping[str, Any] | None = None,
    allow_paid: bool = False,
) -> Evolution:
    session.allow_paid = allow_paid
    chosen = {
        "seed_agent": None if seed_agent is None else str(seed_agent),
        "benchmark": name_of("benchmarks", benchmark),
        "model": model_of(model),
        "operator": _joined(operators),
        "workers": workers,
        "seed": seed,
        "sandbox": sandbox,
        **{f"policy.{part}": value for part, value in _policy(policy).items()},
        **{f"budget.{limit}": value for limit, value in asdict(budget or Budget()).items()},
        **(settings or {}),
    }
    table = _nested({key: value for key, value in chosen.items() if value is not None})
    layers = [*_read_layers(config), ("dgm.evolve", table)]
    resolved = make_paths_absolute(resolve_layers(layers, Path.cwd()))
    if config:
        require_own_file(Path(config), resolved, file_models(Path(config)))
    folder = launch.new_folder(name)
    with use_engine(engine):
        prepared = await launch.prepare(resolved, session)
        with launch.create(folder, prepared) as run:
            ending = await launch.perform(run, prepared, session)
    return Evolution.open(folder, ending)


def _read_layers(config: str | Path | None) -> list[tuple[str, dict[str, Any]]]:
    """Return the settings of a file, paths in it resolved from its folder on."""
    if config is None:
        return []
    return [(str(config), resolve(Path(config), (), {}).model_dump(mode="json", exclude_unset=True))]


def _joined(operators: Sequence[Any] | str | None) -> str | None:
    if operators is None or isinstance(operators, str):
        return operators
    return "+".join(str(name_of("operators", each)) for each in operators)


def _policy(given: Any) -> Mapping[str, Any]:  # noqa: ANN401  (a name or any object)
    """Return the settings of a policy; a composition is the usual policy with its parts exchanged."""
    return asdict(given) if isinstance(given, Composition) else {"name": name_of("policies", given)}


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as tables; a table that is given stays one."""
    table: dict[str, Any] = {}
    for key, value in values.items():
        *path, last = key_path(key)
        place = table
        for part in path:
            place = place.setdefault(part, {})
        place[last] = {**place.get(last, {}), **value} if isinstance(value, Mapping) else value
    return table
